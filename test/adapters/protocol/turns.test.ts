/** Conversations over stdin: which turn a frame belongs to, and what the agent is told. */
import { describe, expect, test } from 'vitest'
import { claudeStreamJson, piJson } from '../../../src/protocols.js'
import type {
  PermissionAnswer,
  PermissionRequest,
  Protocol,
  ProtocolSession,
} from '../../../src/protocols.js'
import { ManualClock, turns } from '../../support/manual-clock.js'
import { LIMITS, Recorder } from './recorder.js'

interface Talk {
  readonly sink: Recorder
  readonly session: Required<ProtocolSession>
  readonly clock: ManualClock
  /** What the agent was sent, parsed. */
  readonly sent: unknown[]
  /** The agent says something. */
  readonly say: (...frames: readonly unknown[]) => void
  /** The agent reads no more. */
  readonly hangUp: () => void
}

const talk = async (protocol: Protocol): Promise<Talk> => {
  const sink = new Recorder()
  const clock = new ManualClock()
  const session = protocol.open(sink, LIMITS) as Required<ProtocolSession>
  const sent: unknown[] = []
  let isGone = false
  const write = (chunk: string | Uint8Array): boolean => {
    if (!isGone) sent.push(JSON.parse(String(chunk)))
    return !isGone
  }
  await session.start({ write, cwd: '/', clock })
  const say = (...frames: readonly unknown[]): void => {
    session.push('stdout', Buffer.from(frames.map((frame) => `${JSON.stringify(frame)}\n`).join('')))
  }
  const hangUp = (): void => {
    isGone = true
  }
  return { sink, session, clock, sent, say, hangUp }
}

const claude = (options = {}) => talk(claudeStreamJson({ input: 'stream-json', ...options }))
const pi = (options = {}) => talk(piJson({ mode: 'rpc', ...options }))

const delta = { type: 'stream_event', event: { type: 'content_block_delta' } }
const result = (more: object = {}) => ({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'done',
  ...more,
})
const interrupted = result({ subtype: 'error_during_execution', is_error: true })
const settled = (aborted = false) => ({ type: 'agent_settled', aborted })

describe('K1: only between a prompt and its end does anything count', () => {
  test('K1: before the first prompt and behind the result frames are traffic', async () => {
    const { sink, session, say } = await claude()
    say(delta)
    expect(sink.heard).toEqual([])
    expect(await session.prompt('go')).toEqual({ isOk: true })
    say(delta, result())
    say(delta, result())
    expect(sink.heard).toEqual(['progress', 'completed'])
    expect(sink.results).toEqual([{ isOk: true, text: 'done' }])
  })

  test('K1: a prompt is one line, whatever it says', async () => {
    const { session, sent } = await claude()
    await session.prompt('first\nsecond')
    expect(sent).toEqual([
      {
        type: 'user',
        message: { role: 'user', content: [{ type: 'text', text: 'first\nsecond' }] },
        parent_tool_use_id: null,
        session_id: '',
      },
    ])
  })

  test('K1: with a message still queued the result does not end the turn', async () => {
    const { sink, session, say } = await claude()
    await session.prompt('go')
    say(result({ queued_turn_count: 1 }), result())
    expect(sink.count('completed')).toBe(1)
  })

  test('L5: a prompt for an agent that is gone is answered, and so is one before the start', async () => {
    const { session, hangUp } = await claude()
    hangUp()
    expect(await session.prompt('go')).toMatchObject({ isOk: false })
    const unstarted = claudeStreamJson({ input: 'stream-json' }).open(new Recorder(), LIMITS)
    expect(await unstarted.prompt?.('go')).toMatchObject({ isOk: false })
  })
})

describe('K11: a completion for an older turn is dropped', () => {
  test('K11: claude: the result of a turn that was given up does not complete the next one', async () => {
    const { sink, session, say } = await claude()
    await session.prompt('one')
    expect(session.cancelTurn()).toBe(true)
    // The agent hangs; the run frees the turn by itself and goes on.
    await session.prompt('two')
    say(interrupted)
    expect(sink.heard).toEqual([])
    say(delta, result({ result: 'two' }))
    expect(sink.results).toEqual([{ isOk: true, text: 'two' }])
  })

  test('K11: pi: a prompt that was not taken completes itself and nothing else', async () => {
    const { sink, session, sent, say } = await pi()
    await session.prompt('one')
    await session.prompt('two')
    const { id } = sent.at(-1) as { id: string }
    say({ type: 'response', command: 'prompt', success: false, id: 'another', error: 'busy' })
    expect(sink.heard).toEqual([])
    say({ type: 'response', command: 'prompt', success: false, id, error: 'busy' })
    say(settled())
    expect(sink.results).toEqual([{ isOk: false, text: 'busy' }])
  })
})

describe('K13: a turn that is asked to end', () => {
  test('K13: claude: interrupt, acknowledgement, and an error result, which is the cancel', async () => {
    const { sink, session, sent, say } = await claude()
    expect(session.cancelTurn()).toBe(false)
    await session.prompt('go')
    expect(session.cancelTurn()).toBe(true)
    expect(sent.at(-1)).toMatchObject({ type: 'control_request', request: { subtype: 'interrupt' } })
    say({ type: 'control_response', response: { subtype: 'success' } }, interrupted)
    expect(sink.heard).toEqual(['cancelAcknowledged', 'cancelled'])
  })

  test('K13: a turn that completed well before it heard the request is complete', async () => {
    const { sink, session, say } = await claude()
    await session.prompt('go')
    session.cancelTurn()
    say(result())
    expect(sink.heard).toEqual(['completed'])
  })

  test('K13: pi: abort', async () => {
    const { sink, session, sent, say } = await pi()
    await session.prompt('go')
    session.cancelTurn()
    expect(sent.at(-1)).toMatchObject({ type: 'abort' })
    say({ type: 'response', command: 'abort', success: true }, settled(true))
    expect(sink.heard).toEqual(['cancelAcknowledged', 'cancelled'])
  })

  test('K13: the next turn does not remember it', async () => {
    const { sink, session, say } = await claude()
    await session.prompt('one')
    session.cancelTurn()
    say(interrupted)
    await session.prompt('two')
    say(result({ is_error: true, result: 'no' }))
    expect(sink.heard).toEqual(['cancelled', 'completed'])
  })
})

test('K1: steering is a message of its own kind, and only while a turn is open', async () => {
  const { session, sent, say } = await pi()
  expect(session.steer('left')).toBe(false)
  await session.prompt('go')
  expect(session.steer('left')).toBe(true)
  expect(sent.at(-1)).toMatchObject({ type: 'steer', message: 'left' })
  say(settled())
  expect(session.steer('left')).toBe(false)
})

test('K10: pi says in the end that it is done, and only then that it has settled', async () => {
  const { sink, session, say } = await pi()
  await session.prompt('go')
  say(
    { type: 'agent_end', messages: [], willRetry: true },
    { type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 2 },
  )
  say({ type: 'agent_end', messages: [], willRetry: false })
  say(settled())
  expect(sink.heard).toEqual(['retrying', 'completionSignalled', 'completed'])
  expect(sink.notices).toEqual([{ attempt: 1, attemptsMax: 3, delayMs: 2, reason: 'the request failed' }])
})

test('INV-11: a result is kept only so far as a record can bear it', async () => {
  const { sink, session, say } = await claude()
  await session.prompt('go')
  say(result({ result: 'x'.repeat(1_000_000) }))
  expect(sink.results[0]?.text?.length).toBeLessThan(70_000)
})

describe('K9: a question to a person', () => {
  const ask = {
    type: 'control_request',
    request_id: 'q',
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input: { a: 1 } },
  }
  const answered = (sent: readonly unknown[]) =>
    (sent.at(-1) as { response: { response: object } }).response.response
  const asking = (
    onPermission: (request: PermissionRequest) => PermissionAnswer | Promise<PermissionAnswer>,
  ) => claude({ onPermission, permissionTimeoutMs: 60_000 })

  test('K9: the host’s answer goes to the agent, and the question is closed', async () => {
    const asked: PermissionRequest[] = []
    const { sink, session, sent, say } = await asking((request) => {
      asked.push(request)
      return 'allow'
    })
    await session.prompt('go')
    say(ask)
    await turns()
    expect(asked.map(({ title, options }) => [title, options.map(({ id }) => id)])).toEqual([
      ['Bash', ['allow', 'deny']],
    ])
    expect(answered(sent)).toEqual({ behavior: 'allow', updatedInput: { a: 1 } })
    expect(sink.heard).toEqual(['progress', 'personAsked', 'personAnswered'])
  })

  test('K9: without an answer it is refused at its deadline', async () => {
    const { sink, session, clock, sent, say } = await asking(() => new Promise<never>(() => undefined))
    await session.prompt('go')
    say(ask)
    await clock.advance(59_999)
    expect(sink.heard).toEqual(['progress', 'personAsked'])
    await clock.advance(1)
    expect(answered(sent)).toMatchObject({ behavior: 'deny' })
    expect(sink.heard.at(-1)).toBe('personAnswered')
    expect(clock.armed).toBe(0)
  })

  test.each<readonly [string, () => PermissionAnswer | Promise<PermissionAnswer>]>([
    ['refuses', () => null],
    ['names no option', () => 'perhaps'],
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['rejects', async () => Promise.reject(new Error('no'))],
  ])('P19: a host that %s has refused', async (_, onPermission) => {
    const { session, sent, say } = await asking(onPermission)
    await session.prompt('go')
    say(ask)
    await turns()
    expect(answered(sent)).toMatchObject({ behavior: 'deny' })
  })

  test('K9: where nobody can answer nobody is asked: it is refused at once', async () => {
    const { sink, session, sent, say } = await claude()
    await session.prompt('go')
    say(ask)
    expect(answered(sent)).toMatchObject({ behavior: 'deny' })
    expect(sink.heard).toEqual(['progress'])
  })

  test('K9: a question that is taken back, a cancelled turn, and the end of the agent end the wait', async () => {
    for (const end of [
      ({ say }: Talk) => {
        say({ type: 'control_cancel_request', request_id: 'q' })
      },
      ({ session }: Talk) => {
        session.cancelTurn()
      },
      ({ session }: Talk) => {
        session.end()
      },
    ]) {
      let isAwaited = true
      const conversation = await claude({
        onPermission: (_: PermissionRequest, { signal }: { signal: AbortSignal }) =>
          new Promise<never>(() => {
            signal.addEventListener('abort', () => (isAwaited = false))
          }),
      })
      await conversation.session.prompt('go')
      conversation.say(ask)
      await turns()
      end(conversation)
      expect(isAwaited).toBe(false)
      expect(conversation.clock.armed).toBe(0)
    }
  })

  test('K9: of pi’s dialogs a choice can be made, and free text is answered as cancelled', async () => {
    const { session, sent, say } = await pi({
      onPermission: ({ options }: PermissionRequest) => options[0]?.id ?? null,
    })
    await session.prompt('go')
    const dialog = (id: string, method: string, more: object = {}) => ({
      type: 'extension_ui_request',
      id,
      method,
      ...more,
    })
    say(
      dialog('1', 'confirm'),
      dialog('2', 'select', { options: ['A', 'B'] }),
      dialog('3', 'input'),
      dialog('4', 'notify'),
    )
    await turns()
    expect(sent.slice(1)).toEqual([
      { type: 'extension_ui_response', id: '1', confirmed: true },
      { type: 'extension_ui_response', id: '2', value: 'A' },
      { type: 'extension_ui_response', id: '3', cancelled: true },
    ])
  })
})
