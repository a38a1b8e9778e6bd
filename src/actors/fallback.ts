/** What a host's rule is told of an attempt that failed, when it decides whether the next candidate is tried (P9). Pure. */
import type { RunFact } from '../machines/run/run.events.js'

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

export const failedAttempt = (event: RunFact, attempt: number, hasProgress: boolean): FailedAttempt => {
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
