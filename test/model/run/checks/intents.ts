/** What an order does to a run, and how a run that is being ended may settle. They need a legal world. */
import { isEnding, isOpen, isSettled } from '../node.js'
import type { RunEdge, RunNode } from '../node.js'
import {
  effectsOf,
  isInert,
  isProcessUntouched,
  isSame,
  onChange,
  onEvent,
  onTimer,
  settlesIn,
} from './check.js'
import type { RunCheck } from './check.js'

const ORDERS = ['run.cancel', 'run.interrupt', 'run.suppress'] as const

/** Where the process region goes when an order to end the run is taken. */
const processAfterOrder = ({ process, context }: RunNode, force: boolean): string => {
  switch (process) {
    case 'waiting':
      return 'confirmed'
    case 'alive':
    case 'frozen':
      return force ? 'kill-sent' : context.policy.canAsk ? 'asking' : 'term-sent'
    case 'asking':
    case 'term-sent':
      return force ? 'kill-sent' : process
    default:
      return process
  }
}

const hasIntentOf = ({ context, notes }: RunNode, kind: 'cancel' | 'interrupt'): boolean =>
  context.intent?.kind === kind && context.intent.requestedAt === notes.askedAt[kind]

const isForceNoted = ({ before, after }: RunEdge): boolean =>
  isSettled(before) || after.context.intent?.force === after.notes.isForced

const isJoined = ({ before, after }: RunEdge, force: boolean): boolean => {
  const { intent } = before.context
  const isForced = force || (intent?.force ?? false)
  return isSame(after.context.intent, intent && { ...intent, force: isForced })
}

/** The outcome of an ended run says whose order it was, and when. */
const isCancellationSound = (edge: RunEdge): boolean => {
  const { outcome, intent } = edge.after.context
  if (!settlesIn(edge) || outcome === null) return true
  if (outcome.status !== 'cancelled') return outcome.cancellation === undefined
  const { cancellation } = outcome
  return (
    intent !== null &&
    cancellation?.requestedAt === edge.after.notes.askedAt.cancel &&
    cancellation?.by === intent.by &&
    cancellation.reason === intent.reason &&
    cancellation.confirmedAt >= cancellation.requestedAt
  )
}

const settlesAs = (edge: RunEdge): boolean => {
  const { intent, outcome } = edge.before.context
  if (!settlesIn(edge) || intent === null || outcome !== null) return true
  const isCancel = intent.kind === 'cancel' || edge.offer.event.type === 'run.cancel'
  const { work, process, context } = edge.after
  return (
    work === (isCancel ? 'settled.cancelled' : 'settled.interrupted') &&
    process === 'confirmed' &&
    context.outcome?.reason === context.intent?.reason
  )
}

const recording: readonly RunCheck[] = [
  onEvent('P1', 'a cancel is recorded at once, in every open state', ['run.cancel'], ({ before, after }) => {
    if (!isOpen(before)) return true
    return hasIntentOf(after, 'cancel') && ['open.cancel-requested', 'settled.cancelled'].includes(after.work)
  }),
  onEvent(
    'O9',
    'an interrupt is recorded at once, where no intent stands',
    ['run.interrupt', 'run.suppress'],
    (edge) => {
      const { before, after } = edge
      if (!isOpen(before) || isEnding(before)) return true
      return (
        hasIntentOf(after, 'interrupt') && ['open.interrupting', 'settled.interrupted'].includes(after.work)
      )
    },
  ),
  onEvent('P7', 'a repeated order joins the first: only its force may be added', ORDERS, (edge, event) => {
    const { before } = edge
    if (!isOpen(before) || !isEnding(before)) return true
    const isStronger = event.type === 'run.cancel' && before.context.intent?.kind === 'interrupt'
    return isStronger || isJoined(edge, event.force)
  }),
  onEvent('K18', 'force is remembered until there is a tree to use it on', ORDERS, isForceNoted),
  onEvent('P6', 'an order after the settlement changes nothing of the work', ORDERS, ({ before, after }) => {
    if (isOpen(before)) return true
    const [old, now] = [before.context, after.context]
    return isSame([now.intent, now.requestedAt, now.outcome], [old.intent, old.requestedAt, old.outcome])
  }),
]

const orders: readonly RunCheck[] = [
  onEvent(
    'K18',
    'an order starts the ladder, force goes straight to KILL, nothing goes back',
    ORDERS,
    (edge, event) => {
      const { before, after } = edge
      // P8: an order repeats the kill of a tree that would not go; a shutdown has no such wish.
      if (before.process === 'unconfirmed') {
        return (
          event.type === 'run.suppress' ||
          (after.process === 'kill-sent' && effectsOf(edge, 'process.kill').length === 1)
        )
      }
      const expected = processAfterOrder(before, event.force)
      return after.process === expected && (expected !== before.process || isProcessUntouched(edge))
    },
  ),
  onEvent(
    'K14',
    'terminate ends what settled work holds, and leaves open work alone',
    ['run.terminate'],
    (edge, event) => {
      const { before, after } = edge
      if (
        !isSame(
          [after.work, after.context.outcome, after.context.intent],
          [before.work, before.context.outcome, before.context.intent],
        )
      ) {
        return false
      }
      if (before.process === 'unconfirmed') return after.process === 'kill-sent'
      const isUpgrade = event.force && ['asking', 'term-sent'].includes(before.process)
      return isUpgrade ? after.process === 'kill-sent' : isInert(edge)
    },
  ),
  onEvent(
    'P5',
    'a cancel before any launch: nothing is spawned, cancelled, evidence never-launched',
    ['run.cancel'],
    (edge) => {
      const { before, after, effects } = edge
      if (before.process !== 'waiting' || !isOpen(before)) return true
      const isProven =
        before.context.executionAttempt > 0 || after.context.evidence[0]?.kind === 'never-launched'
      const isQuiet = effects.every(({ type }) => !type.startsWith('process.'))
      return after.work === 'settled.cancelled' && after.process === 'confirmed' && isProven && isQuiet
    },
  ),
  onEvent(
    'P18',
    'a suppressed run is an interrupted one that is not delivered',
    ['run.suppress'],
    ({ before, after }) => {
      if (['delivered', 'suppressed'].includes(before.delivery)) return after.delivery === before.delivery
      return after.context.isSuppressed && (isOpen(after) || after.delivery === 'suppressed')
    },
  ),
  onEvent(
    'INV-4',
    'a broken chart settles the run as failed and ends its process by force',
    ['run.faulted'],
    (edge) => {
      const { before, after } = edge
      if (!isOpen(before) || isEnding(before)) return isInert(edge)
      const { outcome, intent } = after.context
      const isTold =
        outcome?.code === 'invariant-broken' && outcome.message === 'broken' && outcome.status === 'failed'
      const isForced = intent?.kind === 'fault' && intent.force
      // P8: whoever ends the run repeats the kill of a tree that would not go.
      const process = before.process === 'unconfirmed' ? 'kill-sent' : processAfterOrder(before, true)
      return isTold && isForced && after.process === process
    },
  ),
  onTimer(
    'O2',
    'a pause that outlives its window is an interrupt, and the ladder begins',
    'pauseGrace.run.process.frozen',
    (edge) => {
      const { after } = edge
      const { intent } = after.context
      const isTold =
        intent?.kind === 'interrupt' && intent.reason === 'grace window passed while paused' && !intent.force
      // Never asked: the ladder has its fixed length.
      return isTold && after.work === 'open.interrupting' && after.process === 'term-sent'
    },
  ),
]

const REACHED_BY_LIMITS = [
  'open.accepted',
  'open.active.progressing',
  'open.active.stalled-advisory',
  'open.ready',
]

const limits: readonly RunCheck[] = [
  onEvent('O15', 'a limit interrupts open work, and says which limit', ['limit.exceeded'], (edge) => {
    const { before, after } = edge
    // With the result there, P3 says what becomes of it.
    if (before.work === 'open.finishing') return isSettled(after)
    if (!REACHED_BY_LIMITS.includes(before.work)) return isInert(edge)
    const { intent } = after.context
    const { limit, max } = edge.offer.event as { limit: string; max: number }
    const isTold = intent?.reason.includes(limit) === true && intent.reason.includes(String(max))
    const isPlain = intent?.kind === 'interrupt' && !intent.force && intent.by === 'engine'
    // P8: whoever ends the run repeats the kill of a tree that would not go.
    const process = before.process === 'unconfirmed' ? 'kill-sent' : processAfterOrder(before, false)
    return isTold && isPlain && after.process === process
  }),
]

const settlements: readonly RunCheck[] = [
  onChange('P2', 'a run that is being ended settles as that order says, once its tree is gone', settlesAs),
  onChange(
    'P10',
    'a cancelled outcome carries the first request, and no other outcome does',
    isCancellationSound,
  ),
]

export const intents: readonly RunCheck[] = [...recording, ...orders, ...limits, ...settlements]
