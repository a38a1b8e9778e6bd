/**
 * The progress clock of one run: is it working, or only alive?
 *
 * Owns: when progress was last seen, and the one timer that looks for silence. A plain struct: a frame costs a few assignments, and
 *   nothing of it enters the chart but edges (the first progress of a turn, the first after an advisory, a deadline that passed).
 * Does not own: what counts as progress (the protocol) and what silence means (the run chart).
 * Invariants: INV-9 (frozen time and time the machine slept do not count), K1, K4, K12.
 */
import type { TurnStamp } from '../machines/run/run.context.js'
import type { Cancel, Clock } from './ports.js'
import type { Silence, WatchdogLimits } from './watchdog-limits.js'

export interface ProgressEdges {
  /** The first progress of the turn, or the first after an advisory. */
  progressed(stamp: TurnStamp): void
  /** A deadline passed. Resolves false when the run did not take it, or could not record it: it is asked again (K7). */
  passed(silence: Silence, stamp: TurnStamp): Promise<boolean>
  hasOpenTool(): boolean
  /** CPU time that the tree has used since the last call, in ms; null where it cannot be told. */
  cpuUsedMs(): Promise<number | null>
}

/** Why the clock stands still although a turn is open. */
type Hold = 'frozen' | 'person'

/** Between what was told and the next look: what was not taken is told again, and nothing is told in a hot loop. */
const ASK_AGAIN_MS = 1_000
/** A tool that uses less of a core than this is not at work: an idle program wakes now and then too. */
const BUSY_SHARE_MIN = 0.01
/** How often in the time of its limit an open tool is looked at; a short limit is no reason to read the process table all the time. */
const TOOL_LOOKS = 4
const TOOL_LOOK_MIN_MS = 50

const deadline = (fromMs: number, limitMs: number | null): number =>
  limitMs === null ? Infinity : fromMs + limitMs

export class ProgressClock {
  readonly #clock: Clock
  readonly #limits: WatchdogLimits | null
  readonly #edges: ProgressEdges
  readonly #holds = new Set<Hold>()
  #attempt = 0
  #generation = 0
  #epoch = 0
  #progressedAttempt = 0
  /** When progress was last seen; moved on by what does not count as silence. */
  #lastMs = 0
  /** The same, and moved on by a tool that is at work (K9). */
  #busyMs = 0
  /** When the agent said that it is done; infinite while it has not. */
  #signalledMs = Infinity
  #toolLookMs = 0
  /** Whether the CPU time was read at the last look, so that the next reading says what was used since. */
  #isMeasuring = false
  #lastWallMs: number | null = null
  #hasTurn = false
  #isQuiet = true
  #hasAdvised = false
  #heldFromMs = 0
  /** When the timer is due; infinite while none is armed. */
  #dueMs = Infinity
  #cancel: Cancel = () => undefined

  constructor(clock: Clock, limits: WatchdogLimits | null, edges: ProgressEdges) {
    this.#clock = clock
    this.#limits = limits
    this.#edges = edges
  }

  /** K4: all that a fact must agree with, read together. */
  get stamp(): TurnStamp {
    return { attempt: this.#attempt, generation: this.#generation, epoch: this.#epoch }
  }

  /** Wall-clock time of the last progress, for people; null before the first. */
  get lastProgressAt(): number | null {
    return this.#lastWallMs
  }

  /** That turn is open, and the one that is watched. */
  isWatching({ attempt, generation }: Omit<TurnStamp, 'epoch'>): boolean {
    return this.#hasTurn && attempt === this.#attempt && generation === this.#generation
  }

  /** P9: whether that attempt has shown any, in whichever turn. */
  hasProgressedIn(attempt: number): boolean {
    return this.#progressedAttempt === attempt
  }

  /** How long the open turn has been silent, in ms; null while none is watched. */
  get quietMs(): number | null {
    if (!this.#hasTurn) return null
    const now = this.#holds.size > 0 ? this.#heldFromMs : this.#clock.monotonicMs()
    return Math.max(0, now - this.#lastMs)
  }

  /**
   * A turn is given to the agent. Called again when the prompt of that turn really goes out, which starts its silence anew and takes
   * back nothing that was seen (K1).
   */
  begin(attempt: number, generation: number): void {
    if (attempt !== this.#attempt || generation !== this.#generation) {
      this.#attempt = attempt
      this.#generation = generation
      this.#epoch = 0
      this.#isQuiet = true
      this.#hasAdvised = false
    }
    this.#hasTurn = true
    this.restart()
  }

  /** No turn is open any more. */
  rest(): void {
    this.#hasTurn = false
    this.#signalledMs = Infinity
    this.#disarm()
  }

  progress(): void {
    this.#epoch += 1
    this.#progressedAttempt = this.#attempt
    this.#lastMs = this.#clock.monotonicMs()
    this.#busyMs = this.#lastMs
    this.#signalledMs = Infinity
    this.#lastWallMs = this.#clock.wallMs()
    if (this.#isQuiet && this.#hasTurn) {
      this.#isQuiet = false
      this.#edges.progressed(this.stamp)
      // From here on other limits count.
      this.#arm()
    }
  }

  /** K4: what was told holds at this moment too: nothing has moved since, nothing is held, and its time has passed. */
  isStill(silence: Silence, seen: TurnStamp): boolean {
    if (this.#limits === null || seen.epoch !== this.#epoch || !this.isWatching(seen)) return false
    return this.#holds.size === 0 && this.#passed(this.#limits).includes(silence)
  }

  /** K1: new input starts the silence anew; nothing was seen by it, and it is no new epoch. */
  restart(): void {
    this.#lastMs = this.#clock.monotonicMs()
    this.#busyMs = this.#lastMs
    this.#toolLookMs = this.#lastMs
    this.#isMeasuring = false
    this.#signalledMs = Infinity
    this.#arm()
  }

  /** K10: the agent said that it is done, and its turn stays open. Saying it again is no progress. */
  signalled(): void {
    if (this.#signalledMs !== Infinity) return
    this.#signalledMs = this.#clock.monotonicMs()
    this.#arm()
  }

  /** The agent is at it again, which is no progress. */
  unsignalled(): void {
    this.#signalledMs = Infinity
  }

  /** O7, K9: silence is not the agent's while its tree is frozen or a person is asked. Repeated calls change nothing. */
  hold(reason: Hold): void {
    if (this.#holds.size === 0) this.#heldFromMs = this.#clock.monotonicMs()
    this.#holds.add(reason)
    this.#disarm()
  }

  release(reason: Hold): void {
    if (!this.#holds.delete(reason) || this.#holds.size > 0) return
    this.#push(this.#clock.monotonicMs() - this.#heldFromMs)
    this.#arm()
  }

  /** This much time did not count. What came within it counts from now on, and not from beyond it. */
  #push(ms: number): void {
    const nowMs = this.#clock.monotonicMs()
    this.#lastMs = Math.min(this.#lastMs + ms, nowMs)
    this.#busyMs = Math.min(this.#busyMs + ms, nowMs)
    this.#toolLookMs = Math.min(this.#toolLookMs + ms, nowMs)
    this.#isMeasuring = false
    if (this.#signalledMs !== Infinity) this.#signalledMs = Math.min(this.#signalledMs + ms, nowMs)
  }

  /** K12: whoever should have been here at that time and comes so much later did not watch the time in between. */
  #noteGap(expectedMs: number): void {
    const lateMs = this.#clock.monotonicMs() - expectedMs
    if (this.#limits !== null && lateMs > this.#limits.sleepGapMs) this.#push(lateMs)
  }

  /** What may pass next, each with its time, the milder first. */
  #deadlines(limits: WatchdogLimits): readonly (readonly [Silence, number])[] {
    const hasStarted = this.#epoch > 0
    const silentMs = hasStarted ? limits.advisoryMs : limits.neverStartedMs
    const stalledMs = this.#edges.hasOpenTool() ? limits.stalledToolMs : limits.stalledMs
    return [
      ['silent', this.#hasAdvised ? Infinity : deadline(this.#lastMs, silentMs)],
      ['exhausted', hasStarted ? deadline(this.#busyMs, stalledMs) : Infinity],
      ['completion-silent', deadline(this.#signalledMs, limits.completionSignalMs)],
    ]
  }

  #passed(limits: WatchdogLimits): readonly Silence[] {
    const nowMs = this.#clock.monotonicMs()
    return this.#deadlines(limits).flatMap(([silence, atMs]) => (atMs <= nowMs ? [silence] : []))
  }

  #nextLookMs(limits: WatchdogLimits): number {
    const nowMs = this.#clock.monotonicMs()
    const times = this.#deadlines(limits).map(([, atMs]) => atMs)
    if (this.#epoch === 0) return Math.min(...times)
    // No frame but the first arms anything, so that a tool may open or close unseen: both limits are looked at, also past their time.
    for (const limitMs of [limits.stalledMs, limits.stalledToolMs]) {
      if (limitMs === null) continue
      const atMs = this.#busyMs + limitMs
      times.push(atMs > nowMs ? atMs : nowMs + Math.max(limitMs, ASK_AGAIN_MS))
    }
    if (limits.stalledToolMs !== null) {
      const everyMs = Math.max(limits.stalledToolMs / TOOL_LOOKS, TOOL_LOOK_MIN_MS)
      times.push(Math.max(this.#toolLookMs + everyMs, nowMs))
    }
    return Math.min(...times)
  }

  /** Lazily: a timer that fires early looks at the clock and waits for the rest; and never longer than the gap that it must notice. */
  #arm(notBeforeMs = 0): void {
    this.#disarm()
    const limits = this.#limits
    if (limits === null || !this.#hasTurn || this.#holds.size > 0) return
    const nextMs = this.#nextLookMs(limits)
    if (nextMs === Infinity) return
    const nowMs = this.#clock.monotonicMs()
    const delayMs = Math.max(notBeforeMs, Math.min(nextMs - nowMs, limits.sleepGapMs))
    this.#dueMs = nowMs + delayMs
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#disarm()
      void this.#look(limits)
    })
  }

  /** K12: also a timer that is given up before it could fire knows how late it is. */
  #disarm(): void {
    this.#cancel()
    this.#noteGap(this.#dueMs)
    this.#dueMs = Infinity
  }

  async #look(limits: WatchdogLimits): Promise<void> {
    const { stamp } = this
    const lookedMs = this.#clock.monotonicMs()
    await this.#lookAtTool(limits)
    // Whoever held the clock, or gave it another turn, has armed the timer, or will.
    if (!this.isWatching(stamp) || this.#holds.size > 0) return
    this.#noteGap(lookedMs)
    const [silence] = this.#passed(limits)
    if (silence === undefined) {
      this.#arm()
      return
    }
    const seen = this.stamp
    const isTaken = await this.#edges.passed(silence, seen)
    if (!this.isWatching(seen)) return
    if (isTaken && silence === 'silent') this.#noteAdvised(seen)
    this.#arm(ASK_AGAIN_MS)
  }

  /** K8: one advisory a generation, and the next progress is an edge again. */
  #noteAdvised(seen: TurnStamp): void {
    this.#hasAdvised = true
    if (this.#epoch === seen.epoch) this.#isQuiet = true
    // It came while the advisory was being recorded.
    else this.#edges.progressed(this.stamp)
  }

  /** K9: an open tool whose processes use the CPU is at work, however silent. */
  async #lookAtTool({ stalledToolMs }: WatchdogLimits): Promise<void> {
    if (stalledToolMs === null || this.#epoch === 0) return
    const nowMs = this.#clock.monotonicMs()
    const sinceMs = nowMs - this.#toolLookMs
    const isDue = nowMs >= this.#busyMs + stalledToolMs
    if (sinceMs < stalledToolMs / TOOL_LOOKS && !isDue) return
    const wasMeasuring = this.#isMeasuring
    this.#toolLookMs = nowMs
    this.#isMeasuring = this.#edges.hasOpenTool()
    if (!this.#isMeasuring) return
    const usedMs = await this.#edges.cpuUsedMs()
    // The first reading is what went before.
    if (wasMeasuring && usedMs !== null && usedMs > 0 && usedMs >= sinceMs * BUSY_SHARE_MIN)
      this.#busyMs = Math.max(this.#busyMs, nowMs)
  }
}
