/**
 * The end of a run's log, and what comes behind it, for one client.
 *
 * Invariants: INV-11 (read as fast as it is sent, ten times a second at most `FLUSH_MAX_CHARS`; the log itself has a maximum size, and what
 *   it lost meanwhile comes as a gap).
 */
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as wait } from 'node:timers/promises'
import type { LogPiece } from '../index.js'
import { messageOf } from './problem.js'
import type { Source } from './source.js'
import type { LogUpdate } from './wire.js'

const TAIL_BYTES = 64 * 1024
const FLUSH_MS = 100
const FLUSH_MAX_CHARS = 32 * 1024

interface TextPiece {
  readonly stream: 'stdout' | 'stderr'
  text: string
}

export class LogFeed {
  readonly #tell: (update: LogUpdate) => void
  readonly #decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  #pieces: TextPiece[] = []
  #chars = 0
  #isEnded = false
  #flushTimer: NodeJS.Timeout | null = null
  readonly #log: AsyncGenerator<LogPiece>

  constructor(runId: string, source: Source, tell: (update: LogUpdate) => void) {
    this.#tell = tell
    this.#log = source.inspected.logs(runId, { follow: true, tailBytes: TAIL_BYTES })
    void this.#follow()
  }

  end(): void {
    this.#isEnded = true
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer)
    // It ends at its next look.
    void this.#log.return(undefined).catch(() => undefined)
  }

  async #follow(): Promise<void> {
    try {
      for await (const piece of this.#log) {
        if (this.#isEnded) return
        await this.#take(piece)
      }
      this.#flush()
      this.#say({ kind: 'end' })
    } catch (error) {
      this.#say({ kind: 'none', reason: messageOf(error) })
    }
  }

  async #take(piece: LogPiece): Promise<void> {
    if (piece.kind === 'gap') {
      this.#flush()
      this.#say({ kind: 'gap' })
      return
    }
    const text = this.#decoders[piece.stream].write(piece.bytes)
    const last = this.#pieces.at(-1)
    if (last?.stream === piece.stream) last.text += text
    else this.#pieces.push({ stream: piece.stream, text })
    this.#chars += text.length
    this.#flushTimer ??= setTimeout(() => {
      this.#flush()
    }, FLUSH_MS)
    if (this.#chars < FLUSH_MAX_CHARS) return
    await wait(FLUSH_MS)
    this.#flush()
  }

  #flush(): void {
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer)
    this.#flushTimer = null
    if (this.#pieces.length === 0) return
    this.#say({ kind: 'text', pieces: this.#pieces })
    this.#pieces = []
    this.#chars = 0
  }

  #say(update: LogUpdate): void {
    if (!this.#isEnded) this.#tell(update)
  }
}
