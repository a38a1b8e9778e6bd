/** What a host reads of a store: no more of it than it asks for. */
import { expect, onTestFinished, test } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { LogPiece } from '../../src/index.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

const textOf = async (pieces: AsyncIterable<LogPiece>): Promise<string> => {
  let text = ''
  for await (const piece of pieces) text += piece.kind === 'gap' ? '…' : piece.bytes.toString('utf8')
  return text
}

test('V3: only the runs that changed since are read, and the newest first', async () => {
  const engine = await openTestEngine()
  await (
    await engine.start({ id: 'a', command: ['true'] })
  ).gone
  const [old] = await engine.runs()
  await waitFor(() => Date.now() > (old?.settledAt ?? 0) + 50, { deadlineMs: 5_000, what: 'a later time' })
  const since = Date.now()
  await (
    await engine.start({ id: 'b', command: ['true'] })
  ).gone
  const ids = async (query: Parameters<typeof engine.runs>[0]) =>
    (await engine.runs(query)).map(({ runId }) => runId)
  expect(await ids({ changedSince: since })).toEqual(['b'])
  expect(await ids({ newestFirst: true })).toEqual(['b', 'a'])
  expect(await ids({ newestFirst: true, limit: 1 })).toEqual(['b'])
})

test('V3: of a journal only what came after a revision is read, or its end', async () => {
  const engine = await openTestEngine()
  await (
    await engine.start({ id: 'it', command: ['true'] })
  ).gone
  const { transitions } = await engine.history('it')
  const after = await engine.history('it', { afterRev: 1 })
  expect(after.transitions).toEqual(transitions.slice(2))
  expect((await engine.history('it', { limit: 2 })).transitions).toEqual(transitions.slice(-2))
  expect((await engine.history('it', { afterRev: 999 })).transitions).toEqual([])
})

test.for([
  [0, ''],
  [1, 'three\n'],
  [6, 'three\n'],
  [7, 'two\nthree\n'],
  [10_000, 'one\ntwo\nthree\n'],
] as const)('L4: the last %i bytes of a log come in whole pieces', async ([tailBytes, text]) => {
  const engine = await openTestEngine({ database: await testDatabase() })
  // Written apart, they are pieces apart.
  const script = `const say = ['one', 'two', 'three']; const next = () => { const word = say.shift(); if (word) process.stdout.write(word + '\\n', () => setTimeout(next, 100)) }; next()`
  await (
    await engine.start({ id: 'it', command: [process.execPath, '-e', script] })
  ).gone
  await waitFor(async () => (await textOf(engine.logs('it'))) === 'one\ntwo\nthree\n', {
    deadlineMs: 10_000,
    what: 'the log is there',
  })
  expect(await textOf(engine.logs('it', { tailBytes }))).toBe(text)
})

test('C5: the living processes of a run are seen from its engine, and over its records, and none when it is over', async () => {
  const database = await testDatabase()
  const engine = await openTestEngine({ database })
  const records = await openRecords({ database })
  onTestFinished(() => records[Symbol.asyncDispose]())
  const started = await startFixture(engine, 'setsid-grandchild', { id: 'it' })
  await started.ready()
  const expected = started.alive().map(({ pid }) => pid)
  for (const source of [engine, records]) {
    const seen = await source.processes('it')
    expect(seen.map(({ pid }) => pid)).toEqual(expect.arrayContaining(expected))
    const leader = seen.find(({ pid }) => pid === started.run.pid)
    expect(leader).toMatchObject({
      parentPid: process.pid,
      state: expect.stringMatching(/^[RSD]$/) as string,
    })
    expect(leader?.rssBytes).toBeGreaterThan(0)
    // L7: the program's name, none of its arguments.
    expect(JSON.stringify(seen)).not.toContain('setsid-grandchild')
  }
  await started.run.cancel({ force: true })
  expect(await engine.processes('it')).toEqual([])
  await expect(engine.processes('nobody')).rejects.toMatchObject({ code: 'unknown-run' })
})

test('V6: the timers of a run say when they are due, and which of them stand still', async () => {
  const engine = await openTestEngine()
  const started = await startFixture(engine, 'heartbeat', { id: 'it', limits: { timeoutMs: 600_000 } })
  await started.ready()
  await waitFor(async () => (await engine.history('it')).timers.length > 0, {
    deadlineMs: 10_000,
    what: 'a timer',
  })
  const [limit] = (await engine.history('it')).timers
  expect(limit).toMatchObject({
    id: 'time-limit',
    event: 'limit.exceeded',
    delayMs: 600_000,
    standsStill: false,
  })
  await started.run.pause()
  const { timers, policy } = await engine.history('it')
  expect(timers.find(({ id }) => id === 'time-limit')).toMatchObject({ standsStill: true })
  expect(timers.find(({ event }) => event.includes('pauseGrace'))).toMatchObject({
    delayMs: policy.pauseGraceMs,
    standsStill: false,
  })
  await started.run.cancel({ force: true })
})
