/**
 * What the run chart's guards and actions decide with: pure, from a context and an event.
 *
 * Invariants: INV-10 (a fact that speaks of another attempt, turn or moment is stale).
 */
import type { ExitStatus, Intent, IntentKind, OutcomeStatus, RunContext } from './run.context.js'
import type { RunEvent } from './run.events.js'
import { NEVER_STARTED_MESSAGE } from './run.outcome.js'

/** Waits between kills of a tree that would not go, and between deliveries that were not taken; the last one repeats. */
const RETRY_DELAYS_MS = [5_000, 30_000, 120_000, 300_000] as const
/** K13: what a turn that is being cancelled has to come back, once the agent has answered, or should have. */
export const TURN_RETURN_MS = 2_000
/** The wait after the so-many-th failure. */
export const retryDelayMs = (failures: number): number =>
  RETRY_DELAYS_MS[Math.min(Math.max(failures - 1, 0), RETRY_DELAYS_MS.length - 1)] ?? 300_000

/** The event as the type that the transition it is used on guarantees. */
export type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>
export const as = <T extends RunEvent['type']>(event: RunEvent): EventOf<T> => event as EventOf<T>

export const exitOf = (event: RunEvent): ExitStatus | null =>
  event.type === 'process.exited'
    ? {
        exitCode: event.exitCode,
        signal: event.signal,
        ...(event.detail === undefined ? {} : { detail: event.detail }),
        ...(event.isUnseen === undefined ? {} : { isUnseen: event.isUnseen }),
      }
    : null

export const isCurrentExecution = (context: RunContext, event: RunEvent): boolean =>
  'attempt' in event && event.attempt === context.executionAttempt

/** The fact speaks of the execution that the work waits for; while leavings are swept the work waits for the next one. */
export const isExecutionOfAttempt = (context: RunContext, event: RunEvent): boolean =>
  isCurrentExecution(context, event) && context.executionAttempt === context.attempt

/** There is an agent to speak to: the present attempt was launched. */
export const isAgentUp = (context: RunContext): boolean => context.launchedAttempt === context.attempt

/**
 * The turn that the next candidate takes up. One that was asked to end is not begun again (K13); a run of one turn has no other, so
 * that it is taken up even after a result, where the host's rule wants that (P9).
 */
export const isTurnTakenUp = (context: RunContext): boolean => {
  const { isInteractive, isDriven, hasPrompt } = context.policy
  if (isInteractive) return context.isTurnOpen && !context.isTurnCancelling
  // Each attempt has moved the generation, and so has each turn but the first where that came with the run.
  return !isDriven || hasPrompt || context.generation > context.attempt
}

export const isCurrentTurn = (context: RunContext, event: RunEvent): boolean =>
  'generation' in event && event.attempt === context.attempt && event.generation === context.generation

export const isWatchCurrent = (context: RunContext, event: RunEvent): boolean => {
  const { seen, current } = as<'watchdog.silent'>(event)
  return (
    seen.attempt === context.attempt &&
    seen.generation === context.generation &&
    seen.attempt === current.attempt &&
    seen.generation === current.generation &&
    // K4: progress between the watchdog's look and this moment makes the fact stale.
    seen.epoch === current.epoch &&
    context.intent === null &&
    context.freeze === null &&
    context.openQuestions === 0
  )
}

/** The intent that results from `kind` arriving now: a weaker one never replaces a stronger one. */
export const intentFrom = (
  context: RunContext,
  kind: IntentKind,
  order: { at: number; by: string; reason: string; force: boolean },
): Intent => ({
  kind,
  force: order.force || (context.intent?.force ?? false),
  reason: order.reason,
  by: order.by,
  requestedAt: context.requestedAt[kind] ?? order.at,
})

/**
 * The times at which a kind of intent was first asked for, with one more. An event that XState raised for a timer has its time too:
 * the host stamps it.
 */
export const record = (context: RunContext, intent: Intent) => ({
  intent,
  // A run that is being ended is not paused any more.
  freeze: null,
  freezeReport: null,
  requestedAt: { ...context.requestedAt, [intent.kind]: intent.requestedAt },
})

/** What an intent of the engine's own making says of itself. */
export const OWN_INTENTS = {
  'never-started': NEVER_STARTED_MESSAGE,
  stalled: 'Agent stopped making progress',
  finished: 'The work is finished and the process did not exit',
  fault: 'An invariant of the run was broken',
} as const satisfies Partial<Record<IntentKind, string>>

export const ownIntent = (
  context: RunContext,
  kind: keyof typeof OWN_INTENTS,
  at: number,
  force: boolean,
): Intent => intentFrom(context, kind, { at, by: 'engine', reason: OWN_INTENTS[kind], force })

export const outcomeOfIntent: Readonly<Partial<Record<IntentKind, OutcomeStatus>>> = {
  cancel: 'cancelled',
  interrupt: 'interrupted',
}
