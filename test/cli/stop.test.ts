/** `runwarden stop`: from another process, for live and for dead owners. */
import { expect, test, vi } from 'vitest'
import { readLedger, signalsOf } from '../support/proc-reader.js'
import { TEST_TIMEOUT_MS, cli, jsonOf, orphan, runFixture, start, textOf, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

test.for([
  ['its id', ['it']],
  ['its task', ['--task', 't7']],
  ['its session', ['--session', 's1']],
  ['its label', ['--label', 'user=x']],
  ['all', ['--all']],
] as const)('K14: a run of another process is stopped by %s', async ([, scope]) => {
  const run = await runFixture('setsid-grandchild', [
    ...['--id', 'it', '--task', 't7', '--session', 's1', '--label', 'user=x'],
  ])
  const stop = await cli(['stop', ...scope])
  expect([stop.code, textOf(stop)]).toEqual([0, expect.stringMatching(/^confirmed\n/) as string])
  expect(run.alive()).toEqual([])
  expect((await run.ended).code).toBe(143)
})

test('CLI: stop prints the receipt, and the owner acts in time', async () => {
  const run = await runFixture('stubborn-agent', ['--id', 'it', '--term-grace', '500ms'])
  const stop = await cli(['stop', 'it', '--json', '--reason', 'superseded'])
  expect(stop.code).toBe(0)
  expect(run.alive()).toEqual([])
  expect(jsonOf(stop)).toMatchObject({
    status: 'confirmed',
    lookup: 'complete',
    runs: [
      {
        runId: 'it',
        status: 'confirmed',
        work: 'cancelled',
        evidence: [{ kind: expect.stringMatching(/^(tree-reaped|cgroup-empty)$/) as string }],
        repeated: false,
      },
    ],
  })
  const [line] = (jsonOf(stop) as { runs: { requestedAt: number; confirmedAt: number }[] }).runs
  expect((line?.confirmedAt ?? Infinity) - (line?.requestedAt ?? 0)).toBeLessThan(10_000)
  const ended = await run.ended
  expect(ended.code).toBe(143)
  expect(ended.stderr).toContain('cancelled: superseded')
})

test('R3: a run whose runner was killed is taken over by the stop, and nothing of it is left', async () => {
  const run = await orphan(['--id', 'orphan', '--term-grace', '500ms'])
  const stop = await cli(['stop', 'orphan', '--json'])
  expect(stop.code).toBe(0)
  expect(run.alive()).toEqual([])
  expect(jsonOf(stop)).toMatchObject({
    status: 'confirmed',
    runs: [
      {
        runId: 'orphan',
        work: 'cancelled',
        evidence: [{ kind: expect.stringMatching(/^(identity-gone|cgroup-empty)$/) as string }],
      },
    ],
  })
})

test('INV-4: what the stop took over is brought to its end, also past the timeout of the receipt', async () => {
  const run = await orphan(['--id', 'orphan', '--term-grace', '2s'])
  const stop = await cli(['stop', 'orphan', '--json', '--timeout', '100ms'])
  expect(stop.code).toBe(75)
  expect(jsonOf(stop)).toMatchObject({ status: 'requested' })
  expect(run.alive()).toEqual([])
})

test('CLI: a receipt at its timeout is requested and 75; the owner goes on, and --force upgrades it (K18)', async () => {
  const run = await runFixture('stubborn-agent', ['--id', 'it', '--term-grace', '10m'])
  const early = await cli(['stop', 'it', '--json', '--timeout', '1s'])
  expect(early.code).toBe(75)
  expect(jsonOf(early)).toMatchObject({ status: 'requested', runs: [{ runId: 'it', status: 'requested' }] })
  expect(run.alive()).not.toEqual([])
  const forced = await cli(['stop', 'it', '--force', '--json'])
  expect(forced.code).toBe(0)
  expect(jsonOf(forced)).toMatchObject({ runs: [{ status: 'confirmed' }] })
  expect(run.alive()).toEqual([])
  expect((await run.ended).code).toBe(143)
})

test('CLI: --interrupt leaves the work to be continued: 130', async () => {
  const run = await runFixture('exit-zero-on-term', ['--id', 'it'])
  const stop = await cli(['stop', 'it', '--interrupt', '--json'])
  expect(stop.code).toBe(0)
  expect(jsonOf(stop)).toMatchObject({ runs: [{ work: 'interrupted' }] })
  expect((await run.ended).code).toBe(130)
})

test('K15: nothing to stop is 3, and an id that is nowhere is 66', async () => {
  const run = await cli(['run', '--id', 'done', '--', process.execPath, '-e', ''])
  expect(run.code).toBe(0)
  const done = await cli(['stop', 'done', '--json'])
  const task = await cli(['stop', '--task', 'none'])
  const unknown = await cli(['stop', 'nowhere', '--json'])
  expect([done.code, task.code, unknown.code]).toEqual([3, 3, 66])
  expect(jsonOf(done)).toMatchObject({ status: 'nothing-to-stop', runs: [{ status: 'already-terminal' }] })
  expect(textOf(task)).toBe('nothing to stop\n')
  expect(jsonOf(unknown)).toMatchObject({ type: 'error', code: 'unknown-run' })
})

test('P20: a signal to stop ends its wait and not the stop', async () => {
  const run = await runFixture('stubborn-agent', ['--id', 'it', '--term-grace', '6s'])
  const stop = start(['stop', 'it'])
  await until('TERM has reached the leader', () =>
    signalsOf(readLedger(run.ledger), 'leader').includes('SIGTERM'),
  )
  stop.kill('SIGINT')
  const { code, stderr } = await stop.ended
  expect([code, stderr]).toEqual([130, 'runwarden: the wait was ended; the stop goes on\n'])
  expect((await run.ended).code).toBe(143)
  expect(run.alive()).toEqual([])
})
