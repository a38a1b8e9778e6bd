/** A PostgreSQL server that dies, hangs, ends connections and whose answers are lost: while runs go on, and while they are stopped. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, RunHistory } from '../../src/index.js'
import { start } from '../cli/cli.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { FlakyProxy } from '../support/flaky-proxy.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { PostgresServer, query, schemaOn, whyNoServer } from '../support/postgres.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_POSTGRES_ROUNDS'] ?? 5)

const why = whyNoServer()
const sleeper = ['sleep', '60']

/** What is on record of a run explains itself: one row a revision, none missing, none twice, and each launch and signal called for once. */
const expectWhole = ({ run, transitions, executions }: RunHistory): void => {
  expect(transitions.map(({ rev }) => rev)).toEqual(transitions.map((_, index) => index))
  expect(run.rev).toBe(transitions.length - 1)
  expect(run).toMatchObject({ process: 'confirmed', delivery: 'delivered' })
  expect(executions.length).toBeLessThanOrEqual(1)
  const calls = transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))
  for (const kind of ['process.launch', 'process.terminate']) {
    expect(calls.filter((call) => call === kind).length, kind).toBeLessThanOrEqual(1)
  }
}

if (why !== null) {
  it('S2, INV-13: a PostgreSQL server in trouble', ({ skip }) => skip(why))
} else {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.create()
  }, 120_000)
  afterAll(() => server.close())

  const newDatabase = (): Promise<string> => {
    process.env['XDG_STATE_HOME'] = tempDir()
    return schemaOn(server.url)
  }

  /** The spool files of the test's engines. */
  const spooled = (): string[] => {
    const root = join(process.env['XDG_STATE_HOME'] ?? '', 'runwarden')
    if (!existsSync(root)) return []
    return readdirSync(root).flatMap((store) => {
      const folder = join(root, store, 'spool')
      return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
    })
  }

  const processOf = async (database: string, runId: string): Promise<string | undefined> => {
    const { rows } = await query(database, 'select process from runwarden_run where id = $1', [runId])
    return (rows as { process: string }[])[0]?.process
  }

  const terminateBackends = (): Promise<unknown> =>
    query(
      server.url,
      `select pg_terminate_backend(pid) from pg_stat_activity
       where pid <> pg_backend_pid() and application_name = 'runwarden'`,
    )

  const playRuns = async (engine: Engine, count: number): Promise<void> => {
    const runs = await Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const run = await engine.start({ command: n % 2 === 0 ? ['true'] : sleeper, stop: quickStop })
        if (n % 2 === 1) expect((await run.cancel()).runs).toHaveLength(1)
        return run
      }),
    )
    const outcomes = await Promise.all(runs.map((run) => run.outcome))
    expect(outcomes.map(({ status }) => status)).toEqual(
      outcomes.map((_, n) => (n % 2 === 0 ? 'completed' : 'cancelled')),
    )
    await Promise.all(runs.map((run) => run.gone))
  }

  const expectAllWhole = async (engine: Engine, count: number): Promise<void> => {
    const runs = await engine.runs()
    expect(runs).toHaveLength(count)
    for (const { runId } of runs) {
      await waitFor(async () => (await engine.history(runId)).run.delivery === 'delivered', {
        deadlineMs: 20_000,
        what: 'the last transition is on record',
      })
      expectWhole(await engine.history(runId))
    }
  }

  describe('answers that are lost', () => {
    it(`INV-13: nothing is lost or doubled when the answer to a commit is, over ${ROUNDS} rounds`, async () => {
      const proxy = await FlakyProxy.before(await newDatabase())
      const engine = await openTestEngine({ database: proxy.url, commitDeadlineMs: 10_000 })
      for (let round = 0; round < ROUNDS; round += 1) {
        proxy.answersToLose = 3
        await playRuns(engine, 6)
      }
      expect(proxy.lost).toBeGreaterThan(ROUNDS)
      proxy.answersToLose = 0
      await expectAllWhole(engine, ROUNDS * 6)
    }, 120_000)

    it('L8, INV-13: a start whose commit was not answered is no second use of its id', async () => {
      const proxy = await FlakyProxy.before(await newDatabase())
      const engine = await openTestEngine({ database: proxy.url, commitDeadlineMs: 10_000 })
      proxy.answersToLose = 1
      const run = await engine.start({ id: 'once', command: ['true'] })
      expect(proxy.lost).toBe(1)
      expect((await run.outcome).status).toBe('completed')
      await expect(engine.start({ id: 'once', command: ['true'] })).rejects.toMatchObject({
        code: 'run-exists',
      })
    })

    it('INV-4: a start that was refused, and is on record all the same, is interrupted and never launched', async () => {
      const database = await newDatabase()
      const proxy = await FlakyProxy.before(database)
      const engine = await openTestEngine({ database: proxy.url, commitDeadlineMs: 300 })
      proxy.answersToLose = 1
      const starting = engine.start({ id: 'late', command: sleeper })
      await waitFor(() => proxy.lost === 1, { deadlineMs: 10_000, what: 'the answer is lost' })
      proxy.isAway = true
      await expect(starting).rejects.toMatchObject({ code: 'store-unavailable' })
      proxy.isAway = false
      await waitFor(async () => (await engine.history('late')).run.work === 'settled.interrupted', {
        deadlineMs: 20_000,
        what: 'the run is interrupted',
      })
      expect((await engine.history('late')).executions).toEqual([])
      expect(engine.live()).toEqual([])
    })

    it('K16: an order that was recorded too late leaves no fence behind', async () => {
      const proxy = await FlakyProxy.before(await newDatabase())
      const engine = await openTestEngine({ database: proxy.url, commitDeadlineMs: 300 })
      proxy.answersToLose = 1
      const stopping = engine.stop({ task: 't1' }, { timeoutMs: 1_000 })
      await waitFor(() => proxy.lost === 1, { deadlineMs: 10_000, what: 'the answer is lost' })
      proxy.isAway = true
      expect((await stopping).lookup).toBe('incomplete')
      proxy.isAway = false
      const run = await waitFor(() => engine.start({ task: 't1', command: ['true'] }).catch(() => null), {
        deadlineMs: 20_000,
        what: 'the scope is free',
      })
      expect((await run.outcome).status).toBe('completed')
    })
  })

  describe('connections that end', () => {
    it(`INV-13: backends that are terminated at any moment cost nothing, over ${ROUNDS} rounds`, async () => {
      const engine = await openTestEngine({ database: await newDatabase(), commitDeadlineMs: 10_000 })
      const random = seededRandom(Number(process.env['RUNWARDEN_SEED'] ?? 42))
      const isOver = new AbortController()
      onTestFinished(() => {
        isOver.abort()
      })
      let terminations = 0
      const terminating = (async (): Promise<void> => {
        for (; !isOver.signal.aborted; terminations += 1) {
          // Often in the middle of a commit, and with time for some to be whole.
          await new Promise((resolve) => setTimeout(resolve, random() * 400))
          await terminateBackends()
        }
      })()
      let rounds = 0
      for (; rounds < ROUNDS || terminations < ROUNDS; rounds += 1) await playRuns(engine, 6)
      isOver.abort()
      await terminating
      await expectAllWhole(engine, rounds * 6)
    }, 120_000)

    it('R5: an order that no notification told of is found by a look, and a broken listener comes back', async () => {
      const database = await newDatabase()
      const owner = await openTestEngine({ database })
      const filer = await openTestEngine({ database })
      // A filer whose NOTIFY goes nowhere, as if it had been lost on the way: its schema shadows the function.
      await query(database, "create function pg_notify(text, text) returns void language sql as ''")
      const muted = new URL(database)
      const path = muted.searchParams.get('options') ?? ''
      muted.searchParams.set('options', `${path},pg_catalog`)
      const mutedFiler = await openTestEngine({ database: muted.href })
      for (const play of ['muted', 'broken'] as const) {
        const run = await owner.start({ command: sleeper, stop: quickStop })
        if (play === 'broken') await terminateBackends()
        const receipt = await (play === 'muted' ? mutedFiler : filer).stop(
          { run: run.id },
          { timeoutMs: 15_000 },
        )
        expect(receipt.status, play).toBe('confirmed')
      }
    })
  })

  describe('a server that is away', () => {
    it('S2: a crash in the middle of a stop: processes stay supervised, the stop goes on, the rows follow', async () => {
      const database = await newDatabase()
      const engine = await openTestEngine({ database, commitDeadlineMs: 300 })
      const [stubborn, other] = await Promise.all([
        startFixture(engine, 'stubborn-agent', { id: 'stubborn' }),
        startFixture(engine, 'ignore-term', { id: 'other' }),
      ])
      await Promise.all([stubborn.ready(), other.ready()])
      await server.crash()
      const receipt = await engine.stop({ run: 'stubborn' }, { timeoutMs: 15_000 })
      expect(receipt.runs[0]?.status).toBe('confirmed')
      expect(stubborn.alive()).toEqual([])
      expect(spooled()).toHaveLength(1)
      await expect(engine.start({ command: ['true'] })).rejects.toMatchObject({ code: 'store-unavailable' })
      expect(other.alive()).toHaveLength(1)
      await server.start()
      await waitFor(
        () =>
          engine.history('stubborn').then(
            ({ run }) => run.process === 'confirmed',
            () => false,
          ),
        { deadlineMs: 30_000, what: 'the rows follow' },
      )
      expect((await other.run.cancel()).runs[0]?.status).toBe('confirmed')
      await expectAllWhole(engine, 2)
      await engine.close()
      expect(spooled()).toEqual([])
    }, 120_000)

    it('INV-11: a server that says nothing any more holds up no stop', async () => {
      const engine = await openTestEngine({ database: await newDatabase(), commitDeadlineMs: 300 })
      const started = await startFixture(engine, 'ignore-term', { id: 'held' })
      await started.ready()
      server.signal('SIGSTOP')
      onTestFinished(() => {
        server.signal('SIGCONT')
      })
      const receipt = await engine.stop({ run: 'held' }, { timeoutMs: 15_000 })
      expect(receipt.runs[0]?.status).toBe('confirmed')
      expect(started.alive()).toEqual([])
      server.signal('SIGCONT')
      await waitFor(async () => (await engine.history('held')).run.process === 'confirmed', {
        deadlineMs: 40_000,
        what: 'the rows follow',
      })
      expectWhole(await engine.history('held'))
    }, 120_000)

    it('S2: what a closed engine could not record follows when the server is back', async () => {
      const database = await newDatabase()
      const engine = await createEngine({ database, commitDeadlineMs: 300 })
      const started = await startFixture(engine, 'ignore-term', { id: 'closed' })
      await started.ready()
      await server.crash()
      expect(await engine.close({ runs: 'cancel', deadlineMs: 15_000 })).toEqual({ left: [] })
      expect(started.alive()).toEqual([])
      await server.start()
      await waitFor(() => processOf(database, 'closed').then((process) => process === 'confirmed'), {
        deadlineMs: 30_000,
        what: 'the rows follow',
      })
    }, 120_000)

    it('INV-13: what an engine spooled before it was killed is replayed by the next one on the machine', async () => {
      const database = await newDatabase()
      const { ledger, env } = withLedger()
      const args = [
        'run',
        '--no-guardian',
        '--db',
        database,
        '--id',
        'killed',
        '--term-grace',
        '300ms',
        '--',
        ...fixtureCommand('ignore-term'),
      ]
      const runner = start(args, { env: { ...env, XDG_STATE_HOME: process.env['XDG_STATE_HOME'] } })
      onTestFinished(() => endTree(ledger))
      await waitFor(() => readLedger(ledger).readyAt !== undefined, { deadlineMs: 60_000, what: 'it is up' })
      await waitFor(() => processOf(database, 'killed').then((process) => process === 'alive'), {
        deadlineMs: 20_000,
        what: 'the launch is on record',
      })
      await server.crash()
      runner.kill('SIGINT')
      // Whole lines only: a file that is there may be empty still.
      await waitFor(() => spooled().some((file) => /"run\.interrupt".*\n/.test(readFileSync(file, 'utf8'))), {
        deadlineMs: 20_000,
        what: 'the intent is spooled',
      })
      runner.kill('SIGKILL')
      await runner.ended
      await server.start()
      const engine = await openTestEngine({ database })
      await waitFor(async () => (await engine.history('killed')).run.process === 'confirmed', {
        deadlineMs: 30_000,
        what: 'the run is confirmed',
      })
      const { run, transitions } = await engine.history('killed')
      expect(run.work).toBe('settled.interrupted')
      // The intent is the killed engine's, not one that the recovery had to make up.
      const intents = transitions.filter(({ event }) => event === 'run.interrupt')
      expect(intents.map(({ detail }) => detail)).toMatchObject([{ by: 'signal' }])
      expect(aliveOf(readLedger(ledger))).toEqual([])
      expect(spooled()).toEqual([])
    }, 120_000)
  })
}
