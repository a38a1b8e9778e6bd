/** A conversation over stdin with an agent that says what the test has it say. */
import { claudeStreamJson, piJson } from '../../../src/protocols.js'
import type { ClaudeOptions, PiOptions, Protocol, ProtocolSession } from '../../../src/protocols.js'
import { SimulatedClock } from '../../../src/testing/simulated-clock.js'
import { LIMITS, Recorder } from './recorder.js'

export interface Talk {
  readonly sink: Recorder
  readonly session: Required<ProtocolSession>
  readonly clock: SimulatedClock
  /** What the agent was sent, parsed. */
  readonly sent: unknown[]
  /** The agent says something. */
  readonly say: (...frames: readonly unknown[]) => void
  /** The agent reads no more. */
  readonly hangUp: () => void
}

const talk = async (protocol: Protocol): Promise<Talk> => {
  const sink = new Recorder()
  const clock = new SimulatedClock()
  const session = protocol.open(sink, LIMITS) as Required<ProtocolSession>
  const sent: unknown[] = []
  let isGone = false
  const write = (chunk: string | Uint8Array): boolean => {
    if (!isGone) sent.push(JSON.parse(String(chunk)))
    return !isGone
  }
  await session.start({ write, cwd: '/', clock })
  const say = (...frames: readonly unknown[]): void => {
    session.push('stdout', Buffer.from(frames.map((frame) => `${JSON.stringify(frame)}\n`).join('')))
  }
  const hangUp = (): void => {
    isGone = true
  }
  return { sink, session, clock, sent, say, hangUp }
}

export const claude = (options: ClaudeOptions = {}) =>
  talk(claudeStreamJson({ input: 'stream-json', ...options }))
export const pi = (options: PiOptions = {}) => talk(piJson({ mode: 'rpc', ...options }))
