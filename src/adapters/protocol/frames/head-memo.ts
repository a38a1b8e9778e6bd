/**
 * The head of the frame that was decided last, and what it meant.
 *
 * Frames of one type come in rows, and whatever follows it, the same head means the same: a row costs one comparison a frame. It goes
 * eight bytes at a time, read as floats. Floats that are equal have equal bytes, but for zeros of different sign, and those eight
 * bytes are not found in JSON; a float that does not equal itself only means that the head is read again.
 */
import type { Meaning } from './frame-meaning.js'

const STEP_BYTES = 8
/** A shorter head is read again as fast as it is compared; a longer one is not worth keeping. */
const HEAD_BYTES_MIN = 24
const HEAD_BYTES_MAX = 1_024
/** The view keeps its buffer in memory: of large lines the head is no matter, and their buffers are let go. */
const BUFFER_BYTES_MAX = 128 * 1024

const NOTHING = new ArrayBuffer(0)

const viewOf = (bytes: Buffer): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

export class HeadMemo {
  #length = 0
  /** The head in steps; the last one ends where the head ends, and may overlap the one before it. */
  #steps = new Float64Array(0)
  #meaning: Meaning | null = null
  #bytes: Buffer | null = null
  #view: DataView = new DataView(NOTHING)

  /** The meaning of the frame that begins at `start`, or null: it begins with another head. */
  recall(bytes: Buffer, start: number, end: number): Meaning | null {
    const lastAt = start + this.#length - STEP_BYTES
    if (this.#meaning === null || lastAt + STEP_BYTES > end || bytes.length > BUFFER_BYTES_MAX) return null
    if (bytes !== this.#bytes) {
      this.#bytes = bytes
      this.#view = viewOf(bytes)
    }
    const view = this.#view
    const steps = this.#steps
    const last = steps.length - 1
    // The end first: it is where heads differ.
    if (view.getFloat64(lastAt, true) !== steps[last]) return null
    for (let index = 0, at = start; index < last; index += 1, at += STEP_BYTES) {
      if (view.getFloat64(at, true) !== steps[index]) return null
    }
    return this.#meaning
  }

  /** The frame that begins at `start` was decided by what stands before `headEnd`. */
  remember(bytes: Buffer, start: number, headEnd: number, meaning: Meaning): void {
    const length = headEnd - start
    if (length < HEAD_BYTES_MIN || length > HEAD_BYTES_MAX) return
    const view = viewOf(bytes)
    const whole = Math.ceil(length / STEP_BYTES) - 1
    this.#length = length
    this.#steps = Float64Array.from({ length: whole + 1 }, (_, index) =>
      view.getFloat64(index < whole ? start + index * STEP_BYTES : headEnd - STEP_BYTES, true),
    )
    this.#meaning = meaning
  }
}
