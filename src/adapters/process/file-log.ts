/**
 * The log of an execution whose processes write its files themselves (R10): what is kept here is the index.
 *
 * An entry is written when its bytes have been acted upon, and ends with a line: where an engine dies in between, the next one reads
 * them again from the beginning of a line, and none is lost. The files are those of one segment: a file that another process writes
 * cannot be cut, so that the log's maximum does not hold here.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LogWriter, Logger, OutputStream } from '../../actors/ports.js'
import { codeOf, messageOf } from '../../errors.js'
import {
  LOG_END,
  OUTPUT_STREAMS,
  formatEntry,
  makeLogFolder,
  parseEntry,
  wholeLinesOf,
} from './log-format.js'

const NEWLINE = 0x0a

export const outputFile = (folder: string, stream: OutputStream): string => join(folder, `0.${stream}`)
const indexFile = (folder: string): string => join(folder, '0.index')

/** Whole entries only: one that a crash cut short was never acted upon. */
const entriesIn = (folder: string): readonly string[] => {
  try {
    return wholeLinesOf(readFileSync(indexFile(folder), 'latin1')).filter((line) => line !== LOG_END)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** How far each file has been read and acted upon. */
export const offsetsIn = (folder: string): Record<OutputStream, number> => {
  const offsets = { stdout: 0, stderr: 0 }
  for (const { stream, length } of entriesIn(folder).map(parseEntry)) offsets[stream] += length
  return offsets
}

class FileLogIndex implements LogWriter {
  readonly #folder: string
  readonly #logger: Logger
  /** Acted upon, and in the middle of a line. */
  readonly #rest: Record<OutputStream, number> = { stdout: 0, stderr: 0 }

  constructor(folder: string, logger: Logger) {
    this.#folder = folder
    this.#logger = logger
  }

  write(stream: OutputStream, chunk: Buffer, atMs: number): void {
    const lineEnd = chunk.lastIndexOf(NEWLINE) + 1
    if (lineEnd > 0) this.#enter(stream, this.#rest[stream] + lineEnd, atMs)
    this.#rest[stream] = lineEnd > 0 ? chunk.length - lineEnd : this.#rest[stream] + chunk.length
  }

  close(): Promise<void> {
    for (const stream of OUTPUT_STREAMS)
      if (this.#rest[stream] > 0) this.#enter(stream, this.#rest[stream], Date.now())
    this.#append(`${LOG_END}\n`)
    return Promise.resolve()
  }

  #enter(stream: OutputStream, length: number, at: number): void {
    this.#append(formatEntry({ at, stream, length }))
  }

  /** A few bytes into the page cache: they outlive this process, and a machine that stops ends the writers too. */
  #append(line: string): void {
    try {
      appendFileSync(indexFile(this.#folder), line, { mode: 0o600 })
    } catch (error) {
      this.#logger.error({ folder: this.#folder, error: messageOf(error) }, 'a log cannot be written')
    }
  }
}

/** `isAdopted`: goes on with what another engine has begun. Null where it cannot be had. */
export const openFileLog = (
  folder: string,
  { isAdopted }: { readonly isAdopted: boolean },
  logger: Logger,
): LogWriter | null => {
  try {
    if (isAdopted) {
      const entries = entriesIn(folder)
      writeFileSync(indexFile(folder), entries.map((entry) => `${entry}\n`).join(''), { mode: 0o600 })
    } else {
      makeLogFolder(folder)
      for (const stream of OUTPUT_STREAMS) writeFileSync(outputFile(folder, stream), '', { mode: 0o600 })
    }
    return new FileLogIndex(folder, logger)
  } catch (error) {
    logger.error({ folder, error: messageOf(error) }, 'a log cannot be opened')
    return null
  }
}
