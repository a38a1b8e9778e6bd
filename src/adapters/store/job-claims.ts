/**
 * Which job is next: the first in the queue's order that no cap and no other job holds up. To be called under the queue's lock, so that
 * the caps hold for all engines over the store together.
 */
import { ACTIVE_PHASES } from '../../actors/job.ports.js'
import type { JobCaps } from '../../actors/job.ports.js'
import type { Db, JobTable } from './schema.js'

type Cap = JobCaps['perProject']

/** What fills the slots now, under whose names. */
type Active = readonly { readonly project: string | null; readonly account: string | null }[]

export const readActive = (db: Db): Promise<Active> =>
  db.selectFrom('runwarden_job').select(['project', 'account']).where('state', 'in', ACTIVE_PHASES).execute()

const capOf = (cap: Cap, name: string): number => (typeof cap === 'object' ? cap[name] : cap) ?? Infinity

/** The names whose cap is reached; a cap of 0 is reached by nothing. */
const fullOf = (names: readonly (string | null)[], cap: Cap): string[] => {
  const counts = new Map(typeof cap === 'object' ? Object.keys(cap).map((name) => [name, 0]) : [])
  for (const name of names) if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].flatMap(([name, count]) => (count >= capOf(cap, name) ? [name] : []))
}

export const nextJob = (
  db: Db,
  active: Active,
  caps: JobCaps,
  passed: readonly string[],
): Promise<JobTable | undefined> => {
  const isFull = {
    project: fullOf(
      active.map(({ project }) => project),
      caps.perProject,
    ),
    account: fullOf(
      active.map(({ account }) => account),
      caps.perAccount,
    ),
  }
  let query = db
    .selectFrom('runwarden_job as job')
    .selectAll('job')
    .where('job.state', '=', 'pending')
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('runwarden_job_after as wait')
            .innerJoin('runwarden_job as other', 'other.id', 'wait.after_id')
            .select('wait.after_id')
            .whereRef('wait.job_id', '=', 'job.id')
            .where('other.state', '!=', 'done'),
        ),
      ),
    )
    .orderBy('job.place')
    .orderBy('job.id')
    .limit(1)
  for (const kind of ['project', 'account'] as const) {
    const full = isFull[kind]
    if (full.length === 0) continue
    query = query.where((where) =>
      where.or([where(`job.${kind}`, 'is', null), where(`job.${kind}`, 'not in', full)]),
    )
  }
  if (passed.length > 0) query = query.where('job.id', 'not in', passed)
  return query.executeTakeFirst()
}
