/**
 * One pure step of a chart: next snapshot, effects and timers as data.
 *
 * Owns: the translation of XState's executable actions into our three kinds of data.
 * Does not own: their execution. Nothing here touches the world (INV-1).
 */
import { initialTransition, transition } from 'xstate'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine, ExecutableActionsFrom } from 'xstate'

export interface EffectData {
  readonly type: string
  readonly params: unknown
}

export interface TimerRequest {
  readonly id: string
  readonly delayMs: number
  readonly event: AnyEventObject
}

export interface Step {
  readonly snapshot: AnyMachineSnapshot
  readonly effects: readonly EffectData[]
  readonly timersSet: readonly TimerRequest[]
  readonly timersCleared: readonly string[]
}

interface RaiseParams {
  readonly id?: string
  readonly delay?: number
  readonly event: AnyEventObject
}

/** XState's built-in actions arrive as data: a delayed raise is a timer, a cancel ends one, the rest are our effects. */
const sort = (
  snapshot: AnyMachineSnapshot,
  actions: readonly ExecutableActionsFrom<AnyStateMachine>[],
): Step => {
  const effects: EffectData[] = []
  const timers = new Map<string, TimerRequest>()
  const cleared = new Set<string>()
  for (const { type, params } of actions as readonly { type: string; params: unknown }[]) {
    if (type === 'xstate.raise') {
      const { id, delay, event } = params as RaiseParams
      if (delay === undefined) continue
      timers.set(id ?? event.type, { id: id ?? event.type, delayMs: delay, event })
    } else if (type === 'xstate.cancel') {
      const { sendId: id } = params as { readonly sendId: string }
      timers.delete(id)
      cleared.add(id)
    } else {
      effects.push({ type, params })
    }
  }
  return { snapshot, effects, timersSet: [...timers.values()], timersCleared: [...cleared] }
}

export const firstStep = (machine: AnyStateMachine, input: unknown): Step =>
  sort(
    ...(initialTransition(machine, input) as [AnyMachineSnapshot, ExecutableActionsFrom<AnyStateMachine>[]]),
  )

export const nextStep = (
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
): Step =>
  sort(
    ...(transition(machine, snapshot, event) as [
      AnyMachineSnapshot,
      ExecutableActionsFrom<AnyStateMachine>[],
    ]),
  )

/** Nothing to record: the event meant nothing in this state. */
export const isIdle = (before: AnyMachineSnapshot, step: Step): boolean =>
  step.effects.length === 0 &&
  step.timersSet.length === 0 &&
  JSON.stringify(step.snapshot.value) === JSON.stringify(before.value) &&
  JSON.stringify(step.snapshot.context) === JSON.stringify(before.context)

/** What is stored of a snapshot: the state value and the context, as JSON. */
export const dehydrate = (snapshot: { readonly value: unknown; readonly context: unknown }): string =>
  JSON.stringify({ value: snapshot.value, context: snapshot.context })

export const hydrate = (machine: AnyStateMachine, stored: string): AnyMachineSnapshot => {
  const state = JSON.parse(stored) as { readonly value: string; readonly context: never }
  return machine.resolveState(state)
}
