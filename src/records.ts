/** Reads what the store holds, as a host sees it. */
import { setTimeout as wait } from 'node:timers/promises'
import type { ProcessPort } from './actors/ports.js'
import type {
  ExecutionRow,
  NoticeRow,
  StorePort,
  StoredOrder,
  StoredRun,
  TimerRow,
} from './actors/store.ports.js'
import { isConfirmed } from './machines/run/run.headline.js'
import type { RunContext, RunPolicy } from './machines/run/run.context.js'
import { standsStill } from './machines/run/run.timers.js'
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
  /** Those that run now. */
  readonly timers: readonly RunTimer[]
  /** How it is to be ended, decided when it was accepted. Durations in ms. */
  readonly policy: RunPolicy
}

/** A timer of the run's chart. Times in wall-clock ms. */
export interface RunTimer {
  /** As the chart names it: `xstate.after.termGrace.run.process.term-sent`, `time-limit`. */
  readonly id: string
  /** The event that it brings. */
  readonly event: string
  readonly dueAt: number
  /** Its whole length; of one that stands still, what is left of it. */
  readonly delayMs: number
  /** O7: the tree is frozen, and the timer waits with it. */
  readonly standsStill: boolean
}

/** A living process of a run, as one look saw it. */
export interface RunProcess {
  readonly pid: number
  readonly parentPid: number | null
  /** The kernel's name of the program, never its arguments (L7). */
  readonly name: string
  /** The kernel's letter: R, S, D, T … */
  readonly state: string
  /** CPU time since its start. */
  readonly cpuMs: number | null
  readonly rssBytes: number | null
}

export interface HistoryQuery {
  /** Of the journal only what came after this revision. Default: all of it. */
  readonly afterRev?: number
  /** Of that at most so many rows, the last ones. Default: no limit. */
  readonly limit?: number
}

export interface LogOptions {
  /** Wait for more until the run is confirmed gone. Default false. */
  readonly follow?: boolean
  /** Begin with the piece that lies so many bytes before the end of what is there. Default: at the beginning. */
  readonly tailBytes?: number
}

export interface RunQuery {
  readonly scope?: Scope
  /** Only runs that are not done. Default false. */
  readonly onlyOpen?: boolean
  /** Only runs that moved, or showed recorded progress, at that wall-clock time (ms) or later. */
  readonly changedSince?: number
  /** The newest first, instead of the oldest. Default false. */
  readonly newestFirst?: boolean
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

const toTimer = (
  { id, event, dueAt, delayMs }: TimerRow,
  snapshot: { readonly value: RunStateValue },
): RunTimer => ({
  id,
  event: (JSON.parse(event) as { type: string }).type,
  dueAt,
  delayMs,
  standsStill: standsStill(snapshot, id),
})

/** How often a follower looks for the next launch. */
const FOLLOW_WAIT_MS = 50

export class Records {
  readonly #store: StorePort
  readonly #processes: () => ProcessPort

  /** @internal Use `openRecords`, or an engine. */
  constructor(store: StorePort, processes: () => ProcessPort) {
    this.#store = store
    this.#processes = processes
  }

  async runs(query: RunQuery = {}): Promise<readonly RunSummary[]> {
    const { scope, onlyOpen, changedSince, newestFirst, limit } = query
    const stored = await this.#store.listRuns({
      ...(scope === undefined ? {} : { scope: toStopScope(scope) }),
      ...(onlyOpen === undefined ? {} : { onlyOpen }),
      ...(changedSince === undefined ? {} : { changedSince }),
      ...(newestFirst === undefined ? {} : { newestFirst }),
      ...(limit === undefined ? {} : { limit }),
    })
    const executions = await this.#store.executionsOf(stored.map(({ row }) => row.id))
    // In order of attempt: the last one of a run stands.
    const last = new Map(executions.map((execution) => [execution.runId, execution]))
    return stored.map((run) => toSummary(run, last.get(run.row.id)))
  }

  /** Throws `unknown-run`. */
  async history(runId: string, query: HistoryQuery = {}): Promise<RunHistory> {
    const stored = await this.#find(runId)
    const [executions, transitions, orders, notices, timers] = await Promise.all([
      this.#store.executionsOf([runId]),
      this.#store.transitionsOf('run', runId, query),
      this.#store.ordersOf(runId),
      this.#store.noticesOf(runId),
      this.#store.timersOf('run', [runId]),
    ])
    const snapshot = JSON.parse(stored.snapshot) as { value: RunStateValue; context: RunContext }
    const { context } = snapshot
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
      timers: timers.map((timer) => toTimer(timer, snapshot)),
      policy: context.policy,
    }
  }

  /**
   * The living processes of a run, parents first, by one complete look at this machine's process table. Empty when there are none.
   * Throws `unknown-run`, and `unreadable` or `refused` where they cannot be seen from here: unknown is not empty (INV-5).
   */
  async processes(runId: string): Promise<readonly RunProcess[]> {
    const stored = await this.#find(runId)
    const execution = (await this.#store.executionsOf([runId])).at(-1)
    if (execution?.marks === undefined || execution.containment === undefined) return []
    if (execution.confirmedAt !== undefined) return []
    const { marks, containment, identity = null, attempt, launchedAt = null } = execution
    const port = this.#processes()
    // A look at the processes alone: what a pane shows is not taken up.
    const tree = await port.adopt({ runId: stored.row.id, attempt, marks, containment, identity, launchedAt })
    return (await tree.scan()).map((member) => {
      const usage = port.usage(member)
      return {
        pid: member.pid,
        parentPid: member.parent ?? null,
        name: member.name,
        state: member.state,
        cpuMs: usage?.cpuMs ?? null,
        rssBytes: usage?.rssBytes ?? null,
      }
    })
  }

  /** A number that changes when another connection has changed the store; null where that cannot be told cheaply: then look. */
  changeToken(): Promise<number | null> {
    return this.#store.changeToken()
  }

  /**
   * What the run's last attempt wrote, in order; with `follow`, until the run is confirmed, from one attempt to the next.
   * Throws `unknown-run`, and `refused` where no log was kept.
   */
  async *logs(runId: string, options: LogOptions = {}): AsyncGenerator<LogPiece> {
    await this.#find(runId)
    const { follow: isFollowing = false, tailBytes } = options
    for (let attempt = 0; ;) {
      // Asked first: what is over has no further attempt. A log ends before its attempt's end is on record.
      const isOver = !isFollowing || (await this.#isOver(runId))
      const executions = await this.#store.executionsOf([runId])
      const next = attempt === 0 ? executions.at(-1) : executions.find((one) => one.attempt > attempt)
      if (next?.logPath != null) {
        const isFirst = attempt === 0
        attempt = next.attempt
        const isEnded = isFollowing ? () => this.#isOver(runId) : undefined
        yield* readLog(next.logPath, isEnded, isFirst ? tailBytes : undefined)
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
