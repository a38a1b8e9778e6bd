/** The rows that follow a write's head in the same transaction: journal, effects, timers, and what belongs to its kind. */
import type { ExecutionMarks } from '../../actors/ports.js'
import type { ActorWrite, EffectMark, ExecutionRow, KindRows } from '../../actors/store.ports.js'
import { notifyFiled } from './dialect.js'
import type { EffectTable, NewRow, TimerTable, Tx } from './schema.js'
import type { Build, BuildRows, Statements } from './statements.js'

/** The rows of one kind of actor. */
export type RowsOf<K extends KindRows['kind']> = Extract<KindRows, { kind: K }>

const insertTransitions: BuildRows<NewRow<'runwarden_transition'>> = (tx, rows) =>
  tx.insertInto('runwarden_transition').values(rows)

const insertEffects: BuildRows<NewRow<'runwarden_effect'>> = (tx, rows) =>
  tx.insertInto('runwarden_effect').values(rows)

export const writeJournals = async (
  tx: Tx,
  statements: Statements,
  writes: readonly ActorWrite[],
): Promise<void> => {
  const transitions = writes.map(({ kind, actor, rev, journal }): NewRow<'runwarden_transition'> => {
    const { at, event, detail, from, to } = journal
    return { kind, actor, rev, at, event, detail, from_state: from, to_state: to }
  })
  const effects = writes.flatMap(({ kind, actor, rev, journal }) =>
    journal.effects.map(({ index, kind: effect, body }): NewRow<'runwarden_effect'> => {
      return { kind, actor, rev, idx: index, effect, body, started_at: null, done_at: null }
    }),
  )
  await statements.runAll(tx, insertTransitions, transitions)
  await statements.runAll(tx, insertEffects, effects)
}

const clearTimer: Build<Pick<TimerTable, 'kind' | 'actor' | 'timer'>> = (tx, { kind, actor, timer }) =>
  tx
    .deleteFrom('runwarden_timer')
    .where('kind', '=', kind)
    .where('actor', '=', actor)
    .where('timer', '=', timer)

const setTimer: Build<NewRow<'runwarden_timer'>> = (tx, row) =>
  tx
    .insertInto('runwarden_timer')
    .values(row)
    .onConflict((conflict) =>
      conflict.columns(['kind', 'actor', 'timer']).doUpdateSet((excluded) => ({
        token: excluded.ref('excluded.token'),
        due_at: excluded.ref('excluded.due_at'),
        delay_ms: excluded.ref('excluded.delay_ms'),
        event: excluded.ref('excluded.event'),
      })),
    )

/** In the order of the writes: one may clear what an earlier one of the same actor has set. */
export const writeTimers = async (
  tx: Tx,
  statements: Statements,
  writes: readonly ActorWrite[],
): Promise<void> => {
  for (const { kind, actor, timersCleared, timersSet } of writes) {
    for (const timer of timersCleared) await statements.run(tx, clearTimer, { kind, actor, timer })
    for (const { id, token, dueAt, delayMs, event } of timersSet) {
      const row = { kind, actor, timer: id, token, due_at: dueAt, delay_ms: delayMs, event }
      await statements.run(tx, setTimer, row)
    }
  }
}

const markColumns = ({ cookie, limit, cgroup }: ExecutionMarks) => ({
  cookie,
  limit_mark: limit,
  cgroup: cgroup ?? null,
})

const executionColumns = (row: ExecutionRow) => ({
  ...(row.marks === undefined ? {} : markColumns(row.marks)),
  ...(row.containment === undefined ? {} : { containment: row.containment }),
  ...(row.pane === undefined ? {} : { surface: JSON.stringify(row.pane) }),
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

export const writeRunRows = async (tx: Tx, runId: string, at: number, rows: RowsOf<'run'>): Promise<void> => {
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
    const fresh = { finalized: null, acknowledged_at: null }
    await tx
      .insertInto('runwarden_result')
      .values({ run_id: runId, delivery_id: deliveryId, body, at: settledAt, ...fresh })
      .execute()
  }
  if (rows.finalized !== undefined) {
    await tx
      .updateTable('runwarden_result')
      .set({ finalized: rows.finalized })
      .where('run_id', '=', runId)
      .execute()
  }
  if (rows.acknowledged === true) {
    await tx
      .updateTable('runwarden_result')
      .set({ acknowledged_at: at })
      .where('run_id', '=', runId)
      // A host that shares the database may have said so before, in a transaction of its own.
      .where('acknowledged_at', 'is', null)
      .execute()
  }
}

export const writeLines = async (tx: Tx, orderId: string, { lines }: RowsOf<'stop-order'>): Promise<void> => {
  for (const { owner, ...line } of lines) {
    const row = { owner, status: line.status, line: JSON.stringify(line) }
    await tx
      .insertInto('runwarden_stop_order_run')
      .values({ order_id: orderId, run_id: line.runId, ...row })
      .onConflict((conflict) => conflict.columns(['order_id', 'run_id']).doUpdateSet(row))
      .execute()
  }
  await notifyFiled(
    tx,
    lines.flatMap(({ owner, status }) => (owner === null || status !== 'requested' ? [] : [owner])),
  )
}

const markEffect: Build<Pick<EffectTable, 'kind' | 'actor' | 'rev' | 'idx' | 'started_at' | 'done_at'>> = (
  tx,
  { kind, actor, rev, idx, ...marks },
) =>
  tx
    .updateTable('runwarden_effect')
    .set(marks)
    .where('kind', '=', kind)
    .where('actor', '=', actor)
    .where('rev', '=', rev)
    .where('idx', '=', idx)

export const writeMarks = async (
  tx: Tx,
  statements: Statements,
  marks: readonly EffectMark[],
): Promise<void> => {
  for (const { kind, actor, rev, index, startedAt, doneAt } of marks) {
    const row = { kind, actor, rev, idx: index, started_at: startedAt, done_at: doneAt }
    await statements.run(tx, markEffect, row)
  }
}
