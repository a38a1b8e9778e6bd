/** What a look costs, and what it tells: over an engine, and over the records of a store. */
import { expect, onTestFinished, test } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { Engine } from '../../src/index.js'
import { createInspector } from '../../src/inspector.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import { ask, serve } from '../support/inspector.js'
import { waitFor } from '../support/wait-for.js'

/** The data of every message of one kind. */
const messages = (body: string, kind: string): unknown[] =>
  [...body.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)]
    .filter(([, event]) => event === kind)
    .map(([, , data = '']) => JSON.parse(data) as unknown)

/** How often the engine's store was asked, by any of its readers. */
const countReads = (engine: Engine): { count: number } => {
  const reads = { count: 0 }
  for (const name of ['runs', 'history', 'processes', 'changeToken'] as const) {
    const original = engine[name].bind(engine) as (...args: unknown[]) => Promise<unknown>
    Object.assign(engine, {
      [name]: (...args: unknown[]) => {
        reads.count += 1
        return original(...args)
      },
    })
  }
  return reads
}

test('V3: nothing is read while nobody looks, and nothing any more when the last has gone', async () => {
  const engine = await openTestEngine()
  const reads = countReads(engine)
  const { address } = await serve(engine)
  await (
    await engine.start({ command: ['true'] })
  ).gone
  expect(reads.count).toBe(0)
  const look = await ask(`${address}fleet`, { isEnough: (body) => body.includes('event: fleet') })
  expect(look.status).toBe(200)
  let before = -1
  // Two looks would lie in this time.
  await waitFor(
    async () => {
      before = reads.count
      await new Promise((resolve) => setTimeout(resolve, 500))
      return reads.count === before
    },
    { deadlineMs: 10_000, what: 'the looks have ended' },
  )
  await (
    await engine.start({ command: ['true'] })
  ).gone
  expect(reads.count).toBe(before)
})

test('V5: a run of another process is seen to appear and to move, over the records of the store alone', async () => {
  const database = await testDatabase()
  const engine = await openTestEngine({ database })
  const records = await openRecords({ database })
  onTestFinished(() => records[Symbol.asyncDispose]())
  const { address } = await serve(records)
  const look = ask(`${address}fleet`, { isEnough: (body) => body.includes('"headline":"completed"') })
  await engine.start({ id: 'it', command: ['true'] })
  const rows = messages((await look).body, 'fleet').flatMap((update) => (update as { rows: unknown[] }).rows)
  expect(rows.at(-1)).toMatchObject({ runId: 'it', headline: 'completed', program: 'true' })
})

test('V6: of a run its journal comes once, its processes, timers and orders as they are', async () => {
  const engine = await openTestEngine()
  const started = await startFixture(engine, 'ignore-term', {
    id: 'it',
    stop: { termGraceMs: 600_000, killGraceMs: 5_000 },
  })
  await started.ready()
  const { address } = await serve(engine)
  const stop = engine.stop({ run: 'it' }, { by: 'test', reason: 'because' })
  const { body } = await ask(`${address}run?run=it`, {
    isEnough: (text) => text.includes('event: processes') && text.includes('"orders":[{'),
  })
  const update = messages(body, 'run').at(-1) as Record<string, unknown>
  expect(update).toMatchObject({
    run: { runId: 'it', process: 'term-sent' },
    orders: [{ by: 'test', reason: 'because', mode: 'cancel', line: { status: 'requested' } }],
    timers: [{ event: 'xstate.after.termGrace.run.process.term-sent', delayMs: 600_000, standsStill: false }],
    policy: { termGraceMs: 600_000 },
  })
  const [{ processes }] = messages(body, 'processes') as [{ processes: { pid: number; state: string }[] }]
  expect(processes.map(({ pid }) => pid)).toContain(started.run.pid)
  await engine.stop({ run: 'it' }, { force: true })
  await stop
})

test('V2: what a host takes out is nowhere in what is sent', async () => {
  const engine = await openTestEngine()
  await (
    await engine.start({ id: 'it', task: 'hush-hush', command: ['true'] })
  ).gone
  const { address } = await serve(engine, { redact: (text) => text.replaceAll('hush-hush', '…') })
  const { body } = await ask(`${address}fleet`, { isEnough: (text) => text.includes('event: fleet') })
  expect(body).toContain('"task":"…"')
  expect(body).not.toContain('hush')
})

test('V2: no log is sent where the host wants none to be', async () => {
  const engine = await openTestEngine()
  await (
    await engine.start({ id: 'it', command: ['echo', 'said'] })
  ).gone
  const { address } = await serve(engine, { logs: false })
  const { body } = await ask(`${address}log?run=it`, { isEnough: (text) => text.includes('event: log') })
  expect(messages(body, 'log')).toEqual([{ kind: 'none', reason: 'this inspector shows no logs' }])
})

test('V3: a run that is not there is said to be so, and costs no page', async () => {
  const engine = await openTestEngine()
  const { address } = await serve(engine)
  const { body } = await ask(`${address}run?run=nobody`, {
    isEnough: (text) => text.includes('event: problem'),
  })
  expect(messages(body, 'problem')[0]).toMatchObject({ code: 'unknown-run' })
})

test('V3: a closed inspector answers no stream, and the engine goes on', async () => {
  const engine = await openTestEngine()
  const inspector = createInspector(engine)
  await inspector.close()
  const request = new Request(`http://localhost${inspector.path}fleet`, { headers: { host: 'localhost' } })
  expect((await inspector.fetch(request)).status).toBe(503)
  await expect(inspector.listen()).rejects.toMatchObject({ code: 'refused' })
  expect((await (await engine.start({ command: ['true'] })).outcome).status).toBe('completed')
})
