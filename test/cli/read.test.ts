/** `ps`, `show` and `logs`: reading a store that others use. */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { beforeEach, expect, test, vi } from 'vitest'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, linesOf, runFixture, start, textOf, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const script = 'console.log("out ä"); console.error("err"); process.exit(3)'
const command = ['--', process.execPath, '-e', script]

beforeEach(async () => {
  await cli(['run', '--id', 'done', '--task', 't7', '--session', 's1', '--label', 'user=x', ...command])
})

test('CLI: ps --json has the promised keys; only --all shows what is over', async () => {
  const run = await runFixture('exit-zero-on-term', ['--id', 'going'])
  const open = jsonOf(await cli(['ps', '--json'])) as { runId: string }[]
  const all = jsonOf(await cli(['ps', '--json', '--all'])) as { runId: string }[]
  expect(open.map(({ runId }) => runId)).toEqual(['going'])
  expect(all.map(({ runId }) => runId)).toEqual(['done', 'going'])
  const keys = [
    'runId',
    'task',
    'session',
    'headline',
    'work',
    'process',
    'delivery',
    'attempt',
    'pid',
    'containment',
    'startedAt',
    'lastProgressAt',
  ]
  for (const each of all) expect(Object.keys(each)).toEqual(expect.arrayContaining(keys))
  expect(all[0]).toMatchObject({
    task: 't7',
    session: 's1',
    headline: 'failed',
    process: 'confirmed',
    attempt: 1,
  })
  run.kill('SIGINT')
  await run.ended
})

test('CLI: ps is a table for people, without colours in a pipe, and says when there is nothing', async () => {
  const none = await cli(['ps'])
  const all = await cli(['ps', '--all'], { env: { CI: 'true' } })
  expect(textOf(none)).toBe('no open runs; --all shows the finished ones too\n')
  expect(textOf(all)).toMatch(/^RUN +STATE +AGE .*\ndone +failed +\d.* t7 +/)
  expect(textOf(all)).not.toContain('\u001b')
})

test('CLI: NO_COLOR wins over FORCE_COLOR', async () => {
  const forced = await cli(['ps', '--all'], { env: { FORCE_COLOR: '1' } })
  const none = await cli(['ps', '--all'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })
  expect(textOf(forced)).toContain('\u001b[')
  expect(textOf(none)).not.toContain('\u001b')
})

test('CLI: show --json is the history: run, executions, transitions in order, orders, notices', async () => {
  const history = jsonOf(await cli(['show', 'done', '--json'])) as {
    transitions: {
      rev: number
      from: object | null
      to: object
      effects: unknown[]
      event: string
      at: number
    }[]
  }
  expect(Object.keys(history).sort()).toEqual(['executions', 'notices', 'orders', 'run', 'transitions'])
  expect(history).toMatchObject({
    run: { runId: 'done', outcome: { status: 'failed', exitCode: 3 } },
    executions: [
      {
        attempt: 1,
        evidence: expect.stringMatching(/^(tree-reaped|cgroup-empty)$/) as string,
        exit: { exitCode: 3, signal: null },
      },
    ],
  })
  const { transitions } = history
  expect(transitions.map(({ rev }) => rev)).toEqual(transitions.map((_, rev) => rev))
  expect(transitions[0]).toMatchObject({ event: 'run.accepted', from: null })
  expect(transitions.at(-1)?.to).toEqual({
    work: 'settled.failed',
    process: 'confirmed',
    delivery: 'delivered',
  })
})

test('CLI: show lays the run out for people', async () => {
  const page = textOf(await cli(['show', 'done']))
  expect(page).toMatch(/^done {2}failed\n/)
  for (const expected of [
    /belongs to task t7 · session s1 · user=x/,
    /work +settled\.failed/,
    /process +confirmed/,
    /outcome +failed: exited with code 3/,
    /attempt 1 {2}pid \d+ · start \d+ ticks/,
    /confirmed \+.* by (tree-reaped|cgroup-empty)/,
    /REV +AT +EVENT/,
    /process\.exited +.*process alive → confirmed/,
  ]) {
    expect(page).toMatch(expected)
  }
})

test('CLI: names that strangers chose cannot steer the terminal', async () => {
  await cli(['run', '--id', 'evil', '--task', '\u001b[2Jgone\nfaked row', '--', process.execPath, '-e', ''])
  const pages = [textOf(await cli(['ps', '--all'])), textOf(await cli(['show', 'evil']))]
  for (const page of pages) {
    expect(page).toContain('\\x1b[2Jgone\\x0afaked row')
    expect(page).not.toContain('\u001b')
  }
})

test('L4: logs gives the bytes back, each stream to its own; with --json a piece a line', async () => {
  const raw = await cli(['logs', 'done'])
  expect([raw.code, textOf(raw), raw.stderr]).toEqual([0, 'out ä\n', 'err\n'])
  const pieces = linesOf(await cli(['logs', 'done', '--json']))
  expect(pieces).toHaveLength(2)
  expect(pieces).toEqual(
    expect.arrayContaining([
      { stream: 'stdout', at: expect.any(Number) as number, text: 'out ä\n' },
      { stream: 'stderr', at: expect.any(Number) as number, text: 'err\n' },
    ]),
  )
})

test('L4: logs -f follows a run until it is confirmed gone', async () => {
  const run = await runFixture('stubborn-agent', ['--id', 'going', '--term-grace', '300ms'])
  const follower = start(['logs', '-f', 'going'])
  await until('the follower has what there is', () => follower.text().includes('agent: the tool is running'))
  run.kill('SIGTERM')
  const [ended, followed] = await Promise.all([run.ended, follower.ended])
  expect(followed.code).toBe(0)
  expect(textOf(followed)).toBe(textOf(ended))
})

test('CLI: the reading verbs leave nothing in the store', async () => {
  const engines = () => {
    const store = new BetterSqlite3(join(folder(), '.runwarden', 'runs.db'), { readonly: true })
    const { count } = store.prepare('select count(*) as count from runwarden_engine').get() as {
      count: number
    }
    store.close()
    return count
  }
  const before = engines()
  for (const args of [['ps'], ['show', 'done'], ['logs', 'done']]) expect((await cli(args)).code).toBe(0)
  expect(engines()).toBe(before)
})

test.for([['show'], ['logs'], ['logs', '-f'], ['stop']])(
  'CLI: %s of an id that is nowhere is 66',
  async (verb) => {
    const ended = await cli([...verb, 'nowhere', '--json'])
    expect([ended.code, ended.stderr]).toEqual([66, 'runwarden: run nowhere is not in this store\n'])
    expect(jsonOf(ended)).toEqual({
      type: 'error',
      code: 'unknown-run',
      message: 'run nowhere is not in this store',
    })
  },
)
