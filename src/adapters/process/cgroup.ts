/**
 * The cgroup (v2) of one execution: a folder that its processes cannot leave without the right to write to another one.
 *
 * Owns: what is in it, nested cgroups included; freezing, thawing, killing and removing it. Only core files are used, no controller.
 * Does not own: whether it may be signalled (cgroup-tree.ts).
 * Invariants: INV-5 (only the kernel's `populated 0`, or the absence of a folder that could be seen, says that it is empty).
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { RunwardenError, codeOf, messageOf } from '../../errors.js'
import { cgroupMount, folderOf, isOfThisNamespace } from './cgroup-place.js'
import { joinFile } from './cgroup-join.js'

const CGROUP2_MAGIC = 0x63677270
/** Half of what a path may have; a name has at most 255. */
const LONG_PATH = 2_048

/** One nested cgroup, or the whole. */
interface Group {
  readonly folder: string
  readonly pids: readonly number[]
  readonly isFrozen: boolean
}

/** What a look at it found. */
export interface CgroupLook {
  readonly isPopulated: boolean
  /** By pid, with the cgroup that it is in. */
  readonly groupOf: ReadonlyMap<number, Group>
  /** Somebody in it has no number here: a process of another namespace. */
  readonly hasHidden: boolean
}

const ABSENT = ['ENOENT', 'ENODEV']

/** Gone meanwhile, as opposed to unreadable. */
const isAbsence = (error: unknown): boolean => ABSENT.includes(codeOf(error) ?? '')

const read = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  }
}

const says = (events: string, fact: string): boolean => events.split('\n').includes(fact)

const nestedIn = (folder: string): string[] => {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
  } catch (error) {
    if (isAbsence(error)) return []
    throw error
  }
}

/** A threaded cgroup lists no processes: the one around it does. */
const pidsIn = (folder: string): number[] => {
  try {
    return [...new Set((read(joinFile(folder)) ?? '').split('\n').filter(Boolean).map(Number))]
  } catch (error) {
    if (['EOPNOTSUPP', 'ENOTSUP'].includes(codeOf(error) ?? '')) return []
    throw error
  }
}

/** Nested cgroups can lie deeper than one path can name: then the way goes on from an open folder. */
const reaching = <T>(folder: string, act: (near: string) => T): T => {
  if (folder.length < LONG_PATH) return act(folder)
  const fd = openSync(folder, 'r')
  try {
    return act(`/proc/self/fd/${String(fd)}`)
  } finally {
    closeSync(fd)
  }
}

/** `near` leads to it from here, `folder` is its path. */
const groupsIn = (near: string, folder: string): Group[] => {
  const events = read(join(near, 'cgroup.events'))
  if (events === null) return []
  const group = { folder, pids: pidsIn(near), isFrozen: says(events, 'frozen 1') }
  const nested = nestedIn(near).flatMap((name) =>
    reaching(join(near, name), (next) => groupsIn(next, join(folder, name))),
  )
  return [group, ...nested]
}

const removeIn = (folder: string): void => {
  reaching(folder, (near) => {
    for (const name of nestedIn(near)) removeIn(join(near, name))
  })
  try {
    rmdirSync(folder)
  } catch (error) {
    if (!isAbsence(error)) throw error
  }
}

/** Whether `folder`, which is not there, lay on a cgroup file system that can be seen. */
const wasOnCgroup = (folder: string): boolean => {
  let current = dirname(folder)
  while (!existsSync(current) && current !== '/') current = dirname(current)
  return statfsSync(current).type === CGROUP2_MAGIC
}

export class Cgroup {
  readonly folder: string
  readonly #canKill: boolean

  /** `canKill: false` is for kernels before 5.14, which have no `cgroup.kill`. */
  constructor(folder: string, options?: { readonly canKill: boolean }) {
    this.folder = folder
    this.#canKill = options?.canKill ?? true
  }

  make(): void {
    mkdirSync(this.folder)
  }

  /** Throws when it cannot be read: unknown is not empty. */
  look(): CgroupLook {
    const events = read(join(this.folder, 'cgroup.events'))
    if (events === null) return this.#absent()
    const isPopulated = says(events, 'populated 1')
    const groups = isPopulated ? groupsIn(this.folder, this.folder) : []
    const groupOf = new Map(groups.flatMap((group) => group.pids.map((pid) => [pid, group] as const)))
    return { isPopulated, hasHidden: groupOf.delete(0), groupOf }
  }

  /** An empty cgroup only can be removed. But one that was never visible from here was not removed. */
  #absent(): CgroupLook {
    if (!isOfThisNamespace(this.folder) || !wasOnCgroup(this.folder)) {
      throw new RunwardenError('unreadable', `the cgroup ${this.folder} cannot be seen from here`)
    }
    return { isPopulated: false, hasHidden: false, groupOf: new Map() }
  }

  /** Zombies count as being where they were. */
  contains(pid: number | 'self'): boolean {
    const mount = cgroupMount()
    const folder = mount === null ? null : folderOf(pid, mount)
    return folder !== null && (folder === this.folder || folder.startsWith(`${this.folder}/`))
  }

  /** Something has run in it: the kernel counts the time. False where it does not say. */
  hasBeenUsed(): boolean {
    try {
      return !/^usage_usec 0$/m.test(readFileSync(join(this.folder, 'cpu.stat'), 'utf8'))
    } catch {
      return false
    }
  }

  freeze(): string | null {
    return this.#write(this.folder, 'cgroup.freeze', '1')
  }

  /**
   * What has frozen itself in a nested one stays as it is. Null also when the cgroup, or `folder` in it, is gone, or nested too deep to be
   * named: what froze itself there waits for the kill.
   */
  unfreeze(folder = this.folder): string | null {
    const problem = this.#write(folder, 'cgroup.freeze', '0')
    return problem !== null && [...ABSENT, 'ENAMETOOLONG'].includes(problem) ? null : problem
  }

  /** Everything in it at once, also what is being born. Returns why it could not be, or null. */
  kill(): string | null {
    if (!this.#canKill || !existsSync(join(this.folder, 'cgroup.kill'))) return 'ENOENT'
    return this.#write(this.folder, 'cgroup.kill', '1')
  }

  /** With what was nested in it. False when something is left. */
  remove(): boolean {
    try {
      removeIn(this.folder)
      return true
    } catch {
      // In use again, or not ours to remove: the caller says so.
      return false
    }
  }

  #write(folder: string, file: string, text: string): string | null {
    try {
      writeFileSync(join(folder, file), text)
      return null
    } catch (error) {
      return codeOf(error) ?? messageOf(error)
    }
  }
}
