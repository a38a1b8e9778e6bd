/**
 * Places in the queue: whole numbers with room between them, so that a job is moved by one update.
 *
 * Only jobs that are not over count as neighbours. Where the room between two is used up, those behind are pushed apart, as few of them
 * as will do. To be called under the queue's lock.
 */
import type { JobPlace } from '../../actors/job.ports.js'
import { RunwardenError } from '../../errors.js'
import type { Tx } from './schema.js'

/** Room for 26 halvings; 2⁵³ has room for 134 million of these. */
const ROOM = 2 ** 26
/** Pushing apart makes at least this much room, or takes more jobs with it. */
const ROOM_MIN = 2 ** 10
const PUSHED_FIRST = 64

interface Spot {
  readonly id: string
  readonly place: number
}

const open = (tx: Tx) => tx.selectFrom('runwarden_job').select(['id', 'place']).where('ended_at', 'is', null)

const edge = (tx: Tx, end: 'first' | 'last'): Promise<Spot | undefined> => {
  const direction = end === 'first' ? 'asc' : 'desc'
  return open(tx).orderBy('place', direction).orderBy('id', direction).limit(1).executeTakeFirst()
}

const before = (tx: Tx, spot: Spot, except: string): Promise<Spot | undefined> =>
  open(tx)
    .where('id', '!=', except)
    .where((where) =>
      where.or([
        where('place', '<', spot.place),
        where.and([where('place', '=', spot.place), where('id', '<', spot.id)]),
      ]),
    )
    .where('place', '<=', spot.place)
    .orderBy('place', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

const behind = (tx: Tx, spot: Spot, except: string, limit: number): Promise<Spot[]> =>
  open(tx)
    .where('id', '!=', except)
    .where((where) =>
      where.or([
        where('place', '>', spot.place),
        where.and([where('place', '=', spot.place), where('id', '>', spot.id)]),
      ]),
    )
    .where('place', '>=', spot.place)
    .orderBy('place')
    .orderBy('id')
    .limit(limit)
    .execute()

/** Pushes apart what follows a spot, until there is room behind it. */
const pushApart = async (tx: Tx, spot: Spot, except: string): Promise<void> => {
  for (let count = PUSHED_FIRST; ; count *= 4) {
    const found = await behind(tx, spot, except, count + 1)
    const pushed = found.slice(0, count)
    const end = found[count]?.place ?? spot.place + ROOM * (pushed.length + 1)
    const room = Math.floor((end - spot.place) / (pushed.length + 1))
    if (room < ROOM_MIN) continue
    for (const [index, { id }] of pushed.entries()) {
      const place = spot.place + room * (index + 1)
      await tx.updateTable('runwarden_job').set({ place }).where('id', '=', id).execute()
    }
    return
  }
}

/** A place behind `spot` and before whatever follows it. */
const placeBehind = async (tx: Tx, spot: Spot, except: string): Promise<number> => {
  const [next] = await behind(tx, spot, except, 1)
  if (next === undefined) return spot.place + ROOM
  if (next.place - spot.place < 2) {
    await pushApart(tx, spot, except)
    return placeBehind(tx, spot, except)
  }
  return Math.floor((spot.place + next.place) / 2)
}

const anchorOf = async (tx: Tx, jobId: string): Promise<Spot> => {
  const row = await tx
    .selectFrom('runwarden_job')
    .select(['id', 'place', 'ended_at'])
    .where('id', '=', jobId)
    .executeTakeFirst()
  if (row === undefined) throw new RunwardenError('unknown-job', `job ${jobId} is not in this store`)
  if (row.ended_at !== null)
    throw new RunwardenError('refused', `job ${jobId} is over: nothing can be placed beside it`)
  return row
}

/** The place that is asked for, for a job that may be in the queue already. */
export const findPlace = async (tx: Tx, wanted: JobPlace, jobId: string): Promise<number> => {
  if ('at' in wanted) {
    const end = await edge(tx, wanted.at)
    if (end === undefined || end.id === jobId) return end?.place ?? 0
    return wanted.at === 'first' ? end.place - ROOM : end.place + ROOM
  }
  if ('after' in wanted) return placeBehind(tx, await anchorOf(tx, wanted.after), jobId)
  const anchor = await anchorOf(tx, wanted.before)
  const previous = await before(tx, anchor, jobId)
  return previous === undefined ? anchor.place - ROOM : placeBehind(tx, previous, jobId)
}
