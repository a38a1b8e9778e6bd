/** Gemini CLI: `gemini --output-format stream-json`. Its retries are told on stderr only. */
import type { Protocol } from '../../../actors/ports.js'
import { frameProtocol } from '../frames/frame-protocol.js'
import { FrameTable, by } from '../frames/frame-table.js'
import { PROGRESS, TRAFFIC, USER_ECHO, completion, toolClosed, toolOpened } from '../frames/frame-meaning.js'
import { textAt } from '../frames/json-value.js'

/** What each frame of Gemini CLI is. */
const FRAMES = new FrameTable(
  by('type', {
    init: TRAFFIC,
    message: by('role', { assistant: PROGRESS, user: USER_ECHO }),
    tool_use: toolOpened((frame) => {
      const id = textAt(frame, 'tool_id')
      return id === undefined ? [] : [{ id, title: textAt(frame, 'tool_name') ?? '' }]
    }),
    tool_result: toolClosed((frame) => [textAt(frame, 'tool_id') ?? ''].filter((id) => id !== '')),
    // Warnings, and errors that it goes on after; what ends the turn is in the result.
    error: TRAFFIC,
    result: completion((frame) => {
      const isOk = textAt(frame, 'status') === 'success'
      return isOk ? { isOk } : { isOk, text: textAt(frame, 'error.message') ?? textAt(frame, 'status') }
    }),
  }),
)

/** Gemini CLI with `--output-format stream-json`. */
export const geminiJson = (): Protocol => frameProtocol('gemini-json', FRAMES)
