/** Whether this machine has a cgroup v2 to test in, and what is in one: read here, not through the library. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { findPlace } from '../../src/adapters/process/cgroup-place.js'
import { openRecords } from '../../src/index.js'
import { identityOf } from './proc-reader.js'
import { waitFor } from './wait-for.js'

const place = findPlace()

/** The reason for which a test is skipped, or null. */
export const noCgroup = place.problem === null ? null : `skipped: no cgroup v2 (${place.problem})`
if (noCgroup !== null) console.warn(noCgroup)

/** Where this process may make cgroups; only where `noCgroup` is null. */
export const cgroupParent = place.parent ?? '/nowhere'

export const isPopulated = (folder: string): boolean =>
  readFileSync(join(folder, 'cgroup.events'), 'utf8').includes('populated 1')

export const isFrozen = (folder: string): boolean =>
  readFileSync(join(folder, 'cgroup.events'), 'utf8').includes('frozen 1')

/** Every process in a cgroup and those nested in it. */
export const pidsIn = (folder: string): number[] => [
  ...readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number),
  ...readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => pidsIn(join(folder, name))),
]

/** The cgroup of a process as the kernel tells it: a path in the hierarchy; undefined when it is gone. */
export const cgroupPathOf = (pid: number | 'self'): string | undefined => {
  try {
    return /^0::(.*)$/m.exec(readFileSync(`/proc/${String(pid)}/cgroup`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** The folders of executions on record that are still there. */
export const foldersLeftIn = async (database: string): Promise<string[]> => {
  await using records = await openRecords({ database })
  const histories = (await records.runs({})).map(({ runId }) => records.history(runId))
  const executions = (await Promise.all(histories)).flatMap((history) => history.executions)
  return executions.flatMap(({ marks }) => marks?.cgroup ?? []).filter((folder) => existsSync(folder))
}

const removeAll = (folder: string): void => {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeAll(join(folder, entry.name))
  rmdirSync(folder)
}

/** Whether another cgroup may be made in that one. */
export const allowMore = (parent: string, isAllowed: boolean): void => {
  writeFileSync(join(parent, 'cgroup.max.descendants'), isAllowed ? 'max' : '0')
}

/** A cgroup for the length of a test; what is in it at the end is killed. */
export const tempCgroup = (name = 'test'): string => {
  const id = identityOf(process.pid)
  const folder = join(
    cgroupParent,
    `rw-${name}-${String(process.pid)}-${String(id?.startTicks)}-${String(Date.now())}`,
  )
  mkdirSync(folder)
  onTestFinished(async () => {
    writeFileSync(join(folder, 'cgroup.kill'), '1')
    await waitFor(() => !isPopulated(folder), { deadlineMs: 10_000, what: `${folder} is empty` })
    removeAll(folder)
  })
  return folder
}
