/** Codex: `codex exec --json`. It tells of whole items only: between two of them it is silent, however much the model says. */
import type { Protocol } from '../../../actors/ports.js'
import { frameProtocol } from '../frames/frame-protocol.js'
import { FrameTable, by } from '../frames/frame-table.js'
import {
  PROGRESS,
  TRAFFIC,
  completion,
  retryNotice,
  standing,
  toolClosed,
  toolOpened,
  toolUpdated,
} from '../frames/frame-meaning.js'
import type { Meaning } from '../frames/frame-meaning.js'
import { textAt, valueAt } from '../frames/json-value.js'

const opened = toolOpened((frame) => {
  const id = textAt(frame, 'item.id')
  return id === undefined
    ? []
    : [{ id, title: textAt(frame, 'item.tool') ?? textAt(frame, 'item.type') ?? '' }]
})

const updated = toolUpdated((frame) => {
  const id = textAt(frame, 'item.id')
  if (id === undefined) return null
  return {
    id,
    title: textAt(frame, 'item.tool') ?? textAt(frame, 'item.type'),
    parts: {
      status: valueAt(frame, 'item.status'),
      output: valueAt(frame, 'item.aggregated_output'),
      changes: valueAt(frame, 'item.changes'),
      items: valueAt(frame, 'item.items'),
      result: valueAt(frame, 'item.result'),
    },
  }
})

const closed = toolClosed((frame) => {
  const id = textAt(frame, 'item.id')
  return id === undefined ? [] : [id]
})

const tools = (meaning: Meaning): Readonly<Record<string, Meaning>> => ({
  command_execution: meaning,
  file_change: meaning,
  mcp_tool_call: meaning,
  collab_tool_call: meaning,
  web_search: meaning,
  todo_list: meaning,
})

/** `Reconnecting... 2/5 (…)`: the same frame type tells of retries and of the error that ends the turn. */
const RECONNECTING = /^Reconnecting\D*(?<attempt>\d+)\/(?<attemptsMax>\d+)/

const failure = (frame: unknown): string | undefined =>
  textAt(frame, 'error.message') ?? textAt(frame, 'message')

/** What each frame of `codex exec --json` is. */
const FRAMES = new FrameTable(
  by('type', {
    'thread.started': TRAFFIC,
    // It says that the prompt was accepted, not that the model said anything.
    'turn.started': TRAFFIC,
    'item.started': by('item.type', {
      agent_message: PROGRESS,
      reasoning: PROGRESS,
      error: TRAFFIC,
      ...tools(opened),
    }),
    'item.updated': by('item.type', {
      agent_message: PROGRESS,
      reasoning: PROGRESS,
      error: TRAFFIC,
      ...tools(updated),
    }),
    'item.completed': by('item.type', {
      agent_message: standing((frame) => ({ isOk: true, text: textAt(frame, 'item.text') })),
      reasoning: PROGRESS,
      // Warnings come as completed items, before the model has given anything.
      error: TRAFFIC,
      ...tools(closed),
    }),
    'turn.completed': completion(() => ({ isOk: true })),
    'turn.failed': completion((frame) => ({ isOk: false, text: failure(frame) })),
    error: retryNotice((frame) => {
      const match = RECONNECTING.exec(failure(frame) ?? '')
      if (match === null) return null
      const { attempt, attemptsMax } = match.groups ?? {}
      return {
        attempt: Number(attempt),
        attemptsMax: Number(attemptsMax),
        delayMs: null,
        reason: 'the stream broke off',
      }
    }),
  }),
)

/** Codex with `exec --json`. */
export const codexJson = (): Protocol => frameProtocol('codex-json', FRAMES)
