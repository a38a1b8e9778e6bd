/**
 * Claude Code: `claude -p --output-format stream-json --verbose`, and with `--input-format stream-json` a conversation.
 *
 * Without `--include-partial-messages` nothing comes between the request to the model and its whole message: a long answer is silence,
 * and a run that is cut off in the middle of one never started. Give that option where the watchdogs are to see the difference.
 */
import type { Protocol } from '../../../actors/ports.js'
import { FrameTable, by } from '../frames/frame-table.js'
import {
  CANCEL_ACKNOWLEDGED,
  PROGRESS,
  TRAFFIC,
  TURN_BEGAN,
  USER_ECHO,
  addressed,
  completion,
  personAnswered,
  personAsked,
  retryNotice,
  toolClosed,
  toolOpened,
  toolUpdated,
} from '../frames/frame-meaning.js'
import type { Asking, Completion, ToolLook, ToolName } from '../frames/frame-meaning.js'
import { drivenProtocol, frameProtocol } from '../frames/frame-protocol.js'
import { listAt, numberAt, textAt, valueAt } from '../frames/json-value.js'
import type { Dialect } from '../frames/driven-session.js'
import type { PermissionOptions } from '../frames/permission-desk.js'

/** Only calls of the agent itself stand open at the top: what a sub-agent calls is within its own tool call. */
const isTopLevel = (frame: unknown): boolean => textAt(frame, 'parent_tool_use_id') === undefined

const toolUses = (frame: unknown): readonly ToolName[] => {
  if (!isTopLevel(frame)) return []
  return listAt(frame, 'message.content').flatMap((block) => {
    const id = textAt(block, 'id')
    return textAt(block, 'type') === 'tool_use' && id !== undefined
      ? [{ id, title: textAt(block, 'name') ?? '' }]
      : []
  })
}

const toolResults = (frame: unknown): readonly string[] => {
  if (!isTopLevel(frame)) return []
  return listAt(frame, 'message.content').flatMap((block) => {
    const id = textAt(block, 'tool_use_id')
    return textAt(block, 'type') === 'tool_result' && id !== undefined ? [id] : []
  })
}

/**
 * `tool_progress` tells that a tool has been running for some seconds. The first one says something new, that it runs; the next ones are
 * heartbeats unless they bring output (K3). A heartbeat bears an id of its own and names its tool as the parent.
 */
const toolProgress = (frame: unknown): ToolLook | null => {
  const isHeartbeat = valueAt(frame, 'heartbeat') === true
  const id = textAt(frame, isHeartbeat ? 'parent_tool_use_id' : 'tool_use_id') ?? textAt(frame, 'tool_use_id')
  if (id === undefined || (!isHeartbeat && !isTopLevel(frame))) return null
  return {
    id,
    title: textAt(frame, 'tool_name'),
    parts: { isRunning: true, output: valueAt(frame, 'output'), result: valueAt(frame, 'result') },
  }
}

const requestId = (frame: unknown): string | null => textAt(frame, 'request_id') ?? null

const asking = (frame: unknown): Asking | null => {
  const id = requestId(frame)
  return id === null ? null : { id }
}

/** With messages still queued, another turn follows this one by itself. */
const result = (frame: unknown): Completion | null => {
  if ((numberAt(frame, 'queued_turn_count') ?? 0) > 0) return null
  const subtype = textAt(frame, 'subtype')
  return {
    isOk: valueAt(frame, 'is_error') !== true && (subtype === undefined || subtype === 'success'),
    text: textAt(frame, 'result') ?? textAt(frame, 'errors.0') ?? subtype,
  }
}

/** What each frame of Claude Code is. `type` is not always the first key: in `result` it is one of the last. */
const FRAMES = new FrameTable(
  by(
    'type',
    {
      assistant: by(
        'message.content[].type',
        { tool_use: toolOpened(toolUses) },
        { other: PROGRESS, absent: PROGRESS },
      ),
      user: by(
        'message.content[].type',
        { tool_result: toolClosed(toolResults) },
        { other: USER_ECHO, absent: USER_ECHO },
      ),
      stream_event: by('event.type', {
        content_block_delta: PROGRESS,
        // The frame around the content, of which the client itself makes some when it gives up on a stream.
        message_start: TRAFFIC,
        content_block_start: TRAFFIC,
        content_block_stop: TRAFFIC,
        message_delta: TRAFFIC,
        message_stop: TRAFFIC,
        ping: TRAFFIC,
        error: TRAFFIC,
        // Qwen's.
        goal_state: TRAFFIC,
      }),
      tool_progress: toolUpdated(toolProgress),
      result: completion(result),
      system: by('subtype', {
        'task_*': PROGRESS,
        api_retry: retryNotice((frame) => ({
          attempt: numberAt(frame, 'attempt') ?? null,
          attemptsMax: numberAt(frame, 'max_retries') ?? null,
          delayMs: numberAt(frame, 'retry_delay_ms') ?? null,
          reason: textAt(frame, 'error') ?? 'the request failed',
        })),
        // Comes with each prompt that the agent takes up.
        init: TURN_BEGAN,
        status: TRAFFIC,
        thinking_tokens: TRAFFIC,
        compact_boundary: TRAFFIC,
        'hook_*': TRAFFIC,
        files_persisted: TRAFFIC,
        local_command_output: TRAFFIC,
        session_state_changed: TRAFFIC,
      }),
      control_request: by(
        'request.subtype',
        { can_use_tool: addressed(personAsked(asking)) },
        { other: TRAFFIC },
      ),
      control_cancel_request: addressed(personAnswered(requestId)),
      control_response: CANCEL_ACKNOWLEDGED,
      rate_limit_event: TRAFFIC,
      auth_status: TRAFFIC,
      keep_alive: TRAFFIC,
      tool_use_summary: TRAFFIC,
      prompt_suggestion: TRAFFIC,
    },
    // A result so long that it was cut before its type.
    { absent: by('stop_reason', {}, { other: completion(result) }) },
  ),
)

const OPTIONS = [
  { id: 'allow', name: 'Allow', kind: 'allow_once' },
  { id: 'deny', name: 'Deny', kind: 'reject_once' },
] as const

const userMessage = (text: string): unknown => ({
  type: 'user',
  message: { role: 'user', content: [{ type: 'text', text }] },
  parent_tool_use_id: null,
  session_id: '',
})

const COMMANDS: Dialect = {
  prompt: userMessage,
  steer: userMessage,
  cancelTurn: (id) => ({ type: 'control_request', request_id: id, request: { subtype: 'interrupt' } }),
  questionOf: (frame) => {
    const id = requestId(frame)
    if (id === null || textAt(frame, 'request.subtype') !== 'can_use_tool') return null
    const reply = (response: unknown): unknown => ({
      type: 'control_response',
      response: { subtype: 'success', request_id: id, response },
    })
    return {
      request: {
        id,
        title: textAt(frame, 'request.title') ?? textAt(frame, 'request.tool_name') ?? 'Use a tool',
        options: OPTIONS,
        raw: valueAt(frame, 'request'),
      },
      answer: (verdict) =>
        verdict.is === 'chosen' && verdict.option.id === 'allow'
          ? reply({ behavior: 'allow', updatedInput: valueAt(frame, 'request.input') })
          : reply({ behavior: 'deny', message: 'The request was refused.' }),
    }
  },
  withdrawnBy: (frame) => (textAt(frame, 'type') === 'control_cancel_request' ? requestId(frame) : null),
}

export interface ClaudeOptions extends PermissionOptions {
  /**
   * `text` (default): the prompt is in the command or comes as plain text, and the first result finishes the run.
   * `stream-json`: prompts are given one by one (`--input-format stream-json`). Permissions are asked for with
   * `--permission-prompt-tool stdio`.
   */
  readonly input?: 'text' | 'stream-json'
}

/** Claude Code with `--output-format stream-json --verbose`. */
export const claudeStreamJson = ({ input = 'text', ...permissions }: ClaudeOptions = {}): Protocol =>
  input === 'text'
    ? frameProtocol('claude-stream-json', FRAMES)
    : drivenProtocol('claude-stream-json', FRAMES, COMMANDS, permissions)

/** Qwen Code with `--output-format stream-json`: Claude's frames, less of them. */
export const qwenJson = (): Protocol => frameProtocol('qwen-json', FRAMES)
