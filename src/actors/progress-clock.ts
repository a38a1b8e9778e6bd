/**
 * The progress clock of one run: is it working, or only alive?
 *
 * Owns: when progress was last seen, and the one timer that looks for silence. A plain struct: a frame costs a few assignments, and
 *   nothing of it enters the chart but edges (the first progress of a turn, the first after an advisory, a deadline that passed).
 * Does not own: what counts as progress (the protocol) and what silence means (the run chart).
 * Invariants: INV-9 (frozen time and time the machine slept do not count), K1, K4, K12.
 */
import type { RunContext, TurnStamp } from '../machines/run/run.context.js'
import type { Transition } from './actor-role.js'
import type { Cancel, Clock } from './ports.js'

export interface WatchdogLimits {
  readonly neverStartedMs: number
  readonly advisoryMs: number
}

export interface ProgressEdges {
  /** The first progress of the turn, or the first after an advisory. */
  progressed(stamp: TurnStamp): void
  /** A deadline passed in silence. Resolves false when the fact could not be recorded: it is asked again. */
  silent(stamp: TurnStamp): Promise<boolean>
}

/** A look that comes this much too late did not watch the time in between: the machine slept or the loop was blocked. */
const SLEEP_GAP_MS = 30_000
const ASK_AGAIN_MS = 1_000

export class ProgressClock {
  readonly #clock: Clock
  readonly #limits: WatchdogLimits | null
  readonly #edges: ProgressEdges
  #attempt = 0
  #generation = 0
  #epoch = 0
  #lastMs = 0
  #lastWallMs: number | null = null
  #isQuiet = true
  #hasAdvised = false
  #frozenAtMs: number | null = null
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

  /** A turn was dispatched. */
  begin(attempt: number, generation: number): void {
    this.#attempt = attempt
    this.#generation = generation
    this.#epoch = 0
    this.#isQuiet = true
    this.#hasAdvised = false
    this.#lastMs = this.#clock.monotonicMs()
    this.#arm()
  }

  progress(): void {
    this.#epoch += 1
    this.#lastMs = this.#clock.monotonicMs()
    this.#lastWallMs = this.#clock.wallMs()
    if (this.#isQuiet) {
      this.#isQuiet = false
      this.#edges.progressed(this.stamp)
    }
  }

  freeze(): void {
    this.#frozenAtMs ??= this.#clock.monotonicMs()
    this.#cancel()
  }

  thaw(): void {
    if (this.#frozenAtMs === null) return
    this.#lastMs += this.#clock.monotonicMs() - this.#frozenAtMs
    this.#frozenAtMs = null
    this.#arm()
  }

  stop(): void {
    this.#cancel()
    this.#generation = -1
  }

  #limitMs(): number | null {
    if (this.#limits === null || this.#hasAdvised) return null
    return this.#epoch === 0 ? this.#limits.neverStartedMs : this.#limits.advisoryMs
  }

  /** Lazily: a timer that fires early looks at the clock and waits for the rest. */
  #arm(): void {
    this.#cancel()
    const limitMs = this.#limitMs()
    if (limitMs === null || this.#generation < 0 || this.#frozenAtMs !== null) return
    this.#wait(this.#lastMs + limitMs - this.#clock.monotonicMs())
  }

  /** Never longer than the gap that it must notice. */
  #wait(leftMs: number): void {
    const delayMs = Math.min(leftMs, SLEEP_GAP_MS)
    const expectedMs = this.#clock.monotonicMs() + delayMs
    this.#cancel = this.#clock.after(delayMs, () => {
      const lateMs = this.#clock.monotonicMs() - expectedMs
      if (lateMs > SLEEP_GAP_MS) this.#lastMs += lateMs
      void this.#look()
    })
  }

  async #look(): Promise<void> {
    const limitMs = this.#limitMs()
    if (limitMs === null) return
    if (this.#clock.monotonicMs() - this.#lastMs < limitMs) {
      this.#arm()
      return
    }
    const stamp = this.stamp
    const isRecorded = await this.#edges.silent(stamp)
    const isSameTurn = stamp.generation === this.#generation && stamp.epoch === this.#epoch
    if (!isRecorded || !isSameTurn) {
      // K7: nothing was killed; ask again.
      if (this.#generation >= 0) this.#wait(isRecorded ? 0 : ASK_AGAIN_MS)
    } else if (stamp.epoch > 0) {
      // K8: one advisory a generation, and the next progress is an edge again.
      this.#hasAdvised = true
      this.#isQuiet = true
    }
  }
}

/** The clock runs while a turn is open, and stands still while the tree is frozen (INV-9). */
export const followTurns = (progress: ProgressClock, { before, after }: Transition): void => {
  const was = before?.context as RunContext | undefined
  const { attempt, generation, freeze, intent, outcome } = after.context as RunContext
  if (intent !== null || outcome !== null) progress.stop()
  else if (generation !== was?.generation) progress.begin(attempt, generation)
  const wasFrozen = (was?.freeze ?? null) !== null
  if (freeze !== null && !wasFrozen) progress.freeze()
  if (freeze === null && wasFrozen) progress.thaw()
}
