/** How a settled run is described. Pure: from the context and the fact that settled it. */
import type { ExitStatus, LimitName, Outcome, OutcomeStatus, RunContext } from './run.context.js'

const NO_EXIT: ExitStatus = { exitCode: null, signal: null }

export const NEVER_STARTED_MESSAGE = 'Agent produced no output since start'

/** O15: names the limit and its value. */
export const limitReason = (limit: LimitName, max: number): string =>
  `limit ${limit} exceeded: more than ${String(max)} ${limit === 'timeoutMs' ? 'ms, frozen time left out' : 'bytes of output'}`

export const describeExit = ({ exitCode, signal, detail }: ExitStatus): string =>
  signal !== null
    ? `ended by signal ${signal}`
    : exitCode !== null
      ? `exited with code ${exitCode}`
      : (detail ?? 'ended in a way that was not observed')

/** Completed by what the agent said. */
export const describeResult = (isOver: boolean): string =>
  isOver
    ? 'completed; how the process exited was not observed'
    : 'completed; the process did not exit by itself'

/** The exit and the last turn's result both speak for success; what the agent was given by its protocol, it ends by that. */
export const isSuccess = (exit: ExitStatus, context: RunContext): boolean =>
  exit.exitCode === 0 &&
  exit.signal === null &&
  (context.result?.isOk ?? true) &&
  !(context.policy.isDriven && context.isTurnOpen)

export const REPORTED_FAILURE = 'the agent reported a failure'

/** An exit with 0 fails a run whose agent said that it failed, or had not done what it was given. */
export const describeFailedExit = (exit: ExitStatus, context: RunContext): string => {
  if (exit.exitCode !== 0 && exit.isUnseen !== true) return describeExit(exit)
  return context.result?.isOk === false
    ? REPORTED_FAILURE
    : `${describeExit(exit)} before its turn was complete`
}

interface Settling {
  readonly status: OutcomeStatus
  readonly at: number
  readonly reason: string
  readonly message: string
  readonly code?: string
  readonly exit?: ExitStatus | null
}

const exitIn = ({ isUnseen: _isUnseen, ...exit }: ExitStatus): ExitStatus => exit

export const settle = (context: RunContext, settling: Settling): Outcome => ({
  status: settling.status,
  ...(settling.code === undefined ? {} : { code: settling.code }),
  ...exitIn(settling.exit ?? context.exit ?? NO_EXIT),
  reason: settling.reason,
  message: settling.message,
  attempt: context.attempt,
  settledAt: settling.at,
  ...(context.result === null ? {} : { result: context.result }),
  ...(settling.status === 'cancelled' && context.intent !== null
    ? {
        cancellation: {
          requestedAt: context.intent.requestedAt,
          by: context.intent.by,
          reason: context.intent.reason,
          termination: 'confirmed',
          // Wall clocks step back; the record must not (P10).
          confirmedAt: Math.max(settling.at, context.intent.requestedAt),
        },
      }
    : {}),
})
