/** A store on a PostgreSQL server: what can be wrong with it, what its connections may do, and what two engines do to each other there. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { inspect } from 'node:util'
import { Kysely, Migrator, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openPostgres } from '../../../src/adapters/store/postgres.js'
import { RunwardenError, createEngine, openRecords } from '../../../src/index.js'
import { SCHEMA_VERSION, migrations } from '../../../src/postgres.js'
import { openTestEngine, quickStop } from '../../support/engine.js'
import { query, schemaOn, usePostgres, whyNoPostgres } from '../../support/postgres.js'
import { openStoreIn } from '../../support/stores.js'
import { tempDir, waitFor } from '../../support/wait-for.js'
import { engineWrite, orderWrite, requestedLine, runWrite } from '../../support/writes.js'

const why = whyNoPostgres()
const server = usePostgres()

const errorOf = (opening: Promise<unknown>): Promise<RunwardenError> =>
  opening.then(
    () => {
      throw new RunwardenError('invariant-broken', 'it opened')
    },
    (error: unknown) => error as RunwardenError,
  )

const ignore = (): void => undefined
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }

/** A schema of the test's own; logs and spools in a folder of its own. */
const newDatabase = (): Promise<string> => {
  process.env['XDG_STATE_HOME'] = tempDir()
  return schemaOn(server.url)
}

const withParameter = (url: string, name: string, value: string): string => {
  const changed = new URL(url)
  changed.searchParams.set(name, value)
  return changed.href
}

describe('opening without a server', () => {
  it.each([
    [
      'nothing listens there',
      'postgres://me:s3cret@127.0.0.1:1/db',
      /127\.0\.0\.1:1\/db: nothing listens there/,
    ],
    [
      'the host is not known',
      'postgres://me:s3cret@no-such-host.invalid/db',
      /no-such-host\.invalid\/db: the host/,
    ],
    [
      'there is no such socket',
      'postgres://me:s3cret@/db?host=/nowhere',
      /\/nowhere\/db: there is no such socket/,
    ],
    ['the address cannot be read', 'postgres://me:s3cret@host:port/db', /database postgres:\/\/…: /],
  ])('S2, L7: %s: a clear error, and no credentials in it', async (_what, database, message) => {
    const error = await errorOf(createEngine({ database }))
    expect(error.code).toBe('store-unavailable')
    expect(error.message).toMatch(message)
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/s3cret|\bme\b/)
  })

  it('L7: an option that is refused repeats no credentials', async () => {
    const error = await errorOf(createEngine({ database: 'mysql://me:s3cret@host/db' }))
    expect(error).toMatchObject({ code: 'invalid-option' })
    expect(error.message).toBe(
      'createEngine: option database must be a path or begin with postgres://, got "mysql://…@host/db"',
    )
  })

  it('S2: where pg is not installed, the error says what to install', async () => {
    const withoutPg = `
      import { register } from 'node:module'
      register('data:text/javascript,' + encodeURIComponent(\`
        export const resolve = (name, context, next) => {
          if (name !== 'pg') return next(name, context)
          throw Object.assign(new Error("Cannot find package 'pg'"), { code: 'ERR_MODULE_NOT_FOUND' })
        }\`))
      const { createEngine } = await import(${JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href)})
      await createEngine({ database: 'postgres://host/db' }).catch(({ code, message }) => console.log(code, message))
      const engine = await createEngine({ database: ':memory:' })
      console.log((await (await engine.start({ command: ['true'] })).outcome).status)
      await engine.close()
    `
    const child = spawn(process.execPath, ['--input-type=module', '-e', withoutPg], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await once(child, 'close')
    expect(text).toMatch(/^invalid-option option database .*npm install pg\ncompleted\n$/)
  })
})

if (why !== null) {
  it('S5: a store on a PostgreSQL server', ({ skip }) => skip(why))
} else {
  describe('opening', () => {
    it('S2, L7: a database or a user that is not there is a clear error without credentials', async () => {
      const url = new URL(server.url)
      url.pathname = '/nowhere'
      url.password = 's3cret'
      const missing = await errorOf(createEngine({ database: url.href }))
      expect(missing.message).toMatch(/\/nowhere: the server has no such database/)
      url.username = 'nobody-of-that-name'
      const refused = await errorOf(createEngine({ database: url.href }))
      expect(refused.message).toMatch(/\/nowhere: the server refuses this user/)
      for (const error of [missing, refused]) expect(inspect(error, { depth: 9 })).not.toContain('s3cret')
      expect(refused.message).not.toContain('nobody-of-that-name')
    })

    it('S2: a database that can only be read is a clear error', async () => {
      const database = await newDatabase()
      const options = new URL(database).searchParams.get('options') ?? ''
      const readOnly = withParameter(database, 'options', `${options} -c default_transaction_read_only=on`)
      await expect(createEngine({ database: readOnly })).rejects.toThrow(/the database can only be read/)
    })

    it('S1: engines that open one new database at once migrate it once', async () => {
      const database = await newDatabase()
      const engines = await Promise.all(Array.from({ length: 5 }, () => openTestEngine({ database })))
      expect(await engines[0]?.runs()).toEqual([])
      const { rows } = await query(database, 'select count(*)::int as n from runwarden_migration')
      expect(rows).toEqual([{ n: Object.keys(migrations).length }])
    })

    it('S1: schemas of others that are dropped while it opens do not matter', async () => {
      const churn = { isOn: true }
      const churning = Promise.all(
        ['a', 'b'].map(async (name) => {
          const schema = `churn_${String(process.pid)}_${name}`
          while (churn.isOn) {
            await query(server.url, `create schema ${schema}; create table ${schema}.t (id serial)`)
            await query(server.url, `drop schema ${schema} cascade`)
          }
        }),
      )
      try {
        for (let round = 0; round < 10; round += 1) await openStoreIn({ database: await newDatabase() })
      } finally {
        churn.isOn = false
        await churning
      }
    })

    it('S1: a store newer than the library is refused, untouched', async () => {
      const database = await newDatabase()
      await (await createEngine({ database })).close()
      await query(database, 'update runwarden_meta set value = $1', [String(SCHEMA_VERSION + 1)])
      const engines = () =>
        query(database, 'select * from runwarden_engine').then(({ rows }) => rows as unknown[])
      const before = await engines()
      await expect(createEngine({ database })).rejects.toMatchObject({ code: 'store-too-new' })
      expect(await engines()).toEqual(before)
    })

    it('S1: two schemas of one database are two stores', async () => {
      const [one, other] = [await newDatabase(), await newDatabase()]
      const first = await openTestEngine({ database: one })
      await (
        await first.start({ id: 'r', command: ['true'] })
      ).gone
      const second = await openTestEngine({ database: other })
      expect(await second.runs()).toEqual([])
      const log = async (engine: typeof first): Promise<number> => {
        let pieces = 0
        for await (const _piece of engine.logs('r')) pieces += 1
        return pieces
      }
      await (
        await second.start({ id: 'r', command: ['echo', 'b'] })
      ).gone
      // Nor does one run of an id write over the log of the other.
      expect([await log(first), await log(second)]).toEqual([0, 1])
    })

    it('S1: a reader makes no store', async () => {
      const database = await newDatabase()
      await expect(openRecords({ database })).rejects.toThrow(/there is no store in it yet/)
      const { rows } = await query(
        database,
        'select tablename from pg_tables where schemaname = current_schema()',
      )
      expect(rows).toEqual([])
    })

    it('S1: a host has the tables in a schema of its choice, through withSchema and its own migrator', async () => {
      const schema = new URL(await newDatabase()).searchParams.get('options')?.split('=')[1] ?? ''
      const pool = new pg.Pool({ connectionString: server.url, max: 3 })
      pool.on('error', () => undefined)
      const kysely = new Kysely<object>({ dialect: new PostgresDialect({ pool }) })
      onTestFinished(() => kysely.destroy())
      const db = kysely.withSchema(schema)
      const migrator = new Migrator({
        db,
        provider: { getMigrations: () => Promise.resolve({ ...migrations }) },
        migrationTableSchema: schema,
      })
      expect((await migrator.migrateToLatest()).error).toBeUndefined()
      const engine = await createEngine({ kysely: db })
      const run = await engine.start({ task: 't', command: ['sleep', '60'], stop: quickStop })
      expect((await engine.stop({ task: 't' })).status).toBe('confirmed')
      expect((await engine.history(run.id)).orders).toHaveLength(1)
      await engine.close()
      const { rows } = await query(server.url, `select count(*)::int as n from ${schema}.runwarden_run`)
      expect(rows).toEqual([{ n: 1 }])
    })
  })

  describe('connections', () => {
    it('INV-11: they are few, named, and every statement, lock and idle transaction on them has a maximum', async () => {
      const database = await newDatabase()
      const named = withParameter(database, 'application_name', `test-${process.pid}`)
      const engine = await openTestEngine({ database: named })
      await Promise.all(Array.from({ length: 40 }, () => engine.runs()))
      const { rows } = await query(
        database,
        'select count(*)::int as n from pg_stat_activity where application_name = $1',
        [`test-${process.pid}`],
      )
      expect((rows as { n: number }[])[0]?.n).toBeLessThanOrEqual(5)
      const shows = ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']
      const config = (url: string) =>
        openPostgres(url, { mayMake: true }).then(async ({ db, close }) => {
          const shown = shows.map((name) => sql<Record<string, string>>`show ${sql.raw(name)}`.execute(db))
          const values = (await Promise.all(shown)).map(({ rows }, index) => rows[0]?.[shows[index] ?? ''])
          await close()
          return values
        })
      expect(await config(database)).toEqual(['2s', '5s', '10s'])
      // The address has the last word.
      expect(await config(withParameter(database, 'lock_timeout', '1234'))).toEqual(['1234ms', '5s', '10s'])
    })

    it('INV-11: a lock that is held too long is a store that is busy: the write is repeated', async () => {
      const database = await newDatabase()
      const warnings: string[] = []
      const engine = await openTestEngine({
        database: withParameter(database, 'lock_timeout', '100'),
        commitDeadlineMs: 20_000,
        logger: { ...silent, warn: (_detail, message) => warnings.push(message) },
      })
      const blocker = new pg.Client({ connectionString: database })
      await blocker.connect()
      onTestFinished(() => blocker.end())
      await blocker.query('begin; lock table runwarden_run in exclusive mode')
      const starting = engine.start({ command: ['true'] })
      await waitFor(() => warnings.includes('the store did not take a commit; it is repeated'), {
        deadlineMs: 10_000,
        what: 'the write was refused',
      })
      await blocker.query('commit')
      expect((await (await starting).outcome).status).toBe('completed')
    })

    it('INV-11: heartbeats and commits over the same rows do not wait for each other', async () => {
      const store = await openStoreIn({ database: await newDatabase() })
      const ids = Array.from({ length: 30 }, (_, n) => `r${n}`)
      await store.commit([engineWrite('e1', 0), ...ids.map((id) => runWrite(id, 0))], [])
      const backwards = ids.toReversed()
      for (let rev = 1; rev <= 15; rev += 1) {
        const [verdicts] = await Promise.all([
          store.commit([...backwards.map((id) => runWrite(id, rev)), engineWrite('e1', rev)], []),
          store.heartbeat(
            'e1',
            rev,
            ids.map((runId) => ({ runId, lastProgressAt: rev })),
          ),
        ])
        expect(new Set(verdicts)).toEqual(new Set(['committed']))
      }
    }, 60_000)
  })

  describe('engines that share it', () => {
    it('K17: a launch of another engine that has read the fences and is not in yet does not escape a fenced stop', async () => {
      const database = await newDatabase()
      const [launching, stopping] = await Promise.all([
        openTestEngine({ database }),
        openTestEngine({ database }),
      ])
      // The launch waits for the row of its journal, behind its look at the fences.
      const blocker = new pg.Client({ connectionString: database })
      await blocker.connect()
      onTestFinished(() => blocker.end())
      await blocker.query(
        "begin; insert into runwarden_transition values ('run', 'r1', 0, 0, '', '', '', '')",
      )
      const waitsOn = (kind: string): Promise<unknown> =>
        waitFor(
          async () =>
            (await blocker.query('select 1 from pg_locks where not granted and locktype = $1', [kind]))
              .rowCount,
          { deadlineMs: 10_000, what: `someone waits for a lock on ${kind}` },
        )
      const starting = launching.start({ id: 'r1', task: 't', command: ['sleep', '60'], stop: quickStop })
      await waitsOn('transactionid')
      const stopped = stopping.stop({ task: 't' })
      await waitsOn('advisory')
      await blocker.query('rollback')
      expect(await stopped).toMatchObject({ status: 'confirmed', runs: [{ runId: 'r1', work: 'cancelled' }] })
      expect((await (await starting).outcome).status).toBe('cancelled')
    }, 60_000)

    it('R5: an engine is told when an order is filed for it, and of no other’s', async () => {
      const store = await openStoreIn({ database: await newDatabase() })
      const told: string[] = []
      const hints = ['e1', 'e2'].map((id) => store.hintFiled(id, () => told.push(id)))
      onTestFinished(() => {
        for (const one of hints) one.close()
      })
      await waitFor(() => hints.every(({ isLive }) => isLive), { deadlineMs: 10_000, what: 'both listen' })
      // Each once at its beginning: what was filed before is looked for.
      expect(told.splice(0).sort()).toEqual(['e1', 'e2'])
      await store.commit(
        [orderWrite('o', 0, { lines: [requestedLine('a', 'e2'), requestedLine('b', null)] })],
        [],
      )
      await waitFor(() => told.length > 0, { deadlineMs: 10_000, what: 'the engine is told' })
      expect(told).toEqual(['e2'])
    })

    it('R5: an order of another engine is acted upon; how soon is printed', async () => {
      const database = await newDatabase()
      const [owner, filer] = await Promise.all([openTestEngine({ database }), openTestEngine({ database })])
      const tookMs: number[] = []
      for (let round = 0; round < 9; round += 1) {
        const run = await owner.start({ command: ['sleep', '60'], stop: quickStop })
        await run.events().next()
        const stopping = filer.stop({ run: run.id })
        const filedAt = await waitFor(
          async () => {
            const { rows } = await query(
              database,
              'select o.requested_at as at from runwarden_stop_order o join runwarden_stop_order_run l on l.order_id = o.id where l.run_id = $1',
              [run.id],
            )
            return (rows as { at: number }[])[0]?.at
          },
          { deadlineMs: 10_000, what: 'the order is filed' },
        )
        await stopping
        const { transitions } = await owner.history(run.id)
        const told = transitions.find(({ event }) => event === 'run.cancel')
        tookMs.push((told?.at ?? Infinity) - filedAt)
      }
      tookMs.sort((a, b) => a - b)
      console.log(`an order filed by another engine is acted upon after ${tookMs.join(', ')} ms`)
      expect(tookMs.every(Number.isFinite)).toBe(true)
    }, 60_000)
  })
}
