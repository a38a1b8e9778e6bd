/** Wrong usage and stores that cannot be used: each says what is wrong, and nothing is spawned or half recorded. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { expect, test, vi } from 'vitest'
import { formatDuration, parseDuration } from '../../src/cli/durations.js'
import { parseSize } from '../../src/cli/sizes.js'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, textOf } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** Leaves a file behind if it is ever run. */
const touch = ['--', process.execPath, '-e', 'require("node:fs").writeFileSync("ran", "")']

const wrong: readonly (readonly [what: string, args: readonly string[], says: RegExp])[] = [
  ['an unknown verb', ['bogus'], /unknown command 'bogus'/],
  ['no command', ['run'], /missing required argument 'command'/],
  ['nothing after --', ['run', '--'], /missing required argument 'command'/],
  ['an empty program', ['run', '--', ''], /must name a program/],
  ['an unknown option', ['run', '--bogus', ...touch], /unknown option '--bogus'/],
  [
    'a time limit of nothing',
    ['run', '--timeout', '0', ...touch],
    /limits\.timeoutMs must be at least 1, got 0/,
  ],
  [
    'a limit that is no size',
    ['run', '--max-output', 'big', ...touch],
    /argument 'big' is invalid. Give a size/,
  ],
  [
    'a negative grace',
    ['run', '--term-grace', '-5s', ...touch],
    /'--term-grace <time>' argument '-5s' is invalid/,
  ],
  [
    'a grace that is no time',
    ['run', '--kill-grace', 'soon', ...touch],
    /'--kill-grace <time>' argument 'soon' is/,
  ],
  ['a grace beyond ten years', ['run', '--ask-grace', '4000d', ...touch], /argument '4000d' is invalid/],
  [
    'a folder that is not there',
    ['run', '--cwd', 'nowhere', ...touch],
    /argument 'nowhere' is invalid. It does not exist/,
  ],
  [
    'a folder that is a file',
    ['run', '--cwd', 'file', ...touch],
    /argument 'file' is invalid. It is not a folder/,
  ],
  [
    'a containment not offered',
    ['run', '--containment', 'pane', ...touch],
    /Allowed choices are cgroup, group\+marks, group/,
  ],
  ['a label without a value', ['run', '--label', 'x', ...touch], /Give a label as name=value/],
  [
    'an id that names a path',
    ['run', '--id', '../x', ...touch],
    /option id must be 1 to 128 letters.*got "\.\.\/x"/,
  ],
  ['an empty task', ['run', '--task', '', ...touch], /option task must not be empty/],
  [
    'another database',
    ['run', '--db', 'mysql://host/db', ...touch],
    /must be a file or begin with postgres:\/\/: mysql is not known/,
  ],
  ['an empty --db', ['run', '--db', '', ...touch], /option --db must not be empty/],
  ['a stop of nothing', ['stop'], /name runs, or give --task/],
  ['a stop of all and one', ['stop', '--all', 'x'], /--all covers every run/],
  [
    'a stop without time',
    ['stop', 'x', '--timeout', 'never'],
    /'--timeout <time>' argument 'never' is invalid/,
  ],
  ['a word too many', ['ps', 'x'], /too many arguments for 'ps'/],
  ['a run to show', ['show'], /missing required argument 'run'/],
  ['an unknown format', ['charts', '--format', 'png'], /Allowed choices are json, mermaid, svg/],
]

test.for(wrong)('CLI: %s is wrong usage: 64', async ([, args, says]) => {
  writeFileSync(join(folder(), 'file'), '')
  const ended = await cli(args)
  expect(ended.stderr).toMatch(says)
  expect(ended.stderr).toMatch(/^runwarden: /)
  expect(ended.stderr).not.toMatch(/\n\s+at /)
  expect([ended.code, textOf(ended)]).toEqual([64, ''])
  expect(existsSync(join(folder(), 'ran'))).toBe(false)
  if (existsSync(join(folder(), '.runwarden'))) {
    expect(textOf(await cli(['ps', '--all', '--json']))).toBe('[]\n')
  }
})

test('CLI: with --json an error is an object on stdout too, unless the --json is the command’s', async () => {
  const ours = await cli(['run', '--json', '--bogus', ...touch])
  expect(jsonOf(ours)).toEqual({ type: 'error', code: 'usage', message: "unknown option '--bogus'" })
  const theirs = await cli(['run', '--bogus', '--', 'x', '--json'])
  expect([theirs.code, textOf(theirs)]).toEqual([64, ''])
})

test('CLI: without a verb the help is on stderr and 64; asked for, it is on stdout and 0, with examples', async () => {
  const none = await cli([])
  const asked = await cli(['--help'])
  expect([none.code, textOf(none)]).toEqual([64, ''])
  expect(none.stderr).toContain('Usage: runwarden')
  expect([asked.code, asked.stderr]).toEqual([0, ''])
  for (const verb of ['run', 'ps', 'show', 'stop', 'logs', 'jobs', 'charts', 'doctor']) {
    expect(textOf(asked)).toMatch(new RegExp(`^ {2}${verb} `, 'm'))
  }
})

test('CLI: the help of each verb has examples of it', async () => {
  const verbs = ['run', 'ps', 'show', 'stop', 'logs', 'charts', 'doctor']
  const helps = await Promise.all(verbs.map((verb) => cli([verb, '--help'])))
  for (const [index, help] of helps.entries()) {
    expect(help.code).toBe(0)
    expect(textOf(help)).toMatch(new RegExp(`Examples:\\n {2}.*runwarden ${verbs[index] ?? ''}`))
  }
})

test.for([['ps'], ['show', 'x'], ['logs', 'x'], ['stop', '--all']])(
  'S2: %s where there is no store is 74, and none is made',
  async (args) => {
    const ended = await cli(args)
    expect([ended.code, textOf(ended)]).toEqual([74, ''])
    expect(ended.stderr).toMatch(/^runwarden: database .*runs\.db: there is no store/)
    expect(readdirSync(folder())).toEqual([])
  },
)

test.for([
  ['is not a database', 'notes.txt', /notes\.txt: the file is not a SQLite database/],
  ['lies in a folder that is not there', 'nowhere/runs.db', /the folder .*nowhere does not exist/],
  ['is a folder', 'folder', /folder: it is not a file/],
  ['is newer than this version', 'newer.db', /newer\.db: its schema is version 999, this library knows/],
] as const)('S2: run with a store that %s is 74, and nothing is spawned', async ([, db, says]) => {
  writeFileSync(join(folder(), 'notes.txt'), 'not a database, whatever its reader may think of it')
  mkdirSync(join(folder(), 'folder'))
  makeNewerStore(join(folder(), 'newer.db'))
  const ended = await cli(['run', '--db', db, '--json', ...touch])
  expect(ended.stderr).toMatch(says)
  expect(ended.code).toBe(74)
  expect(jsonOf(ended)).toMatchObject({ type: 'error', code: expect.stringMatching(/^store-/) as string })
  expect(existsSync(join(folder(), 'ran'))).toBe(false)
})

function makeNewerStore(path: string): void {
  const store = new BetterSqlite3(path)
  store.exec(
    "create table runwarden_meta (name text primary key, value text); insert into runwarden_meta values ('schema-version', '999')",
  )
  store.close()
}

test('CLI: times are written as 500ms, 20s, 5m, 1h, 2d; a plain number is seconds', () => {
  const given = ['0', '500ms', '20s', '1.5s', '20', '5m', '1h', '2d']
  expect(given.map(parseDuration)).toEqual([0, 500, 20_000, 1_500, 20_000, 300_000, 3_600_000, 172_800_000])
  for (const bad of ['', '-1', '5 s', '1w', 's', '1e3', 'NaN', '0x10'])
    expect(() => parseDuration(bad)).toThrow('Give a time')
})

test('CLI: durations are read without counting zeros', () => {
  expect([0, 340, 5_149, 59_999, 723_000, 12_000_000, 187_200_000].map(formatDuration)).toEqual([
    '0 ms',
    '340 ms',
    '5.1 s',
    '59.9 s',
    '12 m 3 s',
    '3 h 20 m',
    '2 d 4 h',
  ])
})

test('CLI: sizes are read in powers of 1024, and a plain number is bytes', () => {
  const texts = ['1', '4096', '64k', '10M', '1.5G', '2KiB', '3MB']
  expect(texts.map(parseSize)).toEqual([1, 4096, 65_536, 10_485_760, 1_610_612_736, 2048, 3_145_728])
  for (const text of ['0', '-1', '', '10x', '1e3', '0.1', '99999999t']) {
    expect(() => parseSize(text), text).toThrow('Give a size')
  }
})
