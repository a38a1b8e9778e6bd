/** Conversations with a live ACP agent, the official library on its side of the pipe. */
import { describe, expect, test } from 'vitest'
import type { PermissionRequest } from '../../../src/protocols.js'
import { SimulatedClock, turns } from '../../../src/testing/simulated-clock.js'
import { waitFor } from '../../support/wait-for.js'
import { converse } from './acp-conversation.js'

const READY = { isOk: true }

describe('K1: a conversation', () => {
  test('K1: two prompts, each with its progress and its end', async () => {
    const { sink, session, started, prompt, hears, sent } = converse()
    expect(await started).toEqual(READY)
    expect(sink.heard).toEqual([])
    expect(await prompt('answer')).toEqual(READY)
    await hears('completed')
    expect(await prompt('answer')).toEqual(READY)
    await waitFor(() => sink.count('completed') === 2, { deadlineMs: 20_000, what: 'the second turn to end' })
    expect(sink.heard).toEqual(['progress', 'completed', 'progress', 'completed'])
    expect(sink.results).toEqual([{ isOk: true }, { isOk: true }])
    expect(sent.map(({ method }) => method)).toEqual([
      'initialize',
      'session/new',
      'session/prompt',
      'session/prompt',
    ])
    expect(sent[1]).toMatchObject({ params: { cwd: '/srv/project', mcpServers: [] } })
    expect(session.unknownFrames.size).toBe(0)
  })

  test.each([
    ['refuse', 'refusal'],
    ['fail', 'the model is gone'],
  ])('K1: a turn can end badly: %s', async (act, text) => {
    const { sink, started, prompt, hears } = converse()
    await started
    await prompt(act)
    await hears('completed')
    expect(sink.results).toEqual([{ isOk: false, text: expect.stringContaining(text) as string }])
  })

  test('K8: a tool that hangs is open, under a name that shows no arguments', async () => {
    const { session, started, prompt, says } = converse()
    await started
    await prompt('tool')
    await says('in_progress')
    expect(session.openTools).toEqual([{ id: 'call-1', title: 'execute' }])
    expect(session.cancelTurn?.()).toBe(true)
  })
})

describe('K5: silence', () => {
  test('K5: an agent that hangs before its first word has shown no progress', async () => {
    const { sink, started, prompt } = converse()
    await started
    expect(await prompt('hang')).toEqual(READY)
    expect(sink.heard).toEqual([])
  })

  test('K8: one that hangs after it has, and is not complete', async () => {
    const { sink, started, prompt, hears } = converse()
    await started
    await prompt('silence')
    await hears('progress')
    expect(sink.heard).toEqual(['progress'])
  })

  test('K11: what comes unasked while the session settles does not count for the first turn', async () => {
    const clock = new SimulatedClock()
    const { sink, started, prompt, says } = converse({ begins: 'warns', settleMs: 100, clock })
    await says('unasked')
    await waitFor(() => clock.armed === 2, { deadlineMs: 20_000, what: 'the session to settle' })
    await clock.advance(100)
    expect(await started).toEqual(READY)
    expect(await prompt('hang')).toEqual(READY)
    expect(sink.heard).toEqual([])
  })
})

describe('K13: cancelling', () => {
  test('K13: an agent that obeys ends the turn as cancelled, and takes the next prompt', async () => {
    const { sink, session, started, prompt, hears } = converse()
    await started
    expect(session.cancelTurn?.()).toBe(false)
    await prompt('obey')
    expect(session.cancelTurn?.()).toBe(true)
    await hears('cancelled')
    await prompt('answer')
    await hears('completed')
    expect(sink.heard).toEqual(['cancelled', 'progress', 'completed'])
  })

  test('K13: an agent that hangs is asked all the same; the late end of the turn belongs to no other', async () => {
    const { sink, session, started, sent, prompt, hears } = converse()
    await started
    await prompt('obey')
    const [abandoned] = sent.slice(-1)
    // The run has given the turn up: the next prompt goes out before the first one has ended.
    await prompt('silence')
    session.push(
      'stdout',
      Buffer.from(`{"jsonrpc":"2.0","id":${String(abandoned?.['id'])},"result":{"stopReason":"end_turn"}}\n`),
    )
    expect(session.cancelTurn?.()).toBe(true)
    await hears('progress')
    expect(sink.heard).toEqual(['progress'])
    await waitFor(() => sent.some(({ method }) => method === 'session/cancel'), {
      deadlineMs: 20_000,
      what: 'the request',
    })
  })

  test('K13: an agent that crashes in the middle leaves nobody waiting', async () => {
    const { sink, session, started, prompt, ended } = converse()
    await started
    expect(await prompt('crash')).toEqual(READY)
    expect(await ended).toBe(3)
    expect(sink.heard).toEqual(['progress'])
    expect(session.cancelTurn?.()).toBe(false)
    expect(await prompt('answer')).toMatchObject({ isOk: false })
  })
})

describe('K9: permissions', () => {
  const outcome = 'outcome: '

  test('K9: the host is asked, and its answer goes to the agent', async () => {
    const asked: PermissionRequest[] = []
    const { sink, started, prompt, says, hears } = converse({
      onPermission: async (request) => {
        asked.push(request)
        return 'yes'
      },
    })
    await started
    await prompt('permission')
    expect(await says(outcome)).toContain('\\"optionId\\":\\"yes\\"')
    await hears('completed')
    expect(asked.map(({ title }) => title)).toEqual(['rm -r build'])
    expect(sink.heard.slice(0, 3)).toEqual(['progress', 'personAsked', 'personAnswered'])
  })

  test('K9: without an answer it is refused at its deadline', async () => {
    const clock = new SimulatedClock()
    const { sink, started, prompt, says, hears } = converse({
      clock,
      permissionTimeoutMs: 60_000,
      onPermission: () => new Promise<never>(() => undefined),
    })
    await waitFor(() => clock.armed === 2, { deadlineMs: 20_000, what: 'the session to settle' })
    await clock.advance(0)
    await started
    await prompt('permission')
    await hears('personAsked')
    await turns()
    expect(sink.heard).not.toContain('personAnswered')
    await clock.advance(60_000)
    expect(await says(outcome)).toContain('\\"optionId\\":\\"no\\"')
  })

  test('K9: where nobody can answer it is refused at once, and no person is waited for', async () => {
    const { sink, started, prompt, says } = converse()
    await started
    await prompt('permission')
    expect(await says(outcome)).toContain('\\"optionId\\":\\"no\\"')
    expect(sink.heard).not.toContain('personAsked')
  })

  test('K13: cancelling the turn answers what is open with "cancelled"', async () => {
    const { session, started, prompt, says, hears } = converse({
      onPermission: () => new Promise<never>(() => undefined),
    })
    await started
    await prompt('permission')
    await hears('personAsked')
    session.cancelTurn?.()
    expect(await says(outcome)).toContain('\\"outcome\\":\\"cancelled\\"')
    await hears('cancelled')
  })
})

describe('K2: what a client may be asked', () => {
  test('K2: a file is read by the host that offers it', async () => {
    const { started, prompt, says, sent } = converse({
      offers: { 'fs/read_text_file': ({ params }) => ({ content: `text of ${params.path}` }) },
    })
    await started
    expect(sent[0]).toMatchObject({
      params: { clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } } },
    })
    await prompt('read')
    expect(await says('read: ')).toContain('text of /any/file')
  })

  test('K2: what is not offered is refused, and says so', async () => {
    const { started, prompt, says, sent } = converse()
    await started
    expect(sent[0]).toMatchObject({
      params: { clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false } },
    })
    await prompt('read')
    expect(await says('read: ')).toContain('-32601 fs/read_text_file is not offered')
  })

  test('INV-11: a storm of requests is refused past a number, and its end is heard', async () => {
    const { sink, session, started, prompt, hears, sent } = converse({
      onPermission: () => new Promise<never>(() => undefined),
    })
    await started
    await prompt('storm')
    await hears('completed')
    const refused = sent.filter(({ error }) =>
      (error as { message?: string } | undefined)?.message?.startsWith('Too many'),
    )
    expect(refused.length).toBe(1_024)
    expect(sink.count('personAsked')).toBe(1)
    expect([...session.unknownFrames.keys()].sort()).toEqual(['(no frame)', 'session/update'])
  })
})

describe('L1: a session that cannot be opened says why', () => {
  test.each([
    ['dies', 'the agent ended'],
    ['old', 'version 0'],
    ['locked', 'Authentication required'],
  ] as const)('L1: an agent that is %s', async (begins, message) => {
    const { started, prompt } = converse({ begins })
    expect(await started).toEqual({ isOk: false, message: expect.stringContaining(message) as string })
    expect(await prompt('answer')).toMatchObject({ isOk: false })
  })

  test('L1: a host that signs in and picks a mode does so around the opening', async () => {
    const { started, sent } = converse({ begins: 'locked', authMethod: 'key', modeId: 'plan' })
    expect(await started).toEqual(READY)
    expect(sent.slice(1).map(({ method, params }) => [method, params])).toMatchObject([
      ['authenticate', { methodId: 'key' }],
      ['session/new', {}],
      ['session/set_mode', { modeId: 'plan' }],
    ])
  })

  test('INV-11: an agent that never answers is not waited for for ever', async () => {
    const clock = new SimulatedClock()
    const { started, sent } = converse({ begins: 'mute', startTimeoutMs: 5_000, clock })
    await waitFor(() => sent.length === 1, { deadlineMs: 20_000, what: 'initialize to be sent' })
    await clock.advance(5_000)
    expect(await started).toEqual({ isOk: false, message: 'the agent was not ready within 5000 ms' })
  })
})
