/** How an attempt ends by itself, what comes after it, and how the outcome reaches the host. These need a legal world. */
import type { ExitStatus } from '../../../../src/machines/run/run.context.js'
import { isOpen, isTurnOpen } from '../node.js'
import type { RunEdge, RunNode } from '../node.js'
import { effectsOf, isInert, isOver, isSame, onChange, onEvent, onTimer, settlesIn } from './check.js'
import type { RunCheck } from './check.js'

type Ending = { readonly isFallbackEligible: boolean } & Partial<ExitStatus>

/** The work waits for this execution: nobody wants the run ended, and no other attempt is due. */
const isAwaited = (node: RunNode): boolean =>
  !isOver(node) &&
  node.context.attempt === node.context.executionAttempt &&
  node.world.execution !== 'members'

/** An agent that was given a turn by its protocol has not done it by exiting. */
const isCutShort = (node: RunNode): boolean => isTurnOpen(node) && node.context.policy.isDriven

/** R3: an exit that nobody saw says nothing; the end of the work before it does. */
const isSuccess = (node: RunNode, { exitCode, isUnseen }: Ending): boolean =>
  (isUnseen === true ? node.work === 'open.finishing' : exitCode === 0) &&
  node.notes.result !== 'not-ok' &&
  !isCutShort(node)

/** P9; and a run that was told to finish, or whose only turn was told to end, has nothing for a next candidate. */
const isFallback = (node: RunNode, ending: Ending): boolean => {
  const { policy, attempt } = node.context
  const { isFinished, isTurnCancelling } = node.notes
  const hasWork = !isFinished && (policy.isInteractive || !isTurnCancelling)
  return !isSuccess(node, ending) && ending.isFallbackEligible && hasWork && attempt < policy.candidates
}

const isExitOf = (node: RunNode, { exitCode, signal }: ExitStatus): boolean =>
  exitCode === (node.notes.exit?.exitCode ?? null) && signal === (node.notes.exit?.signal ?? null)

/** The next candidate takes up the turn, unless none is open, or it was asked to end (K13). */
const isNextAttempt = ({ before, after }: RunEdge): boolean => {
  const isWithoutTurn = before.work === 'open.ready' || before.notes.isTurnCancelling
  const work = isWithoutTurn ? 'open.ready' : 'open.accepted'
  return after.context.attempt === before.context.attempt + 1 && after.work === work
}

const firstDelivery = ({ context }: RunNode): string => {
  const { hasFinalize, hasDeliver } = context.policy
  return context.isSuppressed
    ? 'suppressed'
    : hasFinalize
      ? 'finalizing'
      : hasDeliver
        ? 'delivering'
        : 'delivered'
}

const attempts: readonly RunCheck[] = [
  onEvent(
    'P3',
    'the exit of the awaited execution decides: completed, the next candidate, failed, or lost where nobody saw it',
    ['process.exited'],
    (edge, event) => {
      const { before, after } = edge
      if (!isAwaited(before)) return true
      const isUnseen = event.isUnseen === true
      if (isSuccess(before, event)) {
        const reason = isUnseen ? 'result' : 'exit'
        return after.work === 'settled.completed' && after.context.outcome?.reason === reason
      }
      if (isFallback(before, event)) return isNextAttempt(edge)
      if (isUnseen && before.work !== 'open.finishing') return after.work === 'settled.lost'
      const reason = isUnseen ? 'result' : event.signal === null ? 'exit' : 'signal'
      return after.work === 'settled.failed' && after.context.outcome?.reason === reason
    },
  ),
  onEvent(
    'P6',
    'a launch that failed is the next candidate, or the failure of the run',
    ['process.launch-failed'],
    (edge, event) => {
      const { before, after } = edge
      if (!isAwaited(before)) return true
      if (isFallback(before, event)) return isNextAttempt(edge)
      const { outcome } = after.context
      const isTold =
        outcome?.reason === 'launch-failed' && outcome.code === 'ENOENT' && outcome.message === event.message
      return after.work === 'settled.failed' && isTold
    },
  ),
  onEvent(
    'P9',
    'an agent that cannot be spoken to is the next candidate, or the failure of the run; after its result it is neither',
    ['session.failed'],
    (edge, event) => {
      const { before, after } = edge
      if (!isAwaited(before) || before.work === 'open.finishing') return isInert(edge)
      if (after.process !== 'term-sent') return false
      if (isFallback(before, event)) return isNextAttempt(edge)
      const { outcome } = after.context
      const isTold =
        outcome?.reason === 'session' &&
        outcome.code === 'session-failed' &&
        outcome.message === event.message
      return after.work === 'settled.failed' && isTold
    },
  ),
  onChange('P9', 'only a failure that is eligible starts the next candidate', ({ before, after, offer }) => {
    if (after.context.attempt === before.context.attempt) return true
    const ending = offer.event as unknown as Ending
    return (
      isAwaited(before) && isFallback(before, ending) && after.context.attempt === before.context.attempt + 1
    )
  }),
  onEvent(
    'K19',
    'an exit told twice moves neither the work nor its attempt',
    ['process.exited'],
    ({ before, after }) => {
      if (before.world.execution !== 'members') return true
      return after.work === before.work && after.context.attempt === before.context.attempt
    },
  ),
  onEvent(
    'R3',
    'a tree that is gone without an exit leaves the work lost, unless its result is there',
    ['process.gone', 'run.lost'],
    ({ before, after, offer }) => {
      const isSwept =
        before.context.attempt > before.context.executionAttempt && before.context.executionAttempt > 0
      if (isOver(before) || (offer.event.type === 'process.gone' && isSwept)) return true
      if (before.work !== 'open.finishing' || offer.event.type === 'run.lost')
        return after.work === 'settled.lost'
      return after.work === (before.notes.result === 'not-ok' ? 'settled.failed' : 'settled.completed')
    },
  ),
  onChange('P3', 'an outcome tells the exit of the last execution, and of no other', (edge) => {
    const { outcome } = edge.after.context
    return !settlesIn(edge) || (outcome !== null && isExitOf(edge.after, outcome))
  }),
  onChange('P10', 'an outcome keeps the result of the last turn', (edge) => {
    const { outcome, result } = edge.after.context
    return !settlesIn(edge) || isSame(outcome?.result ?? null, result)
  }),
  onChange('O6', 'the exit told last is kept until the next launch', ({ after }) => {
    return !isOpen(after) || isSame(after.context.exit, after.notes.exit)
  }),
]

const HOOKS = ['delivery.finalized', 'delivery.acknowledged', 'delivery.failed'] as const

const afterHook = ({ delivery, context }: RunNode, type: (typeof HOOKS)[number]): string => {
  if (type === 'delivery.finalized' && delivery === 'finalizing') {
    return context.policy.hasDeliver ? 'delivering' : 'delivered'
  }
  if (type === 'delivery.acknowledged' && ['delivering', 'retrying'].includes(delivery)) return 'delivered'
  if (type === 'delivery.failed' && delivery === 'delivering') return 'retrying'
  return delivery
}

const calledOnEntry = ({ before, after }: RunEdge): string[] => {
  if (before.delivery === after.delivery) return []
  if (after.delivery === 'finalizing') return ['delivery.finalize']
  return after.delivery === 'delivering' ? ['delivery.deliver'] : []
}

const delivery: readonly RunCheck[] = [
  onChange('INV-12', 'a settlement begins its delivery at once: the hook, the host, or nobody', (edge) => {
    return !settlesIn(edge) || edge.after.delivery === firstDelivery(edge.after)
  }),
  onEvent(
    'P17',
    'an answer of the host moves the delivery that waits for it, and nothing else',
    HOOKS,
    (edge, event) => {
      const expected = afterHook(edge.before, event.type)
      if (expected === edge.before.delivery) return isInert(edge)
      const [old, now] = [edge.before.context, edge.after.context]
      const failures = old.failedDeliveries + (expected === 'retrying' ? 1 : 0)
      return edge.after.delivery === expected && isSame(now, { ...old, failedDeliveries: failures })
    },
  ),
  onTimer(
    'P19',
    'a finalize hook that does not answer holds nothing back',
    'finalizeDeadline.run.delivery.finalizing',
    ({ after }) => {
      return after.delivery === (after.context.policy.hasDeliver ? 'delivering' : 'delivered')
    },
  ),
  onTimer(
    'INV-12',
    'a delivery that failed is repeated',
    'deliveryRetry.run.delivery.retrying',
    ({ after }) => {
      return after.delivery === 'delivering'
    },
  ),
  onChange('INV-12', 'the host is called on entering a delivery, and at no other time', (edge) => {
    const called = effectsOf(edge, 'delivery.')
    const { attempt } = edge.after.context
    return isSame(
      called,
      calledOnEntry(edge).map((type) => ({ type, params: { attempt } })),
    )
  }),
  onChange('P18', 'suppressed is what was asked for', ({ after }) => {
    const isAsked = after.notes.isSuppressed || !isOpen(after)
    return after.context.isSuppressed ? isAsked : after.delivery !== 'suppressed' && !after.notes.isSuppressed
  }),
]

export const attemptChecks: readonly RunCheck[] = [...attempts, ...delivery]
