/** Two queues, one order: intents overtake facts, and each keeps its own order (P1). */
export class Mailbox<T> {
  #urgent: T[] = []
  #ordinary: T[] = []

  put(item: T, isUrgent: boolean): void {
    ;(isUrgent ? this.#urgent : this.#ordinary).push(item)
  }

  take(): T | undefined {
    return this.#urgent.shift() ?? this.#ordinary.shift()
  }

  get hasUrgent(): boolean {
    return this.#urgent.length > 0
  }

  /** Everything that waits, in order; the mailbox is empty afterwards. */
  clear(): T[] {
    const waiting = [...this.#urgent, ...this.#ordinary]
    this.#urgent = []
    this.#ordinary = []
    return waiting
  }
}
