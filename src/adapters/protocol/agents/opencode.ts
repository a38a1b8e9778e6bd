/** OpenCode: `opencode run --format json`. It prints nothing at all before the model does, and a tool only when it is done. */
import type { Protocol } from '../../../actors/ports.js'
import { frameProtocol } from '../frames/frame-protocol.js'
import { FrameTable, by } from '../frames/frame-table.js'
import { COMPLETION_SIGNAL, PROGRESS, standing, toolClosed } from '../frames/frame-meaning.js'
import { textAt } from '../frames/json-value.js'

/** What each frame of `opencode run --format json` is. The end of the process is the end of the turn. */
const FRAMES = new FrameTable(
  by('type', {
    step_start: PROGRESS,
    reasoning: PROGRESS,
    text: standing((frame) => ({ isOk: true, text: textAt(frame, 'part.text') })),
    tool_use: toolClosed((frame) => [textAt(frame, 'part.callID') ?? ''].filter((id) => id !== '')),
    step_finish: by(
      'part.reason',
      { 'tool-calls': PROGRESS },
      { other: COMPLETION_SIGNAL, absent: COMPLETION_SIGNAL },
    ),
    error: standing((frame) => ({
      isOk: false,
      text: textAt(frame, 'error.data.message') ?? textAt(frame, 'error.name'),
    })),
  }),
)

/** OpenCode with `run --format json`. */
export const opencodeJson = (): Protocol => frameProtocol('opencode-json', FRAMES)
