/** A clock that moves only when told to: wall and monotonic time apart, as they are. */
import type { Cancel, Clock } from '../../src/actors/ports.js'

interface Waiting {
  readonly dueMs: number
  readonly fire: () => void
}

export class ManualClock implements Clock {
  #wallMs = 1_700_000_000_000
  #monotonicMs = 0
  #waiting = new Set<Waiting>()

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

  /** The wall clock steps; nobody waits for it. */
  stepWall(ms: number): void {
    this.#wallMs += ms
  }

  /** Moves both clocks, firing what becomes due in order; the event loop turns after each. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms
    for (;;) {
      const [next] = [...this.#waiting]
        .filter(({ dueMs }) => dueMs <= endMs)
        .sort((a, b) => a.dueMs - b.dueMs)
      if (next === undefined) break
      this.#move(Math.max(next.dueMs, this.#monotonicMs))
      this.#waiting.delete(next)
      next.fire()
      await turns()
    }
    this.#move(endMs)
    await turns()
  }

  /** The machine was away: time passes, and what was due fires only now. */
  async jump(ms: number): Promise<void> {
    this.#move(this.#monotonicMs + ms)
    await this.advance(0)
  }

  #move(toMs: number): void {
    this.#wallMs += toMs - this.#monotonicMs
    this.#monotonicMs = toMs
  }
}

/** Lets everything that is ready run: commits over an in-memory store take a few turns of the loop. */
export const turns = async (count = 20): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
