/**
 * The write path: many actors' transitions in one transaction.
 *
 * Invariants: INV-1 (snapshot, journal, timers, effects and rows are written together or not at all), S3 (a write names the revision
 *   and the owner it expects; a stale one changes nothing, and does not hold up the others), INV-13 (a write whose commit was not
 *   answered may be given again: one that is in is found, and nothing is written twice).
 */
import type { ActorWrite, CommitVerdict, EffectMark, StopScope } from '../../actors/store.ports.js'
import { writeJournals, writeLines, writeMarks, writeRunRows, writeTimers } from './commit-rows.js'
import type { RowsOf } from './commit-rows.js'
import { lockFences } from './dialect.js'
import { isIn } from './committed.js'
import { CommitInDoubt, isDoubtful } from './errors.js'
import type { JobMoves } from './job-moves.js'
import type { IsInScope } from './scope.js'
import type { Db, Tx } from './schema.js'
import type { Build, Statements } from './statements.js'

const int = (claim: boolean): number => (claim ? 1 : 0)

/** What a commit asks of others: whether a fence covers a run, what a run's transition means to its job, and the texts of statements. */
export interface Judges {
  readonly isInScope: IsInScope
  readonly jobs: JobMoves
  readonly statements: Statements
}

/** The columns that every kind of actor has. */
const actorColumns = ({ machineVersion, rev, snapshot }: ActorWrite) => ({
  machine_version: machineVersion,
  rev,
  snapshot,
})

const isUpdated = (result: { readonly numUpdatedRows: bigint }): boolean => result.numUpdatedRows > 0n
const isInserted = (result: { readonly numInsertedOrUpdatedRows: bigint | undefined }): boolean =>
  result.numInsertedOrUpdatedRows !== 0n

/** A launch inside the scope of a fenced order in force, whichever engine filed it (K16). */
const isFenced = async (
  tx: Tx,
  isInScope: IsInScope,
  write: ActorWrite,
  rows: RowsOf<'run'>,
): Promise<boolean> => {
  const fences = await tx
    .selectFrom('runwarden_stop_order')
    .select('scope')
    .where('settled_at', 'is', null)
    .where('is_fenced', '=', 1)
    .execute()
  const run = { runId: write.actor, ...rows.created }
  return fences.some(({ scope }) => isInScope(JSON.parse(scope) as StopScope, run))
}

const createRun = async (
  tx: Tx,
  isInScope: IsInScope,
  write: ActorWrite,
  rows: RowsOf<'run'>,
): Promise<CommitVerdict> => {
  const { created } = rows
  if (created === undefined) return 'stale'
  const inserted = await tx
    .insertInto('runwarden_run')
    .values({
      id: write.actor,
      session: created.session,
      task: created.task,
      labels: JSON.stringify(created.labels),
      program: created.program,
      protocol: created.protocol,
      job_id: created.job,
      parent: created.parent,
      on_parent_cancel: created.onParentCancel,
      created_at: created.createdAt,
      ...actorColumns(write),
      owner: write.owner,
      updated_at: write.journal.at,
      ...headColumns(rows),
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirst()
  if (!isInserted(inserted)) return 'exists'
  if (!(await isFenced(tx, isInScope, write, rows))) return 'committed'
  await tx.deleteFrom('runwarden_run').where('id', '=', write.actor).execute()
  return 'fenced'
}

const headColumns = ({ head }: RowsOf<'run'>) => ({
  work: head.work,
  process: head.process,
  delivery: head.delivery,
  headline: head.headline,
  attempt: head.attempt,
  generation: head.generation,
  outcome: head.outcome,
  last_progress_at: head.lastProgressAt,
  settled_at: head.settledAt,
  done_at: head.doneAt,
})

const updateColumns = (write: ActorWrite, expectedRev: number, rows: RowsOf<'run'>) => ({
  id: write.actor,
  expectedRev,
  owner: write.owner,
  ...actorColumns(write),
  updated_at: write.journal.at,
  ...headColumns(rows),
})

const updateRun: Build<ReturnType<typeof updateColumns>> = (tx, { id, expectedRev, owner, ...columns }) =>
  tx
    .updateTable('runwarden_run')
    .set(columns)
    .where('id', '=', id)
    .where('rev', '=', expectedRev)
    .where('owner', '=', owner)

const writeRun = async (
  tx: Tx,
  { isInScope, statements }: Judges,
  write: ActorWrite,
  rows: RowsOf<'run'>,
): Promise<CommitVerdict> => {
  const { expectedRev } = write
  if (expectedRev === null) return createRun(tx, isInScope, write, rows)
  const changed = await statements.run(tx, updateRun, updateColumns(write, expectedRev, rows))
  return changed > 0 ? 'committed' : 'stale'
}

const writeOrder = async (tx: Tx, write: ActorWrite, rows: RowsOf<'stop-order'>): Promise<CommitVerdict> => {
  const state = {
    ...actorColumns(write),
    state: rows.state,
    settled_at: rows.settledAt,
  }
  if (write.expectedRev === null) {
    const { created } = rows
    if (created === undefined) return 'stale'
    const inserted = await tx
      .insertInto('runwarden_stop_order')
      .values({
        id: write.actor,
        owner: write.owner,
        scope: JSON.stringify(created.scope),
        mode: created.mode,
        is_forced: int(created.isForced),
        is_fenced: int(created.isFenced),
        reason: created.reason,
        requested_by: created.by,
        requested_at: created.requestedAt,
        ...state,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    return isInserted(inserted) ? 'committed' : 'exists'
  }
  const result = await tx
    .updateTable('runwarden_stop_order')
    .set(state)
    .where('id', '=', write.actor)
    .where('rev', '=', write.expectedRev)
    .where('owner', '=', write.owner)
    .executeTakeFirst()
  return isUpdated(result) ? 'committed' : 'stale'
}

const writeRegistry = async (tx: Tx, write: ActorWrite, rows: RowsOf<'registry'>): Promise<CommitVerdict> => {
  const state = {
    ...actorColumns(write),
    state: rows.state,
    closed_at: rows.closedAt,
  }
  if (rows.created !== undefined) {
    const { identity, hostId, version, startedAt, heartbeatAt } = rows.created
    const inserted = await tx
      .insertInto('runwarden_engine')
      .values({
        id: write.actor,
        pid: identity.pid,
        start_ticks: identity.startTicks,
        boot_id: identity.bootId,
        pid_namespace: identity.pidNamespace,
        host_id: hostId,
        version,
        started_at: startedAt,
        heartbeat_at: heartbeatAt,
        ...state,
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    return isInserted(inserted) ? 'committed' : 'exists'
  }
  const result = await tx
    .updateTable('runwarden_engine')
    .set(state)
    .where('id', '=', write.actor)
    .where('rev', '=', write.expectedRev ?? -1)
    .executeTakeFirst()
  return isUpdated(result) ? 'committed' : 'stale'
}

/** The row that decides whether a write is stale; everything else follows it. */
const writeHead = (tx: Tx, judges: Judges, write: ActorWrite): Promise<CommitVerdict> => {
  switch (write.rows.kind) {
    case 'run':
      return writeRun(tx, judges, write, write.rows)
    case 'stop-order':
      return writeOrder(tx, write, write.rows)
    case 'registry':
      return writeRegistry(tx, write, write.rows)
  }
}

const fenceUse = (batch: readonly ActorWrite[]): 'raises' | 'reads' | 'none' => {
  const created = batch.flatMap(({ rows }) => (rows.created === undefined ? [] : [rows]))
  if (created.some((rows) => rows.kind === 'stop-order' && rows.created?.isFenced === true)) return 'raises'
  return created.some(({ kind }) => kind === 'run') ? 'reads' : 'none'
}

/** Row locks are taken in one order by everyone, so that no two transactions wait for each other; an actor's writes stay in theirs. */
const inLockOrder = (batch: readonly ActorWrite[]): readonly number[] =>
  batch
    .map((_, index) => index)
    .sort((one, other) => {
      const [a, b] = [batch[one]?.actor ?? '', batch[other]?.actor ?? '']
      return a < b ? -1 : a > b ? 1 : one - other
    })

interface Taken {
  readonly verdicts: readonly CommitVerdict[]
  /** What this transaction wrote, in the batch's order; what was in already is not among it. */
  readonly fresh: readonly ActorWrite[]
}

const writeHeads = async (tx: Tx, judges: Judges, batch: readonly ActorWrite[]): Promise<Taken> => {
  const verdicts: CommitVerdict[] = batch.map(() => 'stale')
  const isFresh = new Set<number>()
  for (const index of inLockOrder(batch)) {
    const write = batch[index]
    if (write === undefined) continue
    const isAdmitted = await judges.jobs.admit(tx, write)
    const verdict = isAdmitted ? await writeHead(tx, judges, write) : 'unclaimed'
    if (verdict === 'committed') isFresh.add(index)
    const isRefused = verdict !== 'committed' && verdict !== 'fenced'
    verdicts[index] = isRefused && (await isIn(tx, write)) ? 'committed' : verdict
  }
  return { verdicts, fresh: batch.filter((_, index) => isFresh.has(index)) }
}

const writeBatch = async (
  tx: Tx,
  judges: Judges,
  batch: readonly ActorWrite[],
  marks: readonly EffectMark[],
): Promise<readonly CommitVerdict[]> => {
  const { statements } = judges
  await lockFences(tx, fenceUse(batch))
  const { verdicts, fresh } = await writeHeads(tx, judges, batch)
  await writeJournals(tx, statements, fresh)
  await writeTimers(tx, statements, fresh)
  for (const write of fresh) {
    await judges.jobs.follow(tx, write)
    if (write.rows.kind === 'run') await writeRunRows(tx, write.actor, write.journal.at, write.rows)
    if (write.rows.kind === 'stop-order') await writeLines(tx, write.actor, write.rows)
  }
  await writeMarks(tx, statements, marks)
  return verdicts
}

/** Rejects with `CommitInDoubt` when the COMMIT itself was not answered; with anything else, nothing of the batch is in. */
export const commitBatch = async (
  db: Db,
  judges: Judges,
  batch: readonly ActorWrite[],
  marks: readonly EffectMark[],
): Promise<readonly CommitVerdict[]> => {
  const progress = { isCommitting: false }
  try {
    return await db.transaction().execute(async (tx) => {
      const verdicts = await writeBatch(tx, judges, batch, marks)
      progress.isCommitting = true
      return verdicts
    })
  } catch (error) {
    throw progress.isCommitting && isDoubtful(error) ? new CommitInDoubt(error) : error
  }
}
