/**
 * The store of a test: a SQLite file of its own, or, where RUNWARDEN_TEST_DATABASE names a server, a schema of its own there.
 * And what a test does to a store behind the library's back, in SQL that both understand.
 */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { PostgresDialect, SqliteDialect } from 'kysely'
import type { Dialect } from 'kysely'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { schemaOn } from './postgres.js'
import { tempDir } from './wait-for.js'

const isServer = (database: string): boolean => database.startsWith('postgres')

export const testDatabase = async (): Promise<string> => {
  const { RUNWARDEN_TEST_DATABASE: server } = process.env
  if (server === undefined) return join(tempDir(), 'runs.db')
  // Logs and spools go below the user's state folder there.
  process.env['XDG_STATE_HOME'] = tempDir()
  return schemaOn(server)
}

/** A connection of the host's own to it. */
export const dialectOf = (database: string): Dialect =>
  isServer(database)
    ? new PostgresDialect({ pool: new pg.Pool({ connectionString: database }) })
    : new SqliteDialect({ database: new BetterSqlite3(database) })

export interface Backdoor {
  rows(sql: string): Promise<Record<string, unknown>[]>
  /** Nobody else can write from now on, until the returned function is called. */
  lock(): Promise<() => Promise<void>>
}

export const openBackdoor = async (database: string): Promise<Backdoor> => {
  if (!isServer(database)) {
    const file = new BetterSqlite3(database)
    onTestFinished(() => void file.close())
    return {
      rows: (sql) => {
        const statement = file.prepare(sql)
        if (statement.reader) return Promise.resolve(statement.all() as Record<string, unknown>[])
        statement.run()
        return Promise.resolve([])
      },
      lock: () => {
        file.exec('BEGIN EXCLUSIVE')
        return Promise.resolve(() => {
          file.exec('COMMIT')
          return Promise.resolve()
        })
      },
    }
  }
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  onTestFinished(() => client.end())
  return {
    rows: async (sql) => (await client.query(sql)).rows as Record<string, unknown>[],
    lock: async () => {
      await client.query('begin')
      await client.query(
        'lock table runwarden_run, runwarden_engine, runwarden_stop_order in access exclusive mode',
      )
      return async () => {
        await client.query('commit')
      }
    },
  }
}
