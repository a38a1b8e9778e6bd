/**
 * The queue of jobs over any Kysely instance.
 *
 * Owns: the order of the queue, who may claim what, and the lock that makes claims and moves of several engines follow each other.
 * Does not own: what an event means to a job (the chart, through job-moves.ts), nor the places' numbers (job-places.ts).
 * Invariants: INV-8 (of several engines one claims a job), INV-11 (a lock is waited for no longer than its deadline).
 */
import { ACTIVE_PHASES } from '../../actors/job.ports.js'
import type {
  ClaimReply,
  ClaimRequest,
  JobFilter,
  JobPlace,
  JobReply,
  JobRevision,
  JobStorePort,
  NewJob,
  QueueHold,
  StoredJob,
  StoredJobTransition,
} from '../../actors/job.ports.js'
import { RunwardenError } from '../../errors.js'
import type { JobCommand } from '../../machines/job/job.events.js'
import type { WorkspaceRef } from '../../actors/workspace.ports.js'
import { toStoreError } from './errors.js'
import { nextJob, readActive } from './job-claims.js'
import { stepColumns, writeJobJournal } from './job-moves.js'
import type { JobMoves } from './job-moves.js'
import { findPlace } from './job-places.js'
import { findJob, readJob, readJobTransitions, readJobs, toHold, unknownJob } from './job-rows.js'
import { assertNobodyWaits, forgetDropped, forgetWaits, waitFor } from './job-waits.js'
import { inQueue, readQueue } from './queue-lock.js'
import { parse } from './rows.js'
import type { Db, JobTable, QueueTable, Tx } from './schema.js'

export class KyselyJobStore implements JobStorePort {
  readonly #db: Db
  readonly #moves: JobMoves

  constructor(db: Db, moves: JobMoves) {
    this.#db = db
    this.#moves = moves
  }

  add(jobs: readonly NewJob[]): Promise<readonly StoredJob[]> {
    return inQueue(this.#db, async (tx) => {
      const added: StoredJob[] = []
      for (const job of jobs) added.push(await readJob(tx, await this.#insert(tx, job)))
      return added
    })
  }

  async load(jobId: string): Promise<StoredJob | null> {
    try {
      const row = await this.#db
        .selectFrom('runwarden_job')
        .selectAll()
        .where('id', '=', jobId)
        .executeTakeFirst()
      return row === undefined ? null : await readJob(this.#db, row)
    } catch (error) {
      throw toStoreError(error)
    }
  }

  async list({ states, project, account, behind, limit }: JobFilter): Promise<readonly StoredJob[]> {
    let query = this.#db
      .selectFrom('runwarden_job as job')
      .selectAll('job')
      .orderBy('job.place')
      .orderBy('job.id')
      .limit(limit)
    query =
      states === undefined ? query.where('job.ended_at', 'is', null) : query.where('job.state', 'in', states)
    if (project !== undefined) query = query.where('job.project', '=', project)
    if (account !== undefined) query = query.where('job.account', '=', account)
    if (behind !== undefined) {
      const spot = await this.load(behind)
      if (spot === null) throw unknownJob(behind)
      query = query
        .where('job.place', '>=', spot.place)
        .where((where) =>
          where.or([
            where('job.place', '>', spot.place),
            where.and([where('job.place', '=', spot.place), where('job.id', '>', behind)]),
          ]),
        )
    }
    try {
      return await readJobs(this.#db, await query.execute())
    } catch (error) {
      throw toStoreError(error)
    }
  }

  async count(): Promise<Readonly<Record<string, number>>> {
    const rows = await this.#db
      .selectFrom('runwarden_job')
      .select((where) => ['state', where.fn.countAll().as('count')])
      .groupBy('state')
      .execute()
    return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]))
  }

  transitionsOf(jobId: string): Promise<readonly StoredJobTransition[]> {
    return readJobTransitions(this.#db, jobId)
  }

  revisions(): Promise<readonly JobRevision[]> {
    return this.#db
      .selectFrom('runwarden_job as job')
      .leftJoin('runwarden_run as run', 'run.id', 'job.run_id')
      .select(['job.id', 'job.rev', 'run.headline'])
      .where('job.ended_at', 'is', null)
      .execute()
  }

  tell(jobId: string, event: JobCommand): Promise<JobReply> {
    return inQueue(this.#db, async (tx) => {
      const moved = await this.#moves.apply(tx, jobId, event)
      if (moved === null) throw unknownJob(jobId)
      // Wanted in spite of what it came after: that will never be done, and is not waited for any more.
      if (event.type === 'job.retry' && moved.isMoved) await forgetDropped(tx, jobId)
      return { isMoved: moved.isMoved, job: await readJob(tx, moved.row) }
    })
  }

  move(jobId: string, place: JobPlace, at: number, by: string): Promise<StoredJob> {
    return inQueue(this.#db, async (tx) => {
      const row = await findJob(tx, jobId)
      this.#moves.assertKnown(row)
      if (row.ended_at !== null) throw new RunwardenError('refused', `job ${jobId} is over and has no place`)
      const isBesideItself =
        ('before' in place && place.before === jobId) || ('after' in place && place.after === jobId)
      if (isBesideItself) throw new RunwardenError('refused', `job ${jobId} cannot be placed beside itself`)
      const moved = { place: await findPlace(tx, place, jobId), rev: row.rev + 1, updated_at: at }
      const { numUpdatedRows } = await tx
        .updateTable('runwarden_job')
        .set(moved)
        .where('id', '=', jobId)
        .where('rev', '=', row.rev)
        .executeTakeFirst()
      // Its run moved it in this moment: taken up again from the start.
      if (numUpdatedRows === 0n)
        throw new RunwardenError('store-unavailable', `job ${jobId} was moved by its run`)
      await writeJobJournal(tx, jobId, moved.rev, {
        at,
        event: 'job.moved',
        detail: { type: 'job.moved', at, by, place },
        from: row.state,
        to: row.state,
      })
      return readJob(tx, { ...row, ...moved })
    })
  }

  remove(jobId: string): Promise<void> {
    return inQueue(this.#db, async (tx) => {
      const row = await findJob(tx, jobId)
      if (row.state !== 'pending')
        throw new RunwardenError(
          'refused',
          `job ${jobId} is ${row.state}: only a pending job is removed; others are dropped`,
        )
      if (row.workspace !== null) {
        const { path } = parse<WorkspaceRef>(row.workspace)
        throw new RunwardenError(
          'refused',
          `job ${jobId} has worked in ${path}: drop it, which also says what becomes of that`,
        )
      }
      await assertNobodyWaits(tx, jobId)
      await forgetWaits(tx, jobId)
      await tx
        .deleteFrom('runwarden_transition')
        .where('kind', '=', 'job')
        .where('actor', '=', jobId)
        .execute()
      await tx.deleteFrom('runwarden_job').where('id', '=', jobId).execute()
    })
  }

  async keepWorkspace(jobId: string, workspace: WorkspaceRef | null): Promise<void> {
    await inQueue(this.#db, async (tx) => {
      await tx
        .updateTable('runwarden_job')
        .set({ workspace: workspace === null ? null : JSON.stringify(workspace) })
        .where('id', '=', jobId)
        .execute()
    })
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    // A queue in which nothing may be started is only read: engines that wait do not wake each other by asking.
    const seen = await this.#look(this.#db, await readQueue(this.#db), request, request.except)
    if (!('next' in seen)) return seen
    return inQueue(this.#db, async (tx, queue) => {
      const { runId, engineId, at } = request
      const own = await tx
        .selectFrom('runwarden_job')
        .selectAll()
        .where('run_id', '=', runId)
        .where('state', 'in', ACTIVE_PHASES)
        .executeTakeFirst()
      // A claim whose answer was lost is asked for again, and stands.
      if (own !== undefined) return { kind: 'claimed', job: await readJob(tx, own) }
      const passed = [...request.except]
      for (;;) {
        const found = await this.#look(tx, queue, request, passed)
        if (!('next' in found)) return found
        const { id, machine_version } = found.next
        const moved =
          machine_version === this.#moves.chart.version
            ? await this.#moves.apply(tx, id, { type: 'job.claim', at, runId, engineId })
            : null
        if (moved?.isMoved === true) return { kind: 'claimed', job: await readJob(tx, moved.row) }
        // Of another version of the chart (R9): passed over, and left as it is.
        passed.push(id)
      }
    })
  }

  hold({ since, by, reason }: QueueHold): Promise<void> {
    return this.#setHold({ held_at: since, held_by: by, held_reason: reason })
  }

  release(): Promise<void> {
    return this.#setHold({ held_at: null, held_by: null, held_reason: null })
  }

  async readHold(): Promise<QueueHold | null> {
    return toHold(await readQueue(this.#db))
  }

  /** What a claim would find: the next job, or why there is none. */
  async #look(
    db: Db,
    queue: QueueTable | undefined,
    { caps }: ClaimRequest,
    passed: readonly string[],
  ): Promise<Exclude<ClaimReply, { kind: 'claimed' }> | { readonly next: JobTable }> {
    const hold = toHold(queue)
    if (hold !== null) return { kind: 'held', hold }
    const active = await readActive(db)
    const next = active.length < caps.total ? await nextJob(db, active, caps, passed) : undefined
    if (next !== undefined) return { next }
    // One that is active may come back to its place.
    return { kind: 'none', isWaiting: active.length > 0 }
  }

  async #insert(tx: Tx, { row, input, place, after }: NewJob): Promise<JobTable> {
    const { id, createdAt, ...asked } = row
    const step = this.#moves.chart.first(input)
    const values: JobTable = {
      id,
      ...asked,
      place: await findPlace(tx, place, id),
      workspace: null,
      machine_version: this.#moves.chart.version,
      rev: 0,
      created_at: createdAt,
      ...stepColumns(step, createdAt),
    }
    const inserted = await tx
      .insertInto('runwarden_job')
      .values(values)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    if (inserted.numInsertedOrUpdatedRows === 0n)
      throw new RunwardenError('job-exists', `job ${id} is already in this store`)
    await waitFor(tx, id, after)
    const detail = { type: 'job.added', at: createdAt, place, after }
    await writeJobJournal(tx, id, 0, { at: createdAt, event: 'job.added', detail, from: '', to: step.to })
    return values
  }

  #setHold(columns: Pick<QueueTable, 'held_at' | 'held_by' | 'held_reason'>): Promise<void> {
    return inQueue(this.#db, async (tx) => {
      await tx.updateTable('runwarden_queue').set(columns).where('name', '=', 'jobs').execute()
    })
  }
}
