/**
 * What the actors need from a store: the rows they write, whole transitions at a time, and the rows they read.
 * Wall-clock times are milliseconds since the epoch.
 */
import type { EvidenceKind, ExitStatus, Survivor } from '../machines/run/run.context.js'
import type { StopLine, StopScope } from '../machines/stop-order/stop-order.context.js'
import type { JobFacts, JobStorePort } from './job.ports.js'
import type { Containment, ExecutionMarks, PaneRecord, ProcessIdentity } from './ports.js'

export type ActorKind = 'run' | 'stop-order' | 'registry'
export type OfActor<T> = T & { readonly actor: string }
export type PendingEffect = OfActor<EffectRow & { readonly rev: number }>

export interface JournalRow {
  readonly at: number
  readonly event: string
  /** The event, redacted (L7), as JSON. */
  readonly detail: string
  readonly from: string
  readonly to: string
  readonly effects: readonly EffectRow[]
}

export interface EffectRow {
  readonly index: number
  readonly kind: string
  /** Parameters as JSON. */
  readonly body: string
}

export interface TimerRow {
  readonly id: string
  readonly token: string
  readonly dueAt: number
  readonly delayMs: number
  readonly event: string
}

export interface RunRow {
  readonly id: string
  readonly session: string | null
  readonly task: string | null
  readonly labels: Readonly<Record<string, string>>
  /** The program only: arguments may hold secrets (L7). */
  readonly program: string
  readonly protocol: string
  /** The job that this is a run of. */
  readonly job: string | null
  /** The run that this one is a part of: it is ended with it, unless it says `keep`. */
  readonly parent: string | null
  readonly onParentCancel: 'cancel' | 'keep'
  readonly createdAt: number
}

export interface RunHead {
  readonly work: string
  readonly process: string
  readonly delivery: string
  readonly headline: string
  readonly attempt: number
  readonly generation: number
  readonly outcome: string | null
  readonly lastProgressAt: number | null
  readonly settledAt: number | null
  /** Set when the run is settled, confirmed and delivered. */
  readonly doneAt: number | null
}

export interface ExecutionRow {
  readonly attempt: number
  readonly marks?: ExecutionMarks
  readonly containment?: Containment
  readonly pane?: PaneRecord
  readonly identity?: ProcessIdentity
  readonly logPath?: string | null
  readonly requestedAt?: number
  readonly launchedAt?: number
  readonly exitedAt?: number
  readonly exit?: ExitStatus
  readonly confirmedAt?: number
  readonly evidence?: EvidenceKind
  readonly survivors?: readonly Survivor[]
}

export interface NoticeRow {
  readonly kind: string
  readonly text: string
  readonly generation: number
  readonly at: number
  readonly withdrawnAt?: number
}

/** The outcome as it is delivered, as JSON; `finalized` joins it once the host's hook has answered, or was given up. */
export interface ResultRow {
  readonly deliveryId: string
  readonly body: string
  readonly at: number
  /** `{ value }` or `{ error }`, as JSON; null where there was no hook, or it has not answered. */
  readonly finalized: string | null
  readonly acknowledgedAt: number | null
}

/** Rows of one actor's kind that change in the same transaction as its snapshot. */
export type KindRows =
  | {
      readonly kind: 'run'
      readonly created?: RunRow
      readonly head: RunHead
      readonly executions: readonly ExecutionRow[]
      readonly notices: readonly NoticeRow[]
      readonly withdrawsNotices?: number
      readonly result?: ResultRow
      /** O13: the job of the run moves with it, or neither does. */
      readonly job?: JobFacts
      readonly finalized?: string
      readonly acknowledged?: true
    }
  | {
      readonly kind: 'stop-order'
      readonly created?: StopOrderRow
      readonly state: string
      readonly lines: readonly (StopLine & { readonly owner: string | null })[]
      readonly settledAt: number | null
    }
  | {
      readonly kind: 'registry'
      readonly created?: EngineRow
      readonly state: string
      readonly closedAt: number | null
    }

export interface StopOrderRow {
  readonly scope: StopScope
  readonly mode: string
  readonly isForced: boolean
  readonly isFenced: boolean
  readonly reason: string
  readonly by: string
  readonly requestedAt: number
}

/** One transition of one actor: written whole or not at all (INV-1). */
export interface ActorWrite {
  readonly kind: ActorKind
  readonly actor: string
  readonly owner: string
  /** The revision this write expects to replace; null creates the actor. */
  readonly expectedRev: number | null
  readonly rev: number
  readonly machineVersion: number
  readonly snapshot: string
  readonly journal: JournalRow
  readonly timersSet: readonly TimerRow[]
  readonly timersCleared: readonly string[]
  readonly rows: KindRows
}

export interface EffectMark {
  readonly kind: ActorKind
  readonly actor: string
  readonly rev: number
  readonly index: number
  readonly startedAt: number
  readonly doneAt: number | null
}

/**
 * `stale`: another revision or owner stands. `exists`: the id is taken. `fenced`: a stop order covers the launch.
 * `unclaimed`: the job of a new run is not claimed for it.
 */
export type CommitVerdict = 'committed' | 'stale' | 'exists' | 'fenced' | 'unclaimed'

export interface StoredActor {
  readonly owner: string
  readonly rev: number
  readonly machineVersion: number
  readonly snapshot: string
}

export interface EngineRow {
  readonly id: string
  readonly identity: ProcessIdentity
  readonly hostId: string
  readonly version: string
  readonly startedAt: number
  readonly heartbeatAt: number
  readonly closedAt: number | null
}

export interface StoredRun extends StoredActor {
  readonly row: RunRow
  readonly head: RunHead
}

export interface StoredTransition {
  readonly rev: number
  readonly at: number
  readonly event: string
  readonly detail: unknown
  readonly from: string
  readonly to: string
  readonly effects: readonly {
    readonly kind: string
    readonly params: unknown
    readonly startedAt: number | null
    readonly doneAt: number | null
  }[]
}

export interface RunFilter {
  readonly scope?: StopScope
  readonly onlyOpen?: boolean
  readonly settledBefore?: number
  /** Runs that moved, or showed progress, at that time or later. */
  readonly changedSince?: number
  readonly newestFirst?: boolean
  readonly limit?: number
}

export type JournalPart = Readonly<{ afterRev?: number; limit?: number }>

/** A line of a filed order, as its run's owner sees it. */
export interface FiledLine {
  readonly orderId: string
  readonly runId: string
  readonly mode: string
  readonly isForced: boolean
  readonly reason: string
  readonly by: string
  readonly requestedAt: number
}

export interface StorePort {
  readonly jobs: JobStorePort

  /**
   * All of the batch in one transaction; a verdict for each write. Rejects when the store does not answer. The batch may then be given
   * again: a write that is in already is `committed`, and nothing is written twice. */
  commit(batch: readonly ActorWrite[], marks: readonly EffectMark[]): Promise<readonly CommitVerdict[]>
  /** Whether an error of `commit` will pass (locked, full, away), or lies in what was written. */
  isPassing(error: unknown): boolean
  /** Whether after this error of `commit` the batch may be in all the same: the answer was lost. False: nothing of it is in. */
  isInDoubt(error: unknown): boolean

  loadActor(kind: ActorKind, actor: string): Promise<StoredActor | null>
  loadRun(runId: string): Promise<StoredRun | null>
  /** Those of them that are in the store. */
  loadRuns(runIds: readonly string[]): Promise<readonly StoredRun[]>
  listRuns(filter: RunFilter): Promise<readonly StoredRun[]>
  executionsOf(runIds: readonly string[]): Promise<readonly (ExecutionRow & { readonly runId: string })[]>
  transitionsOf(kind: ActorKind, actor: string, part?: JournalPart): Promise<readonly StoredTransition[]>
  noticesOf(runId: string): Promise<readonly NoticeRow[]>
  /** What a settled run has to deliver. */
  resultOf(runId: string): Promise<ResultRow | null>
  /** The parts of these runs that are to end with them, the youngest first; also those that are done, which may have parts of their own. */
  childrenOf(
    runIds: readonly string[],
  ): Promise<readonly { readonly runId: string; readonly isDone: boolean }[]>
  ordersOf(runId: string): Promise<readonly StoredOrder[]>
  timersOf(kind: ActorKind, actors: readonly string[]): Promise<readonly OfActor<TimerRow>[]>
  /** In the order in which each actor called for them. */
  pendingEffectsOf(kind: ActorKind, actors: readonly string[]): Promise<readonly PendingEffect[]>

  /** The engine lives; and when its runs last showed progress, which moves between transitions. */
  heartbeat(
    engineId: string,
    at: number,
    progress: readonly { readonly runId: string; readonly lastProgressAt: number }[],
  ): Promise<void>
  listEngines(): Promise<readonly EngineRow[]>
  /** Fenced: moves runs from one owner to another; returns those for which nobody else was first. */
  takeOver(runIds: readonly string[], from: string, to: string): Promise<readonly string[]>
  /** Runs that are not done and belong to another engine than `engineId`. */
  openRunsOfOthers(engineId: string): Promise<readonly { readonly runId: string; readonly owner: string }[]>

  /** Lines other engines filed for runs of `engineId` that have no answer yet. */
  filedLines(engineId: string): Promise<readonly FiledLine[]>
  answerLine(orderId: string, line: StopLine): Promise<void>
  /** Orders that are not settled, and the engine that filed each. */
  openOrders(): Promise<readonly { readonly orderId: string; readonly owner: string }[]>
  /** The engine that filed the order is dead: nobody waits for it, and its fence is lifted. */
  abandonOrder(orderId: string, at: number): Promise<void>
  linesOf(orderId: string): Promise<readonly StopLine[]>
  /** A number that changes when another connection has changed the store, or null where there is none: then look. */
  changeToken(): Promise<number | null>
  /** Calls `onHint` when an order may have been filed for the engine. A hint may be lost, or mean nothing: only a look tells. */
  hintFiled(engineId: string, onHint: () => void): FiledHints
  /** Removes done runs settled before a time; never one that is not confirmed (S4). */
  prune(settledBefore: number): Promise<number>
  close(): Promise<void>
}

export interface FiledHints {
  /** True while hints come; false where there are none, and while the connection for them is away. */
  readonly isLive: boolean
  close(): void
}

export interface StoredOrder extends Omit<StopOrderRow, 'isFenced'> {
  readonly orderId: string
  readonly state: string
  readonly line: StopLine
}

export type { Containment, EvidenceKind, StopLine, StopScope, Survivor }
