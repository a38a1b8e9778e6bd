/** What joins a child to this process: pipes, or a terminal of its own (terminal.ts). */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Execution, StdinSource } from '../../actors/ports.js'

export interface ChildStdio extends Pick<
  Execution,
  'onOutput' | 'drained' | 'cutOutput' | 'letGo' | 'writeInput' | 'endInput' | 'resize' | 'caughtUp'
> {
  /** Of output in files, which have no end that would be told: nobody writes any more. */
  readonly finishOutput?: () => Promise<void>
}

/** Of an execution whose output went to another engine. */
export const noStdio: ChildStdio = {
  onOutput: () => undefined,
  drained: Promise.resolve(),
  cutOutput: () => false,
  letGo: () => undefined,
  writeInput: () => false,
  endInput: () => undefined,
  resize: () => false,
}

export interface Pipes {
  readonly stdin: NodeJS.WritableStream | null
  readonly stdout: Readable
  readonly stderr: Readable
}

const feed = (source: StdinSource, stdin: NodeJS.WritableStream | null): void => {
  // L5: an agent that ends without reading its input is not our fault and not our crash.
  stdin?.on('error', () => undefined)
  if (stdin === null || typeof source === 'string') return
  const from = source instanceof Readable ? source : Readable.from([source.text], { objectMode: false })
  pipeline(from, stdin).catch(() => undefined)
}

export const joinPipes = ({ stdin, stdout, stderr }: Pipes, source: StdinSource): ChildStdio => {
  feed(source, stdin)
  const streams = [
    ['stdout', stdout],
    ['stderr', stderr],
  ] as const
  const drained = Promise.all(
    streams.map(([, stream]) => new Promise<void>((resolve) => stream.once('close', resolve))),
  ).then(() => undefined)
  for (const [, stream] of streams) stream.on('error', () => undefined)
  return {
    drained,
    onOutput: (receive) => {
      for (const [name, stream] of streams)
        stream.on('data', (chunk: Buffer) => {
          receive(name, chunk)
        })
    },
    cutOutput: () => {
      const open = streams.filter(([, stream]) => !stream.closed)
      for (const [, stream] of open) stream.destroy()
      ;(stdin as Partial<Socket> | null)?.destroy?.()
      return open.length > 0
    },
    letGo: () => {
      for (const pipe of [stdin, stdout, stderr]) (pipe as Partial<Socket> | null)?.unref?.()
    },
    writeInput: (chunk) => stdin?.writable === true && (stdin.write(chunk), true),
    endInput: () => {
      stdin?.end()
    },
    resize: () => false,
  }
}
