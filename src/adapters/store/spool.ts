/**
 * Where transitions of runs that are being ended are kept while the store does not answer: one file an engine, beside the store.
 *
 * Each line is one write, whole, synced before the stop proceeds. It is replayed before anything is recovered; a write that reached the
 * store after all is stale there and changes nothing.
 */
import { mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { SpoolPort } from '../../actors/spool.ports.js'
import type { ActorWrite } from '../../actors/store.ports.js'
import { codeOf } from '../../errors.js'

const linesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\n')

/** A line that a crash cut short was never acted on: its sync had not returned. */
const parseWrite = (line: string): ActorWrite | null => {
  try {
    return JSON.parse(line) as ActorWrite
  } catch {
    return null
  }
}

const filesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

export const createSpool = (folder: string, engineId: string): SpoolPort => {
  const own = join(folder, `${engineId}.ndjson`)
  return {
    append: async (write) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const file = await open(own, 'a', 0o600)
      try {
        await file.write(`${JSON.stringify(write)}\n`)
        await file.sync()
      } finally {
        await file.close()
      }
    },
    drain: async (isAbandoned, replay) => {
      let count = 0
      for (const name of filesIn(folder)) {
        if (!(await isAbandoned(name.replace(/\.ndjson$/, '')))) continue
        for (const write of linesOf(join(folder, name)).map(parseWrite)) {
          if (write === null) continue
          await replay(write)
          count += 1
        }
        rmSync(join(folder, name), { force: true })
      }
      return count
    },
    discard: () => {
      rmSync(own, { force: true })
    },
  }
}
