/**
 * Starts one candidate through execa, as the leader of its own session and group (C1), bearing its marks.
 *
 * execa launches and finds the program; it is not used to stop anything: its kill reaches the leader only.
 * Errors: a `LaunchError` that names the command and the cause (L1).
 */
import { statSync } from 'node:fs'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { execa } from 'execa'
import type { ExitStatus, LaunchSpec, OutputStream, ProcessIdentity } from '../../actors/ports.js'
import { codeOf, messageOf } from '../../errors.js'
import { libc } from './libc.js'
import { identify } from './proc-fs.js'
import { OutputFollower, openLaunchFiles } from './output-files.js'
import { COOKIE_VARIABLE } from './proc-table.js'

export interface LaunchedProcess {
  readonly identity: ProcessIdentity
  readonly exited: Promise<ExitStatus>
  readonly drained: Promise<void>
  readonly stdin: NodeJS.WritableStream | null
  onOutput(receive: (stream: OutputStream, chunk: Buffer) => unknown): void
  cutOutput(): boolean
  letGo(): void
  /** Of output in files: nobody writes any more. */
  finishOutput?(): Promise<void>
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

const environmentOf = (spec: LaunchSpec): Record<string, string | undefined> => {
  const inherited = spec.env[COOKIE_VARIABLE]
  const cookie = spec.marks.cookie
  return { ...spec.env, [COOKIE_VARIABLE]: inherited === undefined ? cookie : `${inherited}:${cookie}` }
}

type Stdio = readonly ['ignore' | 'pipe' | number, 'pipe' | number, 'pipe' | number]

const spawn = (spec: LaunchSpec, stdio: Stdio) => {
  const [program = '', ...args] = spec.command
  return execa(program, args, {
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
}

const feed = (spec: LaunchSpec, stdin: NodeJS.WritableStream | null): void => {
  // L5: an agent that ends without reading its input is not our fault and not our crash.
  stdin?.on('error', () => undefined)
  if (stdin === null || typeof spec.stdin === 'string') return
  const source =
    spec.stdin instanceof Readable ? spec.stdin : Readable.from([spec.stdin.text], { objectMode: false })
  pipeline(source, stdin).catch(() => undefined)
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

type Child = ReturnType<typeof spawn>

/** Spawns with the limit mark. The identity is read in the same tick: only the event loop reaps, so the number cannot have been reused. */
const start = async (
  spec: LaunchSpec,
  stdio: Stdio,
): Promise<{ readonly child: Child; readonly identity: ProcessIdentity }> => {
  const { limit } = spec.marks
  const kernel = libc()
  const child =
    limit === null || kernel === null
      ? spawn(spec, stdio)
      : kernel.withLimitMark(limit, () => spawn(spec, stdio)).result
  const identity = child.pid === undefined ? null : identify(child.pid)
  if (identity === null) throw toLaunchError(spec, (await child).cause)
  child.catch(() => undefined)
  return { child, identity }
}

/** R10: its output stays where it is when this engine goes. */
const launchOnFiles = async (spec: LaunchSpec, folder: string): Promise<LaunchedProcess> => {
  const files = openLaunchFiles(folder, spec.stdin)
  const { child, identity } = await start(spec, files.stdio).finally(() => {
    files.close()
  })
  const follower = new OutputFollower(folder)
  return {
    identity,
    exited: new Promise<ExitStatus>((resolve) => {
      child.once('exit', (exitCode, signal) => {
        void follower.catchUp().then(() => {
          resolve({ exitCode, signal })
        })
      })
    }),
    drained: follower.drained,
    stdin: null,
    onOutput: (receive) => {
      follower.onOutput(receive)
    },
    cutOutput: () => {
      follower.stop()
      return false
    },
    letGo: () => {
      follower.stop()
      child.unref()
    },
    finishOutput: () => follower.finish(),
  }
}

export const launch = async (spec: LaunchSpec): Promise<LaunchedProcess> => {
  const problem = cwdProblem(spec.cwd)
  if (problem !== null)
    throw new LaunchError('ENOENT', `cannot launch ${String(spec.command[0])}: ${problem}`)
  if (spec.outputFolder !== undefined) return launchOnFiles(spec, spec.outputFolder)
  const { child, identity } = await start(spec, [spec.stdin === 'ignore' ? 'ignore' : 'pipe', 'pipe', 'pipe'])
  const { stdout, stderr } = child
  // The types of execa know nothing of stdio that is chosen at run time.
  const stdin = child.stdin as typeof child.stdin | null
  const streams = [
    ['stdout', stdout],
    ['stderr', stderr],
  ] as const
  const drained = Promise.all(
    streams.map(([, stream]) => new Promise<void>((resolve) => stream.once('close', resolve))),
  ).then(() => undefined)
  const exited = new Promise<ExitStatus>((resolve) => {
    child.once('exit', (exitCode, signal) => {
      void untilRead(drained).then(() => {
        resolve({ exitCode, signal })
      })
    })
  })
  feed(spec, stdin)
  for (const [, stream] of streams) stream.on('error', () => undefined)
  return {
    identity,
    exited,
    drained,
    stdin,
    onOutput: (receive) => {
      for (const [name, stream] of streams)
        stream.on('data', (chunk: Buffer) => {
          receive(name, chunk)
        })
    },
    cutOutput: () => {
      const open = streams.filter(([, stream]) => !stream.closed)
      for (const [, stream] of open) stream.destroy()
      stdin?.destroy()
      return open.length > 0
    },
    letGo: () => {
      child.unref()
      for (const pipe of [stdin, stdout, stderr]) (pipe as Partial<Socket> | null)?.unref?.()
    },
  }
}
