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

/** How long silence is borne, in ms. Null: for ever. */
export interface WatchdogLimits {
  /** Nothing at all since the prompt (K5). */
  readonly neverStartedMs: number | null
  /** Silence after progress, until people are told (K8). */
  readonly advisoryMs: number | null
  /** Silence after progress without an open tool, until the run is ended (K9). */
  readonly stalledMs: number | null
  /** The same with an open tool. */
  readonly stalledToolMs: number | null
  /** Silence after the agent said that it is done, until its turn is closed (K10). */
  readonly completionSignalMs: number | null
  /** A look that comes this much too late did not watch the time in between: the machine slept, or the loop was blocked (K12). */
  readonly sleepGapMs: number
}

/** A deadline that can pass in silence: the chart's fact is `watchdog.…`. */
export type Silence = 'silent' | 'exhausted' | 'completion-silent'

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

const ASK_AGAIN_MS = 1_000
/** A tool that uses less of a core than this is not at work: an idle program wakes now and then too. */
const BUSY_SHARE_MIN = 0.01
/** How often in the time of its limit an open tool is looked at. */
const TOOL_LOOKS = 4

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
  #lastWallMs: number | null = null
  #isWatching = false
  #isQuiet = true
  #hasAdvised = false
  #heldFromMs = 0
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

  /** P9: whether that attempt has shown any, in whichever turn. */
  hasProgressedIn(attempt: number): boolean {
    return this.#progressedAttempt === attempt
  }

  /** How long the open turn has been silent, in ms; null while none is watched. */
  get quietMs(): number | null {
    if (!this.#isWatching) return null
    const now = this.#holds.size > 0 ? this.#heldFromMs : this.#clock.monotonicMs()
    return Math.max(0, now - this.#lastMs)
  }

  /** A turn is given to the agent. Called again when the prompt really goes out: that is progress of its own (K1). */
  begin(attempt: number, generation: number): void {
    this.#attempt = attempt
    this.#generation = generation
    this.#epoch = 0
    this.#isQuiet = true
    this.#hasAdvised = false
    this.#isWatching = true
    this.restart()
  }

  /** No turn is open any more. */
  rest(): void {
    this.#isWatching = false
    this.#signalledMs = Infinity
    this.#cancel()
  }

  progress(): void {
    this.#epoch += 1
    this.#progressedAttempt = this.#attempt
    this.#lastMs = this.#clock.monotonicMs()
    this.#busyMs = this.#lastMs
    this.#signalledMs = Infinity
    this.#lastWallMs = this.#clock.wallMs()
    if (this.#isQuiet && this.#isWatching) {
      this.#isQuiet = false
      this.#edges.progressed(this.stamp)
      // From here on other limits count.
      this.#arm()
    }
  }

  /** K1: new input starts the silence anew; nothing was seen by it, and it is no new epoch. */
  restart(): void {
    this.#lastMs = this.#clock.monotonicMs()
    this.#busyMs = this.#lastMs
    this.#toolLookMs = this.#lastMs
    this.#signalledMs = Infinity
    // What is held is held from here on.
    this.#heldFromMs = this.#lastMs
    this.#arm()
  }

  /** K10: the agent said that it is done, and its turn stays open. */
  signalled(): void {
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
    this.#cancel()
  }

  release(reason: Hold): void {
    if (!this.#holds.delete(reason) || this.#holds.size > 0) return
    this.#push(this.#clock.monotonicMs() - this.#heldFromMs)
    this.#arm()
  }

  /** This much time did not count. */
  #push(ms: number): void {
    this.#lastMs += ms
    this.#busyMs += ms
    this.#toolLookMs += ms
    this.#signalledMs += ms
  }

  /** What may pass next, each with its time. */
  #deadlines(limits: WatchdogLimits): readonly (readonly [Silence, number])[] {
    const completion = ['completion-silent', deadline(this.#signalledMs, limits.completionSignalMs)] as const
    if (this.#epoch === 0) return [['silent', deadline(this.#lastMs, limits.neverStartedMs)], completion]
    const stalledMs = this.#edges.hasOpenTool() ? limits.stalledToolMs : limits.stalledMs
    return [
      ['silent', this.#hasAdvised ? Infinity : deadline(this.#lastMs, limits.advisoryMs)],
      ['exhausted', deadline(this.#busyMs, stalledMs)],
      completion,
    ]
  }

  /** When to look next. No frame but the first arms anything, so that a tool may open or close unseen: both limits are looked at. */
  #nextLookMs(limits: WatchdogLimits): number {
    const nowMs = this.#clock.monotonicMs()
    const times = this.#deadlines(limits).map(([, atMs]) => atMs)
    const either = [limits.stalledMs, limits.stalledToolMs].map((limitMs) => deadline(this.#busyMs, limitMs))
    times.push(...either.filter((atMs) => atMs > nowMs))
    if (limits.stalledToolMs !== null)
      times.push(Math.max(nowMs + 1, this.#toolLookMs + limits.stalledToolMs / TOOL_LOOKS))
    return Math.min(...times)
  }

  /** Lazily: a timer that fires early looks at the clock and waits for the rest. */
  #arm(): void {
    this.#cancel()
    if (this.#limits === null || !this.#isWatching || this.#holds.size > 0) return
    const nextMs = this.#nextLookMs(this.#limits)
    if (nextMs !== Infinity) this.#wait(nextMs - this.#clock.monotonicMs(), this.#limits)
  }

  /** Never longer than the gap that it must notice. */
  #wait(leftMs: number, limits: WatchdogLimits): void {
    this.#cancel()
    const delayMs = Math.max(0, Math.min(leftMs, limits.sleepGapMs))
    const expectedMs = this.#clock.monotonicMs() + delayMs
    this.#cancel = this.#clock.after(delayMs, () => {
      const lateMs = this.#clock.monotonicMs() - expectedMs
      if (lateMs > limits.sleepGapMs) this.#push(lateMs)
      void this.#look(limits)
    })
  }

  async #look(limits: WatchdogLimits): Promise<void> {
    const { stamp } = this
    await this.#lookAtTool(limits)
    if (!this.#isSameTurn(stamp)) return
    const nowMs = this.#clock.monotonicMs()
    const due = this.#deadlines(limits).find(([, atMs]) => atMs <= nowMs)
    if (due === undefined) {
      this.#arm()
      return
    }
    const [silence] = due
    const seen = this.stamp
    const isTaken = await this.#edges.passed(silence, seen)
    if (!this.#isSameTurn(seen)) return
    if (!isTaken) {
      // K7: nothing was killed; ask again.
      this.#wait(ASK_AGAIN_MS, limits)
      return
    }
    if (silence === 'silent' && seen.epoch > 0) {
      // K8: one advisory a generation, and the next progress is an edge again.
      this.#hasAdvised = true
      if (this.#epoch === seen.epoch) this.#isQuiet = true
      else this.#edges.progressed(this.stamp)
    }
    this.#arm()
  }

  /** The turn that is watched, and not held: whoever changed that has armed the timer, or will. */
  #isSameTurn({ attempt, generation }: TurnStamp): boolean {
    const isSame = attempt === this.#attempt && generation === this.#generation
    return this.#isWatching && this.#holds.size === 0 && isSame
  }

  /** K9: an open tool whose processes use the CPU is at work, however silent. */
  async #lookAtTool({ stalledToolMs }: WatchdogLimits): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    const sinceMs = nowMs - this.#toolLookMs
    if (stalledToolMs === null || sinceMs < stalledToolMs / TOOL_LOOKS) return
    this.#toolLookMs = nowMs
    if (this.#epoch === 0 || !this.#edges.hasOpenTool()) return
    const usedMs = await this.#edges.cpuUsedMs()
    if (usedMs !== null && usedMs >= sinceMs * BUSY_SHARE_MIN) this.#busyMs = Math.max(this.#busyMs, nowMs)
  }
}
