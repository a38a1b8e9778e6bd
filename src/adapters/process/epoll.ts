/**
 * One epoll instance, through koffi: many file descriptors, of which a thread waits for whichever is ready first.
 *
 * The wait blocks one thread of Node's pool. It is bounded, because a process that exits waits for that thread, and cut short by `wake`.
 */
import { closeSync, readSync, writeSync } from 'node:fs'
import { endianness } from 'node:os'
import type { LibraryHandle } from 'koffi'

const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
const EPOLLIN = 1
const CLOEXEC = 0o2000000
const NONBLOCK = 0o4000
const READY_MAX = 64

/** `struct epoll_event` is packed on x86-64 alone. */
const DATA_AT = process.arch === 'x64' ? 4 : 8
const EVENT_BYTES = DATA_AT + 8

/** What an eventfd takes and gives: a number of eight bytes. */
const ONE = Buffer.from([1, 0, 0, 0, 0, 0, 0, 0])

export interface Epoll {
  /** False when the kernel would not. */
  watch(fd: number): boolean
  forget(fd: number): void
  /** Resolves with those that are ready, none when the time is over or `wake` was called. One call at a time. */
  wait(timeoutMs: number): Promise<readonly number[]>
  wake(): void
}

type Wait = (
  epoll: number,
  events: Buffer,
  max: number,
  timeoutMs: number,
  done: (error: Error | null, count: number) => void,
) => void

/** Null where the kernel gives none, or numbers lie the other way round in memory. */
export const openEpoll = (library: LibraryHandle): Epoll | null => {
  if (endianness() !== 'LE') return null
  const create = library.func('int epoll_create1(int flags)') as unknown as (flags: number) => number
  const control = library.func('int epoll_ctl(int epoll, int what, int fd, void *event)') as unknown as (
    epoll: number,
    what: number,
    fd: number,
    event: Buffer,
  ) => number
  const newEvent = library.func('int eventfd(unsigned int from, int flags)') as unknown as (
    from: number,
    flags: number,
  ) => number
  const wait = library.func('int epoll_wait(int epoll, void *events, int max, int timeoutMs)')
    .async as unknown as Wait
  const epoll = create(CLOEXEC)
  const waker = newEvent(0, CLOEXEC | NONBLOCK)
  if (epoll < 0 || waker < 0) {
    for (const fd of [epoll, waker]) if (fd >= 0) closeSync(fd)
    return null
  }
  const ready = Buffer.alloc(EVENT_BYTES * READY_MAX)
  const tell = (what: number, fd: number): boolean => {
    const event = Buffer.alloc(EVENT_BYTES)
    event.writeUInt32LE(EPOLLIN, 0)
    event.writeInt32LE(fd, DATA_AT)
    return control(epoll, what, fd, event) === 0
  }
  tell(EPOLL_CTL_ADD, waker)
  return {
    watch: (fd) => tell(EPOLL_CTL_ADD, fd),
    forget: (fd) => void tell(EPOLL_CTL_DEL, fd),
    wake: () => {
      writeSync(waker, ONE)
    },
    wait: (timeoutMs) =>
      new Promise((resolve) => {
        wait(epoll, ready, READY_MAX, timeoutMs, (error, count) => {
          const fds = Array.from({ length: error === null ? Math.max(0, count) : 0 }, (_, at) =>
            ready.readInt32LE(at * EVENT_BYTES + DATA_AT),
          )
          // Read, or every later wait would end at once.
          if (fds.includes(waker)) readSync(waker, Buffer.alloc(ONE.length))
          resolve(fds.filter((fd) => fd !== waker))
        })
      }),
  }
}
