/** What the job chart remembers. Plain JSON: it is stored with every transition and read by other processes. Times in wall-clock ms. */
import type { OutcomeStatus } from '../run/run.context.js'

/** An engine's claim on a job: the run that will do it has this id, and no other can. */
export interface JobClaim {
  readonly runId: string
  readonly engineId: string
  readonly at: number
}

/** How the job's last run ended, as far as the queue needs to know. */
export interface JobOutcome {
  readonly runId: string
  readonly status: OutcomeStatus
  /** A code for programs where there is one: `launch-failed`. */
  readonly code?: string
  readonly reason: string
  readonly message: string
  readonly settledAt: number
}

export interface JobContext {
  /** Completed work waits for a person before it is done. */
  readonly needsReview: boolean
  /** Runs that may still be started. */
  readonly attemptsLeft: number
  /** Runs that have ended, whatever became of them. */
  readonly attemptsSpent: number
  readonly claim: JobClaim | null
  readonly lastOutcome: JobOutcome | null
  /** Why it is where it is, for people: what blocks it, who dropped it. Empty where the state says everything. */
  readonly reason: string
}

export interface JobInput {
  readonly needsReview: boolean
  readonly attempts: number
}

export const initialJobContext = ({ needsReview, attempts }: JobInput): JobContext => ({
  needsReview,
  attemptsLeft: attempts,
  attemptsSpent: 0,
  claim: null,
  lastOutcome: null,
  reason: '',
})
