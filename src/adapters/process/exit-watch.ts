/**
 * The exits of processes that are not our children (R3): told by their pidfds, all through one epoll, and looked for in `/proc` where there
 * is none.
 *
 * Invariants: INV-6 (the descriptor is opened first, then the start time compared: from then on it stands for that process and no other),
 *   INV-5 (what cannot be read has not exited), INV-11 (looks behind it have a distance of their own).
 */
import { closeSync } from 'node:fs'
import type { ProcessIdentity } from '../../actors/ports.js'
import type { Epoll } from './epoll.js'
import { libc } from './libc.js'
import type { Libc } from './libc.js'
import { lookUpIdentity } from './proc-fs.js'

/** A process that exits without a close waits for the thread that waits, where nothing wakes it. */
const WAIT_MS = 1_000
const LOOK_MS = 250

interface Watched {
  readonly identity: ProcessIdentity
  readonly exited: () => void
}

export class ExitWatch {
  readonly #byPidfd = new Map<number, Watched>()
  readonly #lookedAt = new Set<Watched>()
  #epoll: Epoll | null | undefined
  #isWaiting = false
  #looking: NodeJS.Timeout | undefined
  readonly #kernel: Pick<Libc, 'openEpoll' | 'openPidfd'> | null

  constructor(kernel: Pick<Libc, 'openEpoll' | 'openPidfd'> | null = libc()) {
    this.#kernel = kernel
  }

  /** How many are told of by the kernel, and how many are looked at. */
  get counts(): { readonly told: number; readonly lookedAt: number } {
    return { told: this.#byPidfd.size, lookedAt: this.#lookedAt.size }
  }

  /** Calls `exited` once, when the process is gone or a zombie. Returns how to watch it no more. */
  watch(identity: ProcessIdentity, exited: () => void): () => void {
    const watched = { identity, exited }
    const fd = this.#open(identity)
    if (fd === null) {
      this.#look(watched)
      return () => {
        this.#lookNoMore(watched)
      }
    }
    this.#byPidfd.set(fd, watched)
    void this.#wait()
    return () => {
      this.#forget(fd)
      if (this.#byPidfd.size === 0) this.#epoll?.wake()
    }
  }

  /** Null where there is none to be had, or it would stand for another process. */
  #open(identity: ProcessIdentity): number | null {
    // Asked for once: where there is none, there will be none.
    if (this.#epoll === undefined) this.#epoll = this.#kernel?.openEpoll() ?? null
    const fd = this.#epoll === null ? -1 : (this.#kernel?.openPidfd(identity.pid) ?? -1)
    if (fd < 0) return null
    if (lookUpIdentity(identity) === 'alive' && this.#epoll?.watch(fd) === true) return fd
    closeSync(fd)
    return null
  }

  #forget(fd: number): Watched | undefined {
    const watched = this.#byPidfd.get(fd)
    if (watched === undefined) return undefined
    this.#byPidfd.delete(fd)
    this.#epoll?.forget(fd)
    closeSync(fd)
    return watched
  }

  async #wait(): Promise<void> {
    if (this.#isWaiting) return
    this.#isWaiting = true
    const wake = (): void => this.#epoll?.wake()
    process.once('exit', wake)
    while (this.#byPidfd.size > 0) {
      const fds = (await this.#epoll?.wait(WAIT_MS)) ?? []
      for (const fd of fds) if (this.#hasExited(fd)) this.#forget(fd)?.exited()
    }
    process.off('exit', wake)
    this.#isWaiting = false
  }

  /** Closed since the wait began, the number of a descriptor may be that of another one by now. */
  #hasExited(fd: number): boolean {
    const watched = this.#byPidfd.get(fd)
    return watched !== undefined && lookUpIdentity(watched.identity) !== 'alive'
  }

  #look(watched: Watched): void {
    this.#lookedAt.add(watched)
    const lookAtAll = (): void => {
      for (const one of [...this.#lookedAt]) {
        if (lookUpIdentity(one.identity) !== 'gone') continue
        this.#lookNoMore(one)
        one.exited()
      }
    }
    this.#looking ??= setInterval(lookAtAll, LOOK_MS)
    setImmediate(lookAtAll)
  }

  #lookNoMore(watched: Watched): void {
    this.#lookedAt.delete(watched)
    if (this.#lookedAt.size > 0) return
    clearInterval(this.#looking)
    this.#looking = undefined
  }
}
