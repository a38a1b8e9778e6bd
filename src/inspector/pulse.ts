/** How often a run showed progress lately: a ring of counts, one an interval. */

export const PULSE_MS = 5_000
const PULSE_INTERVALS = 24
/** More than that in one interval looks the same. */
const COUNT_MAX = 99

export class Pulse {
  #counts: number[] = []
  #interval = 0

  beat(at: number): void {
    this.#turnTo(at)
    const last = this.#counts.length - 1
    this.#counts[last] = Math.min(COUNT_MAX, (this.#counts[last] ?? 0) + 1)
  }

  /** The oldest first; as many as there are intervals since the first beat, and no more than are kept. */
  at(now: number): readonly number[] {
    if (this.#counts.length === 0) return []
    this.#turnTo(now)
    return [...this.#counts]
  }

  #turnTo(at: number): void {
    const interval = Math.floor(at / PULSE_MS)
    const missing = this.#counts.length === 0 ? 1 : Math.min(interval - this.#interval, PULSE_INTERVALS)
    for (let index = 0; index < missing; index += 1) this.#counts.push(0)
    if (this.#counts.length > PULSE_INTERVALS) this.#counts.splice(0, this.#counts.length - PULSE_INTERVALS)
    this.#interval = Math.max(interval, this.#interval)
  }
}
