/** Pi: `pi --mode json` for one prompt, `pi --mode rpc` for a conversation. The frames are the same. */
import type { Protocol } from '../../../actors/ports.js'
import type { Dialect } from '../frames/driven-session.js'
import { drivenProtocol, frameProtocol } from '../frames/frame-protocol.js'
import { FrameTable, by } from '../frames/frame-table.js'
import type { Entry } from '../frames/frame-table.js'
import {
  CANCEL_ACKNOWLEDGED,
  COMPLETION_SIGNAL,
  PROGRESS,
  TRAFFIC,
  TURN_BEGAN,
  USER_ECHO,
  addressed,
  completion,
  personAsked,
  retryNotice,
  standing,
  toolClosed,
  toolOpened,
  toolUpdated,
} from '../frames/frame-meaning.js'
import type { Meaning } from '../frames/frame-meaning.js'
import { listAt, numberAt, textAt, valueAt } from '../frames/json-value.js'
import type { PermissionOption, PermissionOptions } from '../frames/permission-desk.js'

const toolId = (frame: unknown): string | undefined => textAt(frame, 'toolCallId')

const answerText = (frame: unknown): string | undefined => {
  const texts = listAt(frame, 'message.content').flatMap((block) => textAt(block, 'text') ?? [])
  return texts.length === 0 ? undefined : texts.join('')
}

const failed = standing((frame) => ({ isOk: false, text: textAt(frame, 'message.errorMessage') }))

/** A message whose request failed is told like any other, with nothing in it. */
const ofAssistant = (whenWell: Meaning): Entry =>
  by('message.stopReason', { error: failed, aborted: failed }, { other: whenWell, absent: whenWell })

const byRole = (assistant: Entry): Entry =>
  by(
    'message.role',
    { assistant, toolResult: PROGRESS, user: USER_ECHO, system: USER_ECHO },
    { other: TRAFFIC },
  )

const asked = addressed(
  personAsked((frame) => {
    const id = textAt(frame, 'id')
    return id === undefined ? null : { id }
  }),
)

/** What each frame of pi is. */
const FRAMES = new FrameTable(
  by('type', {
    session: TRAFFIC,
    // Both come as soon as the prompt is accepted, whatever the model does.
    agent_start: TURN_BEGAN,
    turn_start: TRAFFIC,
    message_update: PROGRESS,
    message_start: byRole(ofAssistant(PROGRESS)),
    message_end: byRole(ofAssistant(standing((frame) => ({ isOk: true, text: answerText(frame) })))),
    tool_execution_start: toolOpened((frame) => {
      const id = toolId(frame)
      return id === undefined ? [] : [{ id, title: textAt(frame, 'toolName') ?? '' }]
    }),
    // Each shows all the output so far.
    tool_execution_update: toolUpdated((frame) => {
      const id = toolId(frame)
      if (id === undefined) return null
      return {
        id,
        title: textAt(frame, 'toolName'),
        parts: { output: valueAt(frame, 'partialResult.content') },
      }
    }),
    tool_execution_end: toolClosed((frame) => [toolId(frame) ?? ''].filter((id) => id !== '')),
    turn_end: TRAFFIC,
    // The agent stops here, and begins again when it retries; newer versions say in the end that they have settled.
    agent_end: by('willRetry', { true: TRAFFIC }, { other: COMPLETION_SIGNAL, absent: COMPLETION_SIGNAL }),
    agent_settled: completion((frame) =>
      valueAt(frame, 'aborted') === true ? { isOk: false, wasCancelled: true } : {},
    ),
    auto_retry_start: retryNotice((frame) => ({
      attempt: numberAt(frame, 'attempt') ?? null,
      attemptsMax: numberAt(frame, 'maxAttempts') ?? null,
      delayMs: numberAt(frame, 'delayMs') ?? null,
      reason: textAt(frame, 'errorMessage') ?? 'the request failed',
    })),
    auto_retry_end: TRAFFIC,
    compaction_start: TRAFFIC,
    compaction_end: PROGRESS,
    entry_appended: TRAFFIC,
    'queue_*': TRAFFIC,
    'session_*': TRAFFIC,
    'model_*': TRAFFIC,
    'thinking_level_*': TRAFFIC,
    extension_error: TRAFFIC,
    extension_ui_request: by(
      'method',
      { select: asked, confirm: asked, input: asked, editor: asked },
      { other: TRAFFIC },
    ),
    response: by(
      'command',
      {
        abort: CANCEL_ACKNOWLEDGED,
        // A prompt that was not taken completes nothing but itself.
        prompt: completion((frame) =>
          valueAt(frame, 'success') === false
            ? { isOk: false, text: textAt(frame, 'error'), prompt: textAt(frame, 'id') }
            : null,
        ),
      },
      { other: TRAFFIC },
    ),
  }),
)

const YES_OR_NO: readonly PermissionOption[] = [
  { id: 'yes', name: 'Yes', kind: 'allow_once' },
  { id: 'no', name: 'No', kind: 'reject_once' },
]

/** A question for free text has no options: nobody can choose one, and it is answered as cancelled. */
const optionsOf = (frame: unknown): readonly PermissionOption[] => {
  if (textAt(frame, 'method') === 'confirm') return YES_OR_NO
  return listAt(frame, 'options').flatMap((name) =>
    typeof name === 'string' ? [{ id: name, name, kind: 'option' }] : [],
  )
}

const COMMANDS: Dialect = {
  prompt: (message, id) => ({ id, type: 'prompt', message }),
  steer: (message, id) => ({ id, type: 'steer', message }),
  cancelTurn: (id) => ({ id, type: 'abort' }),
  questionOf: (frame) => {
    const id = textAt(frame, 'id')
    if (id === undefined || textAt(frame, 'type') !== 'extension_ui_request') return null
    const isConfirm = textAt(frame, 'method') === 'confirm'
    const reply = (answer: Readonly<Record<string, unknown>>) => ({
      type: 'extension_ui_response',
      id,
      ...answer,
    })
    return {
      request: { id, title: textAt(frame, 'title') ?? 'A question', options: optionsOf(frame), raw: frame },
      answer: (verdict) => {
        if (verdict.is !== 'chosen') return reply({ cancelled: true })
        return reply(isConfirm ? { confirmed: verdict.option.id === 'yes' } : { value: verdict.option.id })
      },
    }
  },
  withdrawnBy: () => null,
}

export interface PiOptions extends PermissionOptions {
  /** `json` (default): one prompt, given with the command. `rpc`: prompts are given one by one. */
  readonly mode?: 'json' | 'rpc'
}

/** Pi with `--mode json` or `--mode rpc`. */
export const piJson = ({ mode = 'json', ...permissions }: PiOptions = {}): Protocol =>
  mode === 'json' ? frameProtocol('pi-json', FRAMES) : drivenProtocol('pi-rpc', FRAMES, COMMANDS, permissions)
