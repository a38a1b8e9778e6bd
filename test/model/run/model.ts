/**
 * The run chart as a model to explore: how a node becomes the next one, and when two nodes count as the same.
 *
 * Owns: the world's answer to what the chart calls for, the observer's notes, and the abstraction of the context.
 */
import type { AnyEventObject } from 'xstate'
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { RunPolicy } from '../../../src/machines/run/run.context.js'
import type { RunEvent } from '../../../src/machines/run/run.events.js'
import type { RunMachine } from '../../../src/machines/run/run.machine.js'
import type { Check, Model } from '../explorer.js'
import { PureMachine } from '../pure-machine.js'
import type { PureStep, Timer } from '../pure-machine.js'
import { initialNotes, initialWorld, isAgentUp, isEnding, isOpen, isTurnOpen, viewOf } from './node.js'
import type { Notes, RunEdge, RunNode, RunOffer, RunSnapshot, World } from './node.js'
import { keyOf } from './key.js'
import { offersAt } from './offers.js'
import type { Mode } from './offers.js'

/** Every duration differs, so that a timer with another's delay is seen. */
const DURATIONS = {
  askGraceMs: 101,
  termGraceMs: 102,
  killGraceMs: 103,
  pauseGraceMs: 104,
  exitGraceMs: 105,
  turnCancelMs: 106,
  finalizeDeadlineMs: 107,
} as const

const TIMEOUT_MS = 108
/** What the chart itself does not ask for. */
const UNASKED = {
  termGraceReason: null,
  isPersistent: false,
  isForeground: false,
  maxOutputBytes: null,
} as const

export type Features = Pick<
  RunPolicy,
  'isInteractive' | 'isDriven' | 'hasPrompt' | 'candidates' | 'canAsk' | 'hasFinalize' | 'hasDeliver'
> & { readonly isTimeLimited: boolean }

export const policyOf = ({ isTimeLimited, ...features }: Features): RunPolicy => ({
  ...features,
  ...DURATIONS,
  ...UNASKED,
  timeoutMs: isTimeLimited ? TIMEOUT_MS : null,
})

const timersAfter = (
  before: RunNode['timers'],
  step: PureStep<RunSnapshot>,
  fired: string | null,
): RunNode['timers'] => {
  if (fired === null && step.timersSet.length === 0 && step.timersCleared.length === 0) return before
  const timers = new Map(before)
  if (fired !== null) timers.delete(fired)
  for (const id of step.timersCleared) timers.delete(id)
  for (const timer of step.timersSet) timers.set(timer.id, timer)
  return timers
}

const executionAfter = (execution: World['execution'], event: RunEvent): World['execution'] => {
  switch (event.type) {
    case 'process.launched':
      return 'up'
    case 'process.exited':
      return event.isTreeEmpty ? 'ended' : 'members'
    case 'process.launch-failed':
    case 'process.gone':
      return 'ended'
    case 'run.lost':
      return execution === 'none' ? 'none' : 'ended'
    default:
      return execution
  }
}

const worldAfter = (before: World, offer: RunOffer, { effects }: PureStep<RunSnapshot>): World => {
  const event = offer.event as RunEvent
  const isSeen = !offer.isStale && offer.nature !== 'timer'
  let world = before
  const set = (change: Partial<World>): void => {
    world = { ...world, ...change }
  }
  if (isSeen) set({ execution: executionAfter(before.execution, event) })
  if (event.type === 'run.admitted') set({ isAdmissionAsked: false })
  for (const { type } of effects) {
    if (type === 'admission.request') set({ isAdmissionAsked: true })
    if (type === 'process.launch') set({ execution: 'starting' })
  }
  return world
}

const ORDERS = { 'run.cancel': 'cancel', 'run.interrupt': 'interrupt', 'run.suppress': 'interrupt' } as const

/** What an order leaves behind with someone who only hears orders: the strongest stands, the first time of each counts. */
const noteOrder = (notes: Notes, before: RunNode, event: RunEvent): Notes => {
  if (!(event.type in ORDERS) || !isOpen(before)) return notes
  const type = event.type as keyof typeof ORDERS
  const kind = ORDERS[type]
  const isAsked = !isEnding(before) || type === 'run.cancel'
  return {
    ...notes,
    isForced: notes.isForced || ('force' in event && event.force),
    isSuppressed: notes.isSuppressed || type === 'run.suppress',
    askedAt: isAsked ? { ...notes.askedAt, [kind]: notes.askedAt[kind] ?? event.at } : notes.askedAt,
  }
}

const noteFreeze = (notes: Notes, before: RunNode, event: RunEvent): Notes => {
  if (isEnding(before) || !['waiting', 'launching', 'alive', 'frozen'].includes(before.process)) return notes
  if (event.type === 'run.pause') return { ...notes, freeze: notes.freeze === 'user' ? 'user' : event.owner }
  // O4: the machine's return lifts the machine's freeze only.
  const isLifted = event.type === 'run.resume' && (event.owner === 'user' || notes.freeze === 'machine')
  return isLifted ? { ...notes, freeze: null } : notes
}

const noteTurn = (notes: Notes, before: RunNode, { event, isStale }: RunOffer): Notes => {
  if (isStale || !isTurnOpen(before)) return notes
  const over = { questions: 0, isTurnCancelling: false, isTurnCancelHeard: false }
  switch (event.type) {
    case 'turn.progressed':
      return { ...notes, hasProgress: true }
    case 'person.asked':
      return { ...notes, hasProgress: true, questions: notes.questions + 1 }
    case 'person.answered':
      return before.work === 'open.accepted'
        ? notes
        : { ...notes, questions: Math.max(0, notes.questions - 1) }
    case 'turn.cancel':
      // A turn that no agent has is over at once.
      return isAgentUp(before) ? { ...notes, isTurnCancelling: true } : { ...notes, ...over }
    case 'turn.cancel-acknowledged':
      return { ...notes, isTurnCancelHeard: notes.isTurnCancelling }
    case 'turn.completed':
      return {
        ...notes,
        ...over,
        result: (event as { result: { isOk: boolean } }).result.isOk ? 'ok' : 'not-ok',
      }
    case 'turn.cancelled':
      return { ...notes, ...over }
    case 'watchdog.completion-silent':
      return notes.freeze === null && notes.questions === 0 ? { ...notes, ...over, result: 'unsaid' } : notes
    default:
      return notes
  }
}

const FRESH_TURN = {
  hasProgress: false,
  hasAdvised: false,
  questions: 0,
  isTurnCancelling: false,
  isTurnCancelHeard: false,
  result: null,
} as const

const notesAfter = (before: RunNode, offer: RunOffer, step: PureStep<RunSnapshot>): Notes => {
  const event = offer.event as RunEvent
  let notes = noteTurn(noteFreeze(noteOrder(before.notes, before, event), before, event), before, offer)
  const isExit = event.type === 'process.exited' && !offer.isStale
  if (isExit) {
    const { exitCode, signal, isUnseen } = event
    notes = { ...notes, exit: { exitCode, signal, ...(isUnseen === undefined ? {} : { isUnseen }) } }
  }
  const { attempt } = step.snapshot.context
  if (event.type === 'run.finish' && before.work === 'open.ready') notes = { ...notes, isFinished: true }
  const isNewTurn = event.type === 'turn.started' && before.work === 'open.ready'
  if (isNewTurn || attempt > before.context.attempt) notes = { ...notes, ...FRESH_TURN }
  for (const { type, params } of step.effects) {
    if (type === 'process.launch') notes = { ...notes, exit: null }
    const isAdvisory = (params as { kind?: string } | undefined)?.kind === 'advisory'
    if (type === 'notice.raise' && isAdvisory) notes = { ...notes, isAdvised: true, hasAdvised: true }
    if (type === 'notice.withdraw' && isAdvisory) notes = { ...notes, isAdvised: false }
  }
  return notes
}

const nodeAfter = (before: RunNode, offer: RunOffer, step: PureStep<RunSnapshot>, mode: Mode): RunNode => {
  const fired = offer.nature === 'timer' ? idOfTimer(before.timers, offer.event) : null
  const timers = timersAfter(before.timers, step, fired)
  const world = mode === 'legal' ? worldAfter(before.world, offer, step) : before.world
  const notes = mode === 'legal' ? notesAfter(before, offer, step) : before.notes
  const isSame =
    step.snapshot === before.snapshot &&
    timers === before.timers &&
    world === before.world &&
    notes === before.notes
  return isSame ? before : { ...viewOf(step.snapshot), timers, world, notes, at: before.at + 1 }
}

const idOfTimer = (timers: RunNode['timers'], event: AnyEventObject): string | null => {
  for (const timer of timers.values()) if (timer.event.type === event.type) return timer.id
  return null
}

const asTimers = (timers: readonly Timer[]): RunNode['timers'] =>
  new Map(timers.map((timer) => [timer.id, timer]))

/** The chart with something else in the place of a guard or an action. Names come as text: what is put there fits any of them. */
export const provide = (implementations: Record<string, Record<string, unknown>>): RunMachine =>
  runMachine.provide(implementations)

export interface RunModelOptions {
  readonly name: string
  readonly features: Features
  readonly mode: Mode
  readonly checks: readonly Check<RunEdge>[]
  /** The chart itself, or one with a planted fault. */
  readonly machine?: RunMachine
  readonly isTraced?: boolean
  /** An effect that is called for and never comes out: a planted fault. */
  readonly lostEffect?: string | undefined
}

export interface RunModel extends Model<RunNode, RunOffer, RunEdge> {
  /** Transitions that the chart takes on its beginning, where they are traced. */
  readonly firstTaken: readonly string[]
}

export const runModel = ({
  name,
  features,
  mode,
  checks,
  machine = runMachine,
  isTraced = false,
  lostEffect,
}: RunModelOptions): RunModel => {
  const input = { policy: policyOf(features) }
  const pure = new PureMachine<RunSnapshot, RunEvent | AnyEventObject>(machine, input, { isTraced })
  const first = pure.first()
  const firstTaken = pure.taken
  const world = {
    ...initialWorld,
    isAdmissionAsked: first.effects.some(({ type }) => type === 'admission.request'),
  }
  const initial: RunNode = {
    ...viewOf(first.snapshot),
    timers: asTimers(first.timersSet),
    world,
    notes: initialNotes,
    at: 0,
  }
  return {
    name,
    initial,
    firstTaken,
    checks,
    keyOf,
    offersAt: (node) => offersAt(node, mode),
    take: (before, offer) => {
      const complete = pure.next(before.snapshot, offer.event)
      const effects = complete.effects.filter(({ type }) => type !== lostEffect)
      const step = lostEffect === undefined ? complete : { ...complete, effects }
      if (step.snapshot === before.snapshot && offer.isStale && offer.nature !== 'timer') {
        return { before, offer, after: before, effects: [], raised: [], taken: [] }
      }
      const after = nodeAfter(before, offer, step, mode)
      return { before, offer, after, effects: step.effects, raised: step.raised, taken: pure.taken }
    },
  }
}
