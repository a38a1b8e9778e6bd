/** The job chart as a model: every claim, every end of its run, every command of people, in every order. */
import { isDeepStrictEqual } from 'node:util'
import type { SnapshotFrom } from 'xstate'
import type { JobOutcome } from '../../src/machines/job/job.context.js'
import type { JobEvent } from '../../src/machines/job/job.events.js'
import { jobMachine } from '../../src/machines/job/job.machine.js'
import { pathOf } from '../../src/machines/run/run.headline.js'
import type { Check, Edge, Model, Offer } from './explorer.js'
import { onEdge } from './faults.js'
import type { Fault } from './faults.js'
import { PureMachine } from './pure-machine.js'

type JobSnapshot = SnapshotFrom<typeof jobMachine>

export interface JobNode {
  readonly snapshot: JobSnapshot
  readonly state: string
  /** The run whose claim stands, kept from the events alone. */
  readonly held: string | null
  readonly left: number
  /** The status of the run that settled under the present claim, kept from the events alone. */
  readonly settled: string | null
}

export interface JobOffer extends Offer {
  readonly event: JobEvent
}

type JobEdge = Edge<JobNode, JobOffer>

const RUNS = ['r1', 'r2'] as const
const ENDS = ['completed', 'failed', 'interrupted', 'cancelled', 'lost'] as const
const ATTEMPTS = 2
const ATTEMPTS_MAX = 3

const outcomeOf = (runId: string, status: (typeof ENDS)[number], reason: string): JobOutcome => ({
  runId,
  status,
  reason,
  message: `${runId} ${status} ${reason}`,
  settledAt: 4,
})

const settledBy = (runId: string): JobOffer[] =>
  [...ENDS.map((status) => [status, 'exit'] as const), ['failed', 'launch-failed'] as const].map(
    ([status, reason]) => ({
      label: `run.settled ${runId} ${status} ${reason}`,
      event: { type: 'run.settled', at: 4, runId, outcome: outcomeOf(runId, status, reason) },
    }),
  )

const factsOf = (runId: string): JobOffer[] => [
  {
    label: `job.claim ${runId}`,
    event: { type: 'job.claim', at: 1, runId, engineId: `engine of ${runId}` },
  },
  { label: `job.unclaim ${runId}`, event: { type: 'job.unclaim', at: 2, runId, reason: 'given up' } },
  { label: `job.block ${runId}`, event: { type: 'job.block', at: 2, runId, reason: 'no worktree' } },
  { label: `run.recorded ${runId}`, event: { type: 'run.recorded', at: 3, runId } },
  ...settledBy(runId),
  { label: `run.confirmed ${runId}`, event: { type: 'run.confirmed', at: 5, runId } },
]

const COMMANDS: readonly JobOffer[] = [
  { label: 'job.block', event: { type: 'job.block', at: 6, reason: 'what it comes after was dropped' } },
  { label: 'job.accept', event: { type: 'job.accept', at: 6, by: 'me' } },
  { label: 'job.retry', event: { type: 'job.retry', at: 6, by: 'me' } },
  { label: 'job.drop', event: { type: 'job.drop', at: 6, by: 'me', reason: 'not wanted' } },
]
const EXTEND: JobOffer = {
  label: 'job.extend',
  event: { type: 'job.extend', at: 6, attempts: 1, by: 'me' },
}
const OFFERS: readonly JobOffer[] = [...RUNS.flatMap(factsOf), ...COMMANDS]
const EVENTS = [...new Set([...OFFERS, EXTEND].map(({ event }) => event.type))]

export const isOver = ({ state }: JobNode): boolean => state === 'done' || state === 'cancelled'
const isActive = ({ state }: JobNode): boolean => state.startsWith('active.')
/** A run of it is on record and not proven gone. */
const isGoing = ({ state }: JobNode): boolean => state === 'active.running' || state === 'active.leaving'

const isInert = ({ before, after }: JobEdge): boolean =>
  after.state === before.state && isDeepStrictEqual(after.snapshot.context, before.snapshot.context)

/** Where the end of a run leads, from the design's words. */
const destinationOf = ({ settled, left, snapshot }: JobNode): string => {
  if (settled === 'completed') return snapshot.context.needsReview ? 'review' : 'done'
  if (settled === 'cancelled') return 'cancelled'
  if (settled === 'unlaunchable') return 'blocked'
  return left > 0 ? 'pending' : 'exhausted'
}

const claim = (id: string, text: string, holds: (edge: JobEdge) => boolean): Check<JobEdge> =>
  onEdge(id, text, EVENTS, holds)

export const jobChecks: readonly Check<JobEdge>[] = [
  claim('INV-3', 'a job that is done or cancelled takes no event', (edge) => {
    return !isOver(edge.before) || isInert(edge)
  }),
  claim('INV-8', 'a job is claimed only while it is pending, by one engine, and keeps that claim', (edge) => {
    const { before, after, offer } = edge
    const { claim: held } = after.snapshot.context
    if (offer.event.type !== 'job.claim') return held?.runId === (after.held ?? undefined)
    if (before.state !== 'pending' || before.left === 0) return isInert(edge)
    return after.state === 'active.claimed' && held?.runId === offer.event.runId
  }),
  claim(
    'INV-8',
    'while a run of it is not proven gone, nothing gives the job back but that proof',
    ({ before, after, offer }) => {
      if (!isGoing(before)) return true
      const isProof =
        before.state === 'active.leaving' &&
        offer.event.type === 'run.confirmed' &&
        offer.event.runId === before.held
      return isProof ? !isActive(after) : isGoing(after) && after.held === before.held
    },
  ),
  claim('O9', 'the end of its run leads where its outcome says', ({ before, after, offer }) => {
    if (before.state !== 'active.leaving' || offer.event.type !== 'run.confirmed') return true
    return offer.event.runId !== before.held || after.state === destinationOf(before)
  }),
  claim(
    'O12',
    'an attempt is spent by a run that ends, once, and by nothing else',
    ({ before, after, offer }) => {
      const isEnd =
        before.state === 'active.running' &&
        offer.event.type === 'run.settled' &&
        offer.event.runId === before.held
      const added = offer.event.type === 'job.extend' && !isOver(before) ? offer.event.attempts : 0
      const { attemptsLeft, attemptsSpent } = after.snapshot.context
      return (
        attemptsLeft === before.left + added - (isEnd ? 1 : 0) &&
        attemptsSpent === before.snapshot.context.attemptsSpent + (isEnd ? 1 : 0)
      )
    },
  ),
  claim('O12', 'a job without attempts is exhausted, and waits for more', ({ after, offer }) => {
    const isEnded = offer.event.type === 'run.confirmed' || offer.event.type === 'job.extend'
    if (after.state === 'exhausted') return after.left === 0
    return !(isEnded && after.state === 'pending') || after.left > 0
  }),
  claim('O12', 'a blocked or reviewed job is tried again only with an attempt left', (edge) => {
    const { before, after, offer } = edge
    if (offer.event.type !== 'job.retry') return true
    const isDue = (before.state === 'blocked' || before.state === 'review') && before.left > 0
    return isDue ? after.state === 'pending' : isInert(edge)
  }),
  claim('O11', 'accept takes a job out of review, and out of nothing else', (edge) => {
    if (edge.offer.event.type !== 'job.accept') return true
    return edge.before.state === 'review' ? edge.after.state === 'done' : isInert(edge)
  }),
  claim('O11', 'a job is dropped unless a run of it is going or it is over', (edge) => {
    const { before, after, offer } = edge
    if (offer.event.type !== 'job.drop') return true
    return isGoing(before) || isOver(before) ? isInert(edge) : after.state === 'cancelled'
  }),
  claim('O11', 'what lost its claim, or never had it, changes nothing', (edge) => {
    const { before, offer } = edge
    const { event } = offer
    if (!('runId' in event) || event.type === 'job.claim') return true
    return event.runId === before.held || isInert(edge)
  }),
  claim('O13', 'a run that is recorded makes its claimed job running', ({ before, after, offer }) => {
    if (offer.event.type !== 'run.recorded' || before.state !== 'active.claimed') return true
    return offer.event.runId !== before.held || after.state === 'active.running'
  }),
  claim('O13', 'a claim that came to no run gives the job back, or blocks it', ({ before, after, offer }) => {
    if (before.state !== 'active.claimed') return true
    const { event } = offer
    if (event.type === 'job.unclaim' && event.runId === before.held) return after.state === 'pending'
    return !(event.type === 'job.block' && event.runId === before.held) || after.state === 'blocked'
  }),
  claim('O14', 'a job that is blocked, dropped or given back says why', ({ before, after, offer }) => {
    const { reason } = after.snapshot.context
    const { event } = offer
    if (after.state === before.state) return reason === before.snapshot.context.reason
    if (event.type === 'job.retry' && before.state === 'review') return true
    if ('reason' in event) return reason === event.reason
    if (event.type === 'run.confirmed' && after.state !== 'review' && after.state !== 'done') {
      return reason === after.snapshot.context.lastOutcome?.message
    }
    return reason === ''
  }),
  claim('O14', 'a pending job is blocked by what it comes after', ({ before, after, offer }) => {
    const { event } = offer
    const isDue = before.state === 'pending' && event.type === 'job.block' && event.runId === undefined
    return !isDue || after.state === 'blocked'
  }),
]

const heldAfter = (before: JobNode, event: JobEvent, state: string): string | null => {
  if (!state.startsWith('active.')) return null
  return event.type === 'job.claim' && before.held === null ? event.runId : before.held
}

const settledAfter = (before: JobNode, event: JobEvent, state: string): string | null => {
  if (state !== 'active.leaving') return null
  if (before.settled !== null || event.type !== 'run.settled') return before.settled
  return event.outcome.reason === 'launch-failed' ? 'unlaunchable' : event.outcome.status
}

export const jobModel =
  (needsReview: boolean) =>
  (fault?: Fault): Model<JobNode, JobOffer, JobEdge> => {
    const input = { needsReview, attempts: ATTEMPTS }
    const pure = new PureMachine<JobSnapshot, JobEvent>(fault?.machine ?? jobMachine, input, {
      isTraced: false,
    })
    const first = pure.first().snapshot
    return {
      name: `job${needsReview ? ' with review' : ''}`,
      initial: { snapshot: first, state: 'pending', held: null, left: ATTEMPTS, settled: null },
      checks: jobChecks,
      keyOf: ({ state, held, settled, snapshot: { context } }) =>
        [state, held, settled, context.attemptsLeft, context.claim?.engineId, context.reason].join(' | '),
      offersAt: ({ left }) => (left < ATTEMPTS_MAX ? [...OFFERS, EXTEND] : OFFERS),
      take: (before, offer) => {
        const { snapshot } = pure.next(before.snapshot, offer.event)
        if (snapshot === before.snapshot) return { before, offer, after: before }
        const state = pathOf(snapshot.value)
        const after: JobNode = {
          snapshot,
          state,
          held: heldAfter(before, offer.event, state),
          left: snapshot.context.attemptsLeft,
          settled: settledAfter(before, offer.event, state),
        }
        return { before, offer, after }
      },
    }
  }
