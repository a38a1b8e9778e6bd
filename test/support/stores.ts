/** The store port over each database: SQLite, PostgreSQL's code in this process (PGlite), and a PostgreSQL server where there is one. */
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import BetterSqlite3 from 'better-sqlite3'
import { PostgresDialect, SqliteDialect } from 'kysely'
import type { Dialect, PostgresPoolClient } from 'kysely'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { StorePort } from '../../src/actors/store.ports.js'
import { engineOptionsSchema, openStore, parseOptions } from '../../src/internal.js'
import type { EngineOptions } from '../../src/index.js'
import { schemaOn, whyNoPostgres } from './postgres.js'
import { tempDir } from './wait-for.js'

export interface Databases {
  readonly name: 'SQLite' | 'PGlite' | 'PostgreSQL'
  /** Why it cannot be had here, or null. */
  readonly why: string | null
  /** A dialect over a new, empty database. */
  readonly dialect: () => Promise<Dialect>
  /** A store in a new database. */
  readonly open: () => Promise<StorePort>
}

export const openStoreIn = async (options: EngineOptions): Promise<StorePort> => {
  const store = await openStore(parseOptions(engineOptionsSchema, options, 'test'))
  onTestFinished(() => store.close())
  return store
}

/** One for the test file: it takes seconds to start. It has one connection: a transaction has it to itself, the next waits. */
class SharedPglite {
  #database: Promise<PGlite> | null = null
  #free: Promise<void> = Promise.resolve()
  #schemas = 0

  constructor() {
    beforeAll(async () => {
      await (this.#database ??= PGlite.create())
    }, 120_000)
    afterAll(async () => (await this.#database)?.close())
  }

  /** Over a schema of its own, until the next one is asked for. */
  async dialect(): Promise<Dialect> {
    const database = await (this.#database ??= PGlite.create())
    this.#schemas += 1
    await database.exec(`create schema s${this.#schemas}; set search_path to s${this.#schemas}`)
    return new PostgresDialect({ pool: this })
  }

  async connect(): Promise<PostgresPoolClient> {
    const isFree = this.#free
    let release = (): void => undefined
    this.#free = new Promise((resolve) => {
      release = resolve
    })
    const database = await this.#database
    await isFree
    return {
      query: (async (text: string, values: readonly unknown[]) => {
        const { rows, affectedRows = 0 } = (await database?.query(text, [...values])) ?? { rows: [] }
        const command = (/^\s*(\w+)/.exec(text)?.[1] ?? '').toUpperCase()
        return { command, rowCount: affectedRows, rows }
      }) as PostgresPoolClient['query'],
      release,
    }
  }

  end(): Promise<void> {
    return Promise.resolve()
  }
}

const overDialect = (dialect: () => Promise<Dialect>) => ({
  dialect,
  open: async () => openStoreIn({ dialect: await dialect() }),
})

export const databasesOn = (
  server: { readonly url: string },
  pglite = new SharedPglite(),
): readonly Databases[] => [
  {
    name: 'SQLite',
    why: null,
    dialect: () =>
      Promise.resolve(new SqliteDialect({ database: new BetterSqlite3(join(tempDir(), 'runs.db')) })),
    open: () => openStoreIn({ database: ':memory:' }),
  },
  { name: 'PGlite', why: null, ...overDialect(() => pglite.dialect()) },
  {
    name: 'PostgreSQL',
    why: whyNoPostgres(),
    dialect: async () => {
      const { default: pg } = await import('pg')
      const pool = new pg.Pool({ connectionString: await schemaOn(server.url), max: 4 })
      return new PostgresDialect({ pool })
    },
    open: async () => openStoreIn({ database: await schemaOn(server.url) }),
  },
]
