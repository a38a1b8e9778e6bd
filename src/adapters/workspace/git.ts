/**
 * Running the real git, always to an end.
 *
 * Owns: the environment git sees, its deadlines, and which code a failure has.
 * Does not own: what is done with git.
 * Invariants: nothing of the host's own repository or hooks reaches a command, nothing asks a person, nothing waits for ever (INV-11).
 */
import { constants, existsSync } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { execa } from 'execa'
import type { Clock } from '../../actors/ports.js'
import type { WorkspaceCode } from '../../actors/workspace.ports.js'
import { Obstacle, fileSystemCodeOf, refuse } from './obstacle.js'

export interface GitOptions {
  readonly clock: Clock
  /** The program. Default `git`. */
  readonly program?: string
  /** For a command that looks or writes a ref. Default 30 000 ms. */
  readonly commandDeadlineMs?: number
  /** For a command that writes or deletes the files of a worktree. Default 600 000 ms. */
  readonly checkoutDeadlineMs?: number
  /** How long a lock of another git process is waited for. Default 5 000 ms. */
  readonly lockWaitMs?: number
}

export interface GitCall {
  /** What it does, for the reason of a failure: `git could not <doing>: …`. */
  readonly doing: string
  readonly cwd: string
  readonly args: readonly string[]
  /** Names the worktree outright, so that no folder above it is found in its place. */
  readonly at?: { readonly adminDir: string; readonly path: string }
  /** Where it writes, besides `at`: looked at when git could not write and does not say why. */
  readonly writesTo?: string
  readonly isCheckout?: boolean
}

export interface GitAnswer {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface Git {
  readonly lockWaitMs: number
  readonly checkoutDeadlineMs: number
  /** The answer, whatever the exit code. Refuses when there is no git, no such folder, or no answer in time. */
  attempt(call: GitCall): Promise<GitAnswer>
  /** What it printed. Waits for locks of others, and refuses with the reason when it fails. */
  run(call: GitCall): Promise<string>
  wait(ms: number): Promise<void>
  /** Asks until the answer is true or the wait for locks is over; the last answer. */
  waitUntil(isSo: () => Promise<boolean>): Promise<boolean>
  nowMs(): number
}

const LOCK_POLL_MS = 50
const OUTPUT_MAX_BYTES = 256 * 1024 * 1024
const QUOTE_MAX_CHARACTERS = 400
/** Between TERM and KILL to a git past its deadline. */
const KILL_AFTER_MS = 1_000

/** The only variables of git's that say nothing of a repository: where the user's configuration and git itself are. */
const HARMLESS = new Set(['GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM', 'GIT_EXEC_PATH'])

const gitEnvironment = (): NodeJS.ProcessEnv => {
  const host = Object.entries(process.env).filter(
    ([name]) => !name.toUpperCase().startsWith('GIT_') || HARMLESS.has(name),
  )
  return {
    ...Object.fromEntries(host),
    // Messages and sizes are read by us.
    LC_ALL: 'C',
    LANGUAGE: 'C',
    // A lazy fetch of a partial clone may want a password: nobody is there to ask. An empty askpass ends git's search for one.
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    SSH_ASKPASS: '',
    GCM_INTERACTIVE: 'never',
    // Looking must not take the index lock from under the agent.
    GIT_OPTIONAL_LOCKS: '0',
  }
}

/** A hook or a file monitor is a program of the repository's that would run outside every execution. */
const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'submodule.recurse=false',
  // Git's own check before a removal obeys it, and a user may have said `no`.
  'status.showUntrackedFiles=normal',
].flatMap((setting) => ['-c', setting])

const FAILURES: readonly (readonly [RegExp, WorkspaceCode])[] = [
  [/dubious ownership|unsafe repository/, 'unsafe-repository'],
  [/not a git repository|cannot change to/i, 'not-a-repository'],
  [/No space left on device|Disk quota exceeded/, 'disk-full'],
  [/Read-only file system/, 'read-only'],
  [/Permission denied|Operation not permitted/, 'no-permission'],
  [/cannot remove a locked working tree/, 'locked'],
  [/is already (?:checked out|used by worktree) at/, 'branch-checked-out-elsewhere'],
  [/reference already exists|'refs\/heads\/.*' exists; cannot create/, 'branch-taken'],
  [/\.lock': File exists|could not lock config file .*: File exists/, 'busy'],
]

const failureCodeOf = (stderr: string): WorkspaceCode =>
  FAILURES.find(([pattern]) => pattern.test(stderr))?.[1] ?? 'git-failed'

/** The lines in which git says what is wrong; hints on how to configure it are for its own users. */
const quoted = ({ exitCode, stderr }: GitAnswer): string => {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('hint:'))
  const telling = lines.filter((line) => /^(?:fatal|error):/.test(line))
  const text = (telling.length > 0 ? telling : lines).join(' ').slice(0, QUOTE_MAX_CHARACTERS)
  return text === '' ? `it exited with ${exitCode} and no message` : text
}

const WRITE_FAILURE = /(?:unable to|could not|cannot|failed to) (?:create|write|mkdir|open|append)/i
/** Git keeps writing small files after a large one did not fit, so little is left. */
const FULL_BELOW_BYTES = 65_536

/** Git often leaves out why it could not write. */
const diskFaultAt = async (folder: string): Promise<WorkspaceCode | null> => {
  try {
    await access(folder, constants.W_OK)
    const { bavail, bsize, files, ffree } = await statfs(folder)
    return bavail * bsize < FULL_BELOW_BYTES || (files > 0 && ffree === 0) ? 'disk-full' : null
  } catch (error) {
    return fileSystemCodeOf(error)
  }
}

/** A failed command as the obstacle that it is. */
export const failureOf = async (call: GitCall, answer: GitAnswer): Promise<Obstacle> => {
  const { doing, at, writesTo } = call
  const reason = `git could not ${doing}: ${quoted(answer)}`
  const code = failureCodeOf(answer.stderr)
  if (code !== 'git-failed' || !WRITE_FAILURE.test(answer.stderr)) return new Obstacle(code, reason)
  for (const folder of [writesTo, at?.path, at?.adminDir]) {
    const fault = folder === undefined ? null : await diskFaultAt(folder)
    if (fault !== null) return new Obstacle(fault, `${reason} (${folder ?? ''}: ${fault})`)
  }
  return new Obstacle(code, reason)
}

const afterOn =
  (clock: Clock) =>
  <T>(ms: number, value: T): { readonly over: Promise<T>; readonly cancel: () => void } => {
    let cancel = (): void => undefined
    const over = new Promise<T>((resolve) => {
      cancel = clock.after(ms, () => resolve(value))
    })
    return { over, cancel }
  }

export const createGit = ({ clock, program = 'git', ...limits }: GitOptions): Git => {
  const { commandDeadlineMs = 30_000, checkoutDeadlineMs = 600_000, lockWaitMs = 5_000 } = limits
  const after = afterOn(clock)

  const attempt = async ({ doing, cwd, args, at, isCheckout = false }: GitCall): Promise<GitAnswer> => {
    const deadlineMs = isCheckout ? checkoutDeadlineMs : commandDeadlineMs
    const place = at === undefined ? [] : [`--git-dir=${at.adminDir}`, `--work-tree=${at.path}`]
    const child = execa(program, [...SETTINGS, ...place, ...args], {
      cwd,
      env: gitEnvironment(),
      extendEnv: false,
      stdin: 'ignore',
      reject: false,
      stripFinalNewline: false,
      maxBuffer: OUTPUT_MAX_BYTES,
      timeout: deadlineMs,
      forceKillAfterDelay: KILL_AFTER_MS,
      // A session of its own: no terminal to ask at, and a Ctrl-C at the host's leaves no half-made worktree.
      detached: true,
      windowsHide: true,
    })
    // A filter that git started may hold its output open for longer than git lives.
    const limit = after(deadlineMs + 2 * KILL_AFTER_MS, null)
    const result = await Promise.race([child, limit.over])
    limit.cancel()
    if (result === null) {
      child.stdout.destroy()
      child.stderr.destroy()
      child.unref()
    }
    if (result === null || result.timedOut)
      refuse('timeout', `git could not ${doing} within ${deadlineMs} ms`)
    if (result.exitCode !== undefined) {
      return { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr }
    }
    if (!existsSync(cwd)) refuse('not-a-repository', `the folder ${cwd} does not exist`)
    if (result.code === 'ENOENT') refuse('git-missing', `there is no program ${program} to run git with`)
    refuse('git-failed', `git could not ${doing}: ${result.shortMessage}`)
  }

  const wait = (ms: number): Promise<void> => after(ms, undefined).over

  const waitUntil = async (isSo: () => Promise<boolean>): Promise<boolean> => {
    const endsAtMs = clock.monotonicMs() + lockWaitMs
    for (;;) {
      if (await isSo()) return true
      if (clock.monotonicMs() >= endsAtMs) return false
      await wait(LOCK_POLL_MS)
    }
  }

  const run = async (call: GitCall): Promise<string> => {
    let answer = await attempt(call)
    const isLocked = (): boolean => answer.exitCode !== 0 && failureCodeOf(answer.stderr) === 'busy'
    if (isLocked()) {
      await waitUntil(async () => {
        answer = await attempt(call)
        return !isLocked()
      })
    }
    if (answer.exitCode !== 0) throw await failureOf(call, answer)
    return answer.stdout
  }

  return { lockWaitMs, checkoutDeadlineMs, attempt, run, wait, waitUntil, nowMs: () => clock.wallMs() }
}
