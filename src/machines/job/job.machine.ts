/**
 * The job chart: one piece of work that waits in a queue, from its place to its end.
 *
 * Owns: whether the job may be started, how many attempts are left, and where the end of a run leads it.
 * Does not own: its place (the queue), its run (the run chart), which job is next.
 * Messages in: commands of people, claims of engines, facts of its run.
 * Invariants: INV-8 (the next run only after the last one's tree is confirmed gone), O9, O12 (an attempt is spent by every run that
 *   ended, once), INV-3 (done and cancelled take no event).
 */
import { assign, setup } from 'xstate'
import { initialJobContext } from './job.context.js'
import type { JobContext, JobInput } from './job.context.js'
import type { JobEvent } from './job.events.js'

export const JOB_MACHINE_VERSION = 1

const reasonOf = (event: JobEvent): string => ('reason' in event ? event.reason : '')

const statusOf = ({ lastOutcome }: JobContext): string => lastOutcome?.status ?? ''

const jobSetup = setup({
  types: {
    context: {} as JobContext,
    events: {} as JobEvent,
    input: {} as JobInput,
  },
  guards: {
    /** The fence of a claim: who lost it, or never had it, changes nothing. */
    isOfClaim: ({ context, event }) => 'runId' in event && event.runId === context.claim?.runId,
    /** A block on behalf of a claim must not reach the job after that claim is lost. */
    isOfNoClaim: ({ event }) => !('runId' in event),
    hasAttempts: ({ context }) => context.attemptsLeft > 0,
    isCancelled: ({ context }) => statusOf(context) === 'cancelled',
    isCompleted: ({ context }) => statusOf(context) === 'completed',
    isReviewDue: ({ context }) => statusOf(context) === 'completed' && context.needsReview,
    /** Trying again what cannot be launched would only spend attempts. */
    isUnlaunchable: ({ context }) => context.lastOutcome?.reason === 'launch-failed',
  },
  actions: {
    takeClaim: assign(({ event }) => {
      if (event.type !== 'job.claim') return {}
      const { runId, engineId, at } = event
      return { claim: { runId, engineId, at }, reason: '' }
    }),
    releaseClaim: assign({ claim: null }),
    /** O12: here and nowhere else; a claim that came to no run spends none. */
    spendAttempt: assign(({ context, event }) =>
      event.type === 'run.settled'
        ? {
            attemptsLeft: Math.max(0, context.attemptsLeft - 1),
            attemptsSpent: context.attemptsSpent + 1,
            lastOutcome: event.outcome,
          }
        : {},
    ),
    addAttempts: assign(({ context, event }) =>
      event.type === 'job.extend' ? { attemptsLeft: context.attemptsLeft + event.attempts } : {},
    ),
    noteReason: assign(({ event }) => ({ reason: reasonOf(event) })),
    noteOutcome: assign(({ context }) => ({ reason: context.lastOutcome?.message ?? '' })),
    clearReason: assign({ reason: '' }),
  },
})

const extend = { 'job.extend': { actions: 'addAttempts' } } as const
const drop = { 'job.drop': { target: '#job.cancelled', actions: ['releaseClaim', 'noteReason'] } } as const

export const jobMachine = jobSetup.createMachine({
  id: 'job',
  version: String(JOB_MACHINE_VERSION),
  description: 'One piece of work that waits in a queue, from its place to its end.',
  context: ({ input }) => initialJobContext(input),
  initial: 'pending',
  states: {
    pending: {
      description: 'Waits in its place.',
      on: {
        ...extend,
        ...drop,
        'job.claim': { guard: 'hasAttempts', target: 'active', actions: 'takeClaim' },
        'job.block': { guard: 'isOfNoClaim', target: 'blocked', actions: 'noteReason' },
      },
    },
    active: {
      description: 'An engine holds it; it keeps its place and fills a slot.',
      initial: 'claimed',
      on: extend,
      states: {
        claimed: {
          description: 'Claimed for a run that is not on record yet.',
          on: {
            ...drop,
            'run.recorded': { guard: 'isOfClaim', target: 'running' },
            'job.unclaim': {
              guard: 'isOfClaim',
              target: '#job.pending',
              actions: ['releaseClaim', 'noteReason'],
            },
            'job.block': {
              guard: 'isOfClaim',
              target: '#job.blocked',
              actions: ['releaseClaim', 'noteReason'],
            },
          },
        },
        running: {
          description: 'Its run is on record and has no outcome yet.',
          on: { 'run.settled': { guard: 'isOfClaim', target: 'leaving', actions: 'spendAttempt' } },
        },
        leaving: {
          description: 'The run has its outcome; its processes are not proven gone yet.',
          on: {
            // INV-8, O9: only a confirmed end gives the job back.
            'run.confirmed': { guard: 'isOfClaim', target: 'deciding', actions: 'releaseClaim' },
          },
        },
        deciding: {
          description:
            'The outcome of the run decides where the job goes; wherever that is, its place is kept.',
          always: [
            { guard: 'isReviewDue', target: '#job.review' },
            { guard: 'isCompleted', target: '#job.done' },
            { guard: 'isCancelled', target: '#job.cancelled', actions: 'noteOutcome' },
            { guard: 'isUnlaunchable', target: '#job.blocked', actions: 'noteOutcome' },
            { guard: 'hasAttempts', target: '#job.pending', actions: 'noteOutcome' },
            { target: '#job.exhausted', actions: 'noteOutcome' },
          ],
        },
      },
    },
    review: {
      description: 'The work is completed and waits for a person to accept it.',
      on: {
        ...extend,
        ...drop,
        'job.accept': { target: 'done' },
        'job.retry': { guard: 'hasAttempts', target: 'pending' },
      },
    },
    blocked: {
      description: 'It cannot be started until a person has changed something; the reason says what.',
      on: {
        ...extend,
        ...drop,
        'job.retry': { guard: 'hasAttempts', target: 'pending', actions: 'clearReason' },
      },
    },
    exhausted: {
      description: 'No attempt is left; it keeps its place, and waits for more.',
      on: { ...drop, 'job.extend': { target: 'pending', actions: ['addAttempts', 'clearReason'] } },
    },
    done: { type: 'final', description: 'The work is done and accepted.' },
    cancelled: { type: 'final', description: 'It was dropped, or its run was cancelled: for good.' },
  },
  options: { maxIterations: 1000 },
})
