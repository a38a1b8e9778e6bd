/**
 * A clock that moves only when told to: wall and monotonic time apart, as they are.
 *
 * Owns: the waits that are armed, and the order in which they fire: by their time, then by when they were armed.
 */
import type { Cancel, Clock } from '../actors/ports.js'
import { RunwardenError } from '../errors.js'

/** Commits over an in-memory store take a few turns of the loop. */
const TURNS = 20
/** More waits than this in one moment are a loop that never lets time pass. */
const FIRES_AT_ONCE_MAX = 1_000
const FIRST_WALL_MS = 1_700_000_000_000

interface Waiting {
  readonly dueMs: number
  readonly fire: () => void
}

/** How often the event loop turns after each wait that fired, and before `advance` returns. */
export interface Pace {
  readonly eachTurns: number
  readonly lastTurns: number
  /** And before more than a few ms pass: what is being computed takes less. Default 0. */
  readonly restTurns?: number
}

const REST_MS = 5

export class SimulatedClock implements Clock {
  readonly #pace: Pace
  #wallMs = FIRST_WALL_MS
  #monotonicMs = 0
  /** The next one last. */
  readonly #waiting: Waiting[] = []
  #fired = 0

  constructor(pace: Pace = { eachTurns: TURNS, lastTurns: TURNS }) {
    this.#pace = pace
  }

  wallMs(): number {
    return this.#wallMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  after(delayMs: number, fire: () => void): Cancel {
    const waiting = { dueMs: this.#monotonicMs + delayMs, fire }
    // Before those that are due at the same time, and so after them when they fire.
    this.#waiting.splice(this.#placeOf(waiting.dueMs), 0, waiting)
    return () => {
      const place = this.#waiting.indexOf(waiting)
      if (place >= 0) this.#waiting.splice(place, 1)
    }
  }

  /** How many waits are armed. */
  get armed(): number {
    return this.#waiting.length
  }

  /** How many waits have come to their end. */
  get fired(): number {
    return this.#fired
  }

  /** When the next wait is due, on the monotonic clock; null where none is armed. */
  get nextDueMs(): number | null {
    return this.#waiting.at(-1)?.dueMs ?? null
  }

  /** The wall clock steps; nobody waits for it. */
  stepWall(ms: number): void {
    this.#wallMs += ms
  }

  /** The machine was away, and is not looking yet: what was due fires with the next move. */
  skip(ms: number): void {
    this.#move(this.#monotonicMs + ms)
  }

  /**
   * Moves both clocks, firing what becomes due in order; the event loop turns after each.
   *
   * @throws `refused` when a thousand waits fire in one moment: something never lets time pass.
   */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms
    let fires = 0
    for (;;) {
      await this.#rest(endMs)
      const next = this.#waiting.at(-1)
      if (next === undefined || next.dueMs > endMs) break
      fires = next.dueMs > this.#monotonicMs ? 1 : fires + 1
      if (fires > FIRES_AT_ONCE_MAX) {
        throw new RunwardenError('refused', `a hot loop at ${String(this.#monotonicMs)} simulated ms`)
      }
      this.#move(Math.max(next.dueMs, this.#monotonicMs))
      this.#waiting.pop()
      this.#fired += 1
      next.fire()
      await turns(this.#pace.eachTurns)
    }
    this.#move(endMs)
    await turns(this.#pace.lastTurns)
  }

  /** The machine was away: time passes, and what was due fires only now. */
  async jump(ms: number): Promise<void> {
    this.skip(ms)
    await this.advance(0)
  }

  async #rest(endMs: number): Promise<void> {
    const { restTurns = 0 } = this.#pace
    const untilMs = Math.min(this.nextDueMs ?? endMs, endMs)
    if (restTurns > 0 && untilMs - this.#monotonicMs > REST_MS) await turns(restTurns)
  }

  #placeOf(dueMs: number): number {
    let low = 0
    let high = this.#waiting.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#waiting[middle]?.dueMs ?? 0) > dueMs) low = middle + 1
      else high = middle
    }
    return low
  }

  #move(toMs: number): void {
    this.#wallMs += toMs - this.#monotonicMs
    this.#monotonicMs = toMs
  }
}

/** Lets everything that is ready run. */
export const turns = async (count = TURNS): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
