/** The real clock, until it is told to hurry: what waits for minutes is over at once, and processes take the time that they take. */
import type { Cancel, Clock } from '../../src/actors/ports.js'
import { systemClock } from '../../src/internal.js'

interface Waiting {
  readonly dueMs: number
  readonly fire: () => void
  cancel: Cancel
}

export class HastyClock implements Clock {
  readonly #waiting = new Set<Waiting>()
  #aheadMs = 0

  wallMs(): number {
    return systemClock.wallMs() + this.#aheadMs
  }

  monotonicMs(): number {
    return systemClock.monotonicMs() + this.#aheadMs
  }

  after(delayMs: number, fire: () => void, options?: { readonly isBackground: boolean }): Cancel {
    const waiting: Waiting = { dueMs: this.monotonicMs() + delayMs, fire, cancel: () => undefined }
    this.#waiting.add(waiting)
    this.#arm(waiting, options)
    return () => {
      this.#waiting.delete(waiting)
      waiting.cancel()
    }
  }

  /** So much time passes now. */
  hasten(ms: number): void {
    this.#aheadMs += ms
    for (const waiting of this.#waiting) {
      waiting.cancel()
      this.#arm(waiting)
    }
  }

  #arm(waiting: Waiting, options?: { readonly isBackground: boolean }): void {
    const delayMs = Math.max(0, waiting.dueMs - this.monotonicMs())
    waiting.cancel = systemClock.after(
      delayMs,
      () => {
        this.#waiting.delete(waiting)
        waiting.fire()
      },
      options,
    )
  }
}
