/** Codex: `codex app-server`, for a host that speaks to it itself. */
import type { Protocol } from '../../../actors/ports.js'
import { frameProtocol } from '../frames/frame-protocol.js'
import { FrameTable, by } from '../frames/frame-table.js'
import type { Entry } from '../frames/frame-table.js'
import {
  PROGRESS,
  TRAFFIC,
  USER_ECHO,
  completion,
  personAnswered,
  personAsked,
  retryNotice,
  standing,
  toolClosed,
  toolOpened,
} from '../frames/frame-meaning.js'
import { textAt, valueAt } from '../frames/json-value.js'

const idAt = (frame: unknown, path: string): string | null => {
  const id = valueAt(frame, path)
  return typeof id === 'string' || typeof id === 'number' ? String(id) : null
}

const opened = toolOpened((frame) => {
  const id = textAt(frame, 'params.item.id')
  if (id === undefined) return []
  return [{ id, title: textAt(frame, 'params.item.tool') ?? textAt(frame, 'params.item.type') ?? '' }]
})
const closed = toolClosed((frame) => [textAt(frame, 'params.item.id') ?? ''].filter((id) => id !== ''))

const items = (tool: Entry, message: Entry): Entry =>
  by('params.item.type', {
    userMessage: USER_ECHO,
    hookPrompt: USER_ECHO,
    agentMessage: message,
    reasoning: PROGRESS,
    plan: PROGRESS,
    commandExecution: tool,
    fileChange: tool,
    mcpToolCall: tool,
    dynamicToolCall: tool,
    collabAgentToolCall: tool,
    collabToolCall: tool,
    webSearch: tool,
    imageView: tool,
    imageGeneration: tool,
    enteredReviewMode: PROGRESS,
    exitedReviewMode: PROGRESS,
    contextCompaction: PROGRESS,
  })

const asked = personAsked((frame) => {
  const id = idAt(frame, 'id')
  return id === null ? null : { id }
})

/** What each frame of `codex app-server` is. A response is known by its lack of a method. */
const FRAMES = new FrameTable(
  by(
    'method',
    {
      'item/agentMessage/delta': PROGRESS,
      'item/reasoning/*': PROGRESS,
      'item/plan/delta': PROGRESS,
      'item/commandExecution/outputDelta': PROGRESS,
      'item/commandExecution/terminalInteraction': PROGRESS,
      'item/fileChange/outputDelta': PROGRESS,
      'item/mcpToolCall/progress': PROGRESS,
      'item/started': items(opened, PROGRESS),
      'item/completed': items(
        closed,
        standing((frame) => ({ isOk: true, text: textAt(frame, 'params.item.text') })),
      ),
      'turn/plan/updated': PROGRESS,
      'turn/diff/updated': PROGRESS,
      'turn/started': TRAFFIC,
      'turn/completed': completion((frame) => {
        const status = textAt(frame, 'params.turn.status')
        if (status === 'interrupted') return { isOk: false, wasCancelled: true }
        if (status === 'failed') return { isOk: false, text: textAt(frame, 'params.turn.error.message') }
        return { isOk: true }
      }),
      error: retryNotice((frame) =>
        valueAt(frame, 'params.willRetry') === true
          ? {
              attempt: null,
              attemptsMax: null,
              delayMs: null,
              reason: textAt(frame, 'params.error.message') ?? 'an error',
            }
          : null,
      ),
      'item/commandExecution/requestApproval': asked,
      'item/fileChange/requestApproval': asked,
      'item/permissions/requestApproval': asked,
      'item/tool/requestUserInput': asked,
      execCommandApproval: asked,
      applyPatchApproval: asked,
      'serverRequest/resolved': personAnswered((frame) => idAt(frame, 'params.requestId')),
      'thread/*': TRAFFIC,
      'account/*': TRAFFIC,
      'remoteControl/*': TRAFFIC,
      'mcpServer/*': TRAFFIC,
      'skills/*': TRAFFIC,
      'model/*': TRAFFIC,
      'app/*': TRAFFIC,
      configWarning: TRAFFIC,
      deprecationNotice: TRAFFIC,
      warning: TRAFFIC,
    },
    { absent: by('id', {}, { other: TRAFFIC }) },
  ),
)

/** Codex as `codex app-server`: its frames are understood, the requests are the host's to send. */
export const codexAppServer = (): Protocol => frameProtocol('codex-app-server', FRAMES)
