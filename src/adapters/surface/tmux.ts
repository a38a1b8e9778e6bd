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

type Client = ReturnType<typeof start>

const start = (socket: string, args: readonly string[], input: Question['input']) =>
  execa('tmux', ['-S', socket, ...args], {
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    reject: false,
  })

const resultOf = async (client: Client): Promise<string> => {
  const result = await client
  if (!result.failed) return result.stdout
  const isMissing = codeOf(result.cause) === 'ENOENT'
  const said = result.stderr.trim() || (isMissing ? 'tmux is not installed' : messageOf(result.cause))
  throw new RunwardenError('refused', said)
}

/** Rejects with `refused` and what tmux said, or that it said nothing. */
export const ask = (
  socket: string,
  args: readonly string[],
  { withinMs, input }: Question,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const client = start(socket, args, input)
    const timer = setTimeout(
      () => {
        reject(new RunwardenError('refused', `tmux did not answer at ${socket}`))
        // A client hands its stdio to the server, where a server that is stopped holds it: its own end would be waited for in vain.
        client.kill('SIGKILL')
        for (const stream of [client.stdout, client.stderr]) stream.destroy()
      },
      Math.max(1, withinMs),
    )
    resultOf(client)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer)
      })
  })

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
