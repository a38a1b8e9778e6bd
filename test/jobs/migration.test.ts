/** A store from before there were jobs. */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { expect, it } from 'vitest'
import { migrations } from '../../src/sqlite.js'
import { tempDir } from '../support/wait-for.js'
import { openTestQueue } from './queue.js'

it('S1: a store of the first schema is migrated with its runs, and takes jobs', async () => {
  const database = join(tempDir(), 'runs.db')
  const old = new Kysely<Record<string, Record<string, unknown>>>({
    dialect: new SqliteDialect({ database: new BetterSqlite3(database) }),
  })
  await migrations['runwarden_0001_core']?.up(old)
  const at = 1_700_000_000_000
  const record = { migration: { name: 'runwarden_0001_core', timestamp: new Date(at).toISOString() } }
  await old.schema
    .createTable('runwarden_migration')
    .addColumn('name', 'varchar(255)', (column) => column.notNull().primaryKey())
    .addColumn('timestamp', 'varchar(255)', (column) => column.notNull())
    .execute()
  await old.insertInto('runwarden_migration').values(record.migration).execute()
  const states = {
    work: 'settled.completed',
    process: 'confirmed',
    delivery: 'delivered',
    headline: 'completed',
  }
  await old
    .insertInto('runwarden_run')
    .values({
      id: 'old-run',
      labels: '{}',
      program: 'true',
      protocol: 'lines',
      machine_version: 1,
      rev: 4,
      owner: 'nobody',
      snapshot: '{}',
      ...states,
      attempt: 1,
      generation: 1,
      created_at: at,
      updated_at: at,
      settled_at: at,
      done_at: at,
    })
    .execute()
  await old.destroy()
  const { engine, queue } = await openTestQueue({}, database)
  expect((await engine.runs()).map(({ runId }) => runId)).toEqual(['old-run'])
  await queue.add({ id: 'a', command: ['true'] })
  await queue.work()
  expect(await queue.get('a')).toMatchObject({ state: 'done' })
})
