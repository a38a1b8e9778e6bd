/** Which jobs come after which others. To be called under the queue's lock. */
import { RunwardenError } from '../../errors.js'
import { findJob } from './job-rows.js'
import type { Tx } from './schema.js'

/** Records what a new job waits for. Rejects `unknown-job`, and `refused` for what will never be done. */
export const waitFor = async (tx: Tx, jobId: string, after: readonly string[]): Promise<void> => {
  const others = [...new Set(after)].sort()
  for (const other of others) {
    // Holds the row, so that its drop is either seen here, or sees the new job.
    await tx
      .updateTable('runwarden_job')
      .set((where) => ({ rev: where.ref('rev') }))
      .where('id', '=', other)
      .execute()
    const { state } = await findJob(tx, other)
    if (state === 'cancelled')
      throw new RunwardenError('refused', `option after: job ${other} was dropped and will never be done`)
  }
  const waits = others.map((other) => ({ job_id: jobId, after_id: other }))
  if (waits.length > 0) await tx.insertInto('runwarden_job_after').values(waits).execute()
}

/** Rejects `refused`, naming those that would wait for ever. */
export const assertNobodyWaits = async (tx: Tx, jobId: string): Promise<void> => {
  const waiting = await tx
    .selectFrom('runwarden_job_after as wait')
    .innerJoin('runwarden_job as job', 'job.id', 'wait.job_id')
    .select('job.id')
    .where('wait.after_id', '=', jobId)
    .where('job.ended_at', 'is', null)
    .orderBy('job.id')
    .execute()
  if (waiting.length === 0) return
  const names = waiting.map(({ id }) => id).join(', ')
  throw new RunwardenError('refused', `job ${jobId} is waited for by ${names}`)
}

/** Somebody wants the job all the same: what will never be done is not waited for any more. */
export const forgetDropped = async (tx: Tx, jobId: string): Promise<void> => {
  const dropped = tx.selectFrom('runwarden_job').select('id').where('state', '=', 'cancelled')
  await tx
    .deleteFrom('runwarden_job_after')
    .where('job_id', '=', jobId)
    .where('after_id', 'in', dropped)
    .execute()
}

export const forgetWaits = async (tx: Tx, jobId: string): Promise<void> => {
  for (const column of ['job_id', 'after_id'] as const)
    await tx.deleteFrom('runwarden_job_after').where(column, '=', jobId).execute()
}
