/** Conversations over stdin: which turn a frame belongs to, and what the agent is told. */
import { describe, expect, test } from 'vitest'
import { claudeStreamJson } from '../../../src/protocols.js'
import { LIMITS, Recorder } from './recorder.js'
import { claude, pi } from './talk.js'

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

describe('K11: an agent that says when it takes up a prompt completes what it took up', () => {
  const init = { type: 'system', subtype: 'init' }
  const start = { type: 'agent_start' }
  const work = { type: 'message_update' }
  const end = { type: 'agent_end', messages: [] }

  test('K11: a turn closed by K10 completes late, and the next one by its own', async () => {
    const { sink, session, say } = await pi()
    await session.prompt('one')
    say(start, work, end)
    await session.prompt('two')
    say(settled())
    expect(sink.count('completed')).toBe(0)
    say(start, work, end, settled())
    expect(sink.count('completed')).toBe(1)
  })

  test('K11: a turn closed by K10 never completes, and the next one does', async () => {
    const { sink, session, say } = await pi()
    await session.prompt('one')
    say(start, work, end)
    await session.prompt('two')
    say(start, settled())
    expect(sink.count('completed')).toBe(1)
  })

  test.each([true, false])('K11, K13: a freed turn, whose result comes late: %s', async (comesLate) => {
    const { sink, session, say } = await claude()
    for (const name of ['one', 'two', 'three']) {
      await session.prompt(name)
      say(init)
      session.cancelTurn()
    }
    await session.prompt('four')
    if (comesLate) say(interrupted)
    say(init, delta, result({ result: 'four' }))
    expect(sink.results).toEqual([{ isOk: true, text: 'four' }])
    expect(sink.count('cancelled')).toBe(0)
  })

  test('K11, K13: a prompt that waited behind a hung one completes as itself', async () => {
    const { sink, session, say } = await claude()
    await session.prompt('one')
    session.cancelTurn()
    await session.prompt('two')
    // It was not even taken up when its turn was freed.
    say(init, interrupted)
    expect(sink.heard).toEqual([])
    say(init, result({ result: 'two' }))
    expect(sink.results).toEqual([{ isOk: true, text: 'two' }])
  })

  test('K11: what the agent takes up by itself completes no prompt; its greeting is no turn', async () => {
    const { sink, session, say } = await claude()
    say(init)
    await session.prompt('one')
    say(init, result({ result: 'one' }))
    // A task in the background has ended, and the agent looks at it.
    say(init)
    await session.prompt('two')
    say(result({ result: 'of the task' }), init, result({ result: 'two' }))
    expect(sink.results.map(({ text }) => text)).toEqual(['one', 'two'])
  })

  test('K11: an agent that greets once, and never again, completes turn by turn', async () => {
    const { sink, session, say } = await claude()
    await session.prompt('one')
    say(init, result({ result: 'one' }))
    await session.prompt('two')
    say(result({ result: 'two' }))
    expect(sink.results.map(({ text }) => text)).toEqual(['one', 'two'])
  })

  test('K11: taking up the one prompt again, after a retry or a steering, is the same turn', async () => {
    const { sink, session, say } = await pi()
    await session.prompt('one')
    say(start, { ...end, willRetry: true }, start, work, end, settled())
    expect(sink.count('completed')).toBe(1)
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

test('K10: a turn that was closed after the agent said it was done owes the next one no completion', async () => {
  const { sink, session, say } = await pi()
  const work = { type: 'message_update' }
  const end = { type: 'agent_end', messages: [] }
  await session.prompt('one')
  say(work, end)
  await session.prompt('two')
  say(work, end, settled())
  expect(sink.count('completed')).toBe(1)
  // Taken back, it is a turn like any other that was given up: its completion may still come.
  await session.prompt('three')
  say(work, end, work)
  await session.prompt('four')
  say(settled())
  expect(sink.count('completed')).toBe(1)
  say(settled())
  expect(sink.count('completed')).toBe(2)
})

test.each([
  ['failed', { isOk: false, text: '429' }, { stopReason: 'error', errorMessage: '429' }],
  ['done', { isOk: true, text: 'Hello.' }, { content: [{ type: 'text', text: 'Hello.' }] }],
])(
  'K10: an agent that said it was done has completed when its output ends, as it stood: %s',
  async (_, expected, more) => {
    const { sink, session, say } = await pi()
    await session.prompt('go')
    say({ type: 'message_end', message: { role: 'assistant', ...more } })
    session.end()
    expect(sink.results).toEqual([])

    const other = await pi()
    await other.session.prompt('go')
    other.say({ type: 'message_end', message: { role: 'assistant', ...more } }, { type: 'agent_end' })
    other.session.end()
    expect(other.sink.results).toEqual([expected])
  },
)

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
