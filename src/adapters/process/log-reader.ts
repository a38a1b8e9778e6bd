/** Reads a recorded log back in the order in which it was written, and follows one that still grows. */
import { readFileSync, readdirSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { OutputStream } from '../../actors/ports.js'
import { codeOf } from '../../errors.js'
import { LOG_END, parseEntry, wholeLinesOf } from './log-format.js'

const FOLLOW_WAIT_MS = 50
/** After the run is over its log may still be on its way to the disk; a log whose engine died has no end. */
const GRACE_LOOKS = 40

/** A piece of output, or a gap: earlier output that the size cap has dropped. */
export type LogPiece =
  | { readonly kind: 'chunk'; readonly stream: OutputStream; readonly at: number; readonly bytes: Buffer }
  | { readonly kind: 'gap' }

interface Position {
  segment: number
  entries: number
  readonly offsets: Record<OutputStream, number>
}

const segmentsOf = (folder: string): number[] => {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.index'))
      .map((name) => Number.parseInt(name, 10))
      .sort((one, other) => one - other)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

const readBytes = async (path: string, offset: number, length: number): Promise<Buffer> => {
  const file = await open(path, 'r')
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, offset)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Whole lines of a segment's index from `position` on; one that is still being written waits for the next look. */
const newLines = (folder: string, { segment, entries }: Position): readonly string[] =>
  wholeLinesOf(readFileSync(join(folder, `${String(segment)}.index`), 'latin1')).slice(entries)

async function* readSegment(folder: string, position: Position): AsyncGenerator<LogPiece | typeof LOG_END> {
  for (const line of newLines(folder, position)) {
    if (line === LOG_END) {
      yield LOG_END
      return
    }
    const { at, stream, length } = parseEntry(line)
    const offset = position.offsets[stream]
    position.entries += 1
    position.offsets[stream] += length
    const path = join(folder, `${String(position.segment)}.${stream}`)
    yield { kind: 'chunk', stream, at, bytes: await readBytes(path, offset, length) }
  }
}

/** Where the piece begins that holds the first of the last `tailBytes` of a log; null: at the log's beginning. */
const tailOf = (folder: string, tailBytes: number): Position | null => {
  let left = tailBytes
  for (const segment of segmentsOf(folder).reverse()) {
    const position: Position = { segment, entries: 0, offsets: { stdout: 0, stderr: 0 } }
    const entries = newLines(folder, position)
      .filter((line) => line !== LOG_END)
      .map(parseEntry)
    let rest = entries.reduce((sum, { length }) => sum + length, 0)
    if (rest <= left) {
      left -= rest
      continue
    }
    for (const { stream, length } of entries) {
      rest -= length
      if (rest < left) break
      position.entries += 1
      position.offsets[stream] += length
    }
    return position
  }
  return null
}

const firstPosition = (folder: string, tailBytes: number | undefined): Position => {
  const tail = tailBytes === undefined ? null : tailOf(folder, tailBytes)
  return tail ?? { segment: -1, entries: 0, offsets: { stdout: 0, stderr: 0 } }
}

/**
 * Every piece of the log in `folder`, or those of its last `tailBytes`. With `isOver`, waits for more until the log has ended, or the run
 * is over and nothing more comes.
 */
export async function* readLog(
  folder: string,
  isOver?: () => Promise<boolean>,
  tailBytes?: number,
): AsyncGenerator<LogPiece> {
  let position = firstPosition(folder, tailBytes)
  let looksLeft = GRACE_LOOKS
  while (looksLeft > 0) {
    for (const segment of segmentsOf(folder)) {
      if (segment < position.segment) continue
      if (position.segment !== segment) {
        if (segment > position.segment + 1) yield { kind: 'gap' }
        position = { segment, entries: 0, offsets: { stdout: 0, stderr: 0 } }
      }
      try {
        for await (const piece of readSegment(folder, position)) {
          if (piece === LOG_END) return
          looksLeft = GRACE_LOOKS
          yield piece
        }
      } catch (error) {
        // The size cap took this segment away while it was read; the next one begins with a gap.
        if (codeOf(error) !== 'ENOENT') throw error
      }
    }
    if (isOver === undefined) return
    if (await isOver()) looksLeft -= 1
    await wait(FOLLOW_WAIT_MS)
  }
}
