/** How a claim on the run chart is written down. */
import { isDeepStrictEqual } from 'node:util'
import type { RunEvent } from '../../../../src/machines/run/run.events.js'
import type { Check } from '../../explorer.js'
import type { RunEdge, RunNode } from '../node.js'

export type RunCheck = Check<RunEdge>
type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** A claim on every edge that changes anything. */
export const onChange = (id: string, claim: string, holds: (edge: RunEdge) => boolean): RunCheck => ({
  id,
  claim,
  on: 'change',
  holds,
})

/** A claim on what an event that is not stale does, or leaves undone. Stale ones are INV-10's. */
export const onEvent = <T extends RunEvent['type']>(
  id: string,
  claim: string,
  types: readonly T[],
  holds: (edge: RunEdge, event: EventOf<T>) => boolean,
): RunCheck => ({
  id,
  claim,
  on: types,
  holds: (edge) => edge.offer.isStale || holds(edge, edge.offer.event as EventOf<T>),
})

/** A claim on what happens when the timer of a state fires: `termGrace.run.process.term-sent`. */
export const onTimer = (
  id: string,
  claim: string,
  timer: string,
  holds: (edge: RunEdge) => boolean,
): RunCheck => ({
  id,
  claim,
  on: [`xstate.after.${timer}`],
  holds,
})

/** Deep equality that is quick where nothing was touched. */
export const isSame = (a: unknown, b: unknown): boolean => a === b || isDeepStrictEqual(a, b)

/** The same timers, and none of them set anew: a deadline that moves is not kept (INV-11). */
const areTimersKept = ({ before, after }: RunEdge): boolean =>
  after.timers.size === before.timers.size &&
  [...before.timers].every(([id, timer]) => after.timers.get(id) === timer)

/** The chart as it was, and nothing called for. A timer that fired is gone all the same. */
export const isInert = (edge: RunEdge): boolean => {
  const { before, after, effects, offer } = edge
  return (
    effects.length === 0 &&
    isSame(after.snapshot.value, before.snapshot.value) &&
    isSame(after.context, before.context) &&
    (offer.nature === 'timer' || areTimersKept(edge))
  )
}

export const isProcessUntouched = ({ before, after, effects }: RunEdge): boolean =>
  after.process === before.process && !effects.some(({ type }) => type.startsWith('process.'))

/** The work got its outcome on this edge. */
export const settlesIn = ({ before, after }: RunEdge): boolean =>
  before.context.outcome === null && after.context.outcome !== null

export const effectsOf = ({ effects }: RunEdge, prefix: string) =>
  effects.filter(({ type }) => type.startsWith(prefix))

/** Ended by decision or by itself: nothing new may start. */
export const isOver = ({ context }: RunNode): boolean => context.intent !== null || context.outcome !== null

/** Whether a next attempt waits for the present tree to be gone. */
const isAttemptDue = (node: RunNode): boolean =>
  !isOver(node) && node.context.attempt > node.context.executionAttempt

/** The execution is gone: the next attempt waits for its admission, or nothing is left. */
export const isTreeOver = ({ after }: RunEdge): boolean =>
  after.process === (isAttemptDue(after) ? 'waiting' : 'confirmed')
