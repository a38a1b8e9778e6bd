/** Pushes a recording through its protocol, the prompt given where the family says. */
import type { ProtocolSession } from '../../../src/protocols.js'
import { ACP_FRAMES } from '../../../src/adapters/protocol/acp/acp-frames.js'
import { FrameSession } from '../../../src/adapters/protocol/frames/frame-session.js'
import { SimulatedClock } from '../../../src/testing/simulated-clock.js'
import { LIMITS, Recorder } from './recorder.js'
import type { Family } from './recorded.js'

/** The id under which the recorded driver asked its ACP agents. */
const RECORDED_PROMPT_ID = 3

interface Stage {
  readonly session: ProtocolSession
  readonly prompt: () => Promise<unknown>
}

const asRecorded = (sink: Recorder): Stage => {
  const session = new FrameSession(ACP_FRAMES, sink, LIMITS)
  session.facts.drive({ hasPerson: true })
  return { session, prompt: async () => session.facts.dispatched(RECORDED_PROMPT_ID) }
}

const stageFor = async (family: Family, sink: Recorder): Promise<Stage> => {
  const protocol = family.protocol()
  if (protocol.name === 'acp') return asRecorded(sink)
  const session = protocol.open(sink, LIMITS)
  await session.start?.({ write: () => true, cwd: '/', clock: new SimulatedClock() })
  return { session, prompt: async () => session.prompt?.('Do the task.') }
}

export interface Replayed {
  readonly sink: Recorder
  readonly session: ProtocolSession
}

export const replay = async (
  family: Family,
  lines: readonly string[],
  promptAfterLines?: number,
): Promise<Replayed> => {
  const sink = new Recorder()
  const { session, prompt } = await stageFor(family, sink)
  const promptAt = promptAfterLines ?? family.promptAfterLines ?? 0
  for (const [index, line] of lines.entries()) {
    if (index === promptAt) await prompt()
    session.push('stdout', Buffer.from(`${line}\n`))
  }
  if (lines.length <= promptAt) await prompt()
  return { sink, session }
}
