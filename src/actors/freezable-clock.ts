/**
 * A clock whose waits stand still while the tree is frozen (O7): a frozen agent cannot answer, and is not late for it.
 *
 * Owns: the waits that were asked of it, and what is left of each while it stands.
 */
import type { Cancel, Clock } from './ports.js'

interface Wait {
  readonly fire: () => void
  leftMs: number
  sinceMs: number
  cancel: Cancel
}

export class FreezableClock implements Clock {
  readonly #clock: Clock
  readonly #waits = new Set<Wait>()
  #isFrozen = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  wallMs(): number {
    return this.#clock.wallMs()
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs()
  }

  after(delayMs: number, fire: () => void): Cancel {
    const wait: Wait = { fire, leftMs: delayMs, sinceMs: 0, cancel: () => undefined }
    this.#waits.add(wait)
    if (!this.#isFrozen) this.#run(wait)
    return () => {
      wait.cancel()
      this.#waits.delete(wait)
    }
  }

  /** Repeated calls change nothing. */
  setFrozen(isFrozen: boolean): void {
    if (isFrozen === this.#isFrozen) return
    this.#isFrozen = isFrozen
    for (const wait of this.#waits) {
      if (isFrozen) this.#hold(wait)
      else this.#run(wait)
    }
  }

  #run(wait: Wait): void {
    wait.sinceMs = this.#clock.monotonicMs()
    wait.cancel = this.#clock.after(wait.leftMs, () => {
      this.#waits.delete(wait)
      wait.fire()
    })
  }

  #hold(wait: Wait): void {
    wait.cancel()
    wait.leftMs = Math.max(0, wait.leftMs - (this.#clock.monotonicMs() - wait.sinceMs))
  }
}
