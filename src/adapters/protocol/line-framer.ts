/**
 * Cuts a byte stream into lines with a maximum length (L3).
 *
 * Bytes are scanned, not decoded: a line is decoded once, when it is whole. A line past the maximum is delivered truncated and marked,
 * and its rest is dropped, so that memory is bounded by one line.
 */
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

export class LineFramer {
  readonly #maxBytes: number
  readonly #emit: (line: Buffer, isTruncated: boolean) => void
  #parts: Buffer[] = []
  #heldBytes = 0
  #isOverlong = false

  constructor(maxBytes: number, emit: (line: Buffer, isTruncated: boolean) => void) {
    this.#maxBytes = maxBytes
    this.#emit = emit
  }

  push(chunk: Buffer): void {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE, from); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#take(chunk.subarray(from, end))
      this.#finish()
      from = end + 1
    }
    // The chunk's memory is the stream's: a rest that waits for more is copied.
    if (from < chunk.length) this.#take(Buffer.from(chunk.subarray(from)))
  }

  /** The stream ended: what stands without a newline is a line too. */
  end(): void {
    if (this.#heldBytes > 0 || this.#isOverlong) this.#finish()
  }

  #take(part: Buffer): void {
    const room = this.#maxBytes - this.#heldBytes
    const kept = part.length > room ? part.subarray(0, room) : part
    if (kept.length < part.length) this.#isOverlong = true
    if (kept.length === 0) return
    this.#parts.push(kept)
    this.#heldBytes += kept.length
  }

  #finish(): void {
    const [first] = this.#parts
    let line = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts)
    if (line.at(-1) === CARRIAGE_RETURN && !this.#isOverlong) line = line.subarray(0, -1)
    this.#emit(line, this.#isOverlong)
    this.#parts = []
    this.#heldBytes = 0
    this.#isOverlong = false
  }
}
