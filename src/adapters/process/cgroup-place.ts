/**
 * Where this process may make cgroups (v2), found by making one (C10).
 *
 * Owns: the mount, the cgroup of this process, and the trial that proves that a child can be put into a folder made there.
 * Does not own: the cgroup of an execution (cgroup.ts).
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readlinkSync, rmdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { codeOf, messageOf } from '../../errors.js'
import { JOIN_SCRIPT, joinFile } from './cgroup-join.js'

export interface CgroupMount {
  readonly mountPoint: string
  /** The cgroup that the mount shows as its root, as this process's namespace names it. */
  readonly root: string
}

/** Where executions' cgroups are made, or why they cannot be. */
export type CgroupPlace =
  | { readonly parent: string; readonly problem: null; readonly hasKill: boolean }
  | { readonly parent: null; readonly problem: string; readonly hasKill: false }

const TRIAL_TIMEOUT_MS = 5_000

/** A space in a path is `\040` there. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** `36 25 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw` */
export const parseMounts = (text: string): readonly CgroupMount[] =>
  text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [, , , root, mountPoint] = before.split(' ')
    if (!after.startsWith('cgroup2 ') || root === undefined || mountPoint === undefined) return []
    return [{ root: unescaped(root), mountPoint: unescaped(mountPoint) }]
  })

let knownMount: CgroupMount | null = null

export const cgroupMount = (): CgroupMount | null => {
  try {
    knownMount ??= parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'))[0] ?? null
  } catch {
    // Without /proc there is no cgroup that could be told either.
  }
  return knownMount
}

/** The folder of a process's cgroup; null when it has none here, or is gone. */
export const folderOf = (pid: number | 'self', mount: CgroupMount): string | null => {
  try {
    const text = readFileSync(`/proc/${String(pid)}/cgroup`, 'utf8')
    const path = /^0::(.*)$/m.exec(text)?.[1]?.replace(/ \(deleted\)$/, '')
    if (path === undefined) return null
    const relative = posix.relative(mount.root, path)
    return relative.startsWith('..') ? null : join(mount.mountPoint, relative)
  } catch {
    return null
  }
}

/** Names a cgroup namespace: a path means the same cgroup only within one. */
const cgroupNamespace = (): string => {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/cgroup'))?.[0] ?? '0'
  } catch {
    return '0'
  }
}

const hint = (code: string | undefined): string =>
  code === 'EACCES' || code === 'EPERM'
    ? '; without root it must be delegated, as by systemd-run --user --scope -p Delegate=yes'
    : ''

const none = (problem: string): CgroupPlace => ({ parent: null, problem, hasKill: false })

/** Whether a child can be put into a cgroup made in `parent`, and everything that is needed is there. */
const tryIn = (parent: string): CgroupPlace => {
  const folder = join(parent, `runwarden-trial-${randomBytes(8).toString('hex')}`)
  try {
    mkdirSync(folder)
  } catch (error) {
    return none(`no cgroup can be made in ${parent}: ${messageOf(error)}${hint(codeOf(error))}`)
  }
  try {
    readFileSync(join(folder, 'cgroup.events'))
    readFileSync(join(folder, 'cgroup.freeze'))
    const { status, stderr, error } = spawnSync('/bin/sh', ['-c', JOIN_SCRIPT, joinFile(folder), 'true'], {
      encoding: 'utf8',
      timeout: TRIAL_TIMEOUT_MS,
    })
    if (status === 0) return { parent, problem: null, hasKill: existsSync(join(folder, 'cgroup.kill')) }
    const said = error?.message ?? stderr.trim()
    return none(`no process can be put into a cgroup made in ${parent}: ${said}`)
  } catch (error) {
    return none(`${parent} is no place for cgroups: ${messageOf(error)}`)
  } finally {
    try {
      rmdirSync(folder)
    } catch {
      // An empty folder more; the answer is not changed by it.
    }
  }
}

/** `parent`: an absolute folder of a cgroup v2 file system; default: the cgroup of this process. */
export const findPlace = (parent?: string): CgroupPlace => {
  const mount = cgroupMount()
  if (mount === null) return none('cgroup v2 is not mounted')
  const folder = parent ?? folderOf('self', mount)
  return folder === null ? none('this process is in no cgroup that is mounted here') : tryIn(folder)
}

/** A new cgroup's folder below `parent`, not made yet. It tells in which namespace its path means something. */
export const mintFolder = (parent: string): string =>
  join(parent, `runwarden-${cgroupNamespace()}-${randomBytes(12).toString('hex')}`)

/** Whether a folder that is not there would be there if the cgroup was. */
export const isOfThisNamespace = (folder: string): boolean =>
  /\/runwarden-(\d+)-[^/]+$/.exec(folder)?.[1] === cgroupNamespace()
