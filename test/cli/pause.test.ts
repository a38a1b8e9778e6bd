/** `runwarden pause` and `runwarden resume`: from another process, over the store. */
import { expect, test, vi } from 'vitest'
import { openTestEngine, quickStop } from '../support/engine.js'
import { statOf } from '../support/proc-reader.js'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, orphan, runFixture, textOf, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

test('O4, O16: a run of another process is paused and resumed as the user’s, one by its id and all by --all', async () => {
  const run = await runFixture('heartbeat', ['--id', 'it', '--containment', 'group+marks'])
  const states = (): (string | undefined)[] => run.alive().map(({ pid }) => statOf(pid)?.state)
  const paused = await cli(['pause', 'it'])
  expect([paused.code, textOf(paused)]).toEqual([0, expect.stringMatching(/^confirmed\n/) as string])
  expect(states()).toEqual(['T', 'T', 'T'])
  expect(jsonOf(await cli(['ps', '--json']))).toMatchObject([
    { runId: 'it', headline: 'paused', process: 'frozen' },
  ])
  expect(jsonOf(await cli(['resume', '--all', '--json']))).toMatchObject({
    status: 'confirmed',
    runs: [{ runId: 'it', status: 'confirmed', work: 'open' }],
  })
  expect(states()).not.toContain('T')
  expect(jsonOf(await cli(['pause', '--all', '--json', '--reason', 'lunch']))).toMatchObject({
    status: 'confirmed',
  })
  const { orders } = jsonOf(await cli(['show', 'it', '--json'])) as { orders: unknown[] }
  expect(orders).toMatchObject([
    { mode: 'pause' },
    { mode: 'resume' },
    { mode: 'pause', reason: 'lunch', by: 'cli' },
  ])
  expect((await cli(['stop', 'it'])).code).toBe(0)
  expect(run.alive()).toEqual([])
})

test('O4: what cannot be paused says so: 1 where it is being ended, 3 where it is over, 66 where there is none', async () => {
  const ending = await runFixture('stubborn-agent', ['--id', 'ending', '--term-grace', '60s'])
  expect((await cli(['stop', 'ending', '--timeout', '300ms'])).code).toBe(75)
  const refused = await cli(['pause', 'ending'])
  expect([refused.code, textOf(refused)]).toEqual([
    1,
    expect.stringMatching(/being ended \(term-sent\) by cancel/) as string,
  ])
  expect((await cli(['resume', 'ending'])).code).toBe(1)
  await cli(['stop', 'ending', '--force'])
  expect((await cli(['pause', 'ending'])).code).toBe(3)
  expect((await cli(['pause', 'nowhere'])).code).toBe(66)
  expect((await cli(['pause'])).stderr).toContain('pause: name runs, or give --task')
  expect(ending.alive()).toEqual([])
})

test('O4: a run whose process died is not paused: 1, with the reason, and a stop ends it', async () => {
  const dead = await orphan(['--id', 'orphan'])
  const unheld = await cli(['pause', 'orphan'])
  expect([unheld.code, textOf(unheld)]).toEqual([
    1,
    expect.stringContaining('the engine that ran it died') as string,
  ])
  expect(dead.alive().length).toBeGreaterThan(0)
  expect((await cli(['stop', 'orphan'])).code).toBe(0)
})

test('O16, O4: resume --all lifts what presence froze in another process', async () => {
  const database = `${folder()}/runs.db`
  const engine = await openTestEngine({ database })
  const run = await engine.start({ command: ['sleep', '60'], stop: quickStop })
  await until('it is launched', () => run.state.process === 'alive')
  await engine.presence.inUse()
  expect((await cli(['resume', '--all', '--db', database])).code).toBe(0)
  expect(run.state).toMatchObject({ process: 'alive', freeze: null })
})

test('O4: an engine pauses by scope what it holds itself', async () => {
  const engine = await openTestEngine()
  const [one, two] = await Promise.all(
    ['t1', 't2'].map((task) => engine.start({ command: ['sleep', '60'], stop: quickStop, task })),
  )
  expect(await engine.pause({ task: 't1' }, { by: 'ada' })).toMatchObject({
    status: 'confirmed',
    runs: [{ runId: one?.id, status: 'confirmed' }],
  })
  expect([one?.state.freeze?.owner, two?.state.freeze]).toEqual(['user', null])
  expect((await engine.resume({ all: true })).runs).toHaveLength(2)
  await expect(engine.pause({ run: 'nowhere' })).rejects.toMatchObject({ code: 'unknown-run' })
  await expect(engine.pause({})).rejects.toMatchObject({ code: 'invalid-option' })
})
