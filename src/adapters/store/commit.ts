/**
 * The write path: many actors' transitions in one transaction.
 *
 * Invariants: INV-1 (snapshot, journal, timers, effects and rows are written together or not at all), S3 (a write names the revision
 *   and the owner it expects; a stale one changes nothing, and does not hold up the others).
 */
import type {
  ActorWrite,
  CommitVerdict,
  EffectMark,
  ExecutionRow,
  KindRows,
  StopScope,
} from '../../actors/ports.js'
import type { IsInScope } from './scope.js'
import type { Db, NewRow, Tx } from './schema.js'

type RowsOf<K extends KindRows['kind']> = Extract<KindRows, { kind: K }>

const int = (claim: boolean): number => (claim ? 1 : 0)

const isUpdated = (result: { readonly numUpdatedRows: bigint }): boolean => result.numUpdatedRows > 0n

/** A launch inside the scope of a fenced order in force, whichever engine filed it (K16). */
const isFenced = async (tx: Tx, isInScope: IsInScope, write: ActorWrite, rows: RowsOf<'run'>): Promise<boolean> => {
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
      created_at: created.createdAt,
      machine_version: write.machineVersion,
      rev: write.rev,
      owner: write.owner,
      snapshot: write.snapshot,
      updated_at: write.journal.at,
      ...headColumns(rows),
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirst()
  if (inserted.numInsertedOrUpdatedRows === 0n) return 'exists'
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

const writeRun = async (
  tx: Tx,
  isInScope: IsInScope,
  write: ActorWrite,
  rows: RowsOf<'run'>,
): Promise<CommitVerdict> => {
  if (write.expectedRev === null) return createRun(tx, isInScope, write, rows)
  const result = await tx
    .updateTable('runwarden_run')
    .set({
      machine_version: write.machineVersion,
      rev: write.rev,
      snapshot: write.snapshot,
      updated_at: write.journal.at,
      ...headColumns(rows),
    })
    .where('id', '=', write.actor)
    .where('rev', '=', write.expectedRev)
    .where('owner', '=', write.owner)
    .executeTakeFirst()
  return isUpdated(result) ? 'committed' : 'stale'
}

const writeOrder = async (tx: Tx, write: ActorWrite, rows: RowsOf<'stop-order'>): Promise<CommitVerdict> => {
  const state = {
    machine_version: write.machineVersion,
    rev: write.rev,
    snapshot: write.snapshot,
    state: rows.state,
    settled_at: rows.settledAt,
  }
  if (write.expectedRev === null) {
    const { created } = rows
    if (created === undefined) return 'stale'
    await tx
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
      .execute()
    return 'committed'
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
    machine_version: write.machineVersion,
    rev: write.rev,
    snapshot: write.snapshot,
    state: rows.state,
    closed_at: rows.closedAt,
  }
  if (rows.created !== undefined) {
    const { identity, hostId, version, startedAt, heartbeatAt } = rows.created
    await tx
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
      .execute()
    return 'committed'
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
const writeHead = (tx: Tx, isInScope: IsInScope, write: ActorWrite): Promise<CommitVerdict> => {
  switch (write.rows.kind) {
    case 'run':
      return writeRun(tx, isInScope, write, write.rows)
    case 'stop-order':
      return writeOrder(tx, write, write.rows)
    case 'registry':
      return writeRegistry(tx, write, write.rows)
  }
}

const writeJournals = async (tx: Tx, writes: readonly ActorWrite[]): Promise<void> => {
  const transitions = writes.map(({ kind, actor, rev, journal }): NewRow<'runwarden_transition'> => {
    const { at, event, detail, from, to } = journal
    return { kind, actor, rev, at, event, detail, from_state: from, to_state: to }
  })
  await tx.insertInto('runwarden_transition').values(transitions).execute()
  const effects = writes.flatMap(({ kind, actor, rev, journal }) =>
    journal.effects.map(({ index, kind: effect, body }): NewRow<'runwarden_effect'> => {
      return { kind, actor, rev, idx: index, effect, body, started_at: null, done_at: null }
    }),
  )
  if (effects.length > 0) await tx.insertInto('runwarden_effect').values(effects).execute()
}

const writeTimers = async (tx: Tx, write: ActorWrite): Promise<void> => {
  const { kind, actor, timersCleared, timersSet } = write
  if (timersCleared.length > 0) {
    await tx
      .deleteFrom('runwarden_timer')
      .where('kind', '=', kind)
      .where('actor', '=', actor)
      .where('timer', 'in', timersCleared)
      .execute()
  }
  for (const { id, token, dueAt, delayMs, event } of timersSet) {
    const row = { token, due_at: dueAt, delay_ms: delayMs, event }
    await tx
      .insertInto('runwarden_timer')
      .values({ kind, actor, timer: id, ...row })
      .onConflict((conflict) => conflict.columns(['kind', 'actor', 'timer']).doUpdateSet(row))
      .execute()
  }
}

const executionColumns = (row: ExecutionRow) => ({
  ...(row.marks === undefined ? {} : { cookie: row.marks.cookie, limit_mark: row.marks.limit }),
  ...(row.containment === undefined ? {} : { containment: row.containment }),
  ...(row.logPath === undefined ? {} : { log_path: row.logPath }),
  ...(row.identity === undefined
    ? {}
    : {
        pid: row.identity.pid,
        start_ticks: row.identity.startTicks,
        boot_id: row.identity.bootId,
        pid_namespace: row.identity.pidNamespace,
      }),
  ...(row.launchedAt === undefined ? {} : { launched_at: row.launchedAt }),
  ...(row.exitedAt === undefined ? {} : { exited_at: row.exitedAt }),
  ...(row.exit === undefined ? {} : { exit_code: row.exit.exitCode, exit_signal: row.exit.signal }),
  ...(row.confirmedAt === undefined ? {} : { confirmed_at: row.confirmedAt }),
  ...(row.evidence === undefined ? {} : { evidence: row.evidence }),
  ...(row.survivors === undefined ? {} : { survivors: JSON.stringify(row.survivors) }),
})

const writeExecution = async (tx: Tx, runId: string, row: ExecutionRow): Promise<void> => {
  const columns = executionColumns(row)
  if (row.marks === undefined || row.requestedAt === undefined) {
    await tx
      .updateTable('runwarden_execution')
      .set(columns)
      .where('run_id', '=', runId)
      .where('attempt', '=', row.attempt)
      .execute()
    return
  }
  await tx
    .insertInto('runwarden_execution')
    .values({
      run_id: runId,
      attempt: row.attempt,
      requested_at: row.requestedAt,
      cookie: row.marks.cookie,
      containment: row.containment ?? 'group',
      survivors: '[]',
      ...columns,
    })
    .execute()
}

const writeRunRows = async (tx: Tx, runId: string, at: number, rows: RowsOf<'run'>): Promise<void> => {
  for (const execution of rows.executions) await writeExecution(tx, runId, execution)
  for (const { kind, text, generation, at: raisedAt } of rows.notices) {
    await tx
      .insertInto('runwarden_notice')
      .values({ run_id: runId, kind, text, generation, at: raisedAt, withdrawn_at: null })
      .onConflict((conflict) => conflict.columns(['run_id', 'generation', 'kind']).doNothing())
      .execute()
  }
  if (rows.withdrawsNotices !== undefined) {
    await tx
      .updateTable('runwarden_notice')
      .set({ withdrawn_at: at })
      .where('run_id', '=', runId)
      .where('generation', '=', rows.withdrawsNotices)
      .where('kind', '=', 'advisory')
      .execute()
  }
  if (rows.result !== undefined) {
    const { deliveryId, body, at: settledAt } = rows.result
    await tx
      .insertInto('runwarden_result')
      .values({ run_id: runId, delivery_id: deliveryId, body, at: settledAt, acknowledged_at: null })
      .execute()
  }
}

const writeLines = async (tx: Tx, orderId: string, { lines }: RowsOf<'stop-order'>): Promise<void> => {
  for (const { owner, ...line } of lines) {
    const row = { owner, status: line.status, line: JSON.stringify(line) }
    await tx
      .insertInto('runwarden_stop_order_run')
      .values({ order_id: orderId, run_id: line.runId, ...row })
      .onConflict((conflict) => conflict.columns(['order_id', 'run_id']).doUpdateSet(row))
      .execute()
  }
}

const writeMarks = async (tx: Tx, marks: readonly EffectMark[]): Promise<void> => {
  for (const { kind, actor, rev, index, startedAt, doneAt } of marks) {
    await tx
      .updateTable('runwarden_effect')
      .set({ started_at: startedAt, done_at: doneAt })
      .where('kind', '=', kind)
      .where('actor', '=', actor)
      .where('rev', '=', rev)
      .where('idx', '=', index)
      .execute()
  }
}

export const commitBatch = (
  db: Db,
  isInScope: IsInScope,
  batch: readonly ActorWrite[],
  marks: readonly EffectMark[],
): Promise<readonly CommitVerdict[]> =>
  db.transaction().execute(async (tx) => {
    const verdicts: CommitVerdict[] = []
    for (const write of batch) verdicts.push(await writeHead(tx, isInScope, write))
    const taken = batch.filter((_, index) => verdicts[index] === 'committed')
    if (taken.length > 0) await writeJournals(tx, taken)
    for (const write of taken) {
      await writeTimers(tx, write)
      if (write.rows.kind === 'run') await writeRunRows(tx, write.actor, write.journal.at, write.rows)
      if (write.rows.kind === 'stop-order') await writeLines(tx, write.actor, write.rows)
    }
    await writeMarks(tx, marks)
    return verdicts
  })
