/** Starting the command line as a user does: the built program, in a folder of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import type { LedgerMember } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const DEADLINE_MS = 30_000
/** For tests that start several commands, one after the other. */
export const TEST_TIMEOUT_MS = 90_000

export const program = resolve(import.meta.dirname, '../../dist/cli/main.js')

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: Buffer
  readonly stderr: string
}

export interface StartOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly stdin?: string
  /** Leave stdout to the test, which may read it late or never. */
  readonly readsStdout?: boolean
  /** A command in front: `setpriv …`. */
  readonly under?: readonly string[]
}

export interface Started {
  readonly pid: number
  readonly stdout: Readable
  readonly ended: Promise<Ended>
  /** What came on stdout and stderr so far. */
  text(): string
  kill(signal: NodeJS.Signals): void
}

const environment = (extra: StartOptions['env']) => {
  const { RUNWARDEN_DB: _db, NO_COLOR: _no, FORCE_COLOR: _force, ...rest } = process.env
  return { ...rest, FIXTURE_NODE: process.execPath, ...extra }
}

/** Starts the command line; it is gone when the test has finished. */
export function start(args: readonly string[], options: StartOptions = {}): Started {
  const { cwd = folder(), env, stdin, readsStdout = true, under = [] } = options
  const [file = '', ...rest] = [...under, process.execPath, program, ...args]
  const child = spawn(file, rest, { cwd, env: environment(env) })
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const stdout: Buffer[] = []
  let stderr = ''
  if (readsStdout) child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
  // A command that needs no input may be over before it was offered any.
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  const ended = once(child, readsStdout ? 'close' : 'exit').then(([code, signal]): Ended => {
    return {
      code: code as number | null,
      signal: signal as NodeJS.Signals | null,
      stdout: Buffer.concat(stdout),
      stderr,
    }
  })
  return {
    pid: child.pid ?? NaN,
    stdout: child.stdout,
    ended,
    text: () => `${Buffer.concat(stdout).toString('utf8')}${stderr}`,
    kill: (signal) => child.kill(signal),
  }
}

let current: string | undefined

/** The folder of the test: every command of one test works in the same one. */
export function folder(): string {
  if (current === undefined) {
    current = tempDir()
    onTestFinished(() => {
      current = undefined
    })
  }
  return current
}

/** Runs a command of the command line to its end. */
export function cli(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
  return start(args, options).ended
}

export const textOf = ({ stdout }: Ended): string => stdout.toString('utf8')

export const jsonOf = (ended: Ended): unknown => JSON.parse(textOf(ended))

/** One object a line. */
export const linesOf = (ended: Ended): Record<string, unknown>[] =>
  textOf(ended)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

export interface Supervised extends Started {
  readonly ledger: string
  /** Processes of the fixture that are alive, as an independent reader sees them. */
  alive(): LedgerMember[]
}

/** `runwarden run [options] -- FIXTURE`, once the whole tree of the fixture is up. */
export async function runFixture(
  name: string,
  args: readonly string[] = [],
  options: StartOptions & { readonly fixtureArgs?: readonly string[] } = {},
): Promise<Supervised> {
  const { ledger, env } = withLedger()
  const command = fixtureCommand(name, options.fixtureArgs)
  const started = start(['run', ...args, '--', ...command], { ...options, env: { ...env, ...options.env } })
  onTestFinished(() => endTree(ledger))
  await waitFor(() => readLedger(ledger).readyAt !== undefined, {
    deadlineMs: DEADLINE_MS,
    what: `the tree of ${name} is up (${started.text()})`,
  })
  return { ...started, ledger, alive: () => aliveOf(readLedger(ledger)) }
}

/** The stubborn agent, all of it alive, of a runner that was killed. */
export async function orphan(args: readonly string[]): Promise<Supervised> {
  const run = await runFixture('stubborn-agent', ['--no-guardian', ...args])
  // Its last words are out: what it writes after them would kill it, the reader of its pipe being gone.
  await until('the agent is silent', () => run.text().includes('agent: the tool is running'))
  run.kill('SIGKILL')
  await run.ended
  if (run.alive().length !== 4)
    throw new Error(`of the orphaned tree ${String(run.alive().length)} are alive`)
  return run
}

/** Waits for a condition with the deadline of these tests. */
export const until = <T>(what: string, condition: () => T | Promise<T>) =>
  waitFor(condition, { deadlineMs: DEADLINE_MS, what })
