/** A question to a person is answered: by the host, or at its deadline. */
import { describe, expect, test } from 'vitest'
import type { PermissionAnswer, PermissionRequest } from '../../../src/protocols.js'
import { turns } from '../../../src/testing/simulated-clock.js'
import { claude, pi } from './talk.js'
import type { Talk } from './talk.js'

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
