/**
 * Cuts a byte stream into lines with a maximum length (L3).
 *
 * Bytes are scanned, not decoded, and a line that lies within one chunk is told by its place in it: nothing is copied or allocated for
 * it. A line past the maximum is delivered truncated and marked, and its rest is dropped, so that memory is bounded by one line however
 * small the pieces are in which it comes.
 */
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
/** A buffer that grew beyond this, or far beyond what its line needed, is given back. */
const KEPT_CAPACITY_BYTES = 256 * 1024
const SPARE_FACTOR = 8
const MIN_CAPACITY_BYTES = 256
const NOTHING = Buffer.alloc(0)

/** The line is `bytes[start, end)`, without its newline. The memory is used again: copy what is kept. */
export type LineReceiver = (bytes: Buffer, start: number, end: number, isTruncated: boolean) => void

export class LineFramer {
  readonly #maxBytes: number
  readonly #receive: LineReceiver
  /** The beginning of a line whose end has not come. */
  #held = NOTHING
  #heldBytes = 0
  #isOverlong = false

  constructor(maxBytes: number, receive: LineReceiver) {
    this.#maxBytes = maxBytes
    this.#receive = receive
  }

  push(chunk: Buffer): void {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      if (this.#heldBytes === 0) this.#deliver(chunk, from, end, false)
      else {
        this.#hold(chunk, from, end)
        this.#finish()
      }
      from = end + 1
    }
    if (from < chunk.length) this.#hold(chunk, from, chunk.length)
  }

  /** The stream ended: what stands without a newline is a line too. */
  end(): void {
    if (this.#heldBytes > 0) this.#finish()
  }

  /** One byte more than the maximum is held: it may be the carriage return that is no part of the line. */
  #hold(chunk: Buffer, from: number, to: number): void {
    const room = this.#maxBytes + 1 - this.#heldBytes
    const keptBytes = Math.min(to - from, room)
    if (keptBytes < to - from) this.#isOverlong = true
    const neededBytes = this.#heldBytes + keptBytes
    if (neededBytes > this.#held.length) {
      const grown = Buffer.allocUnsafe(
        Math.min(this.#maxBytes + 1, Math.max(neededBytes, 2 * this.#held.length, MIN_CAPACITY_BYTES)),
      )
      this.#held.copy(grown, 0, 0, this.#heldBytes)
      this.#held = grown
    }
    chunk.copy(this.#held, this.#heldBytes, from, from + keptBytes)
    this.#heldBytes = neededBytes
  }

  #finish(): void {
    const line = this.#held
    const bytes = this.#heldBytes
    const isOverlong = this.#isOverlong
    this.#heldBytes = 0
    this.#isOverlong = false
    const isSpare = line.length > MIN_CAPACITY_BYTES && line.length > SPARE_FACTOR * bytes
    if (isSpare || line.length > KEPT_CAPACITY_BYTES) this.#held = NOTHING
    this.#deliver(line, 0, bytes, isOverlong)
  }

  #deliver(bytes: Buffer, start: number, end: number, isOverlong: boolean): void {
    const lineEnd = !isOverlong && end > start && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end
    const isTruncated = isOverlong || lineEnd - start > this.#maxBytes
    this.#receive(bytes, start, isTruncated ? start + this.#maxBytes : lineEnd, isTruncated)
  }
}
