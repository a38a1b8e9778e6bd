/** A tmux server of a test's own, on a private socket, and gone with it. */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { socketOf } from '../../src/adapters/surface/tmux.js'
import { identityOf, isAlive } from './proc-reader.js'
import { tempDir, waitFor } from './wait-for.js'

/** Its whole path: what a test puts in front of it is not for the test itself. */
const TMUX = spawnSync('/bin/sh', ['-c', 'command -v tmux'], { encoding: 'utf8' }).stdout.trim()

export const hasTmux = TMUX !== ''
export const NO_TMUX = 'no tmux'

export interface PaneLine {
  readonly id: string
  readonly pid: number
  readonly session: string
  readonly isDead: boolean
}

export interface TestTmux {
  readonly socketName: string
  /** Runs a tmux command; its output, without the last newline. Throws with what tmux said. */
  run(...args: readonly string[]): string
  panes(): PaneLine[]
  /** The text of a pane. */
  text(id: string): string
  pid(): number
  signal(signal: NodeJS.Signals): void
}

/** Nothing runs there until a command starts it. */
export function testTmux(): TestTmux {
  const socketName = `runwarden-test-${randomUUID()}`
  const ask = (args: readonly string[]) =>
    spawnSync(TMUX, ['-L', socketName, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      timeout: 20_000,
      env: { ...process.env, SHELL: '/bin/sh', PS1: '$ ', ENV: '' },
    })
  const run = (...args: readonly string[]): string => {
    const { status, stdout, stderr } = ask(args)
    if (status !== 0) throw new Error(`tmux ${args.join(' ')}: ${stderr.trim()}`)
    return stdout.replace(/\n$/, '')
  }
  let server: number | undefined
  const pid = (): number => (server ??= Number(run('display-message', '-p', '#{pid}')))
  onTestFinished(async () => {
    const identity = server === undefined ? undefined : identityOf(server)
    if (identity !== undefined && isAlive(identity)) process.kill(identity.pid, 'SIGCONT')
    ask(['kill-server'])
    await waitFor(() => ask(['has-session']).status !== 0, {
      deadlineMs: 20_000,
      what: 'the tmux server is gone',
    })
    rmSync(socketOf({ socketName }), { force: true })
  })
  return {
    socketName,
    run,
    pid,
    panes: () =>
      run('list-panes', '-a', '-F', '#{pane_id} #{pane_pid} #{session_name} #{pane_dead}')
        .split('\n')
        .map((line) => line.split(' '))
        .map(([id = '', panePid, session = '', dead]) => ({
          id,
          pid: Number(panePid),
          session,
          isDead: dead === '1',
        })),
    text: (id) => run('capture-pane', '-p', '-t', id),
    signal: (signal) => {
      process.kill(pid(), signal)
    },
  }
}

export interface TroubledTmux {
  /** From now on a question with this word in it is never answered. */
  hangs(word: string): void
  /** It is answered with an error, after it was done or in place of it. */
  fails(word: string, how: { readonly message: string; readonly isDone: boolean }): void
  /** It is answered at once, as if it was done. */
  isIgnored(word: string): void
  heals(): void
  /** How often the word was asked for in trouble. */
  asked(word: string): number
}

/** What the engine finds as `tmux`: the real one, which gets into trouble when it is told to. */
export function troubledTmux(): TroubledTmux {
  const folder = tempDir()
  const words = new Set<string>()
  const say = (word: string, script: string): void => {
    words.add(word)
    writeFileSync(join(folder, `on-${word}`), `echo >>${folder}/asked-${word}\n${script}\n`)
  }
  writeFileSync(
    join(folder, 'tmux'),
    `#!/bin/sh
set -f
for word in $*; do
  case "$word" in *[!a-z-]*) ;; *) if [ -e "${folder}/on-$word" ]; then . "${folder}/on-$word"; fi ;; esac
done
exec ${TMUX} "$@"
`,
    { mode: 0o700 },
  )
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env['PATH'] ?? ''}`)
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
  return {
    hangs: (word) => {
      say(word, 'exec sleep 600')
    },
    fails: (word, { message, isDone }) => {
      say(word, `${isDone ? `${TMUX} "$@" >&2; ` : ''}echo '${message}' >&2; exit 1`)
    },
    isIgnored: (word) => {
      say(word, 'exit 0')
    },
    heals: () => {
      for (const word of words) rmSync(join(folder, `on-${word}`))
      words.clear()
    },
    asked: (word) => {
      const path = join(folder, `asked-${word}`)
      return existsSync(path) ? readFileSync(path, 'utf8').length : 0
    },
  }
}
