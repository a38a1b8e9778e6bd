/** `runwarden jobs`: the queue from the command line. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { acpAgent } from '../support/agents.js'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, linesOf, textOf } from './cli.js'

// Each starts a dozen commands, one after the other.
vi.setConfig({ testTimeout: 3 * TEST_TIMEOUT_MS })

const jobs = (...args: readonly string[]) => cli(['jobs', ...args])

test('CLI: jobs are added, ordered, worked and accepted, and each verb says where the job stands', async () => {
  expect(textOf(await jobs('add', '--id', 'a', '--review', '--', 'true'))).toBe('a\n')
  await jobs(
    'add',
    '--id',
    'b',
    '--title',
    'the second',
    '--env',
    'TOKEN=hunter2',
    '--',
    'sh',
    '-c',
    'test "$TOKEN" = hunter2',
  )
  await jobs('add', '--id', 'c', '--after', 'a', '--first', '--', 'true')
  await jobs('reorder', 'b', '--before', 'a')
  const listed = await jobs('list')
  expect(textOf(listed)).toMatch(/JOB +STATE[^]*\nc +pending[^]*\nb +pending.* the second[^]*\na +pending/)
  const work = await jobs('work', '--json')
  expect(work.code, work.stderr).toBe(0)
  expect(linesOf(work).at(-1)).toEqual({ type: 'work-ended', reason: 'idle', started: 2, left: [] })
  expect(textOf(work)).not.toContain('hunter2')
  expect(jsonOf(await jobs('accept', 'a', '--json'))).toMatchObject({ jobId: 'a', state: 'done' })
  const plain = await jobs('work')
  expect(textOf(plain)).toContain('job c · done')
  expect(plain.stderr).toContain('idle · 1 run started')
  expect(
    (jsonOf(await jobs('list', '--all', '--json')) as { state: string }[]).map(({ state }) => state),
  ).toEqual(['done', 'done', 'done'])
  expect(textOf(await jobs('show', 'c'))).toContain('run.settled  active.running → active.leaving')
})

test('CLI: what is refused says why, with exit code 1; what is not there, 66; wrong usage, 64', async () => {
  await jobs('add', '--id', 'a', '--attempts', '1', '--', 'false')
  const cases: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
    [['accept', 'a'], 1, /accept: job a is pending/],
    [['drop', 'nobody'], 66, /job nobody is not in this store/],
    [['add', '--id', 'a', '--', 'true'], 64, /job a is already in this store/],
    [['reorder', 'a'], 64, /give --first, --last, --before or --behind/],
    [['reorder', 'a', '--first', '--last'], 64, /give one of/],
    [['extend', 'a', '--attempts', 'x'], 64, /Give a whole number/],
    [['work', '--total', '0'], 64, /whole number from 1/],
  ]
  for (const [args, code, says] of cases) {
    const ended = await jobs(...args)
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(says)])
  }
  await jobs('hold', '--reason', 'lunch')
  expect(textOf(await jobs('list'))).toContain('held by cli: lunch')
  expect((await jobs('work')).stderr).toContain('the queue is held')
  await jobs('release')
  await jobs('work')
  expect(textOf(await jobs('extend', 'a', '--attempts', '2'))).toContain('job a · pending')
  expect(textOf(await jobs('drop', 'a', '--reason', 'enough'))).toContain('job a · cancelled · enough')
  expect((await jobs('remove', 'a')).code).toBe(1)
})

test('CLI: a job has a protocol, a prompt and limits of silence, as a run has them; the prompt is not shown', async () => {
  const prompt = join(folder(), 'prompt.md')
  writeFileSync(prompt, 'answer\n')
  const silent = ['--protocol', 'claude', '--never-started', '300ms', '--term-grace', '100ms']
  await jobs('add', '--id', 'silent', ...silent, '--attempts', '1', '--', 'sleep', '600')
  const spoken = ['--protocol', 'acp', '--input', prompt, '--permissions', 'allow', '--stalled', '20s']
  expect(textOf(await jobs('add', '--id', 'a', ...spoken, '--', ...acpAgent()))).toBe('a\n')
  await jobs('add', '--id', 'b', '--input', prompt, '--', 'grep', '-qx', 'answer')
  const work = await jobs('work', '--json')
  expect(work.code, work.stderr).toBe(0)
  expect(linesOf(work).at(-1)).toMatchObject({ type: 'work-ended', reason: 'idle', started: 3 })
  expect(jsonOf(await jobs('show', 'silent', '--json'))).toMatchObject({
    job: { state: 'exhausted', attemptsSpent: 1, lastOutcome: { status: 'failed-never-started' } },
    spec: { protocol: 'claude', watchdog: { neverStartedMs: 300 } },
  })
  const shown = await jobs('show', 'a', '--json')
  expect(jsonOf(shown)).toMatchObject({
    job: { state: 'done' },
    spec: { protocol: 'acp', promptBytes: 6, watchdog: { stalledMs: 20_000 } },
  })
  expect(jsonOf(await jobs('show', 'b', '--json'))).toMatchObject({
    job: { state: 'done' },
    spec: { protocol: null, stdinBytes: 6 },
  })
  const wrong: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [['--protocol', 'acp'], /jobs add: option --protocol acp needs a prompt: give --input/],
    [['--protocol', 'claude', '--permissions', 'allow'], /jobs add: option --permissions has no use/],
    [['--protocol', 'nope'], /Allowed choices are lines, acp/],
    [['--id', 's', '--after', 's'], /option after must not name the job itself/],
  ]
  for (const [args, says] of wrong) {
    const ended = await jobs('add', ...args, '--', 'true')
    expect([ended.code, ended.stderr]).toEqual([64, expect.stringMatching(says)])
  }
})
