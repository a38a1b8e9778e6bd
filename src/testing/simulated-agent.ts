/** A protocol with one frame for each meaning, spoken by agents that a test speaks for: over the real tables, framers and sessions. */
import {
  CANCEL_ACKNOWLEDGED,
  COMPLETION_SIGNAL,
  PROGRESS,
  TRAFFIC,
  completion,
  personAnswered,
  personAsked,
  retryNotice,
  toolClosed,
  toolOpened,
  toolUpdated,
} from '../adapters/protocol/frames/frame-meaning.js'
import { drivenProtocol, frameProtocol } from '../adapters/protocol/frames/frame-protocol.js'
import { FrameTable, by } from '../adapters/protocol/frames/frame-table.js'
import { textAt, valueAt } from '../adapters/protocol/frames/json-value.js'
import type { Protocol } from '../protocols.js'

const idOf = (frame: unknown): string => textAt(frame, 'id') ?? 'it'

const FRAMES = new FrameTable(
  by('type', {
    work: PROGRESS,
    usage: TRAFFIC,
    signal: COMPLETION_SIGNAL,
    heard: CANCEL_ACKNOWLEDGED,
    done: completion((frame) => ({
      isOk: valueAt(frame, 'isOk') !== false,
      text: textAt(frame, 'text'),
      prompt: textAt(frame, 'prompt'),
    })),
    cancelled: completion((frame) => ({ isOk: false, wasCancelled: true, prompt: textAt(frame, 'prompt') })),
    retry: retryNotice(() => ({ attempt: 1, attemptsMax: 3, delayMs: 1_000, reason: 'busy' })),
    'tool-open': toolOpened((frame) => [{ id: idOf(frame), title: textAt(frame, 'title') ?? '' }]),
    'tool-update': toolUpdated((frame) => ({ id: idOf(frame), parts: { output: textAt(frame, 'output') } })),
    'tool-close': toolClosed((frame) => [idOf(frame)]),
    ask: personAsked((frame) => ({ id: idOf(frame) })),
    answer: personAnswered(idOf),
  }),
)

export type Frame = Readonly<Record<string, unknown>> & { readonly type: string }

/** One line, as an agent writes it. */
export const line = (frame: Frame | string): string =>
  `${JSON.stringify(typeof frame === 'string' ? { type: frame } : frame)}\n`

/** An agent that takes one prompt after the other, each named by the id of its command. */
export const conversational = (): Protocol =>
  drivenProtocol(
    'simulated',
    FRAMES,
    {
      prompt: (text, id) => ({ type: 'prompt', id, text }),
      steer: (text, id) => ({ type: 'steer', id, text }),
      cancelTurn: (id) => ({ type: 'cancel', id }),
      questionOf: () => null,
      withdrawnBy: () => null,
    },
    // Someone is there to be asked, and answers when the test does.
    { onPermission: () => new Promise(() => undefined) },
  )

/** An agent that has its one prompt with its command. */
export const single = (): Protocol => frameProtocol('simulated-one', FRAMES)
