/** A host app in a process of its own, over the built library: what a test kills when it kills an engine. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { processesWith } from './proc-reader.js'
import { waitFor } from './wait-for.js'

const library = JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)

export interface Host {
  readonly pid: number
  /** What it has printed. */
  text(): string
  /** Resolves when it has printed that. */
  says(text: string): Promise<void>
  tell(line: string): void
  kill(signal: NodeJS.Signals): void
  /** Through the handle, and once it is gone. */
  killed(): Promise<void>
  readonly ended: Promise<void>
}

/** `source` is a module in which `createEngine`, `say`, and `told(line)`, resolving when the test has told that, are there. */
export function startHost(source: string, env: Readonly<Record<string, string>> = {}): Host {
  const prelude = `
    import { createEngine } from ${library}
    import { createInterface } from 'node:readline'
    import { writeSync } from 'node:fs'
    const say = (text) => writeSync(1, text + '\\n')
    const heard = new Set(), waiting = new Map()
    createInterface({ input: process.stdin }).on('line', (line) => { heard.add(line); waiting.get(line)?.() })
    const told = (line) => heard.has(line) ? Promise.resolve() : new Promise((resolve) => waiting.set(line, resolve))
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + source], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stdin.on('error', () => undefined)
  // Not its exit: what it said last is still in the pipe then.
  const ended = once(child, 'close').then(() => undefined)
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal)
  const killed = async (): Promise<void> => {
    kill('SIGKILL')
    await ended
  }
  onTestFinished(killed)
  return {
    pid: child.pid ?? NaN,
    text: () => said,
    says: (text) =>
      waitFor(() => said.includes(text), { deadlineMs: 60_000, what: `the host says ${text}: ${said}` }).then(
        () => undefined,
      ),
    tell: (line) => void child.stdin.write(`${line}\n`),
    kill,
    killed,
    ended,
  }
}

/** The living guardians of an engine. */
export const guardiansOf = (engineId: string): number[] =>
  processesWith(`RUNWARDEN_GUARDIAN_OF=${engineId}`).map(({ pid }) => pid)
