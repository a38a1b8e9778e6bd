/** A tmux server of a test's own, on a private socket, and gone with it. */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import { identityOf, isAlive } from './proc-reader.js'
import { waitFor } from './wait-for.js'

const TMUX = 'tmux'

export const hasTmux = spawnSync(TMUX, ['-V']).status === 0
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
