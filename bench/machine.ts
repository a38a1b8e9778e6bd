/** What the workloads share: processes to look after, an independent look at /proc, and a clock that processes agree on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createEngine } from '../src/index.js'
import type { Engine, EngineOptions } from '../src/index.js'
import { identityOf, isAlive, livingProcesses } from '../test/support/proc-reader.js'

export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6

/** A folder that is gone when the work is done. */
export const inFolder = async <T>(work: (folder: string) => Promise<T>): Promise<T> => {
  const folder = mkdtempSync(join(tmpdir(), 'runwarden-bench-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An engine on a new SQLite file, with every default; all its runs are ended at the end. */
export const withEngine = <T>(
  work: (engine: Engine, folder: string) => Promise<T>,
  options: EngineOptions = {},
): Promise<T> =>
  inFolder(async (folder) => {
    const engine = await createEngine({ database: join(folder, 'runs.db'), ...options })
    try {
      return await work(engine, folder)
    } finally {
      await engine.close({ runs: 'cancel', deadlineMs: 60_000 })
    }
  })

/** `count` calls, `concurrency` of them at a time. */
export const pooled = async <T>(
  count: number,
  concurrency: number,
  call: (index: number) => Promise<T>,
): Promise<T[]> => {
  const results: T[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) results[index] = await call(index)
  }
  await Promise.all(Array.from({ length: Math.min(count, concurrency) }, worker))
  return results
}

export const isRunning = (pid: number): boolean => {
  const identity = identityOf(pid)
  return identity !== undefined && isAlive(identity)
}

/** Everyone in the groups of these leaders. */
export const membersOf = (leaders: readonly number[]): number[] => {
  const groups = new Set(leaders)
  return livingProcesses()
    .filter(({ group }) => groups.has(group))
    .map(({ pid }) => pid)
}

/** Ends whatever a contender left behind: it is no part of what is measured. */
export const killGroups = (leaders: Iterable<number>): void => {
  for (const pid of leaders) {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // It is gone already.
    }
  }
}

const WATCHER = fileURLToPath(new URL('./watch-gone.mjs', import.meta.url))

/** A process of its own that looks until none of them is left. Resolves once it looks; `gone` with the moment, on the common clock. */
export const watchUntilGone = async (
  pids: readonly number[],
  deadlineMs: number,
): Promise<{ readonly gone: Promise<Gone> }> => {
  const watcher = spawn(process.execPath, [WATCHER, String(deadlineMs)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  watcher.stdin.end(JSON.stringify(pids))
  let said = ''
  watcher.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await once(watcher.stdout, 'data')
  return { gone: once(watcher, 'close').then(() => JSON.parse(said.slice(said.indexOf('\n') + 1)) as Gone) }
}

interface Gone {
  readonly atMs: number
  readonly left: number
}

/** Of a sorted or unsorted list; the lower of two in the middle. */
export const quantile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)
