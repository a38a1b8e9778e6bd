/**
 * Starts one candidate through execa, as the leader of its own session and group (C1), bearing its marks.
 *
 * execa launches and finds the program; it is not used to stop anything: its kill reaches the leader only.
 * Errors: a `LaunchError` that names the command and the cause (L1).
 */
import { statSync } from 'node:fs'
import { execa } from 'execa'
import { COOKIE_VARIABLE, cookiesOf } from '../../actors/ports.js'
import type { ExitStatus, LaunchSpec, ProcessIdentity, TerminalSpec } from '../../actors/ports.js'
import { codeOf, messageOf } from '../../errors.js'
import { libc } from './libc.js'
import { identify } from './proc-fs.js'
import { joinOutputFiles, openLaunchFiles } from './output-files.js'
import { programProblem } from './program.js'
import { joinPipes } from './stdio.js'
import type { ChildStdio } from './stdio.js'
import { onTerminal, openTerminal } from './terminal.js'

export interface LaunchedProcess extends ChildStdio {
  readonly identity: ProcessIdentity
  readonly exited: Promise<ExitStatus>
}

/** There is no process. `code` is the system's: `ENOENT`, `EACCES`, `E2BIG`. */
class LaunchError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'LaunchError'
    this.code = code
  }
}

const CAUSES: Readonly<Record<string, string>> = {
  ENOENT: 'no such program',
  EACCES: 'permission denied',
  E2BIG: 'the arguments and the environment are too long',
  ENOTDIR: 'a part of its path is not a folder',
  EAGAIN: 'the system has no room for another process',
  EMFILE: 'this process has too many open files',
  ENOSPC: 'the system has no terminal left',
}

const cwdProblem = (cwd: string): string | null => {
  try {
    return statSync(cwd).isDirectory() ? null : `the working directory ${cwd} is not a folder`
  } catch {
    return `the working directory ${cwd} does not exist`
  }
}

const toLaunchError = (spec: LaunchSpec, error: unknown): LaunchError => {
  const code = codeOf(error) ?? 'launch-failed'
  const cause = cwdProblem(spec.cwd) ?? CAUSES[code] ?? messageOf(error)
  // L7: the program's name only; arguments may hold secrets.
  return new LaunchError(
    code,
    `cannot launch ${String(spec.command[0])}: ${cause}${code in CAUSES ? ` (${code})` : ''}`,
  )
}

const environmentOf = (spec: LaunchSpec): Record<string, string | undefined> => ({
  ...spec.env,
  ...(spec.terminal === undefined ? {} : { TERM: spec.terminal.name }),
  [COOKIE_VARIABLE]: cookiesOf(spec),
})

/** How stdin, stdout and stderr are joined: by pipes, or all by one descriptor. */
type Joints = readonly ['ignore' | 'pipe', 'pipe', 'pipe'] | readonly ['ignore' | number, number, number]

const spawn = ([program = '', ...args]: readonly string[], spec: LaunchSpec, stdio: Joints) =>
  execa(program, args, {
    cwd: spec.cwd,
    env: environmentOf(spec),
    extendEnv: false,
    detached: true,
    cleanup: false,
    buffer: false,
    reject: false,
    // execa hands a descriptor on to Node, and its types know only the first three.
    stdio: stdio as readonly ['pipe', 'pipe', 'pipe'],
    encoding: 'buffer',
    windowsHide: true,
  })

interface Started {
  readonly child: ReturnType<typeof spawn>
  /** Called when there is a process. */
  readonly join: () => ChildStdio
  /** Called when there is none. */
  readonly giveUp: () => void
}

/** A command that does something first and then becomes the given one. */
export type Prelude = (command: readonly string[]) => readonly string[]

const spawnOnPipes = (spec: LaunchSpec, prelude: Prelude): Started => {
  const child = spawn(prelude(spec.command), spec, [
    spec.stdin === 'ignore' ? 'ignore' : 'pipe',
    'pipe',
    'pipe',
  ])
  return {
    child,
    join: () => joinPipes({ stdin: child.stdin, stdout: child.stdout, stderr: child.stderr }, spec.stdin),
    giveUp: () => undefined,
  }
}

/** R10: its output stays where it is when this engine goes. */
const spawnOnFiles = (spec: LaunchSpec, folder: string, prelude: Prelude): Started => {
  const files = openLaunchFiles(folder, spec.stdin)
  try {
    return {
      child: spawn(prelude(spec.command), spec, files.stdio),
      join: () => joinOutputFiles(folder),
      giveUp: () => undefined,
    }
  } finally {
    files.close()
  }
}

const spawnOnTerminal = (spec: LaunchSpec, terminalSpec: TerminalSpec, prelude: Prelude): Started => {
  const terminal = openTerminal(terminalSpec)
  const { peer } = terminal
  try {
    const child = spawn(prelude(onTerminal(spec.command)), spec, [peer, peer, peer])
    return {
      child,
      join: () => terminal.join(),
      giveUp: () => {
        terminal.close()
      },
    }
  } catch (error) {
    terminal.close()
    throw error
  } finally {
    terminal.closePeer()
  }
}

/** What can be known before the spawn; the rest is told by it. */
export const assertLaunchable = (spec: LaunchSpec, { hasPrelude } = { hasPrelude: false }): void => {
  const [program = ''] = spec.command
  const problem = cwdProblem(spec.cwd)
  if (problem !== null) throw new LaunchError('ENOENT', `cannot launch ${program}: ${problem}`)
  // Where a shell execs the program, the spawn does not fail with it.
  const isExecedByShell = hasPrelude || spec.terminal !== undefined || spec.pane !== undefined
  const code = isExecedByShell ? programProblem(program, spec) : null
  if (code !== null) throw toLaunchError(spec, new LaunchError(code, code))
}

/** L1: whatever could not be had for it, the error names the command. */
const naming = <T>(spec: LaunchSpec, start: () => T): T => {
  try {
    return start()
  } catch (error) {
    throw toLaunchError(spec, error)
  }
}

const READ_TURNS = 8

/**
 * L2: libuv looks after all children when any of them has exited, so that an exit can be seen before the output that was written before
 * it. The next turns of the event loop read what is in the pipes and see their ends, unless somebody else still holds them.
 */
const untilRead = async (drained: Promise<void>): Promise<void> => {
  const ended = drained.then(() => true)
  const turn = () => new Promise<boolean>((resolve) => setImmediate(resolve, false))
  for (let turns = 0; turns < READ_TURNS; turns += 1) if (await Promise.race([ended, turn()])) return
}

const unchanged: Prelude = (command) => command

export const launch = async (spec: LaunchSpec, prelude: Prelude = unchanged): Promise<LaunchedProcess> => {
  assertLaunchable(spec, { hasPrelude: prelude !== unchanged })
  const start = (): Started => {
    if (spec.outputFolder !== undefined) return spawnOnFiles(spec, spec.outputFolder, prelude)
    return spec.terminal === undefined
      ? spawnOnPipes(spec, prelude)
      : spawnOnTerminal(spec, spec.terminal, prelude)
  }
  const { limit } = spec.marks
  const kernel = libc()
  const { child, join, giveUp } = naming(spec, () =>
    limit === null || kernel === null ? start() : kernel.withLimitMark(limit, start).result,
  )
  // The identity is read in the tick of the spawn: only the event loop reaps, so the number cannot have been reused.
  const identity = child.pid === undefined ? null : identify(child.pid)
  if (identity === null) {
    giveUp()
    throw toLaunchError(spec, (await child).cause)
  }
  const stdio = join()
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once('exit', (exitCode, signal) => {
      void untilRead(stdio.drained).then(() => {
        resolve({ exitCode, signal })
      })
    })
  })
  child.catch(() => undefined)
  return {
    ...stdio,
    identity,
    exited,
    letGo: () => {
      child.unref()
      stdio.letGo()
    },
  }
}
