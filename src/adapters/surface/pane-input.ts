/**
 * Types into a pane, in order, through a buffer of tmux's own: nothing that is typed appears in an argument list.
 *
 * Invariants: INV-11 (what tmux does not take in time is refused, not kept).
 */
import type { Pane } from './pane.js'

const PENDING_MAX_BYTES = 1024 * 1024
const TYPING_DEADLINE_MS = 5_000

export class PaneInput {
  readonly #pane: Pane
  readonly #buffer: string
  #pendingBytes = 0
  #isBroken = false
  #last: Promise<void> = Promise.resolve()

  constructor(pane: Pane) {
    this.#pane = pane
    this.#buffer = `runwarden-${String(process.pid)}-${pane.place.paneId.slice(1)}`
  }

  /** False when too much waits, or the pane took the last of it no more. */
  type(chunk: string | Uint8Array): boolean {
    const bytes = Buffer.from(chunk as string)
    if (this.#isBroken || this.#pendingBytes + bytes.length > PENDING_MAX_BYTES) return false
    this.#pendingBytes += bytes.length
    this.#last = this.#last.then(() => this.#paste(bytes))
    return true
  }

  end(): void {
    this.#isBroken = true
  }

  async #paste(bytes: Buffer): Promise<void> {
    const { paneId } = this.#pane.place
    try {
      if (this.#isBroken || bytes.length === 0) return
      const load = ['load-buffer', '-b', this.#buffer, '-', ';']
      const paste = `paste-buffer -d -r -b ${this.#buffer} -t ${paneId}`
      await this.#pane.act(paste, TYPING_DEADLINE_MS, load, bytes)
    } catch {
      // The pane or its server is gone, or hangs: whoever writes next is told.
      this.#isBroken = true
    } finally {
      this.#pendingBytes -= bytes.length
    }
  }
}
