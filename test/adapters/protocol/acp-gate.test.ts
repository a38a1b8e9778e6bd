/** What the library that speaks ACP gets to see. */
import { describe, expect, test } from 'vitest'
import { AcpGate } from '../../../src/adapters/protocol/acp/acp-gate.js'

interface Guarded {
  readonly gate: AcpGate
  readonly written: Record<string, unknown>[]
  readonly answered: (string | number)[]
  /** The library sends something. */
  readonly send: (message: object) => Promise<void>
  /** Everything that the library was given, once the gate is closed. */
  readonly passed: () => Promise<unknown[]>
}

const guard = (): Guarded => {
  const written: Record<string, unknown>[] = []
  const answered: (string | number)[] = []
  const gate = new AcpGate({
    write: (line) => written.push(JSON.parse(line) as Record<string, unknown>) > 0,
    onSend: () => undefined,
    onAnswer: (id) => answered.push(id),
  })
  const writer = gate.stream.writable.getWriter()
  return {
    gate,
    written,
    answered,
    send: (message) => writer.write({ jsonrpc: '2.0', ...message } as never),
    passed: async () => {
      gate.close()
      const messages: unknown[] = []
      for await (const message of gate.stream.readable) messages.push(message)
      return messages
    },
  }
}

const ask = (id: number | string) => ({ jsonrpc: '2.0', id, method: 'session/request_permission' })

describe('INV-11: the gate', () => {
  test('INV-11: an answer passes when something was asked, once', async () => {
    const { gate, send, passed } = guard()
    await send({ id: 1, method: 'initialize' })
    const answer = { jsonrpc: '2.0', id: 1, result: {} }
    gate.receive({ ...answer, id: 2 })
    gate.receive(answer)
    gate.receive(answer)
    expect(await passed()).toEqual([answer])
  })

  test('INV-11: a notification does not pass, but for the one that takes a request back', async () => {
    const { gate, passed } = guard()
    gate.receive({ jsonrpc: '2.0', method: 'session/update', params: {} })
    gate.receive({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 1 } })
    expect(await passed()).toMatchObject([{ method: '$/cancel_request' }])
  })

  test('INV-11: past a number of open requests the next is refused, and counts as answered', async () => {
    const { gate, written, answered, send, passed } = guard()
    for (let id = 0; id < 64; id += 1) gate.receive(ask(id))
    gate.receive(ask(63))
    expect([written, answered]).toEqual([[], []])
    gate.receive(ask('one more'))
    expect(written).toMatchObject([{ id: 'one more', error: { code: -32_000 } }])
    expect(answered).toEqual(['one more'])

    await send({ id: 0, result: {} })
    gate.receive(ask('and another'))
    expect(answered).toEqual(['one more', 0])
    expect(await passed()).toHaveLength(65)
  })

  test('INV-11: refusals that nobody reads end, and what is not refused is answered all the same', () => {
    const { gate, written, answered } = guard()
    for (let id = 0; id < 5_000; id += 1) gate.receive(ask(id))
    expect(written).toHaveLength(1_024)
    expect(answered).toHaveLength(5_000 - 64)
  })

  test('L5: a write to an agent that is gone fails where the library sees it', async () => {
    const gate = new AcpGate({ write: () => false, onSend: () => undefined, onAnswer: () => undefined })
    const writing = gate.stream.writable.getWriter().write({ jsonrpc: '2.0', id: 1, method: 'initialize' })
    await expect(writing).rejects.toMatchObject({ name: 'RunwardenError' })
  })
})
