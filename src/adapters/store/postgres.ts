/**
 * Opens the store on a PostgreSQL server, through `pg`, which is loaded here and nowhere else.
 *
 * Owns: the pool and its bounds, the types on its connections, the migration at opening.
 * Invariants: INV-11 (every statement, lock, idle transaction and connection attempt has a maximum), L7 (the server is named by host,
 *   port and database only).
 *
 * Errors: `store-unavailable` names the server and the cause; `store-too-new` leaves the schema untouched (S1, S2); `invalid-option`
 *   where `pg` is not installed.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import type * as Pg from 'pg'
import type { FiledHints } from '../../actors/store.ports.js'
import { RunwardenError, codeOf, messageOf } from '../../errors.js'
import { isBusy, toStoreError } from './errors.js'
import { FiledListener } from './filed-listener.js'
import { migrate, readSchemaVersion } from './migrate.js'
import { SCHEMA_VERSION } from './migrations.js'
import { withoutCredentials } from './postgres-url.js'
import type { Database, Db } from './schema.js'

/** One writes, the others read; one more connection listens for filed orders. */
const CONNECTIONS_MAX = 4
const CONNECT_MAX_MS = 5_000
const IDLE_MS = 30_000
const KEEP_ALIVE_AFTER_MS = 10_000

/** The server's bounds first, the client's last: it is for a server that says nothing any more. The URL's parameters override them. */
const BOUNDS = {
  lock_timeout: 2_000,
  statement_timeout: 5_000,
  query_timeout: 6_000,
  idle_in_transaction_session_timeout: 10_000,
} as const

/** How long an engine that is migrating the same database, or a server that is starting, is waited for. */
const OPEN_DEADLINE_MS = 10_000
const OPEN_RETRY_MS = 50

/** `bigint`, `double precision`: whole numbers below 2⁵³, whatever parsers the host has set for all of `pg`. */
const NUMBER_TYPES = new Set<number>([20, 701])

interface OpenServer {
  readonly db: Db
  readonly openHints: (engineId: string, onHint: () => void) => FiledHints
  readonly close: () => Promise<void>
}

/** `mayMake: false`: a reader's, to whom an empty database is no store. */
interface OpenOptions {
  readonly mayMake: boolean
}

type TypeId = Parameters<typeof Pg.types.getTypeParser>[0]

type PgModule = Pick<typeof Pg, 'Client' | 'Pool' | 'types'>

const loadPg = async (): Promise<PgModule> => {
  try {
    return (await import('pg')).default
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new RunwardenError(
      'invalid-option',
      'option database names a PostgreSQL server, for which the package pg is needed: npm install pg',
      { cause: error },
    )
  }
}

const configOf = (pg: PgModule, url: string): Pg.ClientConfig => ({
  ...BOUNDS,
  connectionString: url,
  fallback_application_name: 'runwarden',
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
  connectionTimeoutMillis: CONNECT_MAX_MS,
  types: {
    getTypeParser: ((type: TypeId): unknown =>
      NUMBER_TYPES.has(type) ? Number : pg.types.getTypeParser(type)) as typeof pg.types.getTypeParser,
  },
})

const openPool = (pg: PgModule, config: Pg.ClientConfig): Pg.Pool => {
  const pool = new pg.Pool({
    ...config,
    max: CONNECTIONS_MAX,
    idleTimeoutMillis: IDLE_MS,
    // An engine that was forgotten keeps no process alive.
    allowExitOnIdle: true,
  })
  // A connection that breaks says so to its statement, and once more as an event: unheard, that would end the host's process.
  const ignore = (): void => undefined
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

const bringUpToDate = async (db: Db, place: string, { mayMake }: OpenOptions): Promise<void> => {
  const version = await readSchemaVersion(db)
  if (version > SCHEMA_VERSION) {
    throw new RunwardenError(
      'store-too-new',
      `${place}: its schema is version ${String(version)}, this library knows ${String(SCHEMA_VERSION)}`,
    )
  }
  if (version === 0 && !mayMake) {
    throw new RunwardenError('store-unavailable', `${place}: there is no store in it yet`)
  }
  // Kysely's migrator takes an advisory lock: of several that find the database empty, one migrates and the others find it done.
  if (version < SCHEMA_VERSION) await migrate(db, { isInTransaction: false })
}

/** The migrator lists the tables of every schema: another's that is dropped meanwhile fails the list, and not the next one. */
const isGoneMeanwhile = (error: unknown): boolean =>
  ['3F000', '42P01'].includes(codeOf(error) ?? '') && / does not exist$/.test(messageOf(error))

const untilOpen = async (open: () => Promise<void>): Promise<void> => {
  const deadline = performance.now() + OPEN_DEADLINE_MS
  for (;;) {
    try {
      await open()
      return
    } catch (error) {
      if (!(isBusy(error) || isGoneMeanwhile(error)) || performance.now() > deadline) throw error
      await wait(OPEN_RETRY_MS)
    }
  }
}

export const openPostgres = async (url: string, options: OpenOptions): Promise<OpenServer> => {
  const pg = await loadPg()
  const place = `database ${withoutCredentials(url)}`
  const config = configOf(pg, url)
  let db: Db | null = null
  try {
    const opened: Db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: openPool(pg, config) }) })
    db = opened
    await untilOpen(() => bringUpToDate(opened, place, options))
    return {
      db: opened,
      openHints: (engineId, onHint) => new FiledListener(() => new pg.Client(config), engineId, onHint),
      close: () => opened.destroy(),
    }
  } catch (error) {
    await db?.destroy()
    throw toStoreError(error, place)
  }
}
