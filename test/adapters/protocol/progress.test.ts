/** What is progress and what only looks like it. */
import { describe, expect, test } from 'vitest'
import {
  acp,
  claudeStreamJson,
  codexAppServer,
  codexJson,
  opencodeJson,
  piJson,
} from '../../../src/protocols.js'
import type { Protocol } from '../../../src/protocols.js'
import { acpUpdate as update } from './frames.js'
import { LIMITS, Recorder } from './recorder.js'

/** Each frame in a chunk of its own: which of them are progress. */
const progressOf = (protocol: Protocol, frames: readonly unknown[]): readonly boolean[] => {
  const sink = new Recorder()
  const session = protocol.open(sink, LIMITS)
  return frames.map((frame) => {
    const before = sink.count('progress')
    session.push('stdout', Buffer.from(`${JSON.stringify(frame)}\n`))
    return sink.count('progress') > before
  })
}

describe('K2: ACP', () => {
  test.each(['agent_message_chunk', 'agent_thought_chunk', 'plan'])(
    'K2: %s is progress, each time',
    (kind) => {
      expect(progressOf(acp(), [update(kind), update(kind)])).toEqual([true, true])
    },
  )

  test.each([
    'usage_update',
    'available_commands_update',
    'current_mode_update',
    'config_option_update',
    'session_info_update',
    'user_message_chunk',
  ])('K2: %s is traffic', (kind) => {
    expect(progressOf(acp(), [update(kind)])).toEqual([false])
  })

  test('K2: a permission request is progress, and asks a person', () => {
    const sink = new Recorder()
    const frame = {
      jsonrpc: '2.0',
      id: 7,
      method: 'session/request_permission',
      params: { toolCall: {}, options: [] },
    }
    acp()
      .open(sink, LIMITS)
      .push('stdout', Buffer.from(`${JSON.stringify(frame)}\n`))
    expect(sink.heard).toEqual(['progress', 'personAsked'])
  })

  test.each(['fs/read_text_file', 'terminal/output', '$/cancel_request', '_vendor/note'])(
    'K2: %s is traffic',
    (method) => {
      expect(progressOf(acp(), [{ jsonrpc: '2.0', id: 1, method }])).toEqual([false])
    },
  )
})

describe('K2: traps of the others', () => {
  const event = (type: string) => ({ type: 'stream_event', event: { type } })

  test.each<readonly [string, Protocol, unknown, boolean]>([
    ['claude: init', claudeStreamJson(), { type: 'system', subtype: 'init' }, false],
    ['claude: status', claudeStreamJson(), { type: 'system', subtype: 'status' }, false],
    ['claude: api_retry', claudeStreamJson(), { type: 'system', subtype: 'api_retry' }, false],
    ['claude: thinking_tokens', claudeStreamJson(), { type: 'system', subtype: 'thinking_tokens' }, false],
    ['claude: task_started', claudeStreamJson(), { type: 'system', subtype: 'task_started' }, true],
    ['claude: any other task_', claudeStreamJson(), { type: 'system', subtype: 'task_to_come' }, true],
    ['claude: a delta', claudeStreamJson(), event('content_block_delta'), true],
    ['claude: the frame around it', claudeStreamJson(), event('message_start'), false],
    [
      'claude: an answer',
      claudeStreamJson(),
      { type: 'assistant', message: { content: [{ type: 'text' }] } },
      true,
    ],
    [
      'claude: text said by the user',
      claudeStreamJson(),
      { type: 'user', message: { content: 'hi' } },
      false,
    ],
    ['claude: a tool is running', claudeStreamJson(), { type: 'tool_progress', tool_use_id: 't' }, true],
    ['codex: a warning', codexJson(), { type: 'item.completed', item: { type: 'error' } }, false],
    ['codex: the turn started', codexJson(), { type: 'turn.started' }, false],
    [
      'codex: an answer',
      codexJson(),
      { type: 'item.completed', item: { type: 'agent_message', text: 'x' } },
      true,
    ],
    [
      'codex app-server: the user’s message',
      codexAppServer(),
      { method: 'item/started', params: { item: { type: 'userMessage' } } },
      false,
    ],
    ['pi: the agent started', piJson(), { type: 'agent_start' }, false],
    ['pi: the turn started', piJson(), { type: 'turn_start' }, false],
    ['pi: the user’s message', piJson(), { type: 'message_end', message: { role: 'user' } }, false],
    [
      'pi: an answer that failed',
      piJson(),
      { type: 'message_start', message: { role: 'assistant', content: [], stopReason: 'error' } },
      false,
    ],
    [
      'pi: an answer',
      piJson(),
      { type: 'message_start', message: { role: 'assistant', stopReason: 'pending' } },
      true,
    ],
    ['opencode: an error', opencodeJson(), { type: 'error', error: { name: 'APIError' } }, false],
  ])('K2: %s', (_, protocol, frame, isProgress) => {
    expect(progressOf(protocol, [frame])).toEqual([isProgress])
  })

  test('K2: claude says what a frame is in any place of it', () => {
    const late = { message: { content: [{ text: 'x'.repeat(500), type: 'text' }] }, type: 'assistant' }
    expect(progressOf(claudeStreamJson(), [late])).toEqual([true])
  })
})

describe('K2: what is unknown', () => {
  test('K2: is traffic, counted, and reported once for each type', () => {
    const sink = new Recorder()
    const session = acp().open(sink, LIMITS)
    for (const kind of ['new_kind', 'new_kind', 'usage_update', 'other_kind', 'new_kind']) {
      session.push('stdout', Buffer.from(`${JSON.stringify(update(kind))}\n`))
    }
    expect(sink.heard).toEqual(['unknownFrame', 'unknownFrame'])
    expect(Object.fromEntries(session.unknownFrames)).toEqual({ new_kind: 3, other_kind: 1 })
  })

  test('K2: is bounded, and shows nothing that a name would not have in it', () => {
    const sink = new Recorder()
    const session = claudeStreamJson().open(sink, LIMITS)
    for (let index = 0; index < 1_000; index += 1) {
      session.push('stdout', Buffer.from(`${JSON.stringify({ type: `kind-${String(index)}` })}\n`))
    }
    session.push('stdout', Buffer.from(`${JSON.stringify({ type: `\u001b[31m${'x'.repeat(500)}` })}\n`))
    expect(session.unknownFrames.size).toBeLessThan(100)
    expect(session.unknownFrames.get('(others)')).toBeGreaterThan(900)

    const other = new Recorder()
    claudeStreamJson().open(other, LIMITS).push('stdout', Buffer.from('{"type":"\u001b[31mred; rm -rf"}\n'))
    expect(other.unknown).toEqual(['??31mred? rm -rf'])
  })
})

describe('K3: a look at a tool is progress only when something moved', () => {
  const call = (more: object) => update('tool_call_update', { toolCallId: 'c', ...more })
  const text = (said: string) => [{ type: 'content', content: { type: 'text', text: said } }]

  test('K3: ACP: status, output, and the arguments as they are written', () => {
    const frames = [
      update('tool_call', { toolCallId: 'c', title: 'bash', status: 'pending' }),
      call({ status: 'pending' }),
      call({ status: 'in_progress' }),
      call({ status: 'in_progress', title: 'another title' }),
      call({ content: text('a') }),
      call({ content: text('a') }),
      call({ content: text('ab') }),
      // What a look leaves out is as it was.
      call({ status: 'in_progress' }),
      call({ rawInput: { command: 'l' } }),
      call({ rawInput: { command: 'ls' } }),
      call({ status: 'completed', content: text('ab') }),
      call({ status: 'completed', content: text('ab') }),
      call({ status: 'completed' }),
    ]
    expect(progressOf(acp(), frames)).toEqual([
      ...[true, false, true, false, true, false, true],
      ...[false, true, true, true, false, false],
    ])
  })

  test.each<readonly [string, object, object]>([
    [
      'claude-agent-acp',
      { status: 'in_progress', _meta: { claudeCode: { toolResponse: { elapsedTimeSeconds: 30 } } } },
      { status: 'in_progress', _meta: { claudeCode: { toolResponse: { elapsedTimeSeconds: 60 } } } },
    ],
    [
      'qwen',
      { status: 'in_progress', _meta: { shellProgress: { elapsedMs: 20_001, totalBytes: 7 } } },
      { status: 'in_progress', _meta: { shellProgress: { elapsedMs: 30_001, totalBytes: 7 } } },
    ],
  ])('K3: of %s, a clock that moves is not the tool', (_, first, second) => {
    expect(progressOf(acp(), [call(first), call(second)])).toEqual([true, false])
  })

  test('K3: of qwen, bytes that grow are', () => {
    const grown = (totalBytes: number) => call({ _meta: { shellProgress: { totalBytes } } })
    expect(progressOf(acp(), [grown(7), grown(7), grown(8)])).toEqual([true, false, true])
  })

  test('K3: of Codex, a delta is new output though it says the same as the last one', () => {
    const dot = call({ _meta: { terminal_output_delta: { data: '.' } } })
    expect(progressOf(acp(), [dot, dot])).toEqual([true, true])
  })

  test('K3: pi shows all the output so far, each time', () => {
    const seen = (said: string) => ({
      type: 'tool_execution_update',
      toolCallId: 'c',
      partialResult: { content: [{ type: 'text', text: said }] },
    })
    expect(progressOf(piJson(), [seen('a'), seen('a'), seen('ab')])).toEqual([true, false, true])
  })

  test('K3: claude: the first heartbeat says that the tool runs, the next ones say nothing', () => {
    const use = { type: 'assistant', message: { content: [{ type: 'tool_use', id: 't', name: 'Bash' }] } }
    const beat = (seconds: number) => ({
      type: 'tool_progress',
      tool_use_id: `t-heartbeat-${String(seconds)}`,
      parent_tool_use_id: 't',
      tool_name: 'Bash',
      elapsed_time_seconds: seconds,
      heartbeat: true,
    })
    expect(progressOf(claudeStreamJson(), [use, beat(30), beat(60)])).toEqual([true, true, false])
  })

  test('K3: codex: an item that is shown again', () => {
    const item = (status: string) => ({ type: 'item.updated', item: { id: 'i', type: 'todo_list', status } })
    expect(progressOf(codexJson(), [item('a'), item('a'), item('b')])).toEqual([true, false, true])
  })
})
