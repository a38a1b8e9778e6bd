/**
 * What the run chart remembers. Plain JSON: it is stored with every transition and read by other processes.
 * Times are wall-clock milliseconds since the epoch, taken from the events (machines have no clock).
 */

/** How a run is to be ended, decided when it was accepted. Durations in milliseconds. */
export interface RunPolicy {
  /** A run that takes further prompts; otherwise the first turn's completion finishes it. */
  readonly isInteractive: boolean
  /** Prompts are given to the agent through its protocol, the first one too; otherwise it has its prompt by its command or its stdin. */
  readonly isDriven: boolean
  /** A driven run that is accepted with its first prompt; otherwise it begins without an open turn. */
  readonly hasPrompt: boolean
  /** Number of candidates, the first included. */
  readonly candidates: number
  /** Whether the driver can ask the agent to end before TERM is sent. */
  readonly canAsk: boolean
  /** A run that serves until it is told to stop: it is asked first, and is never cancelled (P16). */
  readonly isPersistent: boolean
  readonly hasFinalize: boolean
  readonly hasDeliver: boolean
  readonly askGraceMs: number
  readonly termGraceMs: number
  /** Why the driver declares a TERM grace of its own (O3); null where it gave none. */
  readonly termGraceReason: string | null
  readonly killGraceMs: number
  readonly pauseGraceMs: number
  readonly exitGraceMs: number
  readonly turnCancelMs: number
  readonly finalizeDeadlineMs: number
  /** O16: a person in front of the machine does not freeze it. */
  readonly isForeground: boolean
  /** O15: wall time, from the first launch on, frozen time left out; null: no limit. */
  readonly timeoutMs: number | null
  /** O15: bytes of both streams, over all attempts; null: no limit. */
  readonly maxOutputBytes: number | null
  /** A record of an older version has no such field: it is interrupted. */
  readonly onRecover?: OnRecover
}

/** What becomes of a run that nobody wanted to end, when its engine dies (R3). */
export type OnRecover = 'interrupt' | 'adopt' | 'keep'

export type IntentKind = 'cancel' | 'interrupt' | 'never-started' | 'stalled' | 'finished' | 'fault'

/** A recorded decision that the run must end. The strongest one stands; `requestedAt` stays the first of its kind. */
export interface Intent {
  readonly kind: IntentKind
  readonly force: boolean
  readonly reason: string
  readonly by: string
  readonly requestedAt: number
}

export type FreezeOwner = 'machine' | 'user'

/** O1: what the last complete look at a tree that is to be frozen found. */
export interface FreezeReport {
  readonly isComplete: boolean
  /** Members that could not be stopped in time; empty when it is complete. */
  readonly running: readonly Survivor[]
  readonly at: number
}

export type LimitName = 'timeoutMs' | 'maxOutputBytes'

export interface ExitStatus {
  readonly exitCode: number | null
  readonly signal: string | null
  /** What is known instead, where nobody saw how it ended. */
  readonly detail?: string
  /** R3: it was another engine's child, so that its status cannot be had: no failure, but nothing. */
  readonly isUnseen?: true
}

export type EvidenceKind = 'cgroup-empty' | 'tree-reaped' | 'identity-gone' | 'pane-absent' | 'never-launched'

/** What proves the tree of one attempt gone (INV-5). */
export interface Evidence {
  readonly attempt: number
  readonly kind: EvidenceKind
  readonly at: number
}

/** A process of the execution that is still alive at a deadline. */
export interface Survivor {
  readonly pid: number
  readonly startTicks: number
  /** The kernel's one-letter process state: R, S, D, T … */
  readonly state: string
  readonly name: string
  /** Why the last signal to it failed, if it did: `EPERM`. */
  readonly error?: string
}

/** The turn a fact was seen in; a mismatch makes the fact stale (INV-10). */
export interface TurnStamp {
  readonly attempt: number
  readonly generation: number
  readonly epoch: number
}

/** What the protocol said when the turn completed. */
export interface TurnResult {
  readonly isOk: boolean
  readonly text?: string
}

export type OutcomeStatus =
  'completed' | 'failed' | 'failed-never-started' | 'failed-stalled' | 'interrupted' | 'cancelled' | 'lost'

export interface Cancellation {
  readonly requestedAt: number
  readonly by: string
  readonly reason: string
  readonly termination: 'confirmed'
  readonly confirmedAt: number
}

/** The one outcome of a run. Once it is in the context nothing writes it again (INV-3). */
export interface Outcome extends ExitStatus {
  readonly status: OutcomeStatus
  /** A code for programs where there is one: `launch-failed`, `invariant-broken`. */
  readonly code?: string
  readonly reason: string
  readonly message: string
  readonly attempt: number
  readonly settledAt: number
  readonly result?: TurnResult
  readonly cancellation?: Cancellation
}

export interface RunContext {
  readonly policy: RunPolicy
  /** The attempt the work waits for, from 1. */
  readonly attempt: number
  /** The attempt whose execution the process region holds; 0 before the first launch. */
  readonly executionAttempt: number
  /** The attempt whose process was launched; 0 before the first. While it is the present one there is an agent to speak to. */
  readonly launchedAttempt: number
  readonly generation: number
  /** There is a prompt that the agent has, or is to be given, and its turn has not ended. */
  readonly isTurnOpen: boolean
  /** Progress edges recorded in this generation; the clock's own counter is finer. */
  readonly hasProgress: boolean
  readonly hasAdvised: boolean
  readonly openQuestions: number
  readonly isTurnCancelling: boolean
  /** The agent has answered that the turn is to end. */
  readonly isTurnCancelHeard: boolean
  /** The host has said that no further prompt will come. */
  readonly isFinished: boolean
  readonly intent: Intent | null
  /** When each kind of intent was first asked for; a stronger intent does not erase the weaker one's time. */
  readonly requestedAt: Readonly<Partial<Record<IntentKind, number>>>
  readonly freeze: FreezeOwner | null
  /** Null until the process actor has told how a freeze went. */
  readonly freezeReport: FreezeReport | null
  readonly isSuppressed: boolean
  readonly exit: ExitStatus | null
  readonly result: TurnResult | null
  readonly outcome: Outcome | null
  readonly evidence: readonly Evidence[]
  readonly survivors: readonly Survivor[]
  /** Kills that ended unconfirmed so far; picks the next retry delay. */
  readonly retries: number
  /** Deliveries that failed so far; picks the next delay likewise. */
  readonly failedDeliveries: number
  readonly lastError: string | null
}

export interface RunInput {
  readonly policy: RunPolicy
}

export const initialRunContext = (input: RunInput): RunContext => ({
  policy: input.policy,
  attempt: 1,
  executionAttempt: 0,
  launchedAttempt: 0,
  generation: 1,
  isTurnOpen: !input.policy.isDriven || input.policy.hasPrompt,
  hasProgress: false,
  hasAdvised: false,
  openQuestions: 0,
  isTurnCancelling: false,
  isTurnCancelHeard: false,
  isFinished: false,
  intent: null,
  requestedAt: {},
  freeze: null,
  freezeReport: null,
  isSuppressed: false,
  exit: null,
  result: null,
  outcome: null,
  evidence: [],
  survivors: [],
  retries: 0,
  failedDeliveries: 0,
  lastError: null,
})
