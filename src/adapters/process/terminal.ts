/**
 * A terminal (PTY) of a command's own (L9).
 *
 * Owns: the master of one terminal, which is all there is of its output and input.
 * The command is a child like any other: it inherits the other side as its stdio, and a shell, which execs it, makes that its session's
 * controlling terminal by opening it once more. A terminal library would fork by itself, and reap behind the back of the event loop.
 * What the kernel does by itself when the leader ends, or when the master is closed, is the way of terminals: SIGHUP to the session.
 */
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import type { TerminalSpec } from '../../actors/ports.js'
import { RunwardenError } from '../../errors.js'
import { libc } from './libc.js'
import type { ChildStdio } from './stdio.js'

const MASTER = '/dev/ptmx'
/** As typed by a person: control-D. */
const END_OF_FILE = '\x04'

/**
 * `$0` and `$@` are the command. A session leader that opens a terminal, and has none, gets it as its controlling terminal: no other
 * process can give it one.
 */
const TAKE_TERMINAL = 'exec "$0" "$@" <>/proc/self/fd/0 >&0 2>&1'

export const terminalProblem = (): string | null => {
  if (libc() === null) return 'the optional package koffi is not installed, or does not load'
  return existsSync(MASTER) ? null : `there is no ${MASTER}`
}

export interface Terminal {
  /** The other side: becomes the child's stdio, and is closed here as soon as there is a child. */
  readonly peer: number
  closePeer(): void
  join(): ChildStdio
  /** There is no child. */
  close(): void
}

/** The argv that runs `command` with its stdin as the controlling terminal of its session. */
export const onTerminal = (command: readonly string[]): [string, ...string[]] => [
  '/bin/sh',
  '-c',
  TAKE_TERMINAL,
  ...command,
]

const joinMaster = (fd: number): ChildStdio => {
  const master = new ReadStream(fd)
  // EIO is how a terminal says that nobody has its other side any more: the end of the output, and no error.
  master.on('error', () => undefined)
  return {
    drained: new Promise((resolve) => master.once('close', resolve)),
    onOutput: (receive) => {
      master.on('data', (chunk: Buffer) => {
        receive('stdout', chunk)
      })
    },
    cutOutput: () => {
      const isOpen = !master.closed
      master.destroy()
      return isOpen
    },
    letGo: () => {
      master.unref()
    },
    writeInput: (chunk) => master.writable && (master.write(chunk), true),
    endInput: () => {
      if (master.writable) master.write(END_OF_FILE)
    },
    // A number that was closed may be another file by now.
    resize: (size) => !master.destroyed && libc()?.resizeTerminal(fd, size) === true,
  }
}

/** Throws with the system's code where there is no terminal to be had. */
export const openTerminal = (spec: TerminalSpec): Terminal => {
  // Node opens with O_CLOEXEC: no other child of this process holds the master open.
  const master = openSync(MASTER, constants.O_RDWR | constants.O_NOCTTY)
  const peer = libc()?.openPeer(master) ?? -1
  if (peer < 0) {
    closeSync(master)
    throw new RunwardenError('refused', terminalProblem() ?? 'the system gave no terminal')
  }
  libc()?.resizeTerminal(master, spec)
  return {
    peer,
    closePeer: () => {
      closeSync(peer)
    },
    join: () => joinMaster(master),
    close: () => {
      closeSync(master)
    },
  }
}
