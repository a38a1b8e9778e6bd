/** What the other tests lean on: the reader of /proc, the waiting, the load. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { endTree } from './end-tree.js'
import { fixtureCommand, withLedger } from './fixture.js'
import { loadCores } from './load.js'
import * as proc from './proc-reader.js'
import { tempDir, waitFor } from './wait-for.js'

const DEADLINE_MS = 20_000

async function startReady(name: string) {
  const { ledger, env } = withLedger()
  const [program, ...args] = fixtureCommand(name)
  const child = spawn(program, args, { detached: true, stdio: 'ignore', env: { ...process.env, ...env } })
  onTestFinished(() => endTree(ledger))
  const isReady = () => proc.readLedger(ledger).readyAt !== undefined
  await waitFor(isReady, { deadlineMs: DEADLINE_MS, what: `${name} is ready` })
  return { pid: child.pid ?? NaN, ledger }
}

test('SUPPORT: group, session and lineage each miss what only the environment and the ledger find', async () => {
  const { pid, ledger } = await startReady('double-fork-daemon')
  const daemon = proc.readLedger(ledger).members.find(({ role }) => role === 'daemon')?.pid
  const pidsOf = (found: readonly proc.Identity[]) => found.map((each) => each.pid)
  expect(pidsOf(proc.groupOf(pid))).toEqual([pid])
  expect(pidsOf(proc.sessionOf(pid))).toEqual([pid])
  expect(pidsOf(proc.descendantsOf(pid))).not.toContain(daemon)
  expect(pidsOf(proc.processesWith(`FIXTURE_LEDGER=${ledger}`)).sort()).toEqual([pid, daemon].sort())
  expect(pidsOf(proc.aliveOf(proc.readLedger(ledger))).sort()).toEqual([pid, daemon].sort())
})

test('SUPPORT: descendants are read down to the last level', async () => {
  const { pid } = await startReady('grandchild-ignores-term')
  expect(proc.descendantsOf(pid)).toHaveLength(2)
})

test('SUPPORT: a pid with another start time is not alive', () => {
  const self = proc.identityOf(process.pid)
  expect(self && proc.isAlive(self)).toBe(true)
  expect(self && proc.isAlive({ ...self, startTicks: self.startTicks + 1 })).toBe(false)
  expect(proc.identityOf(2 ** 30)).toBeUndefined()
})

test('SUPPORT: a condition that never comes is named at its deadline', async () => {
  const wait = waitFor(() => false, { deadlineMs: 20, what: 'the kettle boils' })
  await expect(wait).rejects.toThrow('not within 20 ms: the kettle boils')
})

describe('SUPPORT: a temporary folder', () => {
  let folder = ''
  test('SUPPORT: it is there during its test', () => {
    folder = tempDir()
    expect(existsSync(folder)).toBe(true)
  })
  test('SUPPORT: and gone after it', () => {
    expect(folder).not.toBe('')
    expect(existsSync(folder)).toBe(false)
  })
})

test('SUPPORT: the load is there until it is ended', async () => {
  const spinning = () => proc.descendantsOf(process.pid).filter(({ state }) => state === 'R').length
  const endLoad = await loadCores(2)
  await waitFor(() => spinning() === 2, { deadlineMs: DEADLINE_MS, what: 'two spinning processes' })
  await endLoad()
  expect(spinning()).toBe(0)
})
