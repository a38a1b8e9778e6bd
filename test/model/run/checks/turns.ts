/** Turns, watchdogs and pauses. These need a legal world. */
import { isAgentUp, isOpen, isTurnOpen } from '../node.js'
import type { RunEdge, RunNode } from '../node.js'
import {
  effectsOf,
  isInert,
  isOver,
  isProcessUntouched,
  isSame,
  onChange,
  onEvent,
  settlesIn,
} from './check.js'
import type { RunCheck } from './check.js'

const WATCHES = ['watchdog.silent', 'watchdog.exhausted', 'watchdog.completion-silent'] as const

/** K4: a watchdog speaks of nothing while the run is paused, waits for a person, is being ended or is settled. */
const isWatchBlind = (node: RunNode): boolean =>
  isOver(node) || node.notes.freeze !== null || node.notes.questions > 0 || !isTurnOpen(node)

const hasFreezeSay = ({ process }: RunNode): boolean =>
  ['waiting', 'launching', 'alive', 'frozen'].includes(process)

const turnIn = ({ context }: RunNode) => ({ attempt: context.attempt, generation: context.generation })

/** The engine ended the work by itself: by force, from where the tree stands. */
const isEndedByForce = ({ before, after }: RunEdge, kind: string): boolean => {
  const { intent } = after.context
  const process = before.process === 'launching' ? 'launching' : 'kill-sent'
  return intent?.kind === kind && intent.force && after.process === process
}

/** The outcome says so, and a notice tells people. */
const isToldAtLast = ({ before, after, effects }: RunEdge, text: string): boolean => {
  const { generation } = before.context
  const notice = { type: 'notice.raise', params: { kind: 'terminal', text, generation } }
  return after.context.outcome?.message === text && effects.some((effect) => isSame(effect, notice))
}

const endState = ({ context }: RunNode): string =>
  context.policy.isInteractive ? 'open.ready' : 'open.finishing'

const watchdogs: readonly RunCheck[] = [
  onEvent(
    'K4',
    'a watchdog that is blind is not heard',
    WATCHES,
    (edge) => !isWatchBlind(edge.before) || isInert(edge),
  ),
  onEvent(
    'K5',
    'silence since the start of a turn settles never-started and ends the tree',
    ['watchdog.silent'],
    (edge) => {
      const { before, after } = edge
      if (isWatchBlind(before) || before.notes.hasProgress) return true
      const isTold = isToldAtLast(edge, 'Agent produced no output since start')
      return after.work === 'settled.failed-never-started' && isTold && isEndedByForce(edge, 'never-started')
    },
  ),
  onChange('K5', 'never-started is only said of a turn without progress', (edge) => {
    const isSaid = settlesIn(edge) && edge.after.work === 'settled.failed-never-started'
    return !isSaid || (edge.offer.event.type === 'watchdog.silent' && !edge.before.notes.hasProgress)
  }),
  onEvent(
    'K8',
    'silence after progress is one notice per generation, and nothing is killed',
    ['watchdog.silent'],
    (edge, event) => {
      const { before, after, effects } = edge
      if (isWatchBlind(before) || !before.notes.hasProgress) return true
      if (before.notes.hasAdvised || before.work !== 'open.active.progressing') return isInert(edge)
      const text = event.tool === undefined ? 'Still waiting for the agent' : 'Still waiting on bash'
      const params = { kind: 'advisory', text, generation: before.context.generation }
      return (
        after.work === 'open.active.stalled-advisory' && isSame(effects, [{ type: 'notice.raise', params }])
      )
    },
  ),
  onChange('K8', 'an advisory stands as long as the stall that it tells of', ({ after }) => {
    return after.notes.isAdvised === (after.work === 'open.active.stalled-advisory')
  }),
  onEvent(
    'K9',
    'a prolonged stall after progress settles failed-stalled and ends the tree',
    ['watchdog.exhausted'],
    (edge) => {
      const { before, after } = edge
      if (isWatchBlind(before)) return true
      if (!before.work.startsWith('open.active.')) return isInert(edge)
      const isTold = isToldAtLast(edge, 'Agent stopped making progress')
      return after.work === 'settled.failed-stalled' && isTold && isEndedByForce(edge, 'stalled')
    },
  ),
  onEvent(
    'K10',
    'a completion that stays open and silent closes the turn',
    ['watchdog.completion-silent'],
    (edge) => {
      const { before, after } = edge
      if (isWatchBlind(before)) return true
      return after.work === endState(before) && after.process === before.process
    },
  ),
]

/** K13: what was given to nobody is over at once, and nobody is asked. */
const isTurnOverUngiven = (edge: RunEdge): boolean => {
  const { after } = edge
  if (effectsOf(edge, 'turn.').length > 0) return false
  if (after.context.policy.isInteractive) return after.work === 'open.ready' && isProcessUntouched(edge)
  return after.context.intent?.kind === 'interrupt' && !isTurnOpen(after)
}

const turns: readonly RunCheck[] = [
  onEvent('K1', 'progress of the open turn is taken', ['turn.progressed'], (edge) => {
    return isTurnOpen(edge.before) ? edge.after.work === 'open.active.progressing' : isInert(edge)
  }),
  onEvent('K9', 'a question to a person is progress, and is waited for', ['person.asked'], (edge) => {
    const { before, after } = edge
    if (!isTurnOpen(before)) return isInert(edge)
    return after.work === (before.work === 'open.accepted' ? 'open.active.progressing' : before.work)
  }),
  onEvent('K1', 'a completed turn ends it and keeps what was said', ['turn.completed'], (edge, event) => {
    const { before, after } = edge
    if (!isTurnOpen(before)) return isInert(edge)
    return (
      after.work === endState(before) &&
      isSame(after.context.result, event.result) &&
      after.process === before.process
    )
  }),
  onEvent('K13', 'a cancelled turn ends the turn, not the run', ['turn.cancelled'], (edge) => {
    const { before, after } = edge
    if (!isTurnOpen(before)) return isInert(edge)
    if (before.context.policy.isInteractive) return after.work === 'open.ready' && isProcessUntouched(edge)
    return !after.work.startsWith('settled.completed')
  }),
  onEvent('K13', 'a turn is asked to end once, and who asks again joins', ['turn.cancel'], (edge) => {
    const { before, after, effects } = edge
    if (!isTurnOpen(before) || before.notes.isTurnCancelling) return isInert(edge)
    if (!isAgentUp(before)) return isTurnOverUngiven(edge)
    const abort = { type: 'turn.abort', params: turnIn(before) }
    return after.work === before.work && isSame(effects, [abort]) && after.timers.has('turn-cancel')
  }),
  onEvent(
    'K13',
    "the agent's answer that its turn is to end is heard once, and its prompt is given its time",
    ['turn.cancel-acknowledged'],
    (edge) => {
      const { before, after, effects } = edge
      const { isTurnCancelling, isTurnCancelHeard } = before.notes
      if (!isTurnOpen(before) || !isTurnCancelling || isTurnCancelHeard) return isInert(edge)
      // The wait for an answer goes on: who answers late is given no more time for it.
      const isKept = after.timers.get('turn-cancel') === before.timers.get('turn-cancel')
      return after.work === before.work && effects.length === 0 && isKept && after.timers.has('turn-return')
    },
  ),
  onEvent('K11', 'a new turn gets a new generation before its dispatch', ['turn.started'], (edge) => {
    const { before, after, effects } = edge
    if (before.work !== 'open.ready') return isInert(edge)
    const dispatch = isAgentUp(before) ? [{ type: 'turn.dispatch', params: turnIn(after) }] : []
    const isFresh =
      after.context.result === null && !after.context.hasProgress && !after.context.isTurnCancelling
    return after.work === 'open.accepted' && isFresh && isSame(effects, dispatch)
  }),
  onChange('K11', 'whether a turn is open is remembered as it is', ({ after }) => {
    return !isOpen(after) || isOver(after) || after.context.isTurnOpen === isTurnOpen(after)
  }),
  onChange('K11', 'a driven run has no turn before it has a prompt', ({ after }) => {
    const { policy, generation, attempt } = after.context
    return !isTurnOpen(after) || !policy.isDriven || policy.hasPrompt || generation > attempt
  }),
  onChange('K11', 'a driven turn is given to its agent once, when both are there', (edge) => {
    const { before, after } = edge
    const isGiven = (node: RunNode): boolean => isTurnOpen(node) && isAgentUp(node)
    const isSameTurn = isGiven(before) && isSame(turnIn(before), turnIn(after))
    const isDue = after.context.policy.isDriven && isGiven(after) && !isSameTurn
    const dispatch = { type: 'turn.dispatch', params: turnIn(after) }
    return isSame(effectsOf(edge, 'turn.dispatch'), isDue ? [dispatch] : [])
  }),
  onEvent(
    'P3',
    'a run that is told to finish between turns is done with its agent, or without one',
    ['run.finish'],
    (edge) => {
      const { before, after } = edge
      if (before.work !== 'open.ready') return isInert(edge)
      if (isAgentUp(before)) return after.work === 'open.finishing' && after.process === before.process
      const { outcome, intent } = after.context
      const isTold = outcome?.reason === 'finished' && intent?.kind === 'finished' && !intent.force
      return after.work === 'settled.completed' && isTold
    },
  ),
  onChange(
    'K11',
    'a generation begins with a turn or an attempt, and with nothing else',
    ({ before, after, offer }) => {
      const isNewTurn = offer.event.type === 'turn.started' && before.work === 'open.ready'
      const isNewAttempt = after.context.attempt > before.context.attempt
      return after.context.generation === before.context.generation + (isNewTurn || isNewAttempt ? 1 : 0)
    },
  ),
  onChange('K5', 'what the turn has seen is what the facts told', ({ after }) => {
    if (!isTurnOpen(after)) return true
    const { context, notes } = after
    const { hasProgress, hasAdvised, openQuestions, isTurnCancelling, isTurnCancelHeard, result } = context
    const seen = [hasProgress, hasAdvised, openQuestions, isTurnCancelling, isTurnCancelHeard, result]
    const told = [notes.hasProgress, notes.hasAdvised, notes.questions]
    return isSame(seen, [...told, notes.isTurnCancelling, notes.isTurnCancelHeard, null])
  }),
  {
    id: 'P3',
    claim:
      'a process that does not exit in time after the final result: the result stands, the ladder ends it',
    on: ['xstate.after.exitGrace.run.work.open.finishing', 'limit.exceeded'],
    holds: ({ before, after }) => {
      if (before.work !== 'open.finishing') return true
      const status = before.notes.result === 'not-ok' ? 'settled.failed' : 'settled.completed'
      const { intent } = after.context
      const isLive = before.process === 'alive' || before.process === 'frozen'
      const process = isLive ? (after.context.policy.canAsk ? 'asking' : 'term-sent') : before.process
      return (
        after.work === status && intent?.kind === 'finished' && !intent.force && after.process === process
      )
    },
  },
  onChange('K13', 'completed is only said where the agent or the host said so, or it exited well', (edge) => {
    const { before, after } = edge
    if (!settlesIn(edge) || after.work !== 'settled.completed') return true
    const { result, exit, isFinished } = after.notes
    if (result === 'ok' || result === 'unsaid') return true
    const isExitEnough = !isTurnOpen(before) || !after.context.policy.isDriven
    return result === null && (isFinished || (isExitEnough && exit?.exitCode === 0))
  }),
]

const pauses: readonly RunCheck[] = [
  onEvent(
    'O4',
    'a pause freezes a live tree, waits for one to come, and is refused in the ladder',
    ['run.pause'],
    (edge) => {
      const { before, after } = edge
      if (isOver(before) || !hasFreezeSay(before)) return isInert(edge)
      const process = before.process === 'alive' ? 'frozen' : before.process
      return (
        after.process === process && after.work === before.work && after.context.freeze === after.notes.freeze
      )
    },
  ),
  onEvent(
    'O4',
    'a resumption by the owner or by someone stronger thaws, any other changes nothing',
    ['run.resume'],
    (edge, event) => {
      const { before, after } = edge
      const isAllowed = event.owner === 'user' || before.notes.freeze === 'machine'
      if (isOver(before) || !hasFreezeSay(before) || before.notes.freeze === null || !isAllowed)
        return isInert(edge)
      const process = before.process === 'frozen' ? 'alive' : before.process
      return after.process === process && after.work === before.work && after.context.freeze === null
    },
  ),
  onChange('O4', 'only a pause freezes and only a resumption or an order to end lifts it', ({ after }) => {
    return !isOpen(after) || isOver(after) || after.context.freeze === after.notes.freeze
  }),
  onEvent(
    'O1',
    'how a freeze went is noted, and moves nothing',
    ['process.frozen', 'process.freeze-failed'],
    (edge, event) => {
      const { before, after } = edge
      if (before.process !== 'frozen') return isInert(edge)
      const isComplete = event.type === 'process.frozen'
      const running = event.type === 'process.frozen' ? [] : event.running
      const lastError = isComplete ? before.context.lastError : 'EPERM'
      const noted = { ...before.context, freezeReport: { isComplete, running, at: event.at }, lastError }
      return isProcessUntouched(edge) && after.work === before.work && isSame(after.context, noted)
    },
  ),
  onChange(
    'O1',
    'nothing is said of a freeze that is over, or is another execution’s',
    ({ before, after }) => {
      const isNew = after.process === 'frozen' && before.process !== 'frozen'
      const isQuiet = isNew || ['waiting', 'launching', 'alive'].includes(after.process)
      return !isQuiet || after.context.freezeReport === null
    },
  ),
  onChange(
    'O7',
    'what measures the time of the agent stands still while it is frozen, and is not lost',
    ({ before, after, offer }) => {
      if (after.process !== 'frozen' || before.process !== 'frozen' || offer.nature !== 'timer') return true
      return offer.event.type.startsWith('xstate.after.pauseGrace')
    },
  ),
  onChange(
    'O1',
    'frozen means that someone wants it so',
    ({ after }) => after.process !== 'frozen' || after.context.freeze !== null,
  ),
]

export const turnChecks: readonly RunCheck[] = [...watchdogs, ...turns, ...pauses]
