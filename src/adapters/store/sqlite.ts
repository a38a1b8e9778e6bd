/**
 * Opens the embedded store: one SQLite file through better-sqlite3, write-ahead logged and fully synchronous.
 *
 * Errors: `store-unavailable` names the path and the cause; `store-too-new` leaves the file untouched (S1, S2).
 */
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import type { SqliteDatabase } from 'kysely'
import { RunwardenError } from '../../errors.js'
import { isBusy, toStoreError } from './errors.js'
import { migrate, readSchemaVersion } from './migrate.js'
import { SCHEMA_VERSION } from './migrations.js'
import type { Database, Db } from './schema.js'

/** How long another process that is opening or migrating the same file is waited for. */
const OPEN_DEADLINE_MS = 10_000
const OPEN_RETRY_MS = 10
/** better-sqlite3 blocks the event loop while it waits for a lock: never for long. What was refused is repeated. */
const BUSY_MS = 25

const unavailable = (path: string, why: string): RunwardenError =>
  new RunwardenError('store-unavailable', `database ${path}: ${why}`)

/** What a path can be said to be wrong with before SQLite touches it; a new file is made for its owner's eyes only. */
const preparePath = (path: string): void => {
  const folder = dirname(path)
  if (!existsSync(folder)) throw unavailable(path, `the folder ${folder} does not exist`)
  if (existsSync(path)) {
    if (!statSync(path).isFile()) throw unavailable(path, 'it is not a file')
    return
  }
  closeSync(openSync(path, 'a', 0o600))
}

/** The version is read again under the lock: of two processes that open a new file at once, one migrates and the other finds it done. */
const migrateAlone = async (file: BetterSqlite3.Database, db: Db): Promise<void> => {
  file.exec('BEGIN IMMEDIATE')
  try {
    if ((await readSchemaVersion(db)) < SCHEMA_VERSION) await migrate(db, { isInTransaction: true })
    file.exec('COMMIT')
  } catch (error) {
    file.exec('ROLLBACK')
    throw error
  }
}

/** More texts than the library has; lists of ids of every length could make any number of them. */
const STATEMENTS_MAX = 256

/** Each statement is prepared once: to compile its text costs more than to run it (B1). The one used longest ago makes room. */
export const withPreparedStatements = (file: BetterSqlite3.Database): SqliteDatabase => {
  const statements = new Map<string, BetterSqlite3.Statement>()
  return {
    prepare: (text) => {
      const statement = statements.get(text) ?? file.prepare(text)
      statements.delete(text)
      statements.set(text, statement)
      const [oldest] = statements.keys()
      if (statements.size > STATEMENTS_MAX && oldest !== undefined) statements.delete(oldest)
      return statement
    },
    close: () => void file.close(),
  }
}

interface OpenFile {
  readonly db: Db
  readonly close: () => Promise<void>
}

const tryOpen = async (path: string): Promise<OpenFile> => {
  if (path !== ':memory:') preparePath(path)
  const file = new BetterSqlite3(path, { timeout: BUSY_MS })
  try {
    file.pragma('journal_mode = WAL')
    file.pragma('synchronous = FULL')
    const db = new Kysely<Database>({
      dialect: new SqliteDialect({ database: withPreparedStatements(file) }),
    })
    const version = await readSchemaVersion(db)
    if (version > SCHEMA_VERSION) {
      throw new RunwardenError(
        'store-too-new',
        `database ${path}: its schema is version ${String(version)}, this library knows ${String(SCHEMA_VERSION)}`,
      )
    }
    if (version < SCHEMA_VERSION) await migrateAlone(file, db)
    return { db, close: () => db.destroy() }
  } catch (error) {
    file.close()
    throw error
  }
}

export const openSqlite = async (path: string): Promise<OpenFile> => {
  const deadline = performance.now() + OPEN_DEADLINE_MS
  for (;;) {
    try {
      return await tryOpen(path)
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw toStoreError(error, `database ${path}`)
      await wait(OPEN_RETRY_MS)
    }
  }
}
