/** A clock that moves only when told to: wall and monotonic time apart, as they are. */
import type { Cancel, Clock } from '../../src/actors/ports.js'

/** Commits over an in-memory store take a few turns of the loop. */
const TURNS = 20
/** More waits than this in one moment are a loop that never lets time pass. */
const FIRES_AT_ONCE_MAX = 1_000

interface Waiting {
  readonly dueMs: number
  readonly fire: () => void
}

/** How often the event loop turns after each wait that fired, and before `advance` returns. */
export interface Pace {
  readonly eachTurns: number
  readonly lastTurns: number
}

export class ManualClock implements Clock {
  readonly #pace: Pace
  #wallMs = 1_700_000_000_000
  #monotonicMs = 0
  #waiting = new Set<Waiting>()
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
    this.#waiting.add(waiting)
    return () => {
      this.#waiting.delete(waiting)
    }
  }

  /** How many waits are armed. */
  get armed(): number {
    return this.#waiting.size
  }

  /** How many waits have come to their end. */
  get fired(): number {
    return this.#fired
  }

  /** The wall clock steps; nobody waits for it. */
  stepWall(ms: number): void {
    this.#wallMs += ms
  }

  /** The machine was away, and is not looking yet: what was due fires with the next move. */
  skip(ms: number): void {
    this.#move(this.#monotonicMs + ms)
  }

  /** Moves both clocks, firing what becomes due in order; the event loop turns after each. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms
    let fires = 0
    for (;;) {
      const [next] = [...this.#waiting]
        .filter(({ dueMs }) => dueMs <= endMs)
        .sort((a, b) => a.dueMs - b.dueMs)
      if (next === undefined) break
      fires = next.dueMs > this.#monotonicMs ? 1 : fires + 1
      if (fires > FIRES_AT_ONCE_MAX) throw new Error(`a hot loop at ${String(this.#monotonicMs)} ms`)
      this.#move(Math.max(next.dueMs, this.#monotonicMs))
      this.#waiting.delete(next)
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

  #move(toMs: number): void {
    this.#wallMs += toMs - this.#monotonicMs
    this.#monotonicMs = toMs
  }
}

/** Lets everything that is ready run. */
export const turns = async (count = TURNS): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
