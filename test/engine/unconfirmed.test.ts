/** A tree that will not go: the truth, told in time. */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRecords } from '../../src/index.js'
import { testDatabase } from '../support/database.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine, quickStop } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { waitFor } from '../support/wait-for.js'
import { canDropKill, hostWithoutKill } from '../support/without-kill.js'

describe('a member that may not be signalled', () => {
  it('P8, C5: is named as survivor with the error, the rest is dead, and the run is unconfirmed and kept', async (context) => {
    if (!canDropKill()) context.skip('no setpriv, or not root')
    const database = await testDatabase()
    const { ledger, env } = withLedger()
    onTestFinished(() => endTree(ledger))
    const source = `
      import { createEngine } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)}
      import { readFileSync } from 'node:fs'
      const engine = await createEngine({ database: ${JSON.stringify(database)}, containment: { prefer: 'group+marks' } })
      const run = await engine.start({ id: 'r1', command: ${JSON.stringify(fixtureCommand('deep-tree'))}, stop: { termGraceMs: 200, killGraceMs: 500 } })
      const isUp = () => { try { return readFileSync(process.env.FIXTURE_LEDGER, 'utf8').includes('"ready"') } catch { return false } }
      while (!isUp()) await new Promise((resolve) => setTimeout(resolve, 20))
      const first = await run.cancel({ reason: 'end it' })
      const second = await run.cancel()
      const outcome = await Promise.race([run.outcome, Promise.resolve('none yet')])
      const left = await engine.close({ deadlineMs: 500 })
      console.log(JSON.stringify({ first, second, outcome, left }))
    `
    const { first, second, outcome, left } = await hostWithoutKill(source, env)
    const [survivor] = aliveOf(readLedger(ledger))
    expect(aliveOf(readLedger(ledger))).toHaveLength(1)
    const line = {
      runId: 'r1',
      status: 'unconfirmed',
      work: 'open',
      survivors: [{ pid: survivor?.pid, startTicks: survivor?.startTicks, error: 'EPERM' }],
      error: expect.stringContaining('EPERM') as string,
    }
    expect(first).toMatchObject({ status: 'unconfirmed', runs: [{ ...line, repeated: false }] })
    expect(second).toMatchObject({ status: 'unconfirmed', runs: [{ ...line, repeated: true }] })
    // INV-15: nothing is delivered or released; the outcome waits for the evidence.
    expect(outcome).toBe('none yet')
    expect(left).toEqual({ left: ['r1'] })
    await using records = await openRecords({ database })
    const { run, executions } = await records.history('r1')
    expect(run.work).toBe('open.cancel-requested')
    expect(['kill-sent', 'unconfirmed']).toContain(run.headline)
    expect(executions[0]?.survivors).toMatchObject([{ pid: survivor?.pid }])
  }, 60_000)
})

const THREADS_OUTLIVE_MAIN = [
  'import ctypes, os, threading, time',
  'threading.Thread(target=lambda: (time.sleep(60), os._exit(0))).start()',
  'print("up", flush=True)',
  // SYS_exit ends the calling thread only.
  'ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)',
].join('\n')

describe('a process whose first thread has ended', () => {
  it.for(['leader', 'child'] as const)(
    'C6, INV-5: as %s it looks like a zombie, lives, and is gone when the stop says so',
    async (place, context) => {
      if (spawnSync('python3', ['--version']).status !== 0) context.skip('no python3')
      const engine = await openTestEngine()
      const mark = randomUUID()
      const python = ['python3', '-c', THREADS_OUTLIVE_MAIN]
      const run = await engine.start({
        command: place === 'leader' ? python : ['sh', '-c', '"$@" & wait; sleep 60', 'sh', ...python],
        env: { ...process.env, RW_THREADS: mark },
        stop: quickStop,
      })
      const bearsMark = (path: string): boolean => {
        try {
          return readFileSync(path, 'latin1').includes(`RW_THREADS=${mark}`)
        } catch {
          // Gone meanwhile, or the thread that has ended.
          return false
        }
      }
      const threadsOf = (): string[] =>
        readdirSync('/proc').filter((pid) => {
          if (!/^[0-9]+$/.test(pid) || !existsSync(`/proc/${pid}/task`)) return false
          return readdirSync(`/proc/${pid}/task`).some((thread) =>
            bearsMark(`/proc/${pid}/task/${thread}/environ`),
          )
        })
      for await (const event of run.events()) if (event.type === 'output') break
      await waitFor(
        () => threadsOf().some((pid) => readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')),
        {
          deadlineMs: 10_000,
          what: 'its first thread has ended',
        },
      )
      const receipt = await run.cancel()
      expect(receipt.runs[0]?.status).toBe('confirmed')
      expect(threadsOf()).toEqual([])
    },
  )
})
