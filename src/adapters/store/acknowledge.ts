/** The host's own acknowledgement of a delivery, in the host's own transaction. */
import type { Kysely } from 'kysely'
import type { Database } from './schema.js'

/**
 * Says that the host has an outcome, in a transaction of the host's over a database that it shares with the engine: what the host makes
 * of the outcome and the acknowledgement are committed together, and the outcome is never delivered again (INV-12).
 *
 * @param db The host's Kysely instance or transaction. Its tables may be any: only those of runwarden are touched.
 * @param deliveryId From the delivery.
 * @returns false when there is no such delivery, or it was acknowledged before.
 */
export const acknowledgeDelivery = async (
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a host's instance is typed by its own tables
  db: Kysely<any>,
  deliveryId: string,
): Promise<boolean> => {
  const result = await (db as Kysely<Database>)
    .updateTable('runwarden_result')
    .set({ acknowledged_at: Date.now() })
    .where('delivery_id', '=', deliveryId)
    .where('acknowledged_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}
