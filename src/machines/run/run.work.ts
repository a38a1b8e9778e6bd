/**
 * Region `work`: what became of the work?
 *
 * Owns: the one outcome of the run and when it is decided (the settle point).
 * Messages in: turn, watchdog and exit facts; cancel and interrupt; `tree.confirmed` from the process region.
 * Messages out: `intent.recorded` and `execution.dismissed` to the process region, `work.settled` to the delivery region.
 * Invariants: INV-3, INV-7, INV-10.
 */
import type { RunContext } from './run.context.js'
import { runSetup } from './run.setup.js'

const SETTLED = '#run.work.settled'
const COMPLETED = `${SETTLED}.completed` as const
const FAILED = `${SETTLED}.failed` as const
const LOST = `${SETTLED}.lost` as const

/** An intent from outside takes the run out of whatever it was doing. */
const intentCommands = {
  'run.cancel': { target: '#run.work.open.cancel-requested', actions: ['recordCancel', 'announceIntent'] },
  'run.interrupt': { target: '#run.work.open.interrupting', actions: ['recordInterrupt', 'announceIntent'] },
  'run.suppress': {
    target: '#run.work.open.interrupting',
    actions: ['noteSuppressed', 'recordInterrupt', 'announceIntent'],
  },
} as const

/** The result is there, and the process does not exit: the result stands, and the ladder ends the process. */
const resultStands = [
  {
    guard: 'isResultOk',
    target: COMPLETED,
    actions: ['settleCompleted', 'recordFinished', 'announceIntent'],
  },
  { target: FAILED, actions: ['settleFailed', 'recordFinished', 'announceIntent'] },
] as const

/** R3: nobody saw how the process of an adopted run exited, and what its agent said of its work is on record. */
const resultWasGiven = [
  { guard: 'isResultOk', target: COMPLETED, actions: 'settleCompleted' },
  { target: FAILED, actions: 'settleFailed' },
] as const

const limits = {
  'limit.exceeded': {
    target: '#run.work.open.interrupting',
    actions: ['recordLimit', 'announceIntent'],
  },
} as const

const nextAttempt = {
  guard: 'isFallbackDue',
  target: '#run.work.open.accepted',
  actions: ['beginAttempt', 'disarmTurnCancel'],
} as const

const exitsWell = { guard: 'isSuccess', target: COMPLETED, actions: ['noteExit', 'settleCompleted'] } as const
const exitsUnseen = { guard: 'isExitUnseen', target: LOST, actions: ['noteExit', 'settleLost'] } as const
const isFailure = { guard: 'isFailureOfWork', target: FAILED, actions: ['noteExit', 'settleFailed'] } as const

/** The natural ends of work that nobody asked to end. */
const naturalEnds = {
  'process.exited': [exitsWell, nextAttempt, exitsUnseen, isFailure],
  // The tree is gone and nobody saw it exit: an adopted run, or one whose engine died.
  'run.lost': { target: LOST, actions: 'settleLost' },
  'tree.confirmed': { target: LOST, actions: 'settleLost' },
  'run.faulted': { target: FAILED, actions: ['settleFault', 'recordFault', 'announceIntent'] },
} as const

/** The agent cannot be given a prompt. One that has had its last is not asked any more. */
const failedStarts = {
  'process.launch-failed': [
    nextAttempt,
    { guard: 'isFailureOfWork', target: FAILED, actions: 'settleFailed' },
  ],
  'session.failed': [
    { ...nextAttempt, actions: [...nextAttempt.actions, 'announceDismissal'] },
    { guard: 'isFailureOfWork', target: FAILED, actions: ['settleFailed', 'announceDismissal'] },
  ],
} as const

const ofTurn = ({ context }: { context: { attempt: number; generation: number } }) => ({
  attempt: context.attempt,
  generation: context.generation,
})

const dispatch = { type: 'turn.dispatch', params: ofTurn } as const

const turnEnds = {
  'turn.completed': [
    {
      guard: 'isCurrentTurnOfInteractive',
      target: '#run.work.open.ready',
      actions: ['endTurn', 'disarmTurnCancel'],
    },
    { guard: 'isCurrentTurn', target: '#run.work.open.finishing', actions: ['endTurn', 'disarmTurnCancel'] },
  ],
  'turn.cancelled': [
    {
      guard: 'isCurrentTurnOfInteractive',
      target: '#run.work.open.ready',
      actions: ['endTurn', 'disarmTurnCancel'],
    },
    {
      guard: 'isCurrentTurn',
      target: '#run.work.open.interrupting',
      actions: ['endTurn', 'recordTurnCancelled', 'announceIntent'],
    },
  ],
  'watchdog.completion-silent': [
    {
      guard: 'isWatchCurrentOfInteractive',
      target: '#run.work.open.ready',
      actions: ['endTurn', 'disarmTurnCancel'],
    },
    { guard: 'isWatchCurrent', target: '#run.work.open.finishing', actions: ['endTurn', 'disarmTurnCancel'] },
  ],
} as const

const turnCancel = {
  'turn.cancel': {
    guard: 'isTurnUncancelled',
    actions: ['noteTurnCancel', { type: 'turn.abort', params: ofTurn }, 'armTurnCancel'],
  },
  'turn.cancel-acknowledged': {
    guard: 'isTurnCancelUnheard',
    actions: ['noteTurnCancelHeard', 'armTurnReturn'],
  },
} as const

const terminalNotice = {
  type: 'notice.raise',
  params: ({ context }: { context: Pick<RunContext, 'outcome' | 'generation'> }) => ({
    kind: 'terminal' as const,
    text: context.outcome?.message ?? '',
    generation: context.generation,
  }),
} as const

export const workRegion = runSetup.createStateConfig({
  description: 'What became of the work?',
  initial: 'open',
  states: {
    open: {
      description: 'The work has no outcome yet.',
      initial: 'accepted',
      states: {
        accepted: {
          description: 'Recorded; waiting for the first progress of this turn.',
          always: { guard: 'isTurnAwaited', target: 'ready' },
          on: {
            ...intentCommands,
            ...limits,
            ...naturalEnds,
            ...failedStarts,
            'process.launched': { guard: 'isDispatchDue', actions: dispatch },
            ...turnEnds,
            ...turnCancel,
            'turn.cancel': [
              { guard: 'isAgentAwaited', actions: 'raiseTurnCancelled' },
              turnCancel['turn.cancel'],
            ],
            'turn.progressed': { guard: 'isCurrentTurn', target: 'active', actions: 'noteProgress' },
            'person.asked': { guard: 'isCurrentTurn', target: 'active', actions: 'noteQuestion' },
            // K5: the outcome and its intent are one transition; the teardown follows its commit.
            'watchdog.silent': {
              guard: 'isSilentSinceStart',
              target: `${SETTLED}.failed-never-started`,
              actions: ['settleNeverStarted', 'recordNeverStarted', terminalNotice, 'announceIntent'],
            },
          },
        },
        active: {
          description: 'Progress was seen in this turn.',
          initial: 'progressing',
          on: {
            ...intentCommands,
            ...limits,
            ...naturalEnds,
            ...failedStarts,
            ...turnEnds,
            ...turnCancel,
            'person.asked': { guard: 'isCurrentTurn', actions: 'noteQuestion' },
            'person.answered': { guard: 'isCurrentTurn', actions: 'noteAnswer' },
            'watchdog.exhausted': {
              guard: 'isWatchCurrent',
              target: `${SETTLED}.failed-stalled`,
              actions: ['settleStalled', 'recordStalled', terminalNotice, 'announceIntent'],
            },
          },
          states: {
            progressing: {
              description: 'The agent works.',
              on: {
                'watchdog.silent': {
                  guard: 'isSilentAfterProgress',
                  target: 'stalled-advisory',
                  actions: [
                    'noteAdvised',
                    {
                      type: 'notice.raise',
                      params: ({ context, event }) => ({
                        kind: 'advisory',
                        text: `Still waiting ${event.tool === undefined ? 'for the agent' : `on ${event.tool}`}`,
                        generation: context.generation,
                      }),
                    },
                  ],
                },
              },
            },
            'stalled-advisory': {
              description: 'Had progress, then silence: a notice, and nothing is killed.',
              on: { 'turn.progressed': { guard: 'isCurrentTurn', target: 'progressing' } },
              exit: {
                type: 'notice.withdraw',
                params: ({ context }) => ({ kind: 'advisory', generation: context.generation }),
              },
            },
          },
        },
        ready: {
          description: 'No turn is open; the agent waits for the next prompt.',
          on: {
            ...intentCommands,
            ...limits,
            ...naturalEnds,
            ...failedStarts,
            // An agent that is not there yet gets its prompt with the launch.
            'turn.started': [
              { guard: 'isAgentUp', target: 'accepted', actions: ['beginTurn', dispatch] },
              { target: 'accepted', actions: 'beginTurn' },
            ],
            'run.finish': [
              { guard: 'isAgentUp', target: 'finishing', actions: 'noteFinished' },
              // Nothing was given to an agent that is not there yet, and nothing will be.
              {
                target: COMPLETED,
                actions: ['settleCompleted', 'recordFinished', 'announceIntent'],
              },
            ],
          },
        },
        finishing: {
          description: 'The final result has come; the process is asked to end and has not exited yet.',
          entry: {
            type: 'process.ask',
            params: ({ context }) => ({ attempt: context.executionAttempt }),
          },
          on: {
            ...intentCommands,
            // O15: what the work has come to is there; only its process is over the limit.
            'limit.exceeded': resultStands,
            ...naturalEnds,
            'process.exited': [exitsWell, { ...exitsWell, guard: 'isUnseenAndWell' }, nextAttempt, isFailure],
            'tree.confirmed': resultWasGiven,
          },
          after: { exitGrace: resultStands },
        },
        interrupting: {
          description: 'Intent recorded: end it; the work may be continued by a later run.',
          entry: ['disarmTurnCancel', 'disarmTimeLimit'],
          on: {
            'run.cancel': { target: 'cancel-requested', actions: ['recordCancel', 'announceIntent'] },
            'run.interrupt': { actions: 'joinIntent' },
            'run.suppress': { actions: ['noteSuppressed', 'joinIntent'] },
            'tree.confirmed': { target: `${SETTLED}.interrupted`, actions: 'settleByIntent' },
          },
        },
        'cancel-requested': {
          description: 'Intent recorded: end it for good.',
          entry: ['disarmTurnCancel', 'disarmTimeLimit'],
          on: {
            'run.cancel': { actions: 'joinIntent' },
            'run.interrupt': { actions: 'joinIntent' },
            'run.suppress': { actions: ['noteSuppressed', 'joinIntent'] },
            'tree.confirmed': { target: `${SETTLED}.cancelled`, actions: 'settleByIntent' },
          },
        },
      },
    },
    settled: {
      description: 'The work has its one outcome. Takes no event.',
      entry: ['disarmTurnCancel', 'disarmTimeLimit', 'announceSettled'],
      initial: 'lost',
      states: {
        completed: { type: 'final', description: 'The work was done.' },
        failed: { type: 'final', description: 'The work failed by itself.' },
        'failed-never-started': { type: 'final', description: 'The agent produced nothing since its start.' },
        'failed-stalled': { type: 'final', description: 'The agent stopped making progress for too long.' },
        interrupted: { type: 'final', description: 'Ended on request; a later run may continue the work.' },
        cancelled: { type: 'final', description: 'Ended on request, for good.' },
        lost: { type: 'final', description: 'The process is gone and its end was not observed.' },
      },
    },
  },
})
