/** What signals, slow readers and survivors do to `runwarden run`. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { readLedger, signalsOf } from '../support/proc-reader.js'
import { TEST_TIMEOUT_MS, cli, linesOf, runFixture, start, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const isOnPath = (name: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })

test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'CLI: %s interrupts the run: the tree is gone when the command ends in 130',
  async (signal) => {
    const run = await runFixture('stubborn-agent', ['--term-grace', '300ms'])
    run.kill(signal)
    const { code, stderr } = await run.ended
    expect(code).toBe(130)
    expect(stderr).toMatch(
      new RegExp(`interrupted: ${signal} · .* · confirmed by (?:tree-reaped|cgroup-empty)`),
    )
    expect(run.alive()).toEqual([])
    expect(signalsOf(readLedger(run.ledger), 'leader')).toContain('SIGTERM')
  },
)

test('K18: a second signal to the command kills at once', async () => {
  const run = await runFixture('stubborn-agent', ['--json', '--term-grace', '10m'])
  run.kill('SIGINT')
  await until('TERM has reached the leader', () =>
    signalsOf(readLedger(run.ledger), 'leader').includes('SIGTERM'),
  )
  run.kill('SIGINT')
  const ended = await run.ended
  expect(ended.code).toBe(130)
  expect(run.alive()).toEqual([])
  expect(linesOf(ended).at(-2)).toMatchObject({ type: 'settled', outcome: { status: 'interrupted' } })
  expect(linesOf(ended).at(-1)).toMatchObject({ type: 'confirmed', survivors: [] })
})

test('P4: a signal during the launch leaves no process, and no run that is not over', async () => {
  const run = start(['run', '--json', '--', process.execPath, '-e', 'setTimeout(() => {}, 60_000)'])
  await until('the run is accepted', () => run.text().includes('"accepted"'))
  run.kill('SIGTERM')
  const ended = await run.ended
  expect(ended.code).toBe(130)
  expect(linesOf(ended).at(-1)).toMatchObject({ type: 'confirmed', survivors: [] })
  const ps = await cli(['ps', '--json'])
  expect(ps.stdout.toString()).toBe('[]\n')
})

test('L6: a reader that stands still holds up neither the stop nor, once it is told to end, the command', async () => {
  const run = await runFixture('flood', ['--id', 'unread'], { readsStdout: false })
  // Nothing is read: the pipe is full, and then the buffers.
  const stop = await cli(['stop', 'unread'])
  expect(stop.code).toBe(0)
  expect(run.alive()).toEqual([])
  run.kill('SIGTERM')
  const { code } = await run.ended
  expect(code).toBe(143)
})

test('INV-5: what will not die is named, and the command ends in 75', async ({ skip }) => {
  if (process.getuid?.() !== 0) skip('only root can make a process that the command may not signal')
  if (!isOnPath('setpriv')) skip('setpriv is not installed')
  const under = ['setpriv', '--bounding-set=-kill', '--inh-caps=-kill']
  const run = await runFixture(
    'deep-tree',
    [
      '--json',
      // One would hold the run after the command, with as few rights as it had.
      '--no-guardian',
      '--containment',
      'group+marks',
      '--id',
      'un',
      '--term-grace',
      '200ms',
      '--kill-grace',
      '200ms',
    ],
    { under },
  )
  run.kill('SIGINT')
  const ended = await run.ended
  const survivors = run.alive().map(({ pid }) => ({ pid }))
  expect(ended.code).toBe(75)
  expect(survivors).toHaveLength(1)
  expect(linesOf(ended).at(-1)).toMatchObject({ type: 'unconfirmed', runId: 'un', survivors })
  // It is not forgotten: who may signal it ends it.
  const stop = await cli(['stop', 'un'])
  // On a busy machine the tree may outlive its deadline once more; it is gone all the same.
  expect([0, 75]).toContain(stop.code)
  await until('nothing of it is alive', () => run.alive().length === 0)
})
