/**
 * When two nodes of the run chart count as the same: the state value, the context as far as anything may still depend on it, the
 * timers that are armed, the world, and the notes.
 *
 * Left out: times, texts, generations (facts are made relative to the present one), and what belongs to something that is over: the
 * turn once it is closed, how the work was settled while its process is still being ended, the execution once it is confirmed gone.
 * What such a field was is judged on the edge that ends it, and the `anything` mode keeps the status apart.
 */
import type { IntentKind, TurnResult } from '../../../src/machines/run/run.context.js'
import { isEnding, isOpen, isTurnOpen } from './node.js'
import type { RunNode } from './node.js'

const QUESTIONS_MAX = 1
const RETRIES_MAX = 1

const bit = (value: boolean): string => (value ? '1' : '0')
const resultKey = (result: TurnResult | null): string => (result === null ? '-' : bit(result.isOk))

const turnKey = (node: RunNode): string => {
  const { context, notes } = node
  if (!isOpen(node) || isEnding(node)) return ''
  const isUp = bit(context.launchedAttempt === context.attempt)
  const results = resultKey(context.result) + String(notes.result) + isUp
  if (!isTurnOpen(node)) return results + bit(context.isFinished) + bit(notes.isFinished)
  const { hasProgress, hasAdvised, openQuestions, isTurnCancelling, isTurnCancelHeard } = context
  return [
    results,
    bit(hasProgress) + bit(hasAdvised) + bit(isTurnCancelling) + bit(isTurnCancelHeard),
    Math.min(openQuestions, QUESTIONS_MAX),
    bit(notes.hasProgress) + bit(notes.hasAdvised),
    bit(notes.isTurnCancelling) + bit(notes.isTurnCancelHeard),
    Math.min(notes.questions, QUESTIONS_MAX),
  ].join()
}

/** What may still be commanded from outside differs; the engine's own intents do not differ after the settlement. */
const intentKey = (kind: IntentKind): string => (kind === 'cancel' || kind === 'interrupt' ? kind : 'own')

const executionKey = (node: RunNode): string => {
  const { context, notes, world } = node
  if (node.process === 'confirmed') return world.execution
  const { intent, freeze, evidence, survivors, retries, exit } = context
  const isWanted = isOpen(node) && !isEnding(node)
  return [
    intent === null ? '-' : intentKey(intent.kind) + bit(intent.force) + bit(notes.isForced),
    isWanted ? `${freeze}${notes.freeze}` : '',
    node.process === 'frozen' ? String(context.freezeReport?.isComplete) : '',
    evidence.map(({ attempt, kind }) => `${attempt}${kind === 'never-launched' ? 'n' : 'e'}`).join('+'),
    node.process === 'unconfirmed' ? bit(survivors.length > 0) : '',
    node.process === 'kill-sent' ? Math.min(retries, RETRIES_MAX) : '',
    bit(exit !== null) + bit(notes.exit !== null),
    world.execution,
    bit(world.isAdmissionAsked),
  ].join()
}

const workKey = ({ work, process, context }: RunNode): string =>
  context.outcome !== null && process !== 'confirmed' ? 'settled' : `${work},${context.outcome?.status}`

const deliveryKey = (node: RunNode): string => {
  const { context, notes, delivery } = node
  if (isOpen(node)) return bit(context.isSuppressed) + bit(notes.isSuppressed)
  return delivery === 'delivering'
    ? delivery + String(Math.min(context.failedDeliveries, RETRIES_MAX))
    : delivery
}

export const keyOf = (node: RunNode): string => {
  const { context, notes, timers } = node
  return [
    workKey(node),
    node.process,
    deliveryKey(node),
    `${context.attempt}/${context.executionAttempt}`,
    bit(notes.isAdvised),
    turnKey(node),
    executionKey(node),
    [...timers.keys()].sort().join('+'),
  ].join(' | ')
}
