/** The ladder from a live tree to its proof of absence. These need a legal world. */
import { holdsTree, isOpen, isTurnOpen } from '../node.js'
import type { RunEdge, RunNode } from '../node.js'
import {
  isInert,
  isOver,
  isProcessUntouched,
  isSame,
  isTreeOver,
  onChange,
  onEvent,
  onTimer,
} from './check.js'
import type { RunCheck } from './check.js'

const isTreeThere = ({ world }: RunNode): boolean => ['starting', 'up', 'members'].includes(world.execution)

/** The agent is asked to end where its work is over. */
const finishingEffects = ({ before, after }: RunEdge): { type: string; params: unknown }[] => {
  if (after.work !== 'open.finishing' || before.work === 'open.finishing') return []
  return [{ type: 'process.ask', params: { attempt: after.context.executionAttempt } }]
}

/** The effects by which the process region enters `to`, from the contract. */
const entryEffects = ({ before, after }: RunEdge): { type: string; params: unknown }[] => {
  const { process: from, context } = before
  const { process: to } = after
  const { executionAttempt, attempt, policy } = after.context
  const ofExecution = { attempt: executionAttempt }
  if (from === to) return []
  const isReleased = from !== 'waiting' && ['waiting', 'confirmed'].includes(to)
  const release = isReleased
    ? [{ type: 'process.release', params: { attempt: context.executionAttempt } }]
    : []
  switch (to) {
    case 'waiting':
      return [...release, { type: 'admission.request', params: { attempt } }]
    case 'launching':
      return [{ type: 'process.launch', params: ofExecution }]
    case 'alive':
      return from === 'frozen' ? [{ type: 'process.thaw', params: ofExecution }] : []
    case 'frozen':
      return [{ type: 'process.freeze', params: ofExecution }]
    case 'asking':
      return [
        // O10: a stopped agent cannot answer.
        { type: 'process.thaw', params: ofExecution },
        { type: 'process.ask', params: ofExecution },
      ]
    case 'term-sent':
      return [{ type: 'process.terminate', params: ofExecution }]
    case 'kill-sent':
      return [{ type: 'process.kill', params: { ...ofExecution, deadlineMs: policy.killGraceMs } }]
    default:
      return release
  }
}

const isCalledFor = (edge: RunEdge): boolean =>
  isSame(
    edge.effects.filter(({ type }) => type.startsWith('process.') || type.startsWith('admission.')),
    [...entryEffects(edge), ...finishingEffects(edge)],
  )

/** Waits between kills of a tree that would not go, in ms; the last one repeats. */
const RETRY_DELAYS_MS = [5_000, 30_000, 120_000, 300_000]

const SIGNALS = ['process.ask', 'process.terminate', 'process.kill', 'process.freeze', 'process.thaw']

/** O15: from the first launch until the work is over or is to end. */
const isTimeCounted = (node: RunNode): boolean =>
  node.context.policy.timeoutMs !== null &&
  node.context.executionAttempt > 0 &&
  isOpen(node) &&
  node.context.intent === null

const deadlines = (node: RunNode): [string, number][] => {
  const { context, work, process, delivery } = node
  const { policy, retries } = context
  const retryMs = RETRY_DELAYS_MS[Math.min(retries, RETRY_DELAYS_MS.length) - 1] ?? 0
  const owed: [boolean, string, number][] = [
    [process === 'frozen', 'xstate.after.pauseGrace.run.process.frozen', policy.pauseGraceMs],
    [process === 'asking', 'xstate.after.askGrace.run.process.asking', policy.askGraceMs],
    [process === 'term-sent', 'xstate.after.termGrace.run.process.term-sent', policy.termGraceMs],
    [process === 'kill-sent', 'xstate.after.killGrace.run.process.kill-sent', policy.killGraceMs],
    [process === 'unconfirmed', 'xstate.after.unconfirmedRetry.run.process.unconfirmed', retryMs],
    [
      delivery === 'finalizing',
      'xstate.after.finalizeDeadline.run.delivery.finalizing',
      policy.finalizeDeadlineMs,
    ],
    [delivery === 'retrying', 'xstate.after.deliveryRetry.run.delivery.retrying', 5_000],
    // K13: the agent's time to answer and its prompt's to return; the latter from its answer on, if that is shorter.
    [isTurnOpen(node) && context.isTurnCancelling, 'turn-cancel', policy.turnCancelMs + 2_000],
    [isTurnOpen(node) && context.isTurnCancelHeard, 'turn-return', 2_000],
    [isTimeCounted(node), 'time-limit', policy.timeoutMs ?? 0],
    [work === 'open.finishing', 'xstate.after.exitGrace.run.work.open.finishing', policy.exitGraceMs],
  ]
  return owed.filter(([isOwed]) => isOwed).map(([, id, delayMs]) => [id, delayMs])
}

/** Each wait has its deadline, and no deadline is left of a wait that is over. */
const areDeadlinesExact = ({ after }: RunEdge): boolean => {
  const armed = new Map([...after.timers].map(([id, { delayMs }]) => [id, delayMs]))
  const owed = new Map(deadlines(after))
  return isSame(armed, owed)
}

const isDeadlineKept = ({ before, after }: RunEdge): boolean =>
  [...before.timers].every(([id, timer]) => !id.includes('run.process.') || after.timers.get(id) === timer)

const always: readonly RunCheck[] = [
  onChange('INV-4', 'a live tree behind an intent or an outcome is being ended', ({ after }) => {
    return !isOver(after) || !['waiting', 'alive', 'frozen'].includes(after.process)
  }),
  onChange('INV-5', 'waiting or confirmed means that no tree is there', ({ after }) => {
    return !['waiting', 'confirmed'].includes(after.process) || !isTreeThere(after)
  }),
  onChange('INV-8', 'a launch finds no tree of an earlier attempt', ({ before, effects }) => {
    return !effects.some(({ type }) => type === 'process.launch') || !isTreeThere(before)
  }),
  onChange('INV-2', 'each step calls for exactly its effects, for the execution it holds', isCalledFor),
  onChange('INV-2', 'no signal without a tree', ({ after, effects }) => {
    return (
      !effects.some(({ type }) => SIGNALS.includes(type)) || ['up', 'members'].includes(after.world.execution)
    )
  }),
  onChange('INV-11', 'each wait has its deadline, and none is left behind', areDeadlinesExact),
  onChange('P8', 'kills that ended unconfirmed are counted, for each execution anew', ({ before, after }) => {
    const [old, now] = [before.context, after.context]
    if (now.executionAttempt !== old.executionAttempt) return now.retries === 0 && now.survivors.length === 0
    const isNew = after.process === 'unconfirmed' && before.process !== 'unconfirmed'
    return now.retries === old.retries + (isNew ? 1 : 0)
  }),
  onChange('P8', 'a tree proven gone has no survivors', ({ before, after }) => {
    return (
      after.context.evidence.length === before.context.evidence.length || after.context.survivors.length === 0
    )
  }),
]

const steps: readonly RunCheck[] = [
  onTimer(
    'INV-11',
    'an agent that does not end when asked gets TERM',
    'askGrace.run.process.asking',
    (edge) => {
      return edge.after.process === 'term-sent' && edge.after.work === edge.before.work
    },
  ),
  onTimer(
    'O3',
    'a tree that outlives the TERM grace gets KILL',
    'termGrace.run.process.term-sent',
    (edge) => {
      return edge.after.process === 'kill-sent' && edge.after.work === edge.before.work
    },
  ),
  onTimer('P8', 'a tree that outlives KILL is unconfirmed', 'killGrace.run.process.kill-sent', (edge) => {
    return edge.after.process === 'unconfirmed' && edge.after.work === edge.before.work
  }),
  onTimer(
    'P8',
    'the kill of an unconfirmed tree is repeated',
    'unconfirmedRetry.run.process.unconfirmed',
    (edge) => {
      return edge.after.process === 'kill-sent' && edge.after.work === edge.before.work
    },
  ),
  onEvent('P8', 'survivors are named, and the run stays unconfirmed', ['process.survived'], (edge, event) => {
    const { before, after } = edge
    const lastError = event.error ?? before.context.lastError
    const isNamed = isSame(after.context.survivors, event.survivors) && after.context.lastError === lastError
    return after.process === 'unconfirmed' && isNamed
  }),
  onEvent('P8', 'a failed signal is noted and moves nothing', ['process.signal-failed'], (edge) => {
    const { before, after } = edge
    if (!['alive', 'frozen', 'term-sent', 'kill-sent'].includes(before.process)) return isInert(edge)
    const noted = { ...before.context, lastError: 'EPERM' }
    return after.process === before.process && after.work === before.work && isSame(after.context, noted)
  }),
]

const isLeft = (process: string): boolean => ['alive', 'frozen', 'asking'].includes(process)

const exits: readonly RunCheck[] = [
  onEvent(
    'L2',
    'a leader that leaves members behind: the sweep begins, and nothing else stops it',
    ['process.exited'],
    (edge, event) => {
      const { before, after } = edge
      if (event.isTreeEmpty || !holdsTree(before)) return true
      if (isLeft(before.process)) return after.process === 'term-sent'
      return isProcessUntouched(edge) && isDeadlineKept(edge)
    },
  ),
  onEvent(
    'INV-5',
    'an empty tree ends the ladder, wherever it stands',
    ['process.exited', 'process.gone'],
    (edge, event) => {
      if (event.type === 'process.exited' && !event.isTreeEmpty) return true
      return (
        isTreeOver(edge) && edge.after.context.evidence.length === edge.before.context.evidence.length + 1
      )
    },
  ),
  onEvent('R3', 'a tree that recovery proves gone is over', ['run.lost'], (edge) => {
    const { before, after } = edge
    if (before.process === 'confirmed') return isInert(edge)
    return after.process === 'confirmed' && !isOpen(after) && after.context.evidence.length > 0
  }),
  onEvent(
    'P4',
    'a launch that ends in an intent is answered at once',
    ['process.launched'],
    ({ before, after }) => {
      if (!isOver(before)) return true
      return after.process === (before.context.intent?.force === true ? 'kill-sent' : 'term-sent')
    },
  ),
  onEvent(
    'O8',
    'a launch that is to be paused is frozen at once, any other lives',
    ['process.launched'],
    ({ before, after }) => {
      return isOver(before) || after.process === (before.notes.freeze === null ? 'alive' : 'frozen')
    },
  ),
  onEvent('P4', 'a launch that failed leaves nothing behind', ['process.launch-failed'], (edge) => {
    const [proof] = edge.after.context.evidence.slice(edge.before.context.evidence.length)
    return isTreeOver(edge) && proof?.kind === 'never-launched'
  }),
  onEvent('INV-7', 'an admission launches only what waits', ['run.admitted'], (edge) => {
    return edge.before.process === 'waiting' ? edge.after.process === 'launching' : isInert(edge)
  }),
]

export const ladder: readonly RunCheck[] = [...always, ...steps, ...exits]
