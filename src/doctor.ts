/**
 * What this machine can promise, found by trying it (C10).
 *
 * Nothing is started and nothing is left behind; the answers hold for this process's rights and limits.
 */
import { accessSync, closeSync, constants, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findPlace } from './adapters/process/cgroup-place.js'
import { libc } from './adapters/process/libc.js'
import { terminalProblem } from './adapters/process/terminal.js'
import { messageOf } from './errors.js'

/** `unused`: it is, or is not, here, and this version makes no use of it. */
export interface MachineFact {
  readonly name:
    'node' | 'sqlite' | 'proc' | 'cookie' | 'limit mark' | 'pidfd' | 'terminal' | 'cgroup v2' | 'tmux' | 'git'
  readonly answer: 'yes' | 'no' | 'unused'
  readonly reason: string
}

export interface MachineReport {
  /** Whether runs can be supervised here at all. */
  readonly isUsable: boolean
  /** The best containment to be had, or null. */
  readonly containment: 'cgroup' | 'group+marks' | 'group' | null
  readonly facts: readonly MachineFact[]
}

const NODE_MINIMUM = [20, 19] as const

const nodeFact = (): MachineFact => {
  const { node } = process.versions
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const isEnough = major > NODE_MINIMUM[0] || (major === NODE_MINIMUM[0] && minor >= NODE_MINIMUM[1])
  const reason = `${node} on ${process.platform} ${process.arch}; ${NODE_MINIMUM.join('.')} or later is needed`
  return { name: 'node', answer: isEnough ? 'yes' : 'no', reason }
}

const sqliteFact = async (): Promise<MachineFact> => {
  try {
    // Imported here: where it is missing or was not built, that is the answer.
    const { default: BetterSqlite3 } = await import('better-sqlite3')
    const database = new BetterSqlite3(':memory:')
    const version = database.prepare('select sqlite_version()').pluck().get()
    database.close()
    return { name: 'sqlite', answer: 'yes', reason: `SQLite ${String(version)} through better-sqlite3` }
  } catch (error) {
    return { name: 'sqlite', answer: 'no', reason: `better-sqlite3 does not load: ${messageOf(error)}` }
  }
}

const readable = (path: string): boolean => {
  try {
    readFileSync(path)
    return true
  } catch {
    // The reason is the caller's to give: it knows what the file would have been for.
    return false
  }
}

const procFact = (): MachineFact => {
  const isThere = readable('/proc/self/stat') && readable('/proc/sys/kernel/random/boot_id')
  const reason = isThere
    ? 'process identities and trees can be read'
    : 'there is no readable /proc: no process could be identified'
  return { name: 'proc', answer: isThere ? 'yes' : 'no', reason }
}

const cookieFact = (): MachineFact => {
  const isThere = readable('/proc/self/environ')
  const reason = isThere
    ? "a run's processes are recognised by a value in their environment"
    : 'environments cannot be read: an escaped process is not recognised by its cookie'
  return { name: 'cookie', answer: isThere ? 'yes' : 'no', reason }
}

const limitMarkFact = (): MachineFact => {
  const kernel = libc()
  if (kernel === null) {
    const reason =
      'koffi is not installed or does not load: a process that clears its environment and escapes is not recognised'
    return { name: 'limit mark', answer: 'no', reason }
  }
  return kernel.canMark
    ? {
        name: 'limit mark',
        answer: 'yes',
        reason: 'recognised also with a cleared environment, by an inherited limit',
      }
    : {
        name: 'limit mark',
        answer: 'no',
        reason: 'the kernel refuses to set the soft real-time limit of this process',
      }
}

const pidfdFact = (): MachineFact => {
  const fd = libc()?.openPidfd(process.pid) ?? null
  if (fd === null) {
    return {
      name: 'pidfd',
      answer: 'no',
      reason: 'koffi is not installed or does not load: identities are read again just before each signal',
    }
  }
  if (fd < 0) {
    return {
      name: 'pidfd',
      answer: 'no',
      reason: 'the kernel has no pidfd_open: identities are read again just before each signal',
    }
  }
  closeSync(fd)
  return { name: 'pidfd', answer: 'yes', reason: 'a signal cannot reach a process that took over the number' }
}

/** L9. */
const terminalFact = (): MachineFact => {
  const problem = terminalProblem()
  return problem === null
    ? { name: 'terminal', answer: 'yes', reason: 'a run can have a terminal of its own (stdio "pty")' }
    : { name: 'terminal', answer: 'no', reason: `stdio "pty" is refused: ${problem}` }
}

const cgroupFact = (): MachineFact => {
  const { parent, problem, hasKill } = findPlace()
  if (problem !== null) return { name: 'cgroup v2', answer: 'no', reason: problem }
  const how = hasKill ? '' : '; without cgroup.kill (Linux 5.14) a tree is frozen and killed one by one'
  const reason = `each run gets a cgroup of its own below ${parent}: what sheds every mark is held too${how}`
  return { name: 'cgroup v2', answer: 'yes', reason }
}

const onPath = (program: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })

const programFact = (name: 'tmux' | 'git', use: string): MachineFact => {
  const path = onPath(name)
  return path === undefined
    ? { name, answer: 'no', reason: `not on the PATH: no ${use}` }
    : { name, answer: 'yes', reason: `${path}, for ${use}` }
}

/** Never rejects: what cannot be tried is a `no` with its reason. */
export const inspectMachine = async (): Promise<MachineReport> => {
  const facts = [
    nodeFact(),
    await sqliteFact(),
    procFact(),
    cookieFact(),
    limitMarkFact(),
    pidfdFact(),
    terminalFact(),
    cgroupFact(),
    programFact('tmux', 'runs in panes'),
    programFact('git', 'worktrees of jobs'),
  ]
  const has = (...names: readonly MachineFact['name'][]): boolean =>
    facts.every(({ name, answer }) => !names.includes(name) || answer === 'yes')
  const isUsable = has('node', 'sqlite', 'proc')
  const hasMarks = facts.some(
    ({ name, answer }) => ['cookie', 'limit mark'].includes(name) && answer === 'yes',
  )
  const tier = has('cgroup v2') ? 'cgroup' : hasMarks ? 'group+marks' : 'group'
  return { isUsable, containment: isUsable ? tier : null, facts }
}
