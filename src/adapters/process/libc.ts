/**
 * The few kernel calls that Node does not offer, through the optional koffi. Null where koffi is not installed or the platform differs.
 *
 * `pidfd` makes a signal race-free (C7); the limit mark is inherited through `setsid`, double fork and `env -i` alike (C2); a terminal
 * needs three requests to the kernel that have no other name (L9).
 */
import { constants } from 'node:fs'
import { createRequire } from 'node:module'
import type Koffi from 'koffi'
import type { TerminalSize } from '../../actors/ports.js'
import { openEpoll } from './epoll.js'
import type { Epoll } from './epoll.js'

const SYS_PIDFD_SEND_SIGNAL = 424
const SYS_PIDFD_OPEN = 434
/** An unused soft limit: it matters only to real-time threads, and is unlimited everywhere. */
const RLIMIT_RTTIME = 15

const TIOCSPTLCK = 0x40045431
const TIOCGPTPEER = 0x5441
const TIOCSWINSZ = 0x5414
/** Node opens every file with it and gives it no name. */
const O_CLOEXEC = 0o2000000

interface Limit {
  soft: bigint | number
  hard: bigint | number
}

export interface Libc {
  /** Runs `spawn` while this process's soft limit is `mark`, so that the child inherits it; false when it could not be set. */
  withLimitMark<T>(mark: number, spawn: () => T): { readonly result: T; readonly isMarked: boolean }
  /** Sets the soft limit of another process of this user, which its later children inherit. */
  markProcess(pid: number, mark: number): boolean
  /** A file descriptor that stands for one process, or -1. */
  openPidfd(pid: number): number
  /** Zero on success. */
  signalPidfd(fd: number, signal: number): number
  openEpoll(): Epoll | null
  /** Given the master of a new terminal: a file descriptor of its other side, or -1. */
  openPeer(master: number): number
  resizeTerminal(master: number, size: TerminalSize): boolean
  /** Whether the kernel lets this process set the mark at all. */
  readonly canMark: boolean
}

interface Limits {
  readonly getLimit: (resource: number, limit: Partial<Limit>) => number
  readonly setLimit: (resource: number, limit: Limit) => number
  readonly limitOf: (pid: number, resource: number, set: Limit | null, before: Partial<Limit>) => number
}

type Syscall = (number: number, ...args: readonly (string | number | null)[]) => number
type Ioctl = (fd: number, request: number, ...args: readonly unknown[]) => number

const load = (): Libc | null => {
  if (process.platform !== 'linux') return null
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof Koffi
    const library = koffi.load(null)
    koffi.struct('runwarden_rlimit', { soft: 'uint64', hard: 'uint64' })
    const syscall = library.func('long syscall(long number, ...)') as unknown as Syscall
    const getLimit = library.func(
      'int getrlimit(int resource, _Out_ runwarden_rlimit *limit)',
    ) as unknown as Limits['getLimit']
    const setLimit = library.func(
      'int setrlimit(int resource, runwarden_rlimit *limit)',
    ) as unknown as Limits['setLimit']
    koffi.struct('runwarden_winsize', { rows: 'uint16', cols: 'uint16', width: 'uint16', height: 'uint16' })
    const ioctl = library.func('int ioctl(int fd, unsigned long request, ...)') as unknown as Ioctl
    const limitOf = library.func(
      'int prlimit(int pid, int resource, runwarden_rlimit *set, _Out_ runwarden_rlimit *before)',
    ) as unknown as Limits['limitOf']
    return {
      ...bind(syscall, { getLimit, setLimit, limitOf }, ioctl),
      openEpoll: () => openEpoll(library),
    }
  } catch {
    // Not installed, or built for another machine: the caller has other means, and `doctor` says so.
    return null
  }
}

const bind = (
  syscall: Syscall,
  { getLimit, setLimit, limitOf }: Limits,
  ioctl: Ioctl,
): Omit<Libc, 'openEpoll'> => {
  const current = (): Limit => {
    const limit: Partial<Limit> = {}
    getLimit(RLIMIT_RTTIME, limit)
    return limit as Limit
  }
  const withLimitMark: Libc['withLimitMark'] = (mark, spawn) => {
    const before = current()
    const isMarked = setLimit(RLIMIT_RTTIME, { soft: mark, hard: before.hard }) === 0
    try {
      return { result: spawn(), isMarked }
    } finally {
      if (isMarked) setLimit(RLIMIT_RTTIME, before)
    }
  }
  return {
    withLimitMark,
    markProcess: (pid, mark) => {
      const before: Partial<Limit> = {}
      if (limitOf(pid, RLIMIT_RTTIME, null, before) !== 0 || before.hard === undefined) return false
      return limitOf(pid, RLIMIT_RTTIME, { soft: mark, hard: before.hard }, {}) === 0
    },
    openPidfd: (pid) => syscall(SYS_PIDFD_OPEN, 'int', pid, 'unsigned int', 0),
    signalPidfd: (fd, signal) =>
      syscall(SYS_PIDFD_SEND_SIGNAL, 'int', fd, 'int', signal, 'void *', null, 'unsigned int', 0),
    openPeer: (master) => {
      if (ioctl(master, TIOCSPTLCK, 'int *', [0]) !== 0) return -1
      // Only the child gets it, through its stdio: with O_CLOEXEC no other child of this process can.
      return ioctl(master, TIOCGPTPEER, 'int', constants.O_RDWR | constants.O_NOCTTY | O_CLOEXEC)
    },
    resizeTerminal: (master, { cols, rows }) =>
      ioctl(master, TIOCSWINSZ, 'runwarden_winsize *', { rows, cols, width: 0, height: 0 }) === 0,
    canMark: withLimitMark(2 ** 52 + 1, () => undefined).isMarked,
  }
}

let loaded: Libc | null | undefined

export const libc = (): Libc | null => {
  loaded ??= load()
  return loaded
}
