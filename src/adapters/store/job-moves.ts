/**
 * The moves of jobs: one step of the chart, its row and its journal, inside the transaction of whoever moves it.
 *
 * Owns: the compare-and-set of a job's row, what a dropped job means to those that come after it, and what a run's commit does to its job.
 * Does not own: the queue's order and its lock (job-store.ts).
 * Invariants: O13 (a run and its job change together, or neither), S3 (a write names the revision that it expects).
 */
import type { JobChart, JobStep } from '../../actors/job.ports.js'
import type { ActorWrite } from '../../actors/store.ports.js'
import { RunwardenError } from '../../errors.js'
import type { JobEvent } from '../../machines/job/job.events.js'
import type { JobTable, Tx } from './schema.js'

/** Another engine may move the same job between our look and our write; more often than this in a row it does not. */
const TRIES_MAX = 8

/** The columns that follow from a step. */
export const stepColumns = (step: JobStep, at: number) => ({
  state: step.to,
  snapshot: step.snapshot,
  attempts_left: step.attemptsLeft,
  attempts_spent: step.attemptsSpent,
  run_id: step.runId,
  engine_id: step.engineId,
  updated_at: at,
  ended_at: step.isOver ? at : null,
})

export const writeJobJournal = async (
  tx: Tx,
  jobId: string,
  rev: number,
  entry: {
    readonly at: number
    readonly event: string
    readonly detail: unknown
    readonly from: string
    readonly to: string
  },
): Promise<void> => {
  const { at, event, detail, from, to } = entry
  await tx
    .insertInto('runwarden_transition')
    .values({
      kind: 'job',
      actor: jobId,
      rev,
      at,
      event,
      detail: JSON.stringify(detail),
      from_state: JSON.stringify({ job: from }),
      to_state: JSON.stringify({ job: to }),
    })
    .execute()
}

/** What became of a move: null where there is no such job. */
type Moved = { readonly isMoved: boolean; readonly row: JobTable } | null

export class JobMoves {
  readonly chart: JobChart

  constructor(chart: JobChart) {
    this.chart = chart
  }

  /** R9: a job that was recorded by another version of the chart is left as it is. */
  assertKnown(row: JobTable): void {
    if (row.machine_version === this.chart.version) return
    throw new RunwardenError(
      'refused',
      `job ${row.id} was recorded with version ${String(row.machine_version)} of the job chart; this library knows ${String(this.chart.version)}`,
    )
  }

  async apply(tx: Tx, jobId: string, event: JobEvent): Promise<Moved> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const row = await tx.selectFrom('runwarden_job').selectAll().where('id', '=', jobId).executeTakeFirst()
      if (row === undefined) return null
      this.assertKnown(row)
      const step = this.chart.next(row.snapshot, event)
      if (step === null) return { isMoved: false, row }
      const columns = { ...stepColumns(step, event.at), rev: row.rev + 1 }
      const { numUpdatedRows } = await tx
        .updateTable('runwarden_job')
        .set(columns)
        .where('id', '=', jobId)
        .where('rev', '=', row.rev)
        .executeTakeFirst()
      if (numUpdatedRows === 0n) continue
      const { from, to } = step
      await writeJobJournal(tx, jobId, columns.rev, {
        at: event.at,
        event: event.type,
        detail: event,
        from,
        to,
      })
      if (to === 'cancelled') await this.#blockThoseAfter(tx, jobId, event.at)
      return { isMoved: true, row: { ...row, ...columns } }
    }
    throw new RunwardenError(
      'store-unavailable',
      `job ${jobId} is being changed all the time; nothing was written`,
    )
  }

  /** Whether a run may be recorded: the job of a new one must be claimed for it (case 27: of a drop and a launch, one wins). */
  async admit(tx: Tx, { rows }: ActorWrite): Promise<boolean> {
    if (rows.kind !== 'run' || rows.created === undefined || rows.job === undefined) return true
    const { jobId, facts } = rows.job
    const row = await tx.selectFrom('runwarden_job').selectAll().where('id', '=', jobId).executeTakeFirst()
    if (row?.machine_version !== this.chart.version) return false
    return facts[0] !== undefined && this.chart.next(row.snapshot, facts[0]) !== null
  }

  /** O13: what the run's transition tells its job, in the transaction of that transition. */
  async follow(tx: Tx, { rows }: ActorWrite): Promise<void> {
    if (rows.kind !== 'run' || rows.job === undefined) return
    const { jobId, facts } = rows.job
    for (const fact of facts) {
      const moved = await this.apply(tx, jobId, fact)
      // Dropped between the look and here: nothing of the batch is written, and the next try is refused at the look.
      if (rows.created !== undefined && fact.type === 'run.recorded' && moved?.isMoved !== true) {
        throw new RunwardenError(
          'store-unavailable',
          `job ${jobId} was claimed a moment ago and is not any more`,
        )
      }
    }
  }

  /** What comes after a job that will never be done cannot be started: it says so instead of waiting for ever. */
  async #blockThoseAfter(tx: Tx, jobId: string, at: number): Promise<void> {
    const waiting = await tx
      .selectFrom('runwarden_job_after')
      .select('job_id')
      .where('after_id', '=', jobId)
      .orderBy('job_id')
      .execute()
    const reason = `job ${jobId}, which it comes after, was dropped`
    for (const { job_id } of waiting) await this.apply(tx, job_id, { type: 'job.block', at, reason })
  }
}
