/**
 * The log of each execution: what it wrote, byte for byte, and when.
 *
 * A folder per execution, in segments: `0.stdout`, `0.stderr` hold the raw bytes, `0.index` one line a chunk (`<ms> <o|e> <bytes>`), in
 * the order in which they came. Past half of `maxBytes` a new segment begins and only the last two are kept, so that a flood ends with
 * the newest output and a known amount dropped (L4).
 * Invariants: INV-11 (what the disk does not take in time is dropped and counted, never kept in memory).
 */
import { rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { LogPort, LogWriter, Logger, OutputStream } from '../../actors/ports.js'
import { messageOf } from '../../errors.js'
import { openFileLog } from './file-log.js'
import { LOG_END, OUTPUT_STREAMS, formatEntry, makeLogFolder } from './log-format.js'

const SEGMENTS_KEPT = 2
const PENDING_MAX_BYTES = 16 * 1024 * 1024

interface Chunk {
  readonly stream: OutputStream
  readonly bytes: Buffer
  readonly atMs: number
}

interface Segment {
  readonly number: number
  readonly stdout: FileHandle
  readonly stderr: FileHandle
  readonly index: FileHandle
  bytes: number
}

const files = ['stdout', 'stderr', 'index'] as const

const openSegment = async (folder: string, number: number): Promise<Segment> => {
  const [stdout, stderr, index] = await Promise.all(
    files.map((name) => open(join(folder, `${String(number)}.${name}`), 'a', 0o600)),
  )
  return { number, stdout, stderr, index, bytes: 0 } as Segment
}

const closeSegment = async (segment: Segment): Promise<void> => {
  await Promise.all([segment.stdout.close(), segment.stderr.close(), segment.index.close()])
}

class FolderLog implements LogWriter {
  readonly #folder: string
  readonly #segmentMaxBytes: number
  readonly #logger: Logger
  #segment: Segment | null = null
  #pending: Chunk[] = []
  #pendingBytes = 0
  #droppedBytes = 0
  #writing: Promise<void> | null = null
  #hasFailed = false

  constructor(folder: string, maxBytes: number, logger: Logger) {
    this.#folder = folder
    this.#segmentMaxBytes = maxBytes / SEGMENTS_KEPT
    this.#logger = logger
  }

  write(stream: OutputStream, chunk: Buffer, atMs: number): void {
    if (this.#hasFailed || this.#pendingBytes > PENDING_MAX_BYTES) {
      this.#droppedBytes += chunk.length
      return
    }
    this.#pending.push({ stream, bytes: chunk, atMs })
    this.#pendingBytes += chunk.length
    this.#writing ??= this.#drain()
  }

  async close(): Promise<void> {
    await this.#writing
    if (this.#droppedBytes > 0) {
      this.#logger.warn({ folder: this.#folder, bytes: this.#droppedBytes }, 'output was dropped from a log')
    }
    try {
      const segment = (this.#segment ??= await openSegment(this.#folder, 0))
      await segment.index.write(`${LOG_END}\n`).finally(() => closeSegment(segment))
    } catch (error) {
      this.#logger.warn({ folder: this.#folder, error: messageOf(error) }, 'a log could not be closed')
    }
  }

  async #drain(): Promise<void> {
    try {
      while (this.#pending.length > 0) {
        const chunks = this.#pending
        this.#pending = []
        this.#pendingBytes = 0
        await this.#append(chunks)
      }
    } catch (error) {
      // A full disk must not stop the run; what could not be kept is counted.
      this.#hasFailed = true
      this.#logger.error({ folder: this.#folder, error: messageOf(error) }, 'a log cannot be written')
    } finally {
      this.#writing = null
    }
  }

  async #append(chunks: readonly Chunk[]): Promise<void> {
    const segment = (this.#segment ??= await openSegment(this.#folder, 0))
    for (const stream of OUTPUT_STREAMS) {
      const bytes = chunks.filter((chunk) => chunk.stream === stream).map((chunk) => chunk.bytes)
      if (bytes.length > 0) await segment[stream].writev(bytes)
    }
    const index = chunks.map(({ stream, bytes, atMs }) =>
      formatEntry({ at: atMs, stream, length: bytes.length }),
    )
    await segment.index.write(index.join(''))
    segment.bytes += chunks.reduce((sum, { bytes }) => sum + bytes.length, 0)
    if (segment.bytes > this.#segmentMaxBytes) await this.#rotate(segment)
  }

  async #rotate(full: Segment): Promise<void> {
    await closeSegment(full)
    const oldest = full.number + 1 - SEGMENTS_KEPT
    for (const name of files) rmSync(join(this.#folder, `${String(oldest)}.${name}`), { force: true })
    this.#segment = await openSegment(this.#folder, full.number + 1)
  }
}

export const createLogFiles = (root: string | null, maxBytes: number, logger: Logger): LogPort => {
  const pathOf = (runId: string, attempt: number): string | null =>
    root === null ? null : join(root, encodeURIComponent(runId), String(attempt))
  return {
    pathOf,
    open: (runId, attempt) => {
      const folder = pathOf(runId, attempt)
      if (folder === null) return null
      try {
        // An id that was pruned may be used again: its old log is not part of the new one.
        rmSync(folder, { recursive: true, force: true })
        makeLogFolder(folder)
        return new FolderLog(folder, maxBytes, logger)
      } catch (error) {
        logger.error({ folder, error: messageOf(error) }, 'a log cannot be opened')
        return null
      }
    },
    openIndex: (runId, attempt, options) => {
      const folder = pathOf(runId, attempt)
      if (folder === null) return null
      // As above.
      if (!options.isAdopted) rmSync(folder, { recursive: true, force: true })
      return openFileLog(folder, options, logger)
    },
  }
}
