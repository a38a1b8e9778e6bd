/**
 * An independent reader of /proc and of fixture ledgers: what the tests believe instead of the library.
 *
 * Owns: process identity, tree and environment as the kernel tells them; what a fixture's ledger says.
 * Does not own: signals (end-tree.ts). It imports nothing from src, or the two could be wrong together.
 */
import { readFileSync, readdirSync } from 'node:fs'

export interface Identity {
  readonly pid: number
  /** Field 22 of /proc/PID/stat. */
  readonly startTicks: number
}

export interface ProcessStat extends Identity {
  readonly name: string
  readonly state: string
  readonly parentPid: number
  readonly group: number
  readonly session: number
}

export interface LedgerMember extends Identity {
  readonly role: string
  readonly fixture?: string
  /** Pid of the leader of its tree. */
  readonly leader?: number
}

export interface LedgerSignal {
  readonly pid: number
  readonly signal: NodeJS.Signals
  readonly at: number
  readonly role: string
}

export interface Ledger {
  readonly file: string
  /** Every process that ever entered, in order. */
  readonly members: readonly LedgerMember[]
  /** Every signal received by a member that can record it, in order. */
  readonly signals: readonly LedgerSignal[]
  /** Wall-clock time at which the whole tree was up. */
  readonly readyAt?: number
}

/** Undefined when there is no such process. A zombie has a stat: see `isAlive`. */
export function statOf(pid: number): ProcessStat | undefined {
  const stat = readProc(pid, 'stat')
  if (stat === undefined) return undefined
  // A name may hold spaces and parentheses: fields are counted after the last one.
  const nameEnd = stat.lastIndexOf(')')
  const [state = '', ...fields] = stat.slice(nameEnd + 2).split(' ')
  const [parentPid = 0, group = 0, session = 0] = fields.map(Number)
  const name = stat.slice(stat.indexOf('(') + 1, nameEnd)
  return { pid, startTicks: Number(fields[18]), name, state, parentPid, group, session }
}

export function identityOf(pid: number): Identity | undefined {
  const stat = statOf(pid)
  return stat && { pid, startTicks: stat.startTicks }
}

/** That very process exists, and is neither a zombie nor being reaped. */
export function isAlive({ pid, startTicks }: Identity): boolean {
  const stat = statOf(pid)
  return stat !== undefined && stat.startTicks === startTicks && !isDead(stat)
}

/** Every living process of the machine. */
export function livingProcesses(): ProcessStat[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => statOf(Number(pid)) ?? []).filter((stat) => !isDead(stat))
}

/** Living descendants by parentage, nearest first. A daemon that was orphaned is not among them. */
export function descendantsOf(pid: number, all = livingProcesses()): ProcessStat[] {
  const children = all.filter((stat) => stat.parentPid === pid)
  return [...children, ...children.flatMap((child) => descendantsOf(child.pid, all))]
}

/** Living members of a process group. */
export function groupOf(group: number): ProcessStat[] {
  return livingProcesses().filter((stat) => stat.group === group)
}

/** Living members of a session. */
export function sessionOf(session: number): ProcessStat[] {
  return livingProcesses().filter((stat) => stat.session === session)
}

/** Environment at exec, as `NAME=value` words; undefined when the process is gone or not ours to read. */
function environmentOf(pid: number): readonly string[] | undefined {
  return readProc(pid, 'environ')?.split('\0')
}

/**
 * Living processes whose environment has, for each prefix, a word that starts with it (`NAME=` or `NAME=value`).
 * Unlike a ledger it knows the newborn; unlike it, it knows neither the scrubbed nor a process in mid-exec, whose
 * environment reads as empty, or is refused.
 */
export function processesWith(...prefixes: readonly string[]): ProcessStat[] {
  return livingProcesses().filter(({ pid }) => {
    const words = environmentOf(pid) ?? []
    return prefixes.every((prefix) => words.some((word) => word.startsWith(prefix)))
  })
}

/** A ledger that nobody has written yet is empty. */
export function readLedger(file: string): Ledger {
  const entries = linesOf(file).map((line) => JSON.parse(line) as Record<string, unknown>)
  const readyAt = entries.find((entry) => entry['ready'] === true)?.['at']
  return {
    file,
    members: entries.filter((entry) => 'startTicks' in entry) as unknown as LedgerMember[],
    signals: entries.filter((entry) => 'signal' in entry) as unknown as LedgerSignal[],
    ...(typeof readyAt === 'number' && { readyAt }),
  }
}

/** Members that are still alive. */
export function aliveOf(ledger: Ledger): LedgerMember[] {
  // A storm's ledger names thousands that are long gone: one listing spares as many reads.
  const listed = new Set(readdirSync('/proc'))
  return ledger.members.filter((member) => listed.has(String(member.pid)) && isAlive(member))
}

/** Names of the signals that the members of a role have received, in order. */
export function signalsOf(ledger: Ledger, role: string): NodeJS.Signals[] {
  return ledger.signals.filter((entry) => entry.role === role).map((entry) => entry.signal)
}

function isDead({ state }: ProcessStat): boolean {
  return state === 'Z' || state === 'X'
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1')
  } catch {
    // Gone between two looks, or another user's: unknown to the caller in both cases.
    return undefined
  }
}

function linesOf(file: string): string[] {
  try {
    // What follows the last newline is a line still being written.
    return readFileSync(file, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
