/** Whether a write is in the store already: its commit may have had no answer (INV-13). */
import type { ActorWrite } from '../../actors/store.ports.js'
import type { Tx } from './schema.js'

/** The engine that the actor belongs to now. A registry is its engine. */
const ownerOf = async (tx: Tx, { kind, actor }: ActorWrite): Promise<string | undefined> => {
  if (kind === 'registry') return actor
  const table = kind === 'run' ? 'runwarden_run' : 'runwarden_stop_order'
  return (await tx.selectFrom(table).select('owner').where('id', '=', actor).executeTakeFirst())?.owner
}

/** The journal is append-only: its row tells whether this very write is in, also when later ones stand on it. */
export const isIn = async (tx: Tx, write: ActorWrite): Promise<boolean> => {
  const { kind, actor, rev, journal } = write
  const found = await tx
    .selectFrom('runwarden_transition')
    .select('rev')
    .where('kind', '=', kind)
    .where('actor', '=', actor)
    .where('rev', '=', rev)
    .where('at', '=', journal.at)
    .where('event', '=', journal.event)
    .where('detail', '=', journal.detail)
    .where('to_state', '=', journal.to)
    .executeTakeFirst()
  return found !== undefined && (await ownerOf(tx, write)) === write.owner
}
