/**
 * The vocabulary of the run chart: its types, named guards, named actions and named delays.
 *
 * Owns: every write to the context. The decisions are in run.decisions.ts.
 * Does not own: the shape of the chart (the three region files), and the effects' execution (the run actor).
 * Messages out: the effects, as named actions without an implementation here. See run.effects.ts.
 * Invariants: INV-3 (an outcome is written once), INV-7 and INV-8 (`isAttemptDue`), INV-10 (`isCurrent…`).
 */
import { assign, cancel, enqueueActions, raise, setup } from 'xstate'
import type { Intent, RunContext, RunInput } from './run.context.js'
import {
  OWN_INTENTS,
  TURN_RETURN_MS,
  as,
  exitOf,
  intentFrom,
  isAgentUp,
  isCurrentExecution,
  isCurrentTurn,
  isExecutionOfAttempt,
  isTurnTakenUp,
  isWatchCurrent,
  outcomeOfIntent,
  ownIntent,
  record,
  retryDelayMs,
} from './run.decisions.js'
import type { RunEffects } from './run.effects.js'
import type { RunEvent } from './run.events.js'
import {
  NEVER_STARTED_MESSAGE,
  REPORTED_FAILURE,
  describeExit,
  describeFailedExit,
  describeResult,
  isSuccess,
  limitReason,
  settle,
} from './run.outcome.js'
import { TIME_LIMIT_TIMER, TURN_CANCEL_TIMER, TURN_RETURN_TIMER } from './run.timers.js'

const turnCancelled = ({ attempt, generation }: RunContext, { at }: RunEvent) => ({
  type: 'turn.cancelled' as const,
  at,
  attempt,
  generation,
})

/** Effects are data for the run actor; the chart itself does nothing in the world. */
const effect = <K extends keyof RunEffects>(_kind: K) => {
  return (_: unknown, _params: RunEffects[K]): void => undefined
}

export const runSetup = setup({
  types: {
    context: {} as RunContext,
    events: {} as RunEvent,
    input: {} as RunInput,
  },

  guards: {
    /** INV-10: the fact speaks of the turn that is open now, and nothing has been decided against it. */
    isCurrentTurn: ({ context, event }) => isCurrentTurn(context, event),
    isCurrentTurnOfInteractive: ({ context, event }) =>
      isCurrentTurn(context, event) && context.policy.isInteractive,
    /** INV-10: the fact speaks of the execution that the process region holds. */
    isCurrentExecution: ({ context, event }) => isCurrentExecution(context, event),
    isSilentSinceStart: ({ context, event }) => isWatchCurrent(context, event) && !context.hasProgress,
    isSilentAfterProgress: ({ context, event }) =>
      isWatchCurrent(context, event) && context.hasProgress && !context.hasAdvised,
    isWatchCurrent: ({ context, event }) => isWatchCurrent(context, event),
    isWatchCurrentOfInteractive: ({ context, event }) =>
      isWatchCurrent(context, event) && context.policy.isInteractive,
    isSuccess: ({ context, event }) => {
      const exit = exitOf(event)
      return exit !== null && isExecutionOfAttempt(context, event) && isSuccess(exit, context)
    },
    /** INV-7, P9: a failure that the host's rule lets the next candidate answer, there is one, and it has something to do. */
    isFallbackDue: ({ context, event }) =>
      isExecutionOfAttempt(context, event) &&
      'isFallbackEligible' in event &&
      event.isFallbackEligible &&
      context.intent === null &&
      !context.isFinished &&
      (context.policy.isInteractive || !context.isTurnCancelling) &&
      context.attempt < context.policy.candidates,
    /** R3: the leader of an adopted run has ended, and nobody saw how. */
    isExitUnseen: ({ context, event }) =>
      isExecutionOfAttempt(context, event) && exitOf(event)?.isUnseen === true,
    /** R3: of an exit that nobody saw only the end of the work before it speaks. */
    isUnseenAndWell: ({ context, event }) =>
      isExecutionOfAttempt(context, event) &&
      exitOf(event)?.isUnseen === true &&
      (context.result?.isOk ?? true),
    isFailureOfWork: ({ context, event }) => isExecutionOfAttempt(context, event),
    isTreeEmpty: ({ context, event }) =>
      isCurrentExecution(context, event) && as<'process.exited'>(event).isTreeEmpty,
    hasMembersLeft: ({ context, event }) =>
      isCurrentExecution(context, event) && !as<'process.exited'>(event).isTreeEmpty,
    /** INV-7 and INV-8: another attempt only while the work is open, unwanted by nobody, and the last tree is gone. */
    isAttemptDue: ({ context }) =>
      context.outcome === null && context.intent === null && context.attempt > context.executionAttempt,
    hasNoIntent: ({ context }) => context.intent === null,
    isForcedNow: ({ event }) => 'force' in event && event.force,
    isIntentForced: ({ event }) => as<'intent.recorded'>(event).intent.force,
    isIntentAskable: ({ context, event }) =>
      context.policy.canAsk && !as<'intent.recorded'>(event).intent.force,
    isForcedIntentAtLaunch: ({ context, event }) =>
      isCurrentExecution(context, event) && (context.intent?.force ?? false),
    isIntentAtLaunch: ({ context, event }) => isCurrentExecution(context, event) && context.intent !== null,
    isFreezeAtLaunch: ({ context, event }) => isCurrentExecution(context, event) && context.freeze !== null,
    /** O4: the machine's return lifts only the machine's freeze; the user's lifts both. */
    mayThaw: ({ context, event }) =>
      context.freeze === 'machine' || (context.freeze === 'user' && as<'run.resume'>(event).owner === 'user'),
    isSuppressed: ({ context }) => context.isSuppressed,
    hasFinalize: ({ context }) => context.policy.hasFinalize,
    hasDeliver: ({ context }) => context.policy.hasDeliver,
    isResultOk: ({ context }) => context.result?.isOk ?? true,
    isTurnUncancelled: ({ context }) => !context.isTurnCancelling,
    isAgentUp: ({ context }) => isAgentUp(context),
    isAgentAwaited: ({ context }) => !isAgentUp(context),
    isTurnCancelUnheard: ({ context, event }) =>
      isCurrentTurn(context, event) && context.isTurnCancelling && !context.isTurnCancelHeard,
    isTurnAwaited: ({ context }) => !context.isTurnOpen,
    /** The open turn waits for this launch; one that is told twice gives it once. */
    isDispatchDue: ({ context, event }) =>
      context.policy.isDriven && isExecutionOfAttempt(context, event) && !isAgentUp(context),
    /** O15: the first launch of a run with a time limit. A record of an older version has no such field. */
    isTimeLimitDue: ({ context }) =>
      context.intent === null &&
      context.executionAttempt === 0 &&
      typeof context.policy.timeoutMs === 'number',
  },

  delays: {
    askGrace: ({ context }) => context.policy.askGraceMs,
    termGrace: ({ context }) => context.policy.termGraceMs,
    killGrace: ({ context }) => context.policy.killGraceMs,
    pauseGrace: ({ context }) => context.policy.pauseGraceMs,
    timeLimit: ({ context }) => context.policy.timeoutMs ?? 0,
    exitGrace: ({ context }) => context.policy.exitGraceMs,
    turnCancelGrace: ({ context }) => context.policy.turnCancelMs + TURN_RETURN_MS,
    turnReturnGrace: () => TURN_RETURN_MS,
    finalizeDeadline: ({ context }) => context.policy.finalizeDeadlineMs,
    deliveryRetry: ({ context }) => retryDelayMs(context.failedDeliveries),
    unconfirmedRetry: ({ context }) => retryDelayMs(context.retries),
  },

  actions: {
    // ── effects ────────────────────────────────────────────────────────────────────────────────
    'admission.request': effect('admission.request'),
    'process.launch': effect('process.launch'),
    'process.ask': effect('process.ask'),
    'process.terminate': effect('process.terminate'),
    'process.kill': effect('process.kill'),
    'process.freeze': effect('process.freeze'),
    'process.thaw': effect('process.thaw'),
    'process.release': effect('process.release'),
    'turn.dispatch': effect('turn.dispatch'),
    'turn.abort': effect('turn.abort'),
    'notice.raise': effect('notice.raise'),
    'notice.withdraw': effect('notice.withdraw'),
    'delivery.finalize': effect('delivery.finalize'),
    'delivery.deliver': effect('delivery.deliver'),

    // ── turns ──────────────────────────────────────────────────────────────────────────────────
    noteProgress: assign({ hasProgress: true }),
    noteQuestion: assign({ hasProgress: true, openQuestions: ({ context }) => context.openQuestions + 1 }),
    noteAnswer: assign({ openQuestions: ({ context }) => Math.max(0, context.openQuestions - 1) }),
    noteAdvised: assign({ hasAdvised: true }),
    noteTurnCancel: assign({ isTurnCancelling: true }),
    noteTurnCancelHeard: assign({ isTurnCancelHeard: true }),
    /** K11: the generation moves before each dispatch. */
    beginTurn: assign({
      generation: ({ context }) => context.generation + 1,
      isTurnOpen: true,
      hasProgress: false,
      hasAdvised: false,
      openQuestions: 0,
      isTurnCancelling: false,
      isTurnCancelHeard: false,
      result: null,
    }),
    noteFinished: assign({ isFinished: true }),
    /** A turn that ended: its result is kept until the next one begins. */
    endTurn: assign({
      result: ({ context, event }) => (event.type === 'turn.completed' ? event.result : context.result),
      isTurnOpen: false,
      openQuestions: 0,
      isTurnCancelling: false,
      isTurnCancelHeard: false,
    }),
    beginAttempt: assign({
      attempt: ({ context }) => context.attempt + 1,
      generation: ({ context }) => context.generation + 1,
      isTurnOpen: ({ context }) => isTurnTakenUp(context),
      hasProgress: false,
      hasAdvised: false,
      openQuestions: 0,
      isTurnCancelling: false,
      isTurnCancelHeard: false,
      freezeReport: null,
      exit: null,
      result: null,
    }),
    /** K13: what was given to nobody is over at once. */
    raiseTurnCancelled: raise(({ context, event }) => turnCancelled(context, event)),
    /** K13: the agent was asked to end its turn; past this it is freed without its answer. */
    armTurnCancel: raise(({ context, event }) => turnCancelled(context, event), {
      delay: 'turnCancelGrace',
      id: TURN_CANCEL_TIMER,
    }),
    /** K13: the agent has heard; its prompt has so long to return, and no longer than without an answer. */
    armTurnReturn: raise(({ context, event }) => turnCancelled(context, event), {
      delay: 'turnReturnGrace',
      id: TURN_RETURN_TIMER,
    }),
    disarmTurnCancel: enqueueActions(({ enqueue }) => {
      enqueue.cancel(TURN_CANCEL_TIMER)
      enqueue.cancel(TURN_RETURN_TIMER)
    }),

    // ── intents ────────────────────────────────────────────────────────────────────────────────
    recordCancel: assign(({ context, event }) =>
      record(context, intentFrom(context, 'cancel', as<'run.cancel'>(event))),
    ),
    recordInterrupt: assign(({ context, event }) =>
      record(context, intentFrom(context, 'interrupt', as<'run.interrupt'>(event))),
    ),
    recordTurnCancelled: assign(({ context, event }) => {
      const order = { at: event.at, by: 'engine', reason: 'the only turn was cancelled', force: false }
      return record(context, intentFrom(context, 'interrupt', order))
    }),
    recordNeverStarted: assign(({ context, event }) =>
      record(context, ownIntent(context, 'never-started', event.at, true)),
    ),
    recordStalled: assign(({ context, event }) =>
      record(context, ownIntent(context, 'stalled', event.at, true)),
    ),
    recordFinished: assign(({ context, event }) =>
      record(context, ownIntent(context, 'finished', event.at, false)),
    ),
    recordFault: assign(({ context, event }) => record(context, ownIntent(context, 'fault', event.at, true))),
    /** A forced repeat makes the standing intent forced; the rest of it stays (P7). */
    joinIntent: assign(({ context, event }) =>
      context.intent !== null && 'force' in event && event.force
        ? { intent: { ...context.intent, force: true } }
        : {},
    ),
    announceIntent: raise(({ context, event }) => ({
      type: 'intent.recorded' as const,
      at: event.at,
      // Only used directly after an intent was recorded.
      intent: context.intent as Intent,
    })),
    raiseGraceOver: raise(({ event }) => ({
      type: 'run.interrupt' as const,
      at: event.at,
      by: 'engine',
      reason: 'grace window passed while paused',
      force: false,
    })),
    noteSuppressed: assign({ isSuppressed: true }),
    recordLimit: assign(({ context, event }) => {
      const { limit, max, at } = as<'limit.exceeded'>(event)
      const order = { at, by: 'engine', reason: limitReason(limit, max), force: false }
      return record(context, intentFrom(context, 'interrupt', order))
    }),
    armTimeLimit: raise(
      ({ context, event }) => ({
        type: 'limit.exceeded' as const,
        at: event.at,
        limit: 'timeoutMs' as const,
        max: context.policy.timeoutMs ?? 0,
      }),
      { delay: 'timeLimit', id: TIME_LIMIT_TIMER },
    ),
    disarmTimeLimit: cancel(TIME_LIMIT_TIMER),

    // ── the execution ──────────────────────────────────────────────────────────────────────────
    takeExecution: assign({
      executionAttempt: ({ context }) => context.attempt,
      exit: null,
      survivors: [],
      retries: 0,
    }),
    noteLaunched: assign({ launchedAttempt: ({ context }) => context.executionAttempt }),
    noteExit: assign(({ context, event }) =>
      isCurrentExecution(context, event) ? { exit: exitOf(event) ?? context.exit } : {},
    ),
    noteEvidence: assign({
      evidence: ({ context, event }) => [
        ...context.evidence,
        {
          attempt: context.executionAttempt,
          kind: 'evidence' in event ? event.evidence : ('never-launched' as const),
          at: event.at,
        },
      ],
      survivors: [],
    }),
    noteNeverLaunched: assign({
      evidence: ({ context, event }) =>
        context.evidence.length > 0
          ? context.evidence
          : [{ attempt: context.attempt, kind: 'never-launched' as const, at: event.at }],
    }),
    noteSurvivors: assign(({ context, event }) => {
      const { survivors, error } = as<'process.survived'>(event)
      return { survivors, lastError: error ?? context.lastError }
    }),
    noteSignalError: assign({ lastError: ({ event }) => as<'process.signal-failed'>(event).error }),
    countFailedDelivery: assign({ failedDeliveries: ({ context }) => context.failedDeliveries + 1 }),
    countRetry: assign({ retries: ({ context }) => context.retries + 1 }),
    noteFreeze: assign({
      freeze: ({ context, event }) => (context.freeze === 'user' ? 'user' : as<'run.pause'>(event).owner),
    }),
    clearFreeze: assign({ freeze: null, freezeReport: null }),
    announceDismissal: raise(({ event }) => ({ type: 'execution.dismissed' as const, at: event.at })),
    noteFrozen: assign({ freezeReport: ({ event }) => ({ isComplete: true, running: [], at: event.at }) }),
    noteFreezeFailed: assign(({ context, event }) => {
      const { running, error, at } = as<'process.freeze-failed'>(event)
      return { freezeReport: { isComplete: false, running, at }, lastError: error ?? context.lastError }
    }),
    announceTreeConfirmed: raise(({ event }) => ({ type: 'tree.confirmed' as const, at: event.at })),

    // ── the outcome (each is used only on a transition out of `open`: INV-3) ─────────────────────
    announceSettled: raise(({ event }) => ({ type: 'work.settled' as const, at: event.at })),
    settleCompleted: assign({
      outcome: ({ context, event }) => {
        const { at } = event
        if (event.type === 'run.finish') {
          const message = 'finished before there was an agent'
          return settle(context, { status: 'completed', at, reason: 'finished', message })
        }
        const exit = exitOf(event)
        const isSeen = exit !== null && exit.isUnseen !== true
        return settle(context, {
          status: 'completed',
          at,
          exit,
          reason: isSeen ? 'exit' : 'result',
          message: isSeen
            ? describeExit(exit)
            : describeResult(exit !== null || event.type === 'tree.confirmed'),
        })
      },
    }),
    settleFailed: assign({
      outcome: ({ context, event }) => {
        if (event.type === 'process.launch-failed') {
          const { code, message, at } = event
          return settle(context, { status: 'failed', at, code, reason: 'launch-failed', message })
        }
        if (event.type === 'session.failed') {
          const { message, at } = event
          return settle(context, { status: 'failed', at, code: 'session-failed', reason: 'session', message })
        }
        const exit = exitOf(event)
        return settle(context, {
          status: 'failed',
          at: event.at,
          exit,
          reason:
            exit === null || exit.isUnseen === true ? 'result' : exit.signal === null ? 'exit' : 'signal',
          message: exit === null ? REPORTED_FAILURE : describeFailedExit(exit, context),
        })
      },
    }),
    settleFault: assign({
      outcome: ({ context, event }) =>
        settle(context, {
          status: 'failed',
          at: event.at,
          code: 'invariant-broken',
          reason: 'fault',
          message: as<'run.faulted'>(event).message,
        }),
    }),
    settleNeverStarted: assign({
      outcome: ({ context, event }) =>
        settle(context, {
          status: 'failed-never-started',
          at: event.at,
          reason: 'never-started',
          message: NEVER_STARTED_MESSAGE,
        }),
    }),
    settleStalled: assign({
      outcome: ({ context, event }) =>
        settle(context, {
          status: 'failed-stalled',
          at: event.at,
          reason: 'stalled',
          message: OWN_INTENTS.stalled,
        }),
    }),
    settleByIntent: assign({
      outcome: ({ context, event }) =>
        settle(context, {
          status: (context.intent && outcomeOfIntent[context.intent.kind]) ?? 'lost',
          at: event.at,
          reason: context.intent?.reason ?? '',
          message: context.intent?.kind === 'cancel' ? 'cancelled' : 'interrupted',
        }),
    }),
    settleLost: assign({
      outcome: ({ context, event }) =>
        settle(context, {
          status: 'lost',
          at: event.at,
          reason: 'lost',
          message: 'the process is gone and how it ended was not observed',
        }),
    }),
  },
})
