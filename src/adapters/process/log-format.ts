/** What the writers and the readers of a log agree on: an index with a line for each piece, beside the bytes of both streams. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { OutputStream } from '../../actors/ports.js'
import { codeOf } from '../../errors.js'

export const OUTPUT_STREAMS = ['stdout', 'stderr'] as const

/** The last line of a log's last index: no more will come. */
export const LOG_END = 'end'

/** One piece of output: when it came, on which stream, and how many bytes it has. */
export interface LogEntry {
  readonly at: number
  readonly stream: OutputStream
  readonly length: number
}

/** With its newline: without one it is still being written. */
export const formatEntry = ({ at, stream, length }: LogEntry): string =>
  `${String(at)} ${stream === 'stdout' ? 'o' : 'e'} ${String(length)}\n`

export const parseEntry = (line: string): LogEntry => {
  const [at, letter, length] = line.split(' ')
  return { at: Number(at), stream: letter === 'e' ? 'stderr' : 'stdout', length: Number(length) }
}

/** Of an index as it stands: a line that a crash cut short, or that is being written, is none. */
export const wholeLinesOf = (index: string): readonly string[] => index.split('\n').slice(0, -1)

/** One level at a time: a recursive mkdir below a path that cannot be made does not return on every Node. */
export const makeLogFolder = (folder: string): void => {
  for (const path of [dirname(dirname(folder)), dirname(folder), folder]) {
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
  }
}
