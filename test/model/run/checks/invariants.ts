/** Invariants that hold whatever the world does, legal or not. */
import type { RunContext } from '../../../../src/machines/run/run.context.js'
import type { RunEvent } from '../../../../src/machines/run/run.events.js'
import { isOpen, isSettled } from '../node.js'
import type { RunEdge, RunNode } from '../node.js'
import { effectsOf, isInert, isOver, isSame, onChange, settlesIn } from './check.js'
import type { RunCheck } from './check.js'

const FACTS: readonly RunEvent['type'][] = [
  'turn.progressed',
  'turn.completed',
  'turn.cancelled',
  'turn.cancel-acknowledged',
  'person.asked',
  'person.answered',
  'watchdog.silent',
  'watchdog.exhausted',
  'watchdog.completion-silent',
  'process.launched',
  'process.launch-failed',
  'session.failed',
  'process.exited',
  'process.gone',
  'process.survived',
  'process.signal-failed',
  'process.frozen',
  'process.freeze-failed',
]

const isStarting = ({ effects }: RunEdge): boolean =>
  effects.some(({ type }) => ['process.launch', 'admission.request', 'turn.dispatch'].includes(type))

const counters = ({ attempt, executionAttempt, generation }: RunContext) => [
  attempt,
  executionAttempt,
  generation,
]

/** INV-8: a launch is the next attempt's, the only one, and every tree before it is proven gone. */
const isLaunchDue = ({ before, after, effects }: RunEdge): boolean => {
  const launches = effects.filter(({ type }) => type === 'process.launch')
  const grown = after.context.executionAttempt - before.context.executionAttempt
  if (launches.length === 0) return grown === 0
  const { attempt, executionAttempt, evidence } = after.context
  const proven = new Set(evidence.map((proof) => proof.attempt))
  const earlier = Array.from({ length: executionAttempt - 1 }, (_, index) => index + 1)
  return (
    launches.length === 1 &&
    grown === 1 &&
    executionAttempt === attempt &&
    isSame(launches[0]?.params, { attempt }) &&
    earlier.every((number) => proven.has(number))
  )
}

/** The state of the region, the outcome and the announcement say the same. */
const isSettledOnce = (edge: RunEdge): boolean => {
  const { before, after, raised, offer } = edge
  const announced = raised.filter((type) => type === 'work.settled').length
  const { outcome, attempt } = after.context
  if (announced !== (settlesIn(edge) ? 1 : 0) || isOpen(after) !== (outcome === null)) return false
  if (outcome === null || before.context.outcome !== null) return true
  return (
    after.work === `settled.${outcome.status}` &&
    outcome.attempt === attempt &&
    outcome.settledAt === (offer.event as RunEvent).at
  )
}

const isIntentKept = ({ before, after }: RunEdge): boolean => {
  const [old, now] = [before.context.intent, after.context.intent]
  if (old === null) return true
  if (now === null || (old.force && !now.force)) return false
  const isKindKept = now.kind === old.kind || (old.kind === 'interrupt' && now.kind === 'cancel')
  const areTimesKept = Object.entries(before.context.requestedAt).every(
    ([kind, at]) => after.context.requestedAt[kind as keyof RunContext['requestedAt']] === at,
  )
  return isKindKept && areTimesKept
}

/** Evidence is only added, once for an attempt, with what the fact said of it. */
const isEvidenceSound = ({ before, after, offer }: RunEdge): boolean => {
  const [old, now] = [before.context.evidence, after.context.evidence]
  const added = now.slice(old.length)
  const event = offer.event as RunEvent
  const told = before.process !== 'waiting' && 'evidence' in event ? event.evidence : 'never-launched'
  const isOnce = new Set(now.map(({ attempt }) => attempt)).size === now.length
  const areSound = added.every(({ at, kind }) => at === event.at && kind === told)
  return isOnce && areSound && old.every((proof, index) => isSame(proof, now[index]))
}

const isConfirmedByEvidence = ({ context, process }: RunNode): boolean => {
  if (process !== 'confirmed') return true
  const launched = Array.from({ length: Math.max(context.executionAttempt, 1) }, (_, index) => index + 1)
  const proven = context.evidence.map(({ attempt }) => attempt)
  return isSame(proven, launched)
}

const isDeliverySound = ({ before, after }: RunEdge): boolean => {
  if ((after.delivery === 'pending') !== isOpen(after)) return false
  const isEnd = before.delivery === 'delivered' || before.delivery === 'suppressed'
  return !isEnd || after.delivery === before.delivery
}

export const invariants: readonly RunCheck[] = [
  onChange('INV-3', 'a settled outcome never changes', ({ before, after }) => {
    if (before.context.outcome === null) return true
    return isSame(after.context.outcome, before.context.outcome) && after.work === before.work
  }),
  onChange(
    'INV-15',
    'no fact of the teardown rewrites what is settled, nor why',
    ({ before, after, offer }) => {
      if (offer.nature === 'command' || !isSettled(before)) return true
      return isSame(
        [after.context.outcome, after.context.intent],
        [before.context.outcome, before.context.intent],
      )
    },
  ),
  onChange(
    'INV-7',
    'after an intent or an outcome nothing starts: no admission, launch, turn or attempt',
    (edge) => {
      if (!isOver(edge.before)) return true
      return !isStarting(edge) && isSame(counters(edge.after.context), counters(edge.before.context))
    },
  ),
  onChange(
    'INV-7',
    'nothing is asked for on the edge that ends the run',
    (edge) => !isOver(edge.after) || !isStarting(edge),
  ),
  onChange('INV-8', 'a launch is the next attempt, and every earlier tree is proven gone', isLaunchDue),
  {
    id: 'INV-10',
    claim:
      'a fact of another attempt, generation or epoch, or of an execution that has ended, changes nothing',
    on: FACTS,
    holds: (edge) => !edge.offer.isStale || isInert(edge),
  },
  onChange(
    'INV-12',
    'an outcome is written once, announced once, and its state bears its name',
    isSettledOnce,
  ),
  onChange(
    'INV-12',
    'nothing is delivered before the outcome, and a delivery that is over stays over',
    isDeliverySound,
  ),
  onChange('INV-12', 'the host is called only with an outcome', (edge) => {
    return effectsOf(edge, 'delivery.').length === 0 || edge.after.context.outcome !== null
  }),
  onChange('P1', 'a recorded intent stands: never weaker, never less forced, first times kept', isIntentKept),
  onChange('INV-5', 'evidence is only added, once for each attempt, as the fact gave it', isEvidenceSound),
  onChange('P11', 'confirmed means evidence of every attempt', ({ after }) => isConfirmedByEvidence(after)),
]
