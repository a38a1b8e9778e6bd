/**
 * The store port over any Kysely instance.
 *
 * Owns: the translation between the actors' rows and the tables. Writes are in commit.ts.
 * Does not own: the connection's making (sqlite.ts, postgres.ts), the schema's (migrations.ts), what a failure is called
 *   (in-our-terms.ts).
 */
import { sql } from 'kysely'
import type {
  ActorKind,
  ActorWrite,
  CommitVerdict,
  EffectMark,
  EngineRow,
  ExecutionRow,
  FiledHints,
  FiledLine,
  JournalPart,
  NoticeRow,
  OfActor,
  PendingEffect,
  ResultRow,
  RunFilter,
  StopLine,
  StopScope,
  StoredActor,
  StoredOrder,
  StoredRun,
  StoredTransition,
  StorePort,
  TimerRow,
} from '../../actors/store.ports.js'
import type { JobChart } from '../../actors/job.ports.js'
import { commitBatch } from './commit.js'
import type { Judges } from './commit.js'
import { CommitInDoubt, isPassing } from './errors.js'
import { JobMoves } from './job-moves.js'
import { KyselyJobStore } from './job-store.js'
import { optional, parse, toExecution, toRun } from './rows.js'
import type { Db } from './schema.js'
import { changedCondition, scopeCondition } from './scope.js'
import type { IsInScope } from './scope.js'
import { Statements } from './statements.js'

/** Below every dialect's maximum of bound values. */
const IDS_PER_QUERY = 500
/** A transaction of its own for so many runs: none holds its locks, or one statement, for long. */
const RUNS_PER_PRUNE = 500

const inPieces = async <T>(
  ids: readonly string[],
  query: (ids: readonly string[]) => Promise<readonly T[]>,
): Promise<T[]> => {
  const found: T[] = []
  for (let from = 0; from < ids.length; from += IDS_PER_QUERY)
    found.push(...(await query(ids.slice(from, from + IDS_PER_QUERY))))
  return found
}

/** Where nobody tells: looks find what was filed. */
const NO_HINTS: FiledHints = { isLive: false, close: () => undefined }

export class KyselyStore implements StorePort {
  readonly jobs: KyselyJobStore
  readonly #judges: Judges
  readonly #db: Db
  readonly #hasDataVersion: boolean
  readonly #openHints: ((engineId: string, onHint: () => void) => FiledHints) | null
  readonly #closeDb: () => Promise<void>

  constructor(
    db: Db,
    options: {
      readonly isInScope: IsInScope
      readonly jobChart: JobChart
      /** SQLite tells cheaply whether another connection has written. */
      readonly hasDataVersion: boolean
      /** A connection over which the database tells of filed orders, where there can be one. */
      readonly openHints?: (engineId: string, onHint: () => void) => FiledHints
      readonly close: () => Promise<void>
    },
  ) {
    this.#db = db
    const jobs = new JobMoves(options.jobChart)
    this.#judges = { isInScope: options.isInScope, jobs, statements: new Statements() }
    this.jobs = new KyselyJobStore(db, jobs)
    this.#hasDataVersion = options.hasDataVersion
    this.#openHints = options.openHints ?? null
    this.#closeDb = options.close
  }

  commit(batch: readonly ActorWrite[], marks: readonly EffectMark[]): Promise<readonly CommitVerdict[]> {
    return commitBatch(this.#db, this.#judges, batch, marks)
  }

  isPassing(error: unknown): boolean {
    return isPassing(error)
  }

  isInDoubt(error: unknown): boolean {
    return error instanceof CommitInDoubt
  }

  async loadActor(kind: ActorKind, actor: string): Promise<StoredActor | null> {
    const columns = ['rev', 'machine_version', 'snapshot'] as const
    const row = await (kind === 'run'
      ? this.#db
          .selectFrom('runwarden_run')
          .select(['owner', ...columns])
          .where('id', '=', actor)
          .executeTakeFirst()
      : kind === 'stop-order'
        ? this.#db
            .selectFrom('runwarden_stop_order')
            .select(['owner', ...columns])
            .where('id', '=', actor)
            .executeTakeFirst()
        : this.#db
            .selectFrom('runwarden_engine')
            .select(['id as owner', ...columns])
            .where('id', '=', actor)
            .executeTakeFirst())
    if (row === undefined) return null
    return { owner: row.owner, rev: row.rev, machineVersion: row.machine_version, snapshot: row.snapshot }
  }

  async loadRun(runId: string): Promise<StoredRun | null> {
    const row = await this.#db
      .selectFrom('runwarden_run')
      .selectAll()
      .where('id', '=', runId)
      .executeTakeFirst()
    return row === undefined ? null : toRun(row)
  }

  async loadRuns(runIds: readonly string[]): Promise<readonly StoredRun[]> {
    return inPieces(runIds, async (ids) => {
      const rows = await this.#db.selectFrom('runwarden_run').selectAll().where('id', 'in', ids).execute()
      return rows.map(toRun)
    })
  }

  async listRuns(filter: RunFilter): Promise<readonly StoredRun[]> {
    const { scope, onlyOpen, changedSince, newestFirst, limit } = filter
    const order = newestFirst === true ? 'desc' : 'asc'
    let query = this.#db
      .selectFrom('runwarden_run')
      .selectAll()
      .orderBy('created_at', order)
      .orderBy('id', order)
    if (changedSince !== undefined) query = query.where(changedCondition(changedSince))
    if (onlyOpen === true) query = query.where('done_at', 'is', null)
    if (scope !== undefined) query = query.where(scopeCondition(scope))
    if (limit !== undefined) query = query.limit(limit)
    const runs = (await query.execute()).map(toRun)
    if (scope === undefined) return runs
    return runs.filter(({ row }) => this.#judges.isInScope(scope, { runId: row.id, ...row }))
  }

  async executionsOf(
    runIds: readonly string[],
  ): Promise<readonly (ExecutionRow & { readonly runId: string })[]> {
    return inPieces(runIds, async (ids) => {
      const rows = await this.#db
        .selectFrom('runwarden_execution')
        .selectAll()
        .where('run_id', 'in', ids)
        .orderBy('run_id')
        .orderBy('attempt')
        .execute()
      return rows.map(toExecution)
    })
  }

  async transitionsOf(
    kind: ActorKind,
    actor: string,
    { afterRev = -1, limit }: JournalPart = {},
  ): Promise<readonly StoredTransition[]> {
    let query = this.#db
      .selectFrom('runwarden_transition')
      .selectAll()
      .where('kind', '=', kind)
      .where('actor', '=', actor)
      .where('rev', '>', afterRev)
      .orderBy('rev', 'desc')
    if (limit !== undefined) query = query.limit(limit)
    const transitions = (await query.execute()).reverse()
    const effects = await this.#db
      .selectFrom('runwarden_effect')
      .selectAll()
      .where('kind', '=', kind)
      .where('actor', '=', actor)
      .where('rev', '>=', transitions[0]?.rev ?? 0)
      .orderBy('rev')
      .orderBy('idx')
      .execute()
    return transitions.map((row) => ({
      rev: row.rev,
      at: row.at,
      event: row.event,
      detail: parse<unknown>(row.detail),
      from: row.from_state,
      to: row.to_state,
      effects: effects
        .filter(({ rev }) => rev === row.rev)
        .map(({ effect, body, started_at, done_at }) => ({
          kind: effect,
          params: parse<unknown>(body),
          startedAt: started_at,
          doneAt: done_at,
        })),
    }))
  }

  async noticesOf(runId: string): Promise<readonly NoticeRow[]> {
    const rows = await this.#db
      .selectFrom('runwarden_notice')
      .selectAll()
      .where('run_id', '=', runId)
      .orderBy('at')
      .execute()
    return rows.map(({ kind, text, generation, at, withdrawn_at }) => ({
      kind,
      text,
      generation,
      at,
      ...optional('withdrawnAt', withdrawn_at),
    }))
  }

  async resultOf(runId: string): Promise<ResultRow | null> {
    const row = await this.#db
      .selectFrom('runwarden_result')
      .selectAll()
      .where('run_id', '=', runId)
      .executeTakeFirst()
    if (row === undefined) return null
    const { delivery_id: deliveryId, body, at, finalized, acknowledged_at: acknowledgedAt } = row
    return { deliveryId, body, at, finalized, acknowledgedAt }
  }

  async childrenOf(
    runIds: readonly string[],
  ): Promise<readonly { readonly runId: string; readonly isDone: boolean }[]> {
    const children: { id: string; done_at: number | null; created_at: number }[] = []
    for (let from = 0; from < runIds.length; from += IDS_PER_QUERY) {
      const rows = await this.#db
        .selectFrom('runwarden_run')
        .select(['id', 'done_at', 'created_at'])
        .where('parent', 'in', runIds.slice(from, from + IDS_PER_QUERY))
        .where('on_parent_cancel', '=', 'cancel')
        .execute()
      children.push(...rows)
    }
    return children
      .sort((one, other) => other.created_at - one.created_at || (other.id < one.id ? -1 : 1))
      .map(({ id, done_at: doneAt }) => ({ runId: id, isDone: doneAt !== null }))
  }

  async ordersOf(runId: string): Promise<readonly StoredOrder[]> {
    const rows = await this.#db
      .selectFrom('runwarden_stop_order_run as line')
      .innerJoin('runwarden_stop_order as order', 'order.id', 'line.order_id')
      .select([
        'order.id',
        'scope',
        'mode',
        'is_forced',
        'reason',
        'requested_by',
        'requested_at',
        'state',
        'line.line',
      ])
      .where('line.run_id', '=', runId)
      .orderBy('requested_at')
      .execute()
    return rows.map((row) => ({
      orderId: row.id,
      scope: parse<StopScope>(row.scope),
      mode: row.mode,
      isForced: row.is_forced === 1,
      reason: row.reason,
      by: row.requested_by,
      requestedAt: row.requested_at,
      state: row.state,
      line: parse<StopLine>(row.line),
    }))
  }

  async timersOf(kind: ActorKind, actors: readonly string[]): Promise<readonly OfActor<TimerRow>[]> {
    return inPieces(actors, async (ids) => {
      const rows = await this.#db
        .selectFrom('runwarden_timer')
        .selectAll()
        .where('kind', '=', kind)
        .where('actor', 'in', ids)
        .execute()
      return rows.map(({ actor, timer, token, due_at, delay_ms, event }) => ({
        actor,
        id: timer,
        token,
        dueAt: due_at,
        delayMs: delay_ms,
        event,
      }))
    })
  }

  async pendingEffectsOf(kind: ActorKind, actors: readonly string[]): Promise<readonly PendingEffect[]> {
    return inPieces(actors, async (ids) => {
      const rows = await this.#db
        .selectFrom('runwarden_effect')
        .select(['actor', 'rev', 'idx', 'effect', 'body'])
        .where('kind', '=', kind)
        .where('actor', 'in', ids)
        .where('done_at', 'is', null)
        .orderBy('actor')
        .orderBy('rev')
        .orderBy('idx')
        .execute()
      return rows.map(({ actor, rev, idx, effect, body }) => ({ actor, rev, index: idx, kind: effect, body }))
    })
  }

  async heartbeat(
    engineId: string,
    at: number,
    progress: readonly { readonly runId: string; readonly lastProgressAt: number }[],
  ): Promise<void> {
    const beat = { id: engineId, lastProgressAt: null }
    const rows = [beat, ...progress.map(({ runId, lastProgressAt }) => ({ id: runId, lastProgressAt }))]
    await this.#db.transaction().execute(async (tx) => {
      // In the order in which a commit takes its locks (commit.ts).
      for (const { id, lastProgressAt } of rows.sort((a, b) => (a.id < b.id ? -1 : 1))) {
        await (
          lastProgressAt === null
            ? tx.updateTable('runwarden_engine').set({ heartbeat_at: at }).where('id', '=', id)
            : tx
                .updateTable('runwarden_run')
                .set({ last_progress_at: lastProgressAt })
                .where('id', '=', id)
                .where('owner', '=', engineId)
        ).execute()
      }
    })
  }

  async listEngines(): Promise<readonly EngineRow[]> {
    const rows = await this.#db.selectFrom('runwarden_engine').selectAll().execute()
    return rows.map((row) => ({
      id: row.id,
      identity: {
        pid: row.pid,
        startTicks: row.start_ticks,
        bootId: row.boot_id,
        pidNamespace: row.pid_namespace,
      },
      hostId: row.host_id,
      version: row.version,
      startedAt: row.started_at,
      heartbeatAt: row.heartbeat_at,
      closedAt: row.closed_at,
    }))
  }

  takeOver(runIds: readonly string[], from: string, to: string): Promise<readonly string[]> {
    return this.#db.transaction().execute(async (tx) => {
      const taken: string[] = []
      // In the order in which a commit takes its locks (commit.ts).
      for (const id of [...runIds].sort()) {
        const { numUpdatedRows } = await tx
          .updateTable('runwarden_run')
          .set({ owner: to })
          .where('id', '=', id)
          .where('owner', '=', from)
          .executeTakeFirst()
        if (numUpdatedRows > 0n) taken.push(id)
      }
      return taken
    })
  }

  async openRunsOfOthers(
    engineId: string,
  ): Promise<readonly { readonly runId: string; readonly owner: string }[]> {
    return this.#db
      .selectFrom('runwarden_run')
      .select(['id as runId', 'owner'])
      .where('done_at', 'is', null)
      .where('owner', '!=', engineId)
      .execute()
  }

  async filedLines(engineId: string): Promise<readonly FiledLine[]> {
    const rows = await this.#db
      .selectFrom('runwarden_stop_order_run as line')
      .innerJoin('runwarden_stop_order as order', 'order.id', 'line.order_id')
      .select(['order.id', 'line.run_id', 'mode', 'is_forced', 'reason', 'requested_by', 'requested_at'])
      .where('line.owner', '=', engineId)
      .where('line.status', '=', 'requested')
      .execute()
    return rows.map((row) => ({
      orderId: row.id,
      runId: row.run_id,
      mode: row.mode,
      isForced: row.is_forced === 1,
      reason: row.reason,
      by: row.requested_by,
      requestedAt: row.requested_at,
    }))
  }

  async answerLine(orderId: string, line: StopLine): Promise<void> {
    await this.#db
      .updateTable('runwarden_stop_order_run')
      .set({ status: line.status, line: JSON.stringify(line) })
      .where('order_id', '=', orderId)
      .where('run_id', '=', line.runId)
      // INV-11: the first answer stands.
      .where('status', '=', 'requested')
      .execute()
  }

  openOrders(): Promise<readonly { readonly orderId: string; readonly owner: string }[]> {
    return this.#db
      .selectFrom('runwarden_stop_order')
      .select(['id as orderId', 'owner'])
      .where('settled_at', 'is', null)
      .execute()
  }

  async abandonOrder(orderId: string, at: number): Promise<void> {
    await this.#db
      .updateTable('runwarden_stop_order')
      .set({ settled_at: at, state: 'abandoned' })
      .where('id', '=', orderId)
      .where('settled_at', 'is', null)
      .execute()
  }

  async linesOf(orderId: string): Promise<readonly StopLine[]> {
    const rows = await this.#db
      .selectFrom('runwarden_stop_order_run')
      .select('line')
      .where('order_id', '=', orderId)
      .execute()
    return rows.map(({ line }) => parse<StopLine>(line))
  }

  async changeToken(): Promise<number | null> {
    if (!this.#hasDataVersion) return null
    const { rows } = await sql<{ data_version: number }>`pragma data_version`.execute(this.#db)
    return rows[0]?.data_version ?? null
  }

  hintFiled(engineId: string, onHint: () => void): FiledHints {
    return this.#openHints === null ? NO_HINTS : this.#openHints(engineId, onHint)
  }

  async prune(settledBefore: number): Promise<number> {
    let count = 0
    for (;;) {
      const removed = await this.#pruneSome(settledBefore)
      count += removed
      if (removed < RUNS_PER_PRUNE) return count
    }
  }

  #pruneSome(settledBefore: number): Promise<number> {
    return this.#db.transaction().execute(async (tx) => {
      // S4: done means settled, confirmed and delivered; nothing else is ever removed.
      const done = await tx
        .selectFrom('runwarden_run')
        .select('id')
        .where('done_at', 'is not', null)
        .where('settled_at', '<', settledBefore)
        .orderBy('settled_at')
        .limit(RUNS_PER_PRUNE)
        .execute()
      const ids = done.map(({ id }) => id)
      if (ids.length === 0) return 0
      for (const table of ['runwarden_transition', 'runwarden_effect', 'runwarden_timer'] as const) {
        await tx.deleteFrom(table).where('kind', '=', 'run').where('actor', 'in', ids).execute()
      }
      for (const table of ['runwarden_execution', 'runwarden_notice', 'runwarden_result'] as const) {
        await tx.deleteFrom(table).where('run_id', 'in', ids).execute()
      }
      await tx.deleteFrom('runwarden_stop_order_run').where('run_id', 'in', ids).execute()
      const { numDeletedRows } = await tx
        .deleteFrom('runwarden_run')
        .where('id', 'in', ids)
        .executeTakeFirst()
      return Number(numDeletedRows)
    })
  }

  close(): Promise<void> {
    return this.#closeDb()
  }
}
