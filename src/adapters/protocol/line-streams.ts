/** Both output streams of an agent, cut into lines and told to whoever listens. */
import type { OutputStream, ProtocolSink } from '../../actors/ports.js'
import { LineFramer } from './line-framer.js'

export interface LineLimits {
  readonly maxLineBytes: number
}

/** The line is `bytes[start, end)`. The memory is used again: copy what is kept. */
export type LineTaker = (
  stream: OutputStream,
  bytes: Buffer,
  start: number,
  end: number,
  isTruncated: boolean,
) => void

export class LineStreams {
  readonly #sink: ProtocolSink
  readonly #framers: Readonly<Record<OutputStream, LineFramer>>
  #wantsLines = false

  constructor(sink: ProtocolSink, { maxLineBytes }: LineLimits, take: LineTaker) {
    this.#sink = sink
    const framer = (stream: OutputStream): LineFramer =>
      new LineFramer(maxLineBytes, (bytes, start, end, isTruncated) => {
        // Decoded for those who listen only.
        if (this.#wantsLines) sink.line(stream, bytes.toString('utf8', start, end), isTruncated)
        take(stream, bytes, start, end, isTruncated)
      })
    this.#framers = { stdout: framer('stdout'), stderr: framer('stderr') }
  }

  push(stream: OutputStream, chunk: Buffer): void {
    this.#wantsLines = this.#sink.wantsLines()
    this.#framers[stream].push(chunk)
  }

  /** What stands without a newline is a line too. */
  end(): void {
    this.#wantsLines = this.#sink.wantsLines()
    this.#framers.stdout.end()
    this.#framers.stderr.end()
  }
}
