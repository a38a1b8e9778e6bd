/**
 * Output that goes to files and not through pipes (R10): the child's stdout and stderr are its log files, so that it can go on writing
 * when its engine is gone, and the next engine reads on where the last one stopped.
 *
 * Owns: the files that a launch is given, and the reading of them as they grow.
 * Does not own: the index beside them, which says how far they were read and acted upon (file-log.ts).
 * Invariants: INV-11 (one chunk at a time: the next is read when the last was acted upon; what waits for it is in the file), L2.
 */
import { closeSync, openSync, unlinkSync, watch, writeFileSync } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { OutputStream, StdinSource } from '../../actors/ports.js'
import { offsetsIn, outputFile } from './file-log.js'
import { OUTPUT_STREAMS } from './log-format.js'
import { noStdio } from './stdio.js'
import type { ChildStdio } from './stdio.js'

const CHUNK_BYTES = 64 * 1024
/** Behind the kernel's notifications, of which there may be none. */
const LOOK_MS = 250
/** For the end of the output, when its writers are gone: a store that does not answer may hold up what is read. */
const CATCH_UP_MAX_MS = 1_000

type Receive = (stream: OutputStream, chunk: Buffer) => unknown

export interface LaunchFiles {
  readonly stdio: readonly ['ignore' | number, number, number]
  /** Ours are not needed once there is a child. */
  close(): void
}

/** Text for stdin is a file without a name: the child alone has it (L7). */
const openInput = (folder: string, stdin: StdinSource): 'ignore' | number => {
  if (typeof stdin === 'string' || !('text' in stdin)) return 'ignore'
  const path = join(folder, 'stdin')
  writeFileSync(path, stdin.text, { mode: 0o600 })
  const fd = openSync(path, 'r')
  unlinkSync(path)
  return fd
}

/** The folder is there: the log made it. */
export const openLaunchFiles = (folder: string, stdin: StdinSource): LaunchFiles => {
  const fds: number[] = []
  const close = (): void => {
    for (const fd of fds.splice(0)) closeSync(fd)
  }
  try {
    const input = openInput(folder, stdin)
    if (input !== 'ignore') fds.push(input)
    const outputs = OUTPUT_STREAMS.map((stream) => {
      const fd = openSync(outputFile(folder, stream), 'a', 0o600)
      fds.push(fd)
      return fd
    }) as [number, number]
    return { stdio: [input, ...outputs], close }
  } catch (error) {
    close()
    throw error
  }
}

class OutputFollower {
  readonly drained: Promise<void>
  readonly #folder: string
  readonly #offsets: Record<OutputStream, number>
  readonly #handles = new Map<OutputStream, FileHandle>()
  #receive: Receive | null = null
  #watchers: FSWatcher[] = []
  #looking: NodeJS.Timeout | undefined
  #reading: Promise<void> = Promise.resolve()
  #isWoken = false
  #isOver = false
  #drain: () => void = () => undefined

  /** Begins where the index says that the last reader stopped. */
  constructor(folder: string) {
    this.#folder = folder
    this.#offsets = offsetsIn(folder)
    this.drained = new Promise((resolve) => {
      this.#drain = resolve
    })
  }

  onOutput(receive: Receive): void {
    this.#receive = receive
    for (const stream of OUTPUT_STREAMS) {
      try {
        const watcher = watch(outputFile(this.#folder, stream), { persistent: false }, () => {
          this.#wake()
        })
        watcher.on('error', () => undefined)
        this.#watchers.push(watcher)
      } catch {
        // No file, or no watch to be had: it is looked at.
      }
    }
    this.#looking = setInterval(() => {
      this.#wake()
    }, LOOK_MS)
    this.#looking.unref()
    this.#wake()
  }

  /** Resolves when what stands in the files now has been acted upon, or after a while. */
  async catchUp(): Promise<void> {
    this.#wake()
    const over = new AbortController()
    const deadline = wait(CATCH_UP_MAX_MS, undefined, { signal: over.signal }).catch(() => undefined)
    await Promise.race([this.#reading, deadline])
    over.abort()
  }

  /** Nobody writes any more. */
  async finish(): Promise<void> {
    if (this.#isOver) return
    await this.catchUp()
    this.stop()
  }

  /** Reads no more; whoever writes goes on. */
  stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearInterval(this.#looking)
    for (const watcher of this.#watchers) watcher.close()
    void this.#reading.finally(() => {
      for (const handle of this.#handles.values()) void handle.close()
    })
    this.#drain()
  }

  #wake(): void {
    if (this.#isWoken || this.#isOver) return
    this.#isWoken = true
    this.#reading = this.#reading.then(() => {
      this.#isWoken = false
      return this.#readAll()
    })
  }

  async #readAll(): Promise<void> {
    for (let hasMore = true; hasMore && !this.#isOver;) {
      hasMore = false
      for (const stream of OUTPUT_STREAMS) if (await this.#readSome(stream)) hasMore = true
    }
  }

  async #readSome(stream: OutputStream): Promise<boolean> {
    // What was read and given to nobody would be lost.
    if (this.#receive === null) return false
    try {
      const handle = this.#handles.get(stream) ?? (await open(outputFile(this.#folder, stream), 'r'))
      this.#handles.set(stream, handle)
      const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, this.#offsets[stream])
      if (bytesRead === 0) return false
      this.#offsets[stream] += bytesRead
      await this.#receive(stream, buffer.subarray(0, bytesRead))
      return true
    } catch {
      // Removed, or not to be read at this moment: the next look tells. What is not read is not progress.
      return false
    }
  }
}

/** Output that is read from files, by the engine that launched it or by another. */
export const joinOutputFiles = (folder: string): ChildStdio => {
  const follower = new OutputFollower(folder)
  return {
    ...noStdio,
    drained: follower.drained,
    onOutput: (receive) => {
      follower.onOutput(receive)
    },
    cutOutput: () => {
      follower.stop()
      return false
    },
    letGo: () => {
      follower.stop()
    },
    caughtUp: () => follower.catchUp(),
    finishOutput: () => follower.finish(),
  }
}
