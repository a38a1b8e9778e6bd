/** What a Kysely instance speaks, asked of its declared capabilities: a class name would not survive a bundler or a second copy of Kysely. */
import { sql } from 'kysely'
import type { Kysely } from 'kysely'
import type { Tx } from './schema.js'

/** Of Kysely's dialects PostgreSQL alone both rolls back a schema's change and returns rows from a write. */
// Asked of any instance, whatever its tables.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export const isPostgres = (db: Kysely<any>): boolean => {
  const { supportsTransactionalDdl, supportsReturning } = db.getExecutor().adapter
  return supportsTransactionalDdl && supportsReturning
}

/** The channel of filed orders; the payload is the id of the engine that must answer. */
export const FILED_CHANNEL = 'runwarden_filed'

/** Tells an engine that an order is filed for it: delivered with the commit, and to nobody where nobody listens. */
export const notifyFiled = async (tx: Tx, engineIds: Iterable<string>): Promise<void> => {
  if (!isPostgres(tx)) return
  for (const engineId of new Set(engineIds)) {
    await sql`select pg_notify(${FILED_CHANNEL}, ${engineId})`.execute(tx)
  }
}

/** Any number that no other user of advisory locks is likely to take: the bytes of "runwarde". */
const FENCE_LOCK = '8247619751613981797'

/**
 * K17: a launch reads the fences in force, a fenced order is then followed by a look at the runs. SQLite has one writer; on PostgreSQL
 * two open transactions would each miss the other's row. Taken first in the transaction and in its strongest form, so that it is never
 * upgraded: two upgrades would wait for each other.
 */
export const lockFences = async (tx: Tx, use: 'raises' | 'reads' | 'none'): Promise<void> => {
  if (use === 'none' || !isPostgres(tx)) return
  await (use === 'raises'
    ? sql`select pg_advisory_xact_lock(${sql.lit(FENCE_LOCK)}::bigint)`.execute(tx)
    : sql`select pg_advisory_xact_lock_shared(${sql.lit(FENCE_LOCK)}::bigint)`.execute(tx))
}
