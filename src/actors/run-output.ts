/** Fans a run's output out to whoever listens. Nothing is kept: the whole text is in the log file (L3, L4). */
import type { OutputStream } from './ports.js'

export interface OutputListener {
  chunk?(stream: OutputStream, chunk: Buffer): void
  line?(stream: OutputStream, text: string, isTruncated: boolean): void
  drained?(isCut: boolean): void
}

export class RunOutput {
  #listeners = new Set<OutputListener>()
  #open = 0

  /** Nothing will be heard any more, unless another attempt begins. */
  get hasEnded(): boolean {
    return this.#open === 0
  }

  /** Whether lines are to be decoded at all. */
  get wantsLines(): boolean {
    return [...this.#listeners].some((listener) => listener.line !== undefined)
  }

  begin(): void {
    this.#open += 1
  }

  listen(listener: OutputListener): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  chunk(stream: OutputStream, chunk: Buffer): void {
    for (const listener of this.#listeners) listener.chunk?.(stream, chunk)
  }

  line(stream: OutputStream, text: string, isTruncated: boolean): void {
    for (const listener of this.#listeners) listener.line?.(stream, text, isTruncated)
  }

  /** `isCut`: something outside the tree still held a pipe and it was closed on it (L2). */
  drained(isCut: boolean): void {
    this.#open -= 1
    for (const listener of [...this.#listeners]) listener.drained?.(isCut)
  }
}
