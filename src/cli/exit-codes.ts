/**
 * What each way to end means to a shell. The numbers are public: scripts depend on them.
 *
 * Those from 64 on follow sysexits.h where it has a word for the case, and the shells for 126, 127, 130 and 143.
 */
import type { Outcome, OutcomeStatus, RunwardenErrorCode, StopReceipt } from '../index.js'
import { isCoded } from './errors.js'

export const EXIT = {
  ok: 0,
  /** Refused, or a failure that has no number of its own. */
  refused: 1,
  nothingToStop: 3,
  usage: 64,
  unknownRun: 66,
  nothingUsable: 69,
  neverStarted: 70,
  stalled: 71,
  store: 74,
  unconfirmed: 75,
  cannotLaunch: 126,
  programNotFound: 127,
  interrupted: 130,
  cancelled: 143,
} as const

const OF_STATUS: Readonly<Record<Exclude<OutcomeStatus, 'completed' | 'failed'>, number>> = {
  'failed-never-started': EXIT.neverStarted,
  'failed-stalled': EXIT.stalled,
  interrupted: EXIT.interrupted,
  cancelled: EXIT.cancelled,
  lost: EXIT.refused,
}

export const isLaunchFailure = (outcome: Outcome): boolean => outcome.reason === 'launch-failed'

/** What a command that failed left as its code: none when a signal ended it, and 0 is none of a failure. */
export const failureCode = ({ status, exitCode }: Outcome): number | null =>
  status === 'failed' && exitCode !== 0 ? exitCode : null

/** The exit code of `run` for a run whose tree is confirmed gone. */
export const exitCodeOfOutcome = (outcome: Outcome): number => {
  const { status, exitCode, code } = outcome
  if (isLaunchFailure(outcome)) return code === 'ENOENT' ? EXIT.programNotFound : EXIT.cannotLaunch
  if (status === 'completed') return exitCode ?? EXIT.ok
  if (status === 'failed') return failureCode(outcome) ?? EXIT.refused
  return OF_STATUS[status]
}

const OF_RECEIPT: Readonly<Record<StopReceipt['status'], number>> = {
  confirmed: EXIT.ok,
  'nothing-to-stop': EXIT.nothingToStop,
  unconfirmed: EXIT.unconfirmed,
  // At the deadline some run had not answered: nothing is proven.
  requested: EXIT.unconfirmed,
  refused: EXIT.refused,
}

export const exitCodeOfReceipt = ({ status }: StopReceipt): number => OF_RECEIPT[status]

const OF_ERROR: Readonly<Partial<Record<RunwardenErrorCode, number>>> = {
  'invalid-option': EXIT.usage,
  // An id given by hand that is taken is a wrong argument, and must not look like the command's own failure.
  'run-exists': EXIT.usage,
  'job-exists': EXIT.usage,
  'unknown-run': EXIT.unknownRun,
  'unknown-job': EXIT.unknownRun,
  'store-unavailable': EXIT.store,
  'store-too-new': EXIT.store,
}

export const exitCodeOfError = (error: unknown): number =>
  isCoded(error) ? (OF_ERROR[error.code] ?? EXIT.refused) : EXIT.refused
