/**
 * Everything the run chart understands. Commands are imperative, facts are past tense.
 * Every event carries `at`, the wall-clock time in ms at which it was put into the mailbox.
 */
import type {
  EvidenceKind,
  ExitStatus,
  FreezeOwner,
  Intent,
  LimitName,
  Survivor,
  TurnResult,
  TurnStamp,
} from './run.context.js'

export interface Timed {
  readonly at: number
}
export interface Ordered extends Timed {
  readonly by: string
  readonly reason: string
  readonly force: boolean
}
export interface OfAttempt extends Timed {
  readonly attempt: number
}
export interface OfTurn extends OfAttempt {
  readonly generation: number
}
/** A watchdog's fact: what it saw, and what is true at the moment the mailbox takes it (K4). */
export interface Watched extends Timed {
  readonly seen: TurnStamp
  readonly current: TurnStamp
}

export type RunCommand =
  | ({ readonly type: 'run.admitted' } & Timed)
  | ({ readonly type: 'run.cancel' } & Ordered)
  | ({ readonly type: 'run.interrupt' } & Ordered)
  | ({ readonly type: 'run.terminate' } & Ordered)
  | ({ readonly type: 'run.suppress' } & Ordered)
  | ({ readonly type: 'run.pause'; readonly owner: FreezeOwner } & Timed)
  | ({ readonly type: 'run.resume'; readonly owner: FreezeOwner } & Timed)
  | ({ readonly type: 'run.finish' } & Timed)
  | ({ readonly type: 'turn.started' } & Timed)
  | ({ readonly type: 'turn.cancel' } & Timed)

export type RunFact =
  | ({ readonly type: 'turn.progressed' } & OfTurn)
  | ({ readonly type: 'turn.completed'; readonly result: TurnResult } & OfTurn)
  | ({ readonly type: 'turn.cancelled' } & OfTurn)
  | ({ readonly type: 'turn.cancel-acknowledged' } & OfTurn)
  | ({ readonly type: 'person.asked' } & OfTurn)
  | ({ readonly type: 'person.answered' } & OfTurn)
  | ({ readonly type: 'watchdog.silent'; readonly tool?: string } & Watched)
  | ({ readonly type: 'watchdog.exhausted' } & Watched)
  | ({ readonly type: 'watchdog.completion-silent' } & Watched)
  | ({ readonly type: 'process.launched' } & OfAttempt)
  | ({
      readonly type: 'process.launch-failed'
      readonly code: string
      readonly message: string
      readonly isFallbackEligible: boolean
    } & OfAttempt)
  /** The agent runs, and cannot be spoken to: no handshake, or a prompt that it does not take. */
  | ({
      readonly type: 'session.failed'
      readonly message: string
      readonly isFallbackEligible: boolean
    } & OfAttempt)
  | ({
      readonly type: 'process.exited'
      readonly isTreeEmpty: boolean
      readonly evidence: EvidenceKind
      readonly isFallbackEligible: boolean
    } & ExitStatus &
      OfAttempt)
  | ({ readonly type: 'process.gone'; readonly evidence: EvidenceKind } & OfAttempt)
  | ({
      readonly type: 'process.survived'
      readonly survivors: readonly Survivor[]
      readonly error?: string
    } & OfAttempt)
  | ({ readonly type: 'process.signal-failed'; readonly error: string } & OfAttempt)
  /** O1: every member of the tree was seen stopped. */
  | ({ readonly type: 'process.frozen' } & OfAttempt)
  /** O1: these could not be stopped in time; it is gone on trying. */
  | ({
      readonly type: 'process.freeze-failed'
      readonly running: readonly Survivor[]
      readonly error?: string
    } & OfAttempt)
  | ({ readonly type: 'limit.exceeded'; readonly limit: LimitName; readonly max: number } & Timed)
  | ({ readonly type: 'run.lost'; readonly evidence: EvidenceKind } & Timed)
  | ({ readonly type: 'run.faulted'; readonly message: string } & Timed)
  /** `body`: what the hook made of the outcome, for its row; never for the journal. */
  | ({ readonly type: 'delivery.finalized'; readonly body?: string } & Timed)
  | ({ readonly type: 'delivery.acknowledged' } & Timed)
  | ({ readonly type: 'delivery.failed'; readonly error: string } & Timed)

/** Raised by one region for the others; refused when it comes from outside. */
export type RunInternal =
  | ({ readonly type: 'intent.recorded'; readonly intent: Intent } & Timed)
  /** The work goes on without this execution, or is over: its tree is to be ended. */
  | ({ readonly type: 'execution.dismissed' } & Timed)
  | ({ readonly type: 'tree.confirmed' } & Timed)
  | ({ readonly type: 'work.settled' } & Timed)

export type RunEvent = RunCommand | RunFact | RunInternal

const INTERNAL_TYPES: ReadonlySet<string> = new Set([
  'intent.recorded',
  'execution.dismissed',
  'tree.confirmed',
  'work.settled',
])

/** Events only the chart itself (or XState) may produce. */
export const isInternalEvent = (type: string): boolean =>
  INTERNAL_TYPES.has(type) || type.startsWith('xstate.')

/** Commands that end the run: they overtake waiting facts in the mailbox (P1). */
export const isIntentEvent = (type: string): boolean =>
  type === 'run.cancel' || type === 'run.interrupt' || type === 'run.terminate' || type === 'run.suppress'

/** Classifications the engine makes by itself: if they cannot be recorded, they do not act (K7). */
export const isAutomaticEvent = (type: string): boolean => type.startsWith('watchdog.')

/** What is given up when the store does not take it within the commit deadline, and for an intent that comes meanwhile (ADR 0033). */
export const isDeclinableEvent = (type: string): boolean => type === 'run.pause' || type === 'run.resume'
