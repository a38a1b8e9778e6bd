/**
 * Asks a tmux server, and waits no longer than it may (P14).
 *
 * Each question is a client of its own: one that is not answered in time is ended, and what it asked for may still be done later. So
 * nothing is asked for that would harm then.
 */
import { mkdirSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { execa } from 'execa'
import { RunwardenError, codeOf, messageOf } from '../../errors.js'

export interface Question {
  readonly withinMs: number
  /** Given to it on stdin. */
  readonly input?: string | Uint8Array
}

/** Rejects with `refused` and what tmux said, or that it said nothing. */
export const ask = async (
  socket: string,
  args: readonly string[],
  { withinMs, input }: Question,
): Promise<string> => {
  const result = await execa('tmux', ['-S', socket, ...args], {
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    timeout: Math.max(1, withinMs),
    forceKillAfterDelay: false,
    killSignal: 'SIGKILL',
    reject: false,
  })
  if (!result.failed) return result.stdout
  if (result.timedOut) throw new RunwardenError('refused', `tmux did not answer at ${socket}`)
  const isMissing = codeOf(result.cause) === 'ENOENT'
  const said = result.stderr.trim() || (isMissing ? 'tmux is not installed' : messageOf(result.cause))
  throw new RunwardenError('refused', said)
}

/** Names and titles are formats to tmux, and a format can run commands. */
export const literal = (text: string): string => text.replaceAll('#', '##')

/** For what it also gives to `strftime`. */
export const literalInTime = (text: string): string => literal(text).replaceAll('%', '%%')

interface SocketOptions {
  readonly socketName?: string | undefined
  readonly socketPath?: string | undefined
}

/** Where the server listens, by tmux's own rules; its folder is made, as tmux does for a name. */
export const socketOf = ({ socketName, socketPath }: SocketOptions): string => {
  if (socketPath !== undefined) return resolve(socketPath)
  const inherited = process.env['TMUX']?.split(',')[0] ?? ''
  if (socketName === undefined && isAbsolute(inherited)) return inherited
  const uid = process.getuid?.() ?? 0
  const path = join(process.env['TMUX_TMPDIR'] ?? '/tmp', `tmux-${String(uid)}`, socketName ?? 'default')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  return path
}
