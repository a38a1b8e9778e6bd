/** A conversation with the ACP agent of the fixtures: a process of its own, over its stdin and stdout. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../../src/adapters/clock/system-clock.js'
import { acp } from '../../../src/protocols.js'
import type { AcpOptions, ProtocolReply, ProtocolSession } from '../../../src/protocols.js'
import type { Clock } from '../../../src/actors/ports.js'
import { waitFor } from '../../support/wait-for.js'
import { LIMITS, Recorder } from './recorder.js'

const agent = fileURLToPath(new URL('../../fixtures/acp-agent/agent.mjs', import.meta.url))
const DEADLINE_MS = 20_000

/** How the agent begins: as it should, or not. */
export type AgentStart = 'ready' | 'dies' | 'mute' | 'old' | 'locked' | 'warns'

export interface Conversation {
  readonly sink: Recorder
  readonly session: ProtocolSession
  readonly started: Promise<ProtocolReply>
  /** What the agent was sent, parsed. */
  readonly sent: readonly Record<string, unknown>[]
  readonly prompt: (text: string) => Promise<ProtocolReply>
  /** Waits until the sink has heard a call. */
  readonly hears: (call: string) => Promise<void>
  /** Waits for something that the agent says in a line. */
  readonly says: (text: string) => Promise<string>
  /** The process has ended and its output with it. */
  readonly ended: Promise<number | null>
}

export interface ConversationOptions extends AcpOptions {
  readonly begins?: AgentStart
  readonly clock?: Clock
}

export const converse = ({
  begins = 'ready',
  clock = systemClock,
  ...options
}: ConversationOptions = {}): Conversation => {
  const sink = new Recorder()
  const session = acp({ settleMs: 0, ...options }).open(sink, LIMITS)
  const child = spawn(process.execPath, [agent, begins], { stdio: ['pipe', 'pipe', 'ignore'] })
  const sent: Record<string, unknown>[] = []
  child.stdin.on('error', () => undefined)
  child.stdout.on('data', (chunk: Buffer) => {
    session.push('stdout', chunk)
  })
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', (code) => {
      session.end()
      resolve(code)
    })
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const write = (chunk: string | Uint8Array): boolean => {
    sent.push(JSON.parse(String(chunk)) as Record<string, unknown>)
    return child.stdin.writable && (child.stdin.write(chunk), true)
  }
  const wait = <T>(condition: () => T, what: string) => waitFor(condition, { deadlineMs: DEADLINE_MS, what })
  return {
    sink,
    session,
    started: session.start?.({ write, cwd: '/srv/project', clock }) ?? Promise.reject(new Error('no start')),
    sent,
    prompt: async (text) => session.prompt?.(text) ?? { isOk: false, message: 'no prompt' },
    hears: async (call) => {
      await wait(() => sink.heard.includes(call), `the sink to hear ${call}`)
    },
    says: async (text) => {
      const line = await wait(
        () => sink.lines.find((one) => one.text.includes(text)),
        `the agent to say ${text}`,
      )
      return line.text
    },
    ended,
  }
}
