/**
 * One change of the queue at a time, whichever engine makes it.
 *
 * The queue's row is updated first, which takes the write lock of SQLite and the row lock of PostgreSQL; what another process holds is
 * waited for, no longer than the deadline (INV-11).
 */
import { setTimeout as wait } from 'node:timers/promises'
import { RunwardenError } from '../../errors.js'
import { isPassing, toStoreError } from './errors.js'
import type { Db, QueueTable, Tx } from './schema.js'

const DEADLINE_MS = 5_000
const RETRY_MS = 5

/** Of our own refusals only the one that says "not now" is tried again. */
const mayPass = (error: unknown): boolean =>
  error instanceof RunwardenError ? error.code === 'store-unavailable' : isPassing(error)

export const readQueue = (db: Db): Promise<QueueTable | undefined> =>
  db.selectFrom('runwarden_queue').selectAll().where('name', '=', 'jobs').executeTakeFirst()

export const inQueue = async <T>(
  db: Db,
  change: (tx: Tx, queue: QueueTable | undefined) => Promise<T>,
): Promise<T> => {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    try {
      return await db.transaction().execute(async (tx) => {
        await tx
          .updateTable('runwarden_queue')
          .set((where) => ({ rev: where('rev', '+', 1) }))
          .where('name', '=', 'jobs')
          .execute()
        return change(tx, await readQueue(tx))
      })
    } catch (error) {
      if (!mayPass(error) || performance.now() > deadline) throw toStoreError(error)
      await wait(RETRY_MS)
    }
  }
}
