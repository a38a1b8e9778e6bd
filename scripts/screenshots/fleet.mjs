// @ts-check
/** A fleet to look at: runs in every state that a page shows. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createEngine } from 'runwarden'
import { lines } from 'runwarden/protocols'

const PROGRAMS = {
  'coding-agent': `
const { spawn } = require('node:child_process')
if (process.argv[2] !== 'helper') spawn(process.argv[0], [process.argv[1], 'helper'], { stdio: 'ignore' })
const steps = ['reading src/login.ts', 'the redirect drops its query: found it', 'editing src/session.ts', 'running the tests', '12 passed, 1 failed', 'looking at the failure']
let step = 0
setInterval(() => { if (process.argv[2] !== 'helper') console.log(steps[step++ % steps.length]) }, 120)`,
  'stubborn-agent': `
const { spawn } = require('node:child_process')
process.on('SIGTERM', () => console.log('TERM? not now'))
process.on('SIGINT', () => {})
if (process.argv[2] !== 'helper') { spawn(process.argv[0], [process.argv[1], 'helper'], { stdio: 'ignore' }); console.log('indexing 4 812 files') }
setInterval(() => {}, 1000)`,
  'test-suite': `console.log('214 passed'); setTimeout(() => process.exit(0), 60)`,
  'flaky-suite': `console.log('1 failed: checkout.spec.ts'); setTimeout(() => process.exit(1), 60)`,
  'silent-agent': `setInterval(() => {}, 1000)`,
}

/** @param {string} folder */
const writePrograms = (folder) => {
  mkdirSync(folder)
  for (const [name, text] of Object.entries(PROGRAMS)) {
    const file = join(folder, name)
    writeFileSync(file, `#!/usr/bin/env node\n${text}\n`)
    chmodSync(file, 0o755)
  }
}

const watched = { neverStartedMs: 60_000, advisoryMs: 60_000 }
const ladder = { termGraceMs: 30_000, killGraceMs: 5_000 }

/** @type {readonly (import('runwarden').RunSpec & { id: string })[]} */
const RUNS = [
  { id: 'lint-nightly', command: ['test-suite'], task: 'nightly' },
  { id: 'e2e-checkout', command: ['flaky-suite'], task: 'nightly' },
  { id: 'unit-tests', command: ['test-suite'], task: 'nightly' },
  { id: 'triage-142', command: ['coding-agent'], task: 'issue-142', protocol: lines(), watchdog: watched },
  {
    id: 'fix-login-redirect',
    command: ['coding-agent'],
    task: 'issue-97',
    protocol: lines(),
    watchdog: watched,
  },
  { id: 'port-parser', command: ['coding-agent'], task: 'parser', protocol: lines(), watchdog: watched },
  { id: 'review-pull-88', command: ['silent-agent'], task: 'review', protocol: lines(), watchdog: watched },
  { id: 'docs-refresh', command: ['coding-agent'], task: 'docs', protocol: lines(), watchdog: watched },
  { id: 'reindex', command: ['stubborn-agent'], task: 'search', stop: ladder },
]

/** @param {() => boolean} condition */
const until = async (condition) => {
  for (let left = 1_000; left > 0 && !condition(); left -= 1) await wait(10)
}

/** An engine with a fleet; `close` ends all of it. */
export const openFleet = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'runwarden-screenshots-'))
  const bin = join(folder, 'bin')
  writePrograms(bin)
  const engine = await createEngine({ database: join(folder, 'runs.db') })
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  const runs = new Map()
  for (const spec of RUNS) runs.set(spec.id, await engine.start({ ...spec, cwd: folder, env }))
  const pid = (/** @type {string} */ id) => runs.get(id)?.pid !== undefined
  await until(() => [...runs.keys()].every((id) => pid(id) || runs.get(id)?.state.isSettled === true))
  await runs.get('docs-refresh')?.cancel({ reason: 'superseded', by: 'ana' })
  await runs.get('port-parser')?.pause()
  return {
    engine,
    close: async () => {
      await engine.stop({ all: true }, { force: true })
      await engine.close({ runs: 'cancel', deadlineMs: 10_000 })
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
