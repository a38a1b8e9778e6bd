/** From the rows of jobs to what the actors read. */
import type { QueueHold, StoredJob, StoredJobTransition } from '../../actors/job.ports.js'
import type { WorkspaceRef } from '../../actors/workspace.ports.js'
import { RunwardenError } from '../../errors.js'
import { parse } from './rows.js'
import type { Db, JobTable, QueueTable } from './schema.js'

export const unknownJob = (jobId: string): RunwardenError =>
  new RunwardenError('unknown-job', `job ${jobId} is not in this store`)

export const toHold = (row: QueueTable | undefined): QueueHold | null =>
  row?.held_at == null ? null : { since: row.held_at, by: row.held_by ?? '', reason: row.held_reason ?? '' }

const toJob = (row: JobTable, after: readonly string[], runHeadline: string | null): StoredJob => ({
  row: {
    id: row.id,
    token: row.token,
    title: row.title,
    project: row.project,
    account: row.account,
    program: row.program,
    spec: row.spec,
    createdAt: row.created_at,
  },
  rev: row.rev,
  machineVersion: row.machine_version,
  snapshot: row.snapshot,
  state: row.state,
  place: row.place,
  after,
  workspace: row.workspace === null ? null : parse<WorkspaceRef>(row.workspace),
  updatedAt: row.updated_at,
  endedAt: row.ended_at,
  runHeadline,
})

export const findJob = async (db: Db, jobId: string): Promise<JobTable> => {
  const row = await db.selectFrom('runwarden_job').selectAll().where('id', '=', jobId).executeTakeFirst()
  if (row === undefined) throw unknownJob(jobId)
  return row
}

const headlinesOf = async (db: Db, runIds: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  if (runIds.length === 0) return new Map()
  const runs = await db
    .selectFrom('runwarden_run')
    .select(['id', 'headline'])
    .where('id', 'in', runIds)
    .execute()
  return new Map(runs.map(({ id, headline }) => [id, headline]))
}

/** Jobs with what they come after and how their runs are: two queries more, however many jobs. At most a page of them. */
export const readJobs = async (db: Db, rows: readonly JobTable[]): Promise<readonly StoredJob[]> => {
  if (rows.length === 0) return []
  const waits = await db
    .selectFrom('runwarden_job_after')
    .selectAll()
    .where(
      'job_id',
      'in',
      rows.map(({ id }) => id),
    )
    .orderBy('after_id')
    .execute()
  const after = new Map<string, string[]>()
  for (const { job_id, after_id } of waits) after.set(job_id, [...(after.get(job_id) ?? []), after_id])
  const headlines = await headlinesOf(
    db,
    rows.flatMap(({ run_id }) => (run_id === null ? [] : [run_id])),
  )
  return rows.map((row) => toJob(row, after.get(row.id) ?? [], headlines.get(row.run_id ?? '') ?? null))
}

export const readJob = async (db: Db, row: JobTable): Promise<StoredJob> => {
  const [job] = await readJobs(db, [row])
  if (job === undefined) throw unknownJob(row.id)
  return job
}

const stateIn = (text: string): string => parse<{ job: string }>(text).job

export const readJobTransitions = async (db: Db, jobId: string): Promise<readonly StoredJobTransition[]> => {
  const rows = await db
    .selectFrom('runwarden_transition')
    .selectAll()
    .where('kind', '=', 'job')
    .where('actor', '=', jobId)
    .orderBy('rev')
    .execute()
  return rows.map(({ rev, at, event, detail, from_state, to_state }) => ({
    rev,
    at,
    event,
    detail: parse<unknown>(detail),
    from: stateIn(from_state),
    to: stateIn(to_state),
  }))
}
