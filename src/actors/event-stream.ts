/**
 * A bounded stream of events for one listener.
 *
 * A listener that does not read never holds up the run: past the maximum the oldest output is dropped, and counted (L3, INV-11).
 */
const EVENTS_MAX = 4_096

export class EventStream<T extends { readonly type: string }> implements AsyncIterableIterator<T> {
  #events: T[] = []
  #waiting: ((result: IteratorResult<T>) => void)[] = []
  #isEnded = false
  #dropped = 0
  readonly #onClosed: () => void
  readonly #isDroppable: (event: T) => boolean
  readonly #droppedEvent: (count: number) => T

  constructor(options: {
    readonly isDroppable: (event: T) => boolean
    /** The event that tells the listener how many are missing. */
    readonly droppedEvent: (count: number) => T
    readonly onClosed: () => void
  }) {
    this.#isDroppable = options.isDroppable
    this.#droppedEvent = options.droppedEvent
    this.#onClosed = options.onClosed
  }

  push(event: T): void {
    if (this.#isEnded) return
    if (this.#events.length >= EVENTS_MAX && this.#isDroppable(event)) {
      this.#dropped += 1
      return
    }
    this.#noteDropped()
    this.#give(event)
  }

  end(): void {
    if (this.#isEnded) return
    this.#noteDropped()
    this.#isEnded = true
    this.#onClosed()
    for (const give of this.#waiting.splice(0)) give({ done: true, value: undefined })
  }

  next(): Promise<IteratorResult<T>> {
    const event = this.#events.shift()
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    if (this.#isEnded) return Promise.resolve({ done: true, value: undefined })
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
    })
  }

  /** Called when a `for await` is left: the listener wants no more. */
  return(): Promise<IteratorResult<T>> {
    this.#events = []
    this.#dropped = 0
    this.end()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #give(event: T): void {
    const give = this.#waiting.shift()
    if (give === undefined) this.#events.push(event)
    else give({ done: false, value: event })
  }

  #noteDropped(): void {
    if (this.#dropped === 0) return
    const count = this.#dropped
    this.#dropped = 0
    this.#give(this.#droppedEvent(count))
  }
}
