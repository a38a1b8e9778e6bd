/** Whether a failed attempt is answered by the next candidate, and what the host's rule is told of it (P9). */
import type { RunFact } from '../machines/run/run.events.js'
import { isSuccess } from '../machines/run/run.outcome.js'
import type { RunActor } from './run.actor.js'

export interface FailedAttempt {
  /** From 1. */
  readonly attempt: number
  /** It could not be launched, could not be spoken to, or exited without success. */
  readonly reason: 'launch-failed' | 'session-failed' | 'exit'
  readonly exitCode: number | null
  readonly signal: string | null
  /** The system's code of a failed launch: `ENOENT`. */
  readonly code: string | null
  /** What went wrong, where the exit does not say it. */
  readonly message: string
  /** Whether this attempt had shown any progress. */
  readonly hasProgress: boolean
}

const failedAttempt = (event: RunFact, attempt: number, hasProgress: boolean): FailedAttempt => {
  const nothing = { exitCode: null, signal: null, code: null, message: '' }
  switch (event.type) {
    case 'process.exited': {
      const { exitCode, signal } = event
      return { attempt, reason: 'exit', ...nothing, exitCode, signal, hasProgress }
    }
    case 'session.failed':
      return { attempt, reason: 'session-failed', ...nothing, message: event.message, hasProgress }
    case 'process.launch-failed':
      return {
        attempt,
        reason: 'launch-failed',
        ...nothing,
        code: event.code,
        message: event.message,
        hasProgress,
      }
    default:
      return { attempt, reason: 'exit', ...nothing, hasProgress }
  }
}

/** The rule is asked of a failure that another candidate could answer, and of nothing else. */
export const isFallbackEligible = ({ context, progress, environment }: RunActor, event: RunFact): boolean => {
  if (context.intent !== null || context.attempt >= context.policy.candidates) return false
  if (event.type === 'process.exited' && isSuccess(event, context)) return false
  const hasProgress = progress.hasProgressedIn(context.attempt)
  return environment.isFallbackEligible(failedAttempt(event, context.attempt, hasProgress))
}
