/** Reads what the store holds, as a host sees it. */
import { setTimeout as wait } from 'node:timers/promises'
import type { ExecutionRow, NoticeRow, StorePort, StoredOrder, StoredRun } from './actors/store.ports.js'
import { isConfirmed } from './machines/run/run.headline.js'
import type { RunContext } from './machines/run/run.context.js'
import type { RunStateValue } from './machines/run/run.headline.js'
import { RunwardenError } from './errors.js'
import { readLog } from './adapters/process/log-reader.js'
import type { LogPiece } from './adapters/process/log-reader.js'
import type { Scope } from './options.js'
import type { StopScope } from './machines/stop-order/stop-order.context.js'

/** One row of `runs()`. Times in wall-clock ms. */
export interface RunSummary {
  readonly runId: string
  readonly task: string | null
  readonly session: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly program: string
  readonly headline: string
  readonly work: string
  readonly process: string
  readonly delivery: string
  readonly attempt: number
  readonly pid: number | null
  readonly containment: string | null
  readonly createdAt: number
  readonly startedAt: number | null
  readonly lastProgressAt: number | null
  readonly settledAt: number | null
}

export interface RegionStates {
  readonly work: string
  readonly process: string
  readonly delivery: string
}

/** One row of the journal: what happened, from which state to which, and what it called for. */
export interface TransitionRecord {
  readonly rev: number
  readonly at: number
  readonly event: string
  readonly detail: unknown
  /** Null for the first. */
  readonly from: RegionStates | null
  readonly to: RegionStates
  /** `startedAt` is taken after the transition's commit has returned (INV-1). */
  readonly effects: readonly {
    readonly kind: string
    readonly params: unknown
    readonly startedAt: number | null
    readonly doneAt: number | null
  }[]
}

export interface RunHistory {
  readonly run: RunSummary & {
    readonly outcome: unknown
    readonly intent: unknown
    readonly owner: string
    readonly rev: number
  }
  readonly executions: readonly (ExecutionRow & { readonly runId: string })[]
  readonly transitions: readonly TransitionRecord[]
  readonly orders: readonly StoredOrder[]
  readonly notices: readonly NoticeRow[]
}

export interface RunQuery {
  readonly scope?: Scope
  /** Only runs that are not done. Default false. */
  readonly onlyOpen?: boolean
  readonly limit?: number
}

export const toStopScope = (scope: Scope): StopScope => ({
  ...(scope.run === undefined ? {} : { runIds: typeof scope.run === 'string' ? [scope.run] : scope.run }),
  ...(scope.session === undefined ? {} : { session: scope.session }),
  ...(scope.task === undefined ? {} : { task: scope.task }),
  ...(scope.labels === undefined ? {} : { labels: scope.labels }),
  ...(scope.all === undefined ? {} : { all: scope.all }),
})

const toSummary = ({ row, head }: StoredRun, execution: ExecutionRow | undefined): RunSummary => ({
  runId: row.id,
  task: row.task,
  session: row.session,
  labels: row.labels,
  program: row.program,
  headline: head.headline,
  work: head.work,
  process: head.process,
  delivery: head.delivery,
  attempt: head.attempt,
  pid: execution?.identity?.pid ?? null,
  containment: execution?.containment ?? null,
  createdAt: row.createdAt,
  startedAt: execution?.launchedAt ?? null,
  lastProgressAt: head.lastProgressAt,
  settledAt: head.settledAt,
})

/** How often a follower looks for the next launch. */
const FOLLOW_WAIT_MS = 50

export class Records {
  readonly #store: StorePort

  constructor(store: StorePort) {
    this.#store = store
  }

  async runs(query: RunQuery = {}): Promise<readonly RunSummary[]> {
    const { scope, onlyOpen, limit } = query
    const stored = await this.#store.listRuns({
      ...(scope === undefined ? {} : { scope: toStopScope(scope) }),
      ...(onlyOpen === undefined ? {} : { onlyOpen }),
      ...(limit === undefined ? {} : { limit }),
    })
    const executions = await this.#store.executionsOf(stored.map(({ row }) => row.id))
    // In order of attempt: the last one of a run stands.
    const last = new Map(executions.map((execution) => [execution.runId, execution]))
    return stored.map((run) => toSummary(run, last.get(run.row.id)))
  }

  /** Throws `unknown-run`. */
  async history(runId: string): Promise<RunHistory> {
    const stored = await this.#find(runId)
    const [executions, transitions, orders, notices] = await Promise.all([
      this.#store.executionsOf([runId]),
      this.#store.transitionsOf('run', runId),
      this.#store.ordersOf(runId),
      this.#store.noticesOf(runId),
    ])
    const { context } = JSON.parse(stored.snapshot) as { context: RunContext }
    const { owner, rev } = stored
    return {
      run: {
        ...toSummary(stored, executions.at(-1)),
        outcome: context.outcome,
        intent: context.intent,
        owner,
        rev,
      },
      executions,
      transitions: transitions.map(({ from, to, ...rest }) => ({
        ...rest,
        from: from === '' ? null : (JSON.parse(from) as RegionStates),
        to: JSON.parse(to) as RegionStates,
      })),
      orders,
      notices,
    }
  }

  /**
   * What the run's last attempt wrote, in order; with `follow`, until the run is confirmed, from one attempt to the next.
   * Throws `unknown-run`, and `refused` where no log was kept.
   */
  async *logs(runId: string, options: { readonly follow?: boolean } = {}): AsyncGenerator<LogPiece> {
    await this.#find(runId)
    const { follow: isFollowing = false } = options
    for (let attempt = 0; ;) {
      // Asked first: what is over has no further attempt. A log ends before its attempt's end is on record.
      const isOver = !isFollowing || (await this.#isOver(runId))
      const executions = await this.#store.executionsOf([runId])
      const next = attempt === 0 ? executions.at(-1) : executions.find((one) => one.attempt > attempt)
      if (next?.logPath != null) {
        attempt = next.attempt
        yield* readLog(next.logPath, isFollowing ? () => this.#isOver(runId) : undefined)
      } else if (isOver || next !== undefined) {
        if (attempt === 0) throw new RunwardenError('refused', `run ${runId}: no log was kept`)
        return
      } else await wait(FOLLOW_WAIT_MS)
    }
  }

  async #isOver(runId: string): Promise<boolean> {
    const { value } = JSON.parse((await this.#find(runId)).snapshot) as { value: RunStateValue }
    return isConfirmed(value)
  }

  async #find(runId: string): Promise<StoredRun> {
    const stored = await this.#store.loadRun(runId)
    if (stored === null) throw new RunwardenError('unknown-run', `run ${runId} is not in this store`)
    return stored
  }
}
