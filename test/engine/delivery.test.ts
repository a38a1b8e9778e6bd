/** Outcomes on their way to the host: its hooks, its own transaction, its faults. Real processes, a real store. */
import { Kysely } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { acknowledgeDelivery, createEngine } from '../../src/index.js'
import type { Delivery, Engine, SettledRun } from '../../src/index.js'
import { dialectOf, openBackdoor, testDatabase } from '../support/database.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

const within = (what: string) => ({ deadlineMs: 20_000, what })

describe('a delivery', () => {
  it('INV-12, INV-1: brings the outcome once, under one id, after it is on record, with what finalize made of it', async () => {
    const database = await testDatabase()
    const backdoor = await openBackdoor(database)
    const seen: { readonly delivery: Delivery; readonly stored: unknown }[] = []
    const engine = await openTestEngine({
      database,
      delivery: {
        finalize: async ({ runId, outcome }) => ({
          runId,
          was: outcome.status,
          at: await Promise.resolve(1),
        }),
        deliver: async (delivery) => {
          const [stored] = await backdoor.rows(
            `select delivery, outcome, r.delivery_id, r.finalized from runwarden_run join runwarden_result r on r.run_id = id`,
          )
          seen.push({ delivery, stored })
        },
      },
    })
    const spec = { session: 's1', task: 't1', labels: { user: 'x' } }
    const run = await engine.start({ id: 'r1', command: ['sh', '-c', 'exit 3'], ...spec })
    const outcome = await run.outcome
    await waitFor(() => run.state.delivery === 'delivered', within('it is delivered'))
    expect(seen).toHaveLength(1)
    expect(seen[0]?.delivery).toEqual({
      runId: 'r1',
      deliveryId: 'r1/result',
      ...spec,
      outcome,
      finalized: { runId: 'r1', was: 'failed', at: 1 },
    })
    expect(seen[0]?.stored).toMatchObject({ delivery: 'delivering', delivery_id: 'r1/result' })
    expect(JSON.parse((seen[0]?.stored as { outcome: string }).outcome)).toEqual(outcome)
    const [result] = await backdoor.rows('select acknowledged_at from runwarden_result')
    expect(Number(result?.['acknowledged_at'])).toBeGreaterThan(0)
    // L7: what the host makes of an outcome is in the journal nowhere.
    const [journal] = await backdoor.rows(
      `select detail from runwarden_transition where event = 'delivery.finalized'`,
    )
    expect(journal?.['detail']).not.toContain('was')
  })

  it('P3: finalize cannot touch the outcome, whatever it does to what it is given', async () => {
    const deliveries: Delivery[] = []
    const engine = await openTestEngine({
      delivery: {
        finalize: (settled: SettledRun) => {
          Object.assign(settled.outcome, { status: 'completed', exitCode: 0 })
          Object.assign(settled.labels, { user: 'y' })
          throw new Error('not today')
        },
        deliver: (delivery) => void deliveries.push(delivery),
      },
    })
    const run = await engine.start({ command: ['sh', '-c', 'exit 3'], labels: { user: 'x' } })
    await waitFor(() => run.state.delivery === 'delivered', within('it is delivered'))
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 3 })
    expect((await engine.history(run.id)).run.outcome).toMatchObject({ status: 'failed', exitCode: 3 })
    expect(deliveries).toMatchObject([
      { labels: { user: 'x' }, outcome: { status: 'failed', exitCode: 3 }, finalizeError: 'not today' },
    ])
    expect(deliveries[0]).not.toHaveProperty('finalized')
  })

  it('P19, INV-11: a finalize that never returns is given up at its deadline, and what it says later changes nothing', async () => {
    const database = await testDatabase()
    const deliveries: Delivery[] = []
    const late: { answer?: (value: unknown) => void; signal?: AbortSignal } = {}
    const engine = await openTestEngine({
      database,
      delivery: {
        finalizeDeadlineMs: 200,
        finalize: (_, { signal }) => {
          late.signal = signal
          return new Promise((resolve) => (late.answer = resolve))
        },
        deliver: (delivery) => void deliveries.push(delivery),
      },
    })
    const started = await startFixture(engine, 'exit-zero-on-term')
    await started.ready()
    // The stop waits for the tree, not for the hook.
    expect(await started.run.cancel()).toMatchObject({ status: 'confirmed' })
    await waitFor(() => started.run.state.delivery === 'delivered', within('it is delivered'))
    expect(late.signal?.aborted).toBe(true)
    late.answer?.({ late: true })
    await engine.close()
    expect(deliveries).toMatchObject([
      { outcome: { status: 'cancelled' }, finalizeError: 'finalize did not answer within 200 ms' },
    ])
    const backdoor = await openBackdoor(database)
    const [result] = await backdoor.rows('select finalized from runwarden_result')
    expect(result?.['finalized']).not.toContain('late')
  })

  it.each([
    ['what JSON cannot say', () => 1n, /BigInt/],
    ['more than there is room for', () => 'x'.repeat(1024 * 1024), /more than 1048576 characters/],
  ])('P19: a finalize that returns %s is one that failed, and says so', async (_, finalize, message) => {
    const deliveries: Delivery[] = []
    const deliver = (delivery: Delivery): void => void deliveries.push(delivery)
    const engine = await openTestEngine({ delivery: { finalize, deliver } })
    const run = await engine.start({ command: ['true'] })
    await waitFor(() => run.state.delivery === 'delivered', within('it is delivered'))
    expect(deliveries).toMatchObject([{ outcome: { status: 'completed' } }])
    expect(deliveries[0]?.finalizeError).toMatch(message)
  })

  it('P17: a cancel from inside the delivery is already-terminal, and the delivery stands', async () => {
    const statuses: string[] = []
    const engine = await openTestEngine({
      delivery: {
        deliver: async ({ runId }) => {
          const receipt = await engine.run(runId)?.cancel()
          statuses.push(receipt?.runs[0]?.status ?? 'no such run')
        },
      },
    })
    const run = await engine.start({ command: ['true'] })
    await waitFor(() => run.state.delivery === 'delivered', within('it is delivered'))
    expect(statuses).toEqual(['already-terminal'])
    expect((await run.outcome).status).toBe('completed')
  })

  it('P19: a deliver that throws costs no other run anything, and is due again', async () => {
    const delivered: string[] = []
    const engine = await openTestEngine({
      delivery: {
        deliver: ({ runId }) => {
          if (runId === 'bad') throw new Error('not for me')
          delivered.push(runId)
        },
      },
    })
    const runs = await Promise.all(
      ['bad', 'one', 'two'].map((id) => engine.start({ id, command: ['true'], stop: quickStop })),
    )
    await waitFor(() => delivered.length === 2, within('the others are delivered'))
    await waitFor(() => runs[0]?.state.delivery === 'retrying', within('the bad one waits'))
    expect((await runs[0]?.outcome)?.status).toBe('completed')
    const { transitions } = await engine.history('bad')
    expect(transitions.find(({ event }) => event === 'delivery.failed')?.detail).toMatchObject({
      error: 'not for me',
    })
  })
})

describe('in the transaction of the host', () => {
  it('INV-12: what the host took and acknowledged together is not delivered again, and what it rolled back is', async () => {
    const database = await testDatabase()
    const db = new Kysely<{ inbox: { id: string } }>({ dialect: dialectOf(database) })
    onTestFinished(() => db.destroy())
    await db.schema.createTable('inbox').addColumn('id', 'text').execute()
    const calls: string[] = []
    const take = async (deliveryId: string): Promise<void> => {
      calls.push('begun')
      await db
        .transaction()
        .execute(async (trx) => {
          await trx.insertInto('inbox').values({ id: deliveryId }).execute()
          expect(await acknowledgeDelivery(trx, deliveryId)).toBe(true)
          if (calls.length === 1) throw new Error('rolled back')
        })
        .catch((error: unknown) => expect(error).toMatchObject({ message: 'rolled back' }))
      calls.push('over')
      // Each engine goes without having heard how it went.
      await new Promise(() => undefined)
    }
    const open = (): Promise<Engine> =>
      createEngine({ database, delivery: { deliver: ({ deliveryId }) => take(deliveryId) } })
    const engine = await open()
    const { id } = await engine.start({ command: ['true'] })
    await waitFor(() => calls.length === 2, within('the first is over'))
    await engine.close({ deadlineMs: 50 })
    const second = await open()
    await waitFor(() => calls.length === 4, within('the second is over'))
    await second.close({ deadlineMs: 50 })
    const third = await open()
    await waitFor(async () => (await third.history(id)).run.delivery === 'delivered', within('it is known'))
    await third.close()
    expect(calls).toHaveLength(4)
    expect(await db.selectFrom('inbox').selectAll().execute()).toEqual([{ id: `${id}/result` }])
    expect(await acknowledgeDelivery(db, `${id}/result`)).toBe(false)
    expect(await acknowledgeDelivery(db, 'nothing/result')).toBe(false)
  })
})

describe('closing', () => {
  it('P18: suppress interrupts what is open, delivers nothing of it, now or later, and it is no cancel', async () => {
    const database = await testDatabase()
    const delivered: string[] = []
    const delivery = { deliver: ({ runId }: Delivery): void => void delivered.push(runId) }
    const engine = await createEngine({ database, delivery })
    const started = await startFixture(engine, 'exit-zero-on-term')
    await started.ready()
    expect(await engine.close({ runs: 'suppress' })).toEqual({ left: [] })
    expect(started.alive()).toEqual([])
    const outcome = await started.run.outcome
    expect(outcome).toMatchObject({ status: 'interrupted', reason: 'engine closing' })
    expect(outcome.cancellation ?? null).toBeNull()
    const next = await openTestEngine({ database, delivery })
    const { run, transitions } = await next.history(started.run.id)
    expect(run).toMatchObject({ delivery: 'suppressed', process: 'confirmed', work: 'settled.interrupted' })
    expect(transitions.map(({ event }) => event)).toContain('run.suppress')
    expect(delivered).toEqual([])
  })

  it('P18: suppress ends deliveries that are under way, and what their hooks say then changes nothing', async () => {
    const database = await testDatabase()
    let answer: () => void = () => undefined
    const engine = await createEngine({
      database,
      delivery: { deliver: () => new Promise<void>((resolve) => (answer = resolve)) },
    })
    const run = await engine.start({ command: ['true'] })
    await waitFor(() => run.state.delivery === 'delivering', within('it is being delivered'))
    expect(await engine.close({ runs: 'suppress' })).toEqual({ left: [] })
    answer()
    expect(run.state.delivery).toBe('suppressed')
    const backdoor = await openBackdoor(database)
    expect(await backdoor.rows('select acknowledged_at from runwarden_result')).toEqual([
      { acknowledged_at: null },
    ])
  })

  it('O10, INV-12: close waits for the hooks that are at it, and an outcome of the closing is delivered too', async () => {
    const database = await testDatabase()
    const events: string[] = []
    const engine = await createEngine({
      database,
      delivery: {
        deliver: async ({ outcome }) => {
          events.push(outcome.status)
          await new Promise((resolve) => setImmediate(resolve))
          events.push('taken')
        },
      },
    })
    const started = await startFixture(engine, 'exit-zero-on-term')
    await started.ready()
    expect(await engine.close()).toEqual({ left: [] })
    expect(events).toEqual(['interrupted', 'taken'])
    const backdoor = await openBackdoor(database)
    expect(await backdoor.rows('select delivery from runwarden_run')).toEqual([{ delivery: 'delivered' }])
  })

  it('O10, INV-12: a delivery that hangs holds close up to its deadline; the next engine makes it, under the same id', async () => {
    const database = await testDatabase()
    const ids: string[] = []
    const engine = await createEngine({
      database,
      delivery: {
        deliver: ({ deliveryId }) => {
          ids.push(deliveryId)
          return new Promise(() => undefined)
        },
      },
    })
    const run = await engine.start({ command: ['true'] })
    await waitFor(() => ids.length === 1, within('it is being delivered'))
    // Its tree is gone and its outcome on record: nothing of it is left.
    expect(await engine.close({ deadlineMs: 100 })).toEqual({ left: [] })
    const without = await createEngine({ database })
    expect(without.run(run.id)?.state.delivery).toBe('delivering')
    expect(await without.close({ deadlineMs: 600_000 })).toEqual({ left: [] })
    const next = await openTestEngine({
      database,
      delivery: { deliver: ({ deliveryId }) => void ids.push(deliveryId) },
    })
    await waitFor(() => next.run(run.id)?.state.delivery !== 'delivering', within('the next one delivers'))
    expect(ids).toEqual([`${run.id}/result`, `${run.id}/result`])
    const backdoor = await openBackdoor(database)
    expect(await backdoor.rows('select delivery from runwarden_run')).toEqual([{ delivery: 'delivered' }])
  })
})

describe('the rule for the next candidate', () => {
  const twice = (when: (failure: never) => unknown): object => ({
    command: ['sh', '-c', 'echo work; exit 9'],
    fallback: { candidates: [{ command: ['true'] }], when },
  })

  it("P9: the host's rule decides, and is told of the failure", async () => {
    const engine = await openTestEngine()
    const asked: unknown[] = []
    const when = (failure: unknown): boolean => {
      asked.push(failure)
      return true
    }
    const run = await engine.start({ ...twice(when), command: ['sh', '-c', 'echo work; exit 9'] })
    expect(await run.outcome).toMatchObject({ status: 'completed', attempt: 2 })
    expect(asked).toEqual([
      {
        attempt: 1,
        reason: 'exit',
        exitCode: 9,
        signal: null,
        code: null,
        message: '',
        hasProgress: expect.any(Boolean) as boolean,
      },
    ])
  })

  it.each([
    ['throws', () => { throw new Error('no idea') }], // prettier-ignore
    ['says no', () => false],
    ['promises', () => Promise.resolve(true)],
    ['rejects', () => Promise.reject(new Error('no idea'))],
  ])('P19, P9: a rule that %s starts nothing, and the failure is the outcome', async (_, when) => {
    const engine = await openTestEngine()
    const run = await engine.start({ ...twice(when), command: ['no-such-program'] })
    expect(await run.outcome).toMatchObject({ status: 'failed', attempt: 1, code: 'ENOENT' })
    await run.gone
  })
})
