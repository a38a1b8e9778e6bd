/** Commands of the command line on a terminal of their own. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { folder, program } from './cli.js'

/** Makes a terminal, and runs a command on it. */
const SCRIPT: string = 'script'
export const hasScript = String(spawnSync(SCRIPT, ['--version']).stdout).includes('util-linux')
export const NO_SCRIPT = 'script(1) of util-linux, which makes the terminal, is not installed'

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

/** A command on a terminal of its own; `env` as for any other. */
export function onTerminal(args: readonly string[], env: Record<string, string | undefined> = {}) {
  const line = [process.execPath, program, ...args].map(quote).join(' ')
  const { NO_COLOR: _no, FORCE_COLOR: _force, ...rest } = process.env
  const child = spawn(SCRIPT, ['-qefc', line, '/dev/null'], {
    cwd: folder(),
    env: { ...rest, TERM: 'xterm', FIXTURE_NODE: process.execPath, ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Everything that it shows, and its exit code. */
export async function textOnTerminal(args: readonly string[], env?: Record<string, string>) {
  const child = onTerminal(args, env)
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const [code] = (await once(child, 'close')) as [number]
  return { code, text }
}
