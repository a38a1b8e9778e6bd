/**
 * Our own stdout and stderr.
 *
 * Node blocks the whole process while a terminal does not take its output (Ctrl-S), and buffers without end for a pipe that nobody
 * reads. A supervisor may do neither: its timers, and the stop that another process filed, must go on.
 * Invariant: INV-11 (a writer waits for the reader before it goes on; it never holds more than one piece).
 */

/** `setBlocking` of libuv's stream, which Node has no public name for. */
interface MaybeBlocking {
  readonly _handle?: { setBlocking?(isBlocking: boolean): number } | null
}

/** Node leaves the property out where it would be false. */
const isTerminal = (stream: { readonly isTTY?: boolean }): boolean => stream.isTTY === true

export class Sink {
  readonly #stream: NodeJS.WriteStream
  #closedBy: string | null = null
  readonly #onClosed = new Set<() => void>()

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    // A file is written at once, a pipe never blocks; a terminal does, unless told not to.
    if (isTerminal(stream)) (stream as MaybeBlocking)._handle?.setBlocking?.(false)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      this.#close(error.code ?? error.message)
    })
  }

  get isTerminal(): boolean {
    return isTerminal(this.#stream)
  }

  /** Columns of a terminal. */
  get columns(): number {
    return this.isTerminal ? this.#stream.columns : 80
  }

  /** The terminal or pipe has not taken everything yet. */
  get isBehind(): boolean {
    return this.#stream.writableNeedDrain
  }

  /** Why nothing more can be written (`EPIPE`: the reader is gone), or null. */
  get closedBy(): string | null {
    return this.#closedBy
  }

  /** Calls `listener` once, when the reader is gone. */
  onClosed(listener: () => void): void {
    if (this.#closedBy === null) this.#onClosed.add(listener)
    else listener()
  }

  /** Resolves when more may be written; at once when the reader is gone, for whom nothing is kept. */
  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.#closedBy !== null || this.#stream.write(chunk)) return
    await this.#until((done) => {
      this.#stream.once('drain', done)
    })
  }

  /** Resolves when the reader has everything, or is gone. */
  async flush(): Promise<void> {
    if (this.#closedBy !== null || this.#stream.writableLength === 0) return
    await this.#until((done) => {
      this.#stream.write('', done)
    })
  }

  /** Nothing more is written to a reader that did not take the last of it. */
  giveUpIfBehind(): void {
    if (this.isBehind) this.#close('behind')
  }

  #until(listen: (done: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#onClosed.delete(done)
        this.#stream.off('drain', done)
        resolve()
      }
      this.#onClosed.add(done)
      listen(done)
    })
  }

  #close(why: string): void {
    this.#closedBy ??= why
    for (const listener of [...this.#onClosed]) listener()
    this.#onClosed.clear()
  }
}

export const stdout = new Sink(process.stdout)
export const stderr = new Sink(process.stderr)
