/** The command line as its own process, the way people run it. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface CliResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface CliProcess {
  readonly pid: number
  readonly stdout: () => string
  readonly ended: Promise<CliResult>
}

export function startCli(args: readonly string[], env: NodeJS.ProcessEnv = process.env): CliProcess {
  if (!existsSync(main)) throw new Error('dist/ is missing: run npm run build')
  const child = spawn(process.execPath, [main, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<CliResult>((resolve) => {
    child.once('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr })
    })
  })
  return { pid: child.pid ?? 0, stdout: () => stdout, ended }
}

export const runCli = (args: readonly string[], env?: NodeJS.ProcessEnv): Promise<CliResult> =>
  startCli(args, env).ended
