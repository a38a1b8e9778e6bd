/** Engines that died, engines that live, and one that cannot be reached. */
import { spawn } from 'node:child_process'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createEngine, openRecords } from '../../src/index.js'
import { cli, start, textOf } from '../cli/cli.js'
import type { Started } from '../cli/cli.js'
import { openBackdoor, testDatabase } from '../support/database.js'
import { endTree, kill } from '../support/end-tree.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { waitFor } from '../support/wait-for.js'

interface Elsewhere {
  readonly database: string
  readonly runner: Started
  readonly ledger: string
}

/** A run in another process, over a store that this one can open. */
const runElsewhere = async (name: string, termGrace = '300ms'): Promise<Elsewhere> => {
  const database = await testDatabase()
  const { ledger, env } = withLedger()
  const runner = start(
    [
      'run',
      '--no-guardian',
      '--db',
      database,
      '--id',
      'r1',
      '--json',
      '--term-grace',
      termGrace,
      '--',
      ...fixtureCommand(name),
    ],
    { env },
  )
  onTestFinished(() => endTree(ledger))
  await waitFor(() => readLedger(ledger).readyAt !== undefined, { deadlineMs: 60_000, what: `${name} is up` })
  // Its last words are out: what it writes when nobody reads any more would kill it.
  await waitFor(() => runner.text().includes('"launched"') && runner.text().includes('"line":"ready"'), {
    deadlineMs: 20_000,
    what: 'the launch is recorded, and its output read',
  })
  // Nothing is on its way to the store: whoever is stopped now holds no lock on it.
  await using records = await openRecords({ database })
  await waitFor(
    async () => {
      const { transitions } = await records.history('r1')
      const isDone = transitions.every(({ effects }) => effects.every(({ doneAt }) => doneAt !== null))
      return isDone && transitions.some(({ event }) => event === 'turn.progressed')
    },
    { deadlineMs: 20_000, what: 'the runner is at rest' },
  )
  return { database, runner, ledger }
}

const killRunner = async ({ runner }: Elsewhere): Promise<void> => {
  process.kill(runner.pid, 'SIGKILL')
  await runner.ended
}

describe('recovery', () => {
  it('R3: a run alive without an intent, whose engine died, is interrupted and confirmed', async () => {
    const elsewhere = await runElsewhere('stubborn-agent')
    await killRunner(elsewhere)
    const engine = await openTestEngine({ database: elsewhere.database })
    const run = engine.run('r1')
    expect(await run?.outcome).toMatchObject({ status: 'interrupted', reason: 'the engine that ran it died' })
    expect((await run?.gone)?.evidence).toMatchObject([
      { kind: expect.stringMatching(/^(identity-gone|cgroup-empty)$/) as string },
    ])
    expect(aliveOf(readLedger(elsewhere.ledger))).toEqual([])
  })

  it('R3: a tree that is gone, and nobody saw how, is lost', async () => {
    const elsewhere = await runElsewhere('ignore-term')
    await killRunner(elsewhere)
    await endTree(elsewhere.ledger)
    const engine = await createEngine({ database: elsewhere.database, recover: false })
    const receipt = await engine.stop({ run: 'r1' })
    expect(receipt.runs[0]?.evidence).toMatchObject([
      { kind: expect.stringMatching(/^(identity-gone|cgroup-empty)$/) as string },
    ])
    const { run } = await engine.history('r1')
    expect(['settled.lost', 'settled.cancelled']).toContain(run.work)
    await engine.close()
  })

  it('R5: the runs of a living engine are left alone; a stop goes through it', async () => {
    const elsewhere = await runElsewhere('ignore-term')
    const engine = await openTestEngine({ database: elsewhere.database })
    expect(engine.live()).toEqual([])
    expect(aliveOf(readLedger(elsewhere.ledger))).toHaveLength(1)
    const receipt = await engine.stop({ all: true }, { reason: 'from elsewhere', by: 'another engine' })
    expect(receipt).toMatchObject({
      status: 'confirmed',
      runs: [{ runId: 'r1', status: 'confirmed', work: 'cancelled' }],
    })
    const ended = await elsewhere.runner.ended
    expect(ended.code).toBe(143)
    expect(textOf(ended)).toContain('from elsewhere')
    expect(aliveOf(readLedger(elsewhere.ledger))).toEqual([])
  })

  it('R5: two engines that start at once recover a run once', async () => {
    const elsewhere = await runElsewhere('stubborn-agent')
    await killRunner(elsewhere)
    const { database } = elsewhere
    const [engine] = await Promise.all([
      openTestEngine({ database }),
      openTestEngine({ database }),
      openTestEngine({ database }),
    ])
    await waitFor(async () => (await engine.history('r1')).run.process === 'confirmed', {
      deadlineMs: 30_000,
      what: 'the run is confirmed',
    })
    const { transitions } = await engine.history('r1')
    expect(transitions.filter(({ event }) => event === 'run.interrupt')).toHaveLength(1)
    expect(new Set(transitions.map(({ rev }) => rev)).size).toBe(transitions.length)
  })

  it('R4: a step of the ladder that the dead engine had committed is done again, and the ladder goes on where it was', async () => {
    const elsewhere = await runElsewhere('stubborn-agent', '60s')
    process.kill(elsewhere.runner.pid, 'SIGINT')
    await waitFor(() => elsewhere.runner.text().includes('"term-sent"'), {
      deadlineMs: 20_000,
      what: 'TERM is sent',
    })
    await killRunner(elsewhere)
    const terms = (): number =>
      readLedger(elsewhere.ledger).signals.filter(({ signal }) => signal === 'SIGTERM').length
    const before = terms()
    const engine = await openTestEngine({ database: elsewhere.database })
    await waitFor(() => terms() > before, { deadlineMs: 10_000, what: 'TERM is sent again' })
    expect(engine.run('r1')?.state).toMatchObject({ process: 'term-sent', work: 'open.interrupting' })
    expect((await engine.stop({ run: 'r1' }, { force: true })).runs[0]?.status).toBe('confirmed')
    expect(aliveOf(readLedger(elsewhere.ledger))).toEqual([])
  })

  it('INV-11: a stop whose target engine dies is answered when its runs are, not at the deadline', async () => {
    const elsewhere = await runElsewhere('ignore-term')
    const engine = await openTestEngine({ database: elsewhere.database, recover: false })
    process.kill(elsewhere.runner.pid, 'SIGSTOP')
    const stopping = engine.stop({ run: 'r1' }, { timeoutMs: 600_000 })
    await killRunner(elsewhere)
    expect((await stopping).status).toBe('confirmed')
    expect(aliveOf(readLedger(elsewhere.ledger))).toEqual([])
  })

  it('R9: a snapshot of an unknown chart version is refused by name, and touched by nothing', async () => {
    const elsewhere = await runElsewhere('ignore-term')
    await killRunner(elsewhere)
    const store = await openBackdoor(elsewhere.database)
    await store.rows('update runwarden_run set machine_version = 99')
    const record = () => store.rows('select owner, rev, snapshot from runwarden_run')
    const before = await record()
    const engine = await openTestEngine({ database: elsewhere.database })
    const receipt = await engine.stop({ run: 'r1' })
    expect(receipt).toMatchObject({ status: 'refused', runs: [{ status: 'refused' }] })
    expect(receipt.runs[0]?.error).toMatch(/run r1 .* version 99/)
    expect(await record()).toEqual(before)
    expect(aliveOf(readLedger(elsewhere.ledger))).toHaveLength(1)
  })

  it('K16: the fence of an engine that died holds up nobody', async () => {
    const database = await testDatabase()
    const engine = await openTestEngine({ database })
    const started = await startFixture(engine, 'ignore-term', { task: 't1', stop: { termGraceMs: 60_000 } })
    await started.ready()
    const stopped = await cli(['stop', '--db', database, '--task', 't1', '--timeout', '300ms', '--json'])
    expect(stopped.code).toBe(75)
    const other = await openTestEngine({ database })
    const run = await other.start({ task: 't1', command: ['true'] })
    expect((await run.outcome).status).toBe('completed')
    await started.run.cancel({ force: true })
  })

  it('INV-11: an owner that lives and does not answer: the receipt says so in time, and no second owner is made', async () => {
    const elsewhere = await runElsewhere('ignore-term')
    process.kill(elsewhere.runner.pid, 'SIGSTOP')
    onTestFinished(() => {
      kill(elsewhere.runner)
    })
    const engine = await openTestEngine({ database: elsewhere.database })
    const receipt = await engine.stop({ run: 'r1' }, { timeoutMs: 700 })
    expect(receipt).toMatchObject({ status: 'requested', runs: [{ status: 'requested' }] })
    expect(aliveOf(readLedger(elsewhere.ledger))).toHaveLength(1)
    process.kill(elsewhere.runner.pid, 'SIGCONT')
    await waitFor(() => aliveOf(readLedger(elsewhere.ledger)).length === 0, {
      deadlineMs: 20_000,
      what: 'the owner acted',
    })
    // The receipt that was given does not flip.
    expect(receipt.status).toBe('requested')
  })
})

describe('strangers', () => {
  it('INV-14: a process with the same command, name and folder is untouched by stop and by recovery', async () => {
    const place = withLedger()
    const [program, ...args] = fixtureCommand('ignore-term')
    const stranger = spawn(program, args, {
      env: { ...process.env, ...place.env },
      stdio: 'ignore',
      detached: true,
    })
    onTestFinished(() => endTree(place.ledger))
    await waitFor(() => readLedger(place.ledger).readyAt !== undefined, {
      deadlineMs: 20_000,
      what: 'the stranger is up',
    })
    const elsewhere = await runElsewhere('ignore-term')
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    await started.run.cancel()
    await killRunner(elsewhere)
    const second = await openTestEngine({ database: elsewhere.database })
    await second.run('r1')?.gone
    expect(aliveOf(readLedger(place.ledger)).map(({ pid }) => pid)).toEqual([stranger.pid])
    expect(readLedger(place.ledger).signals).toEqual([])
  })
})
