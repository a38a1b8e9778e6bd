/** What each frame of an ACP agent is: the table. */
import { FrameTable, by } from '../frames/frame-table.js'
import {
  PROGRESS,
  TRAFFIC,
  UNKNOWN,
  USER_ECHO,
  addressed,
  completion,
  personAsked,
  toolUpdated,
} from '../frames/frame-meaning.js'
import type { Completion, ToolLook } from '../frames/frame-meaning.js'
import { numberAt, textAt, valueAt } from '../frames/json-value.js'

const OPEN = new Set(['pending', 'in_progress'])
const CLOSED = new Set(['completed', 'failed'])

/**
 * The title of a call is what agents show of it, most often the command line itself: it is never used (K8). A call is named by its
 * tool, where the agent says it, or else by its kind.
 */
const nameOf = (call: unknown): string | undefined =>
  textAt(call, 'name') ??
  textAt(call, '_meta.claudeCode.toolName') ??
  textAt(call, '_meta.toolName') ??
  textAt(call, 'kind')

/**
 * K3: what moves is the status, the output, and the arguments while the model still writes them. Titles and places are labels, and
 * clocks (`elapsedMs`, `elapsedTimeSeconds`) move while nothing does. Agents show output in ways of their own beside the protocol's.
 */
const lookAt = (call: unknown): ToolLook | null => {
  const id = textAt(call, 'toolCallId')
  if (id === undefined) return null
  const status = textAt(call, 'status')
  return {
    id,
    title: nameOf(call),
    isClosed:
      status !== undefined && (CLOSED.has(status) || OPEN.has(status)) ? CLOSED.has(status) : undefined,
    isDelta: (textAt(call, '_meta.terminal_output_delta.data') ?? '') !== '',
    parts: {
      status,
      content: valueAt(call, 'content'),
      output: valueAt(call, 'rawOutput'),
      input: valueAt(call, 'rawInput'),
      exit: valueAt(call, '_meta.terminal_exit'),
      response: valueAt(call, '_meta.claudeCode.toolResponse.stdout'),
      shellBytes: numberAt(call, '_meta.shellProgress.totalBytes'),
    },
  }
}

const toolCall = toolUpdated((frame) => lookAt(valueAt(frame, 'params.update')))

const idOf = (frame: unknown): string | number | undefined => textAt(frame, 'id') ?? numberAt(frame, 'id')

/**
 * While a turn is open, an answer can only be to its prompt, or to an older one: nothing else is asked then. One that gives neither a
 * stop reason nor an error that can be read ends its turn badly all the same: no other answer will come (K11).
 */
const promptAnswer = (frame: unknown): Completion => {
  const prompt = idOf(frame)
  const reason = textAt(frame, 'result.stopReason')
  if (reason === 'end_turn') return { isOk: true, prompt }
  const failure = textAt(frame, 'error.message') ?? reason ?? "the agent's answer to the prompt says nothing"
  return { isOk: false, text: failure, wasCancelled: reason === 'cancelled', prompt }
}

/** The call that is asked about opens here where it was not announced before. */
const question = addressed(
  personAsked((frame) => {
    const id = idOf(frame)
    return id === undefined ? null : { id: String(id), tool: lookAt(valueAt(frame, 'params.toolCall')) }
  }),
)

/**
 * What each frame is. A request is handed to the library that answers it; an update never is: a flood of them costs a look at its head.
 *
 * By its type alone an `agent_message_chunk` is progress. Codex's adapter sends a warning as one, unasked, when a session opens, a
 * moment before or after the first prompt. Before the prompt nothing counts. After it, it counts: nothing in the frame tells it from
 * an answer (other adapters leave the message id out too), and to read meanings into its words would be guessing. The session waits a
 * moment between its opening and the first prompt, so that what is sent unasked comes before (`settleMs`).
 */
export const ACP_FRAMES = new FrameTable(
  by(
    'params.update.sessionUpdate',
    {
      agent_message_chunk: PROGRESS,
      agent_thought_chunk: PROGRESS,
      tool_call: toolCall,
      tool_call_update: toolCall,
      plan: PROGRESS,
      compaction_summary_chunk: PROGRESS,
      user_message_chunk: USER_ECHO,
      usage_update: TRAFFIC,
      available_commands_update: TRAFFIC,
      current_mode_update: TRAFFIC,
      config_option_update: TRAFFIC,
      session_info_update: TRAFFIC,
      compaction_update: TRAFFIC,
      notice: TRAFFIC,
    },
    {
      absent: by(
        'method',
        {
          'session/request_permission': question,
          'elicitation/create': question,
          'elicitation/complete': TRAFFIC,
          'fs/*': addressed(TRAFFIC),
          'terminal/*': addressed(TRAFFIC),
          '$/cancel_request': addressed(TRAFFIC),
          // Extensions: of the protocol's own making, and of agents that did not mark theirs.
          '_*': addressed(TRAFFIC),
          'craft/*': addressed(TRAFFIC),
          'qwen/*': addressed(TRAFFIC),
        },
        {
          other: addressed(UNKNOWN),
          absent: by('id', {}, { other: addressed(completion(promptAnswer)) }),
        },
      ),
    },
  ),
)
