/** What a run looks like from outside: plain data, computed from its snapshot. */
import type {
  Evidence,
  FreezeOwner,
  Intent,
  Outcome,
  RunContext,
  Survivor,
} from '../machines/run/run.context.js'
import { headlineOf, isConfirmed, isDone, isSettled, pathOf } from '../machines/run/run.headline.js'
import type { RunStateValue } from '../machines/run/run.headline.js'
import type { RunHead } from './store.ports.js'

export interface RunState {
  /** `open.accepted`, `open.active.progressing`, `settled.cancelled` … */
  readonly work: string
  /** `waiting`, `launching`, `alive`, `frozen`, `asking`, `term-sent`, `kill-sent`, `unconfirmed`, `confirmed`. */
  readonly process: string
  /** `pending`, `finalizing`, `delivering`, `retrying`, `delivered`, `suppressed`. */
  readonly delivery: string
  /** One word for people. */
  readonly headline: string
  readonly attempt: number
  readonly generation: number
  readonly intent: Intent | null
  readonly outcome: Outcome | null
  readonly evidence: readonly Evidence[]
  readonly survivors: readonly Survivor[]
  /** Who wants the run paused, and how far it is; null when nobody does, or its end was decided. */
  readonly freeze: FreezeState | null
  /** Why the last signal failed: `EPERM for pid 42`. */
  readonly lastError: string | null
  readonly isSettled: boolean
  readonly isConfirmed: boolean
  readonly isDone: boolean
}

/** How far a freeze is (O1). */
export interface FreezeState {
  readonly owner: FreezeOwner
  /**
   * `requested`: nothing is launched yet, and what is will be frozen at once. `stopping`: on record, and being done. `frozen`: every
   * process of the tree was seen stopped. `incomplete`: those in `running` could not be stopped in time, and it is gone on trying.
   */
  readonly status: 'requested' | 'stopping' | 'frozen' | 'incomplete'
  readonly running: readonly Survivor[]
}

/** The strongest end that was asked for, recorded or not yet, and what was said with it. */
export interface WantedEnd {
  readonly kind: 'none' | 'interrupt' | 'cancel'
  readonly reason: string
}

interface Snapshot {
  readonly value: unknown
  readonly context: unknown
}

const freezeOf = (process: string, { freeze, freezeReport, outcome }: RunContext): FreezeState | null => {
  if (freeze === null || outcome !== null) return null
  const running = freezeReport?.running ?? []
  if (process !== 'frozen') return { owner: freeze, status: 'requested', running: [] }
  if (freezeReport === null) return { owner: freeze, status: 'stopping', running }
  return { owner: freeze, status: freezeReport.isComplete ? 'frozen' : 'incomplete', running }
}

export const stateOf = (snapshot: Snapshot): RunState => {
  const value = snapshot.value as RunStateValue
  const context = snapshot.context as RunContext
  const { attempt, generation, intent, outcome, evidence, survivors, lastError, freezeReport } = context
  return {
    work: pathOf(value.work),
    process: value.process,
    delivery: value.delivery,
    headline: headlineOf(value, freezeReport),
    attempt,
    generation,
    intent,
    outcome,
    evidence,
    survivors,
    freeze: freezeOf(value.process, context),
    lastError,
    isSettled: isSettled(value),
    isConfirmed: isConfirmed(value),
    isDone: isDone(value),
  }
}

/** The columns by which a run is found and shown without reading its snapshot. */
export const headOf = (
  snapshot: Snapshot,
  at: number,
  before: RunHead | null,
  lastProgressAt: number | null,
): RunHead => {
  const state = stateOf(snapshot)
  return {
    work: state.work,
    process: state.process,
    delivery: state.delivery,
    headline: state.headline,
    attempt: state.attempt,
    generation: state.generation,
    outcome: state.outcome === null ? null : JSON.stringify(state.outcome),
    lastProgressAt,
    settledAt: state.isSettled ? (before?.settledAt ?? at) : null,
    doneAt: state.isDone ? (before?.doneAt ?? at) : null,
  }
}

export const describeRun = (snapshot: Snapshot): string => {
  const { work, process, delivery } = stateOf(snapshot)
  return JSON.stringify({ work, process, delivery })
}
