/**
 * Reads of `/proc`. Synchronous on purpose: a read of a few hundred bytes from the kernel costs about 10 µs, a trip through the thread
 * pool several times that.
 */
import { closeSync, openSync, readSync, readdirSync, readlinkSync } from 'node:fs'
import { codeOf } from '../../errors.js'
import type { ProcessIdentity } from '../../actors/ports.js'

/** One process as `/proc/PID/stat` shows it. */
export interface ProcStat {
  readonly pid: number
  readonly name: string
  readonly state: string
  readonly parent: number
  readonly group: number
  readonly session: number
  /** The group that has its terminal, or -1. */
  readonly foreground: number
  readonly cpuTicks: number
  readonly threads: number
  readonly startTicks: number
  readonly rssPages: number
}

const buffer = Buffer.allocUnsafe(256 * 1024)

/** The process is not there any more, as opposed to not readable (INV-5). */
const isAbsence = (error: unknown): boolean => {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ESRCH'
}

/** Null when the process is gone; throws when the kernel would not say. */
const readProcFile = (path: string): string | null => {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
  } catch (error) {
    if (isAbsence(error)) return null
    throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** R1: the name may hold spaces and parentheses; the fields begin after the last one. */
export const parseStat = (text: string): ProcStat => {
  const open = text.indexOf('(')
  const close = text.lastIndexOf(')')
  const fields = text.slice(close + 2).split(' ')
  const field = (index: number): number => Number(fields[index - 3])
  return {
    pid: Number(text.slice(0, open - 1)),
    name: text.slice(open + 1, close),
    state: fields[0] ?? '?',
    parent: field(4),
    group: field(5),
    session: field(6),
    foreground: field(8),
    cpuTicks: field(14) + field(15),
    threads: field(20),
    startTicks: field(22),
    rssPages: field(24),
  }
}

export const readStat = (pid: number): ProcStat | null => {
  const text = readProcFile(`/proc/${String(pid)}/stat`)
  return text === null || text === '' ? null : parseStat(text)
}

/** C6: a zombie is dead, unless only its first thread has ended and others run on. */
export const isAlive = ({ state, threads }: ProcStat): boolean =>
  (state !== 'Z' && state !== 'X') || threads > 1

const isStoppedState = (state: string): boolean => state === 'T' || state === 't'

/** A thread that went meanwhile runs no more. */
const threadStates = (pid: number): string[] =>
  readdirSync(`/proc/${String(pid)}/task`).flatMap((thread) => {
    const text = readProcFile(`/proc/${String(pid)}/task/${thread}/stat`)
    return text === null || text === '' ? [] : [parseStat(text).state]
  })

/**
 * O1: the state of the whole process. Its stat shows that of the first thread alone, which may be stopped, or have ended, while another
 * still finishes a write. A process whose threads cannot be listed is not called stopped (INV-5).
 */
export const stateOfThreads = ({ pid, state, threads }: ProcStat): string => {
  if (threads <= 1 || (!isStoppedState(state) && state !== 'Z')) return state
  try {
    const living = threadStates(pid).filter((one) => one !== 'Z' && one !== 'X')
    return living.find((one) => !isStoppedState(one)) ?? living[0] ?? state
  } catch {
    return '?'
  }
}

/** Null when it is not ours to read, or the process is gone. */
const readText = (path: string): string | null => {
  try {
    return readProcFile(path)?.trim() ?? null
  } catch {
    return null
  }
}

/** Where the kernel has it wait for a child's `exec`: `kernel_clone`, in older kernels `_do_fork` and `do_fork`. */
const VFORK_WAIT = /clone|fork/

/**
 * Of a process in state D, the child that it waits for in `vfork`: until that has exec'ed, the two share their memory, and the parent takes
 * no stop. Null when it waits for something else.
 */
export const vforkChildOf = ({ pid }: ProcStat, children: readonly ProcStat[]): ProcStat | null => {
  const main = `/proc/${String(pid)}`
  let threads: string[]
  try {
    threads = readdirSync(`${main}/task`)
  } catch {
    return null
  }
  const places = threads.map((thread) => readText(`${main}/task/${thread}/wchan`) ?? '')
  const isCertain = places.some((place) => VFORK_WAIT.test(place))
  // A kernel that does not say where anyone waits says `0`.
  if (!isCertain && !places.every((place) => place === '' || place === '0')) return null
  const memory = readText(`${main}/statm`)
  const shares = children.find(
    (child) => memory !== null && readText(`/proc/${String(child.pid)}/statm`) === memory,
  )
  return shares ?? (isCertain ? (children.at(-1) ?? null) : null)
}

/** The ids of all processes there are, at one moment or nearly so. */
export const listPids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => name.charCodeAt(0) > 48 && name.charCodeAt(0) < 58)
    .map(Number)

const LIMIT_LINE = /^Max realtime timeout +(\d+)/m

/** The soft value of the marked limit; null when it is unlimited or not ours to read. */
export const readLimitMark = (pid: number): number | null | 'gone' => {
  try {
    const text = readProcFile(`/proc/${String(pid)}/limits`)
    if (text === null || text === '') return 'gone'
    const value = LIMIT_LINE.exec(text)?.[1]
    return value === undefined ? null : Number(value)
  } catch {
    return null
  }
}

/** Where the environment of a process is read: a process whose first thread has ended shows it only through another one (C6). */
const environmentPath = ({ pid, state, threads }: ProcStat): string => {
  const main = `/proc/${String(pid)}`
  if (state !== 'Z' || threads <= 1) return `${main}/environ`
  const other = readdirSync(`${main}/task`).find((thread) => thread !== String(pid))
  return other === undefined ? `${main}/environ` : `${main}/task/${other}/environ`
}

/**
 * The value of one environment variable as the process was started with it; null when it has none, or it is not ours to read. `empty`:
 * nothing is shown, as in the middle of an `exec`.
 */
export const readEnvironment = (
  stat: ProcStat,
  name: string,
): { readonly value: string | null } | 'gone' | 'empty' => {
  try {
    const text = readProcFile(environmentPath(stat))
    // INV-5: an environment that is not there is not a process that is not there.
    if (text === null) return isStillThere(stat) ? 'empty' : 'gone'
    if (text === '') return 'empty'
    const entry = text.split('\0').find((line) => line.startsWith(`${name}=`))
    return { value: entry === undefined ? null : entry.slice(name.length + 1) }
  } catch {
    return { value: null }
  }
}

/** The same process, alive, a moment later. */
export const isStillThere = ({ pid, startTicks }: ProcStat): boolean => {
  const now = readStat(pid)
  return now !== null && now.startTicks === startTicks && isAlive(now)
}

let knownBootId: string | undefined

/** The same as long as this process lives. */
export const bootId = (): string =>
  (knownBootId ??= readProcFile('/proc/sys/kernel/random/boot_id')?.trim() ?? '')

const namespaceOf = (pid: number): string => readlinkSync(`/proc/${String(pid)}/ns/pid`)

/** Null when there is no such process. */
export const identify = (pid: number): ProcessIdentity | null => {
  const stat = readStat(pid)
  if (stat === null) return null
  let pidNamespace: string
  try {
    pidNamespace = namespaceOf(pid)
  } catch {
    // A zombie has no namespace link, another user's process hides it: it was seen through our own /proc.
    pidNamespace = namespaceOf(process.pid)
  }
  return { pid, startTicks: stat.startTicks, bootId: bootId(), pidNamespace }
}

/** R1: another boot is gone; another namespace cannot be judged from here; unreadable is unknown, never gone. */
export const lookUpIdentity = (identity: ProcessIdentity): 'alive' | 'gone' | 'unknown' => {
  try {
    if (identity.bootId !== bootId()) return 'gone'
    if (identity.pidNamespace !== namespaceOf(process.pid)) return 'unknown'
    const stat = readStat(identity.pid)
    return stat !== null && stat.startTicks === identity.startTicks && isAlive(stat) ? 'alive' : 'gone'
  } catch {
    return 'unknown'
  }
}
