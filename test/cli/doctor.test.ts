/** `doctor` and `charts`: what this machine can promise, and the charts it runs. */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test, vi } from 'vitest'
import { tempDir } from '../support/wait-for.js'
import { TEST_TIMEOUT_MS, cli, jsonOf, textOf } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const NAMES = [
  'node',
  'sqlite',
  'proc',
  'cookie',
  'limit mark',
  'pidfd',
  'terminal',
  'cgroup v2',
  'tmux',
  'git',
]

test('C10: doctor says what this machine can promise, and why not more', async () => {
  const ended = await cli(['doctor', '--json'])
  const report = jsonOf(ended) as {
    isUsable: boolean
    containment: string
    facts: { name: string; answer: string; reason: string }[]
  }
  expect([ended.code, report.isUsable]).toEqual([0, true])
  expect(report.facts.map(({ name }) => name)).toEqual(NAMES)
  for (const { reason } of report.facts) expect(reason).not.toBe('')
  // What it promises is what a run gets.
  const run = await cli(['run', '--json', '--', process.execPath, '-e', ''])
  expect(textOf(run)).toContain(`"containment":"${report.containment}"`)
})

test('C10: doctor has one line a fact, for people', async () => {
  const ended = await cli(['doctor'])
  const lines = textOf(ended).split('\n')
  expect(ended.code).toBe(0)
  for (const [index, name] of NAMES.entries()) expect(lines[index]).toMatch(new RegExp(`^[✓✗·] ${name} +\\S`))
  expect(lines.at(-2)).toMatch(/^A run is held by (cgroup|group)/)
})

test('C10: without tmux and git on the PATH doctor says so', async () => {
  const { stdout } = await cli(['doctor'], { env: { PATH: '/nowhere' } })
  expect(stdout.toString()).toMatch(/tmux +not on the PATH/)
})

test('C10, L9: without koffi doctor says what is missed, and a terminal is refused with the reason', async () => {
  const hook = join(tempDir(), 'without-koffi.cjs')
  writeFileSync(
    hook,
    `const Module = require('node:module')
const load = Module._load
Module._load = (name, ...rest) => {
  if (name === 'koffi') throw new Error('koffi is not installed')
  return load(name, ...rest)
}
`,
  )
  const env = { NODE_OPTIONS: `--require=${hook}` }
  const { facts } = jsonOf(await cli(['doctor', '--json'], { env })) as {
    facts: { name: string; answer: string; reason: string }[]
  }
  const missed = facts
    .filter(({ reason }) => reason.includes('koffi'))
    .map(({ name, answer }) => [name, answer])
  expect(missed).toEqual([
    ['limit mark', 'no'],
    ['pidfd', 'no'],
    ['terminal', 'no'],
  ])
  const run = await cli(['run', '--pty', '--', 'true'], { env })
  expect(run.code).toBe(64)
  expect(run.stderr).toContain('stdio "pty" cannot be had: the optional package koffi is not installed')
})

const statecharts = resolve(import.meta.dirname, '../../statecharts')
const chartFiles = existsSync(statecharts) ? readdirSync(statecharts) : []
const names = chartFiles.filter((file) => file.endsWith('.json')).map((file) => file.replace('.json', ''))

test('CLI: charts lists the charts, and prints each of them in three formats', async ({ skip }) => {
  if (names.length === 0) skip('the charts are not generated: run `npm run charts`')
  const list = await cli(['charts'])
  for (const name of names) expect(textOf(list)).toMatch(new RegExp(`^${name} `, 'm'))
  const [name = ''] = names
  for (const [format, extension] of [
    ['json', 'json'],
    ['mermaid', 'mmd'],
    ['svg', 'svg'],
  ] as const) {
    const printed = await cli(['charts', name, '--format', format])
    expect([printed.code, textOf(printed)]).toEqual([
      0,
      readFileSync(`${statecharts}/${name}.${extension}`, 'utf8'),
    ])
  }
  const all = await cli(['charts', '--format', 'json'])
  expect(Object.keys(jsonOf(all) as object).sort()).toEqual([...names].sort())
})

test('CLI: a chart that is not there is named, with those that are', async ({ skip }) => {
  if (names.length === 0) skip('the charts are not generated: run `npm run charts`')
  const ended = await cli(['charts', 'nothing'])
  expect(ended.code).toBe(64)
  expect(ended.stderr).toContain(`there is no chart "nothing"; there are ${[...names].sort().join(', ')}`)
})
