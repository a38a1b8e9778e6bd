/**
 * Fans a run's output out to whoever listens. Nothing is kept: the whole text is in the log file (L3, L4). But of an adopted run the first
 * listener hears what was read before the host could ask for it, within a maximum (R10).
 */
import type { OutputStream } from './ports.js'

export interface OutputListener {
  chunk?(stream: OutputStream, chunk: Buffer): void
  line?(stream: OutputStream, text: string, isTruncated: boolean): void
  drained?(isCut: boolean): void
}

const EARLY_MAX_BYTES = 1024 * 1024

export class RunOutput {
  #listeners = new Set<OutputListener>()
  #open = 0
  /** Null: nothing is kept. */
  #early: ((listener: OutputListener) => void)[] | null = null
  #earlyBytes = 0

  /** Nothing will be heard any more, unless another attempt begins. */
  get hasEnded(): boolean {
    return this.#open === 0
  }

  /** Whether lines are to be decoded at all. */
  get wantsLines(): boolean {
    return this.#early !== null || [...this.#listeners].some((listener) => listener.line !== undefined)
  }

  begin({ isAdopted }: { readonly isAdopted: boolean }): void {
    this.#open += 1
    if (isAdopted) this.#early = []
  }

  listen(listener: OutputListener): () => void {
    this.#listeners.add(listener)
    for (const tell of this.#early ?? []) tell(listener)
    this.#early = null
    return () => {
      this.#listeners.delete(listener)
    }
  }

  chunk(stream: OutputStream, chunk: Buffer): void {
    this.#keep(chunk.length, (listener) => listener.chunk?.(stream, chunk))
    for (const listener of this.#listeners) listener.chunk?.(stream, chunk)
  }

  line(stream: OutputStream, text: string, isTruncated: boolean): void {
    this.#keep(text.length, (listener) => listener.line?.(stream, text, isTruncated))
    for (const listener of this.#listeners) listener.line?.(stream, text, isTruncated)
  }

  /** INV-11: past the maximum nobody seems to want it, and all of it is in the log. */
  #keep(bytes: number, tell: (listener: OutputListener) => void): void {
    if (this.#early === null) return
    this.#earlyBytes += bytes
    if (this.#earlyBytes > EARLY_MAX_BYTES) this.#early = null
    else this.#early.push(tell)
  }

  /** `isCut`: something outside the tree still held a pipe and it was closed on it (L2). */
  drained(isCut: boolean): void {
    this.#open -= 1
    for (const listener of [...this.#listeners]) listener.drained?.(isCut)
  }
}
