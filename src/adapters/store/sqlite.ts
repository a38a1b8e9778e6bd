/**
 * Opens the embedded store: one SQLite file through better-sqlite3, write-ahead logged and fully synchronous.
 *
 * Errors: `store-unavailable` names the path and the cause; `store-too-new` leaves the file untouched (S1, S2).
 */
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { RunwardenError } from '../../errors.js'
import { isBusy, toStoreError } from './errors.js'
import { migrate, readSchemaVersion } from './migrate.js'
import { SCHEMA_VERSION } from './migrations.js'
import type { Database, Db } from './schema.js'

/** While opening, another process may be migrating the same file. */
const OPEN_BUSY_MS = 5_000
/** Later the engine must never be held for long: better-sqlite3 blocks the loop while it waits. The commit is repeated instead. */
const RUNNING_BUSY_MS = 25

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
  try {
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw toStoreError(error, `database ${path}`)
  }
}

const openFile = (path: string): BetterSqlite3.Database => {
  if (path !== ':memory:') preparePath(path)
  const file = new BetterSqlite3(path, { timeout: OPEN_BUSY_MS })
  file.pragma('journal_mode = WAL')
  file.pragma('synchronous = FULL')
  return file
}

export const openSqlite = async (path: string): Promise<{ readonly db: Db; readonly close: () => Promise<void> }> => {
  let file: BetterSqlite3.Database | null = null
  try {
    file = openFile(path)
    const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: file }) })
    const version = await readSchemaVersion(db)
    if (version > SCHEMA_VERSION) {
      throw new RunwardenError(
        'store-too-new',
        `database ${path}: its schema is version ${String(version)}, this library knows ${String(SCHEMA_VERSION)}`,
      )
    }
    if (version < SCHEMA_VERSION) await migrateWhileBusy(db)
    file.pragma(`busy_timeout = ${String(RUNNING_BUSY_MS)}`)
    return { db, close: () => db.destroy() }
  } catch (error) {
    file?.close()
    throw toStoreError(error, `database ${path}`)
  }
}

/** Two processes that open a new file at once: one migrates, the other finds it done. */
const migrateWhileBusy = async (db: Db): Promise<void> => {
  const deadline = performance.now() + OPEN_BUSY_MS
  for (;;) {
    try {
      await migrate(db)
      return
    } catch (error) {
      const isDone = (await readSchemaVersion(db)) >= SCHEMA_VERSION
      if (isDone) return
      if (!isBusy(error) || performance.now() > deadline) throw error
    }
  }
}
