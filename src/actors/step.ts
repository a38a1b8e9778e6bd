/**
 * One pure step of a chart: next snapshot, effects and timers as data.
 *
 * Owns: the translation of XState's executable actions into our three kinds of data.
 * Does not own: their execution. Nothing here touches the world (INV-1).
 */
import { createActor } from 'xstate'
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine, ExecutableActionsFrom } from 'xstate'

type Scope = Parameters<AnyStateMachine['transition']>[2]

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

/** Actors that are never started: XState asks for one around each step. They hold nothing, so one serves all steps of a machine. */
const inert = new WeakMap<AnyStateMachine, Omit<Scope, 'actionExecutor'>>()

/** What `transition()` of XState makes anew for each event, running the whole initial state to no purpose: most of its cost (B5). */
const scopeOf = (machine: AnyStateMachine): Omit<Scope, 'actionExecutor'> => {
  const known = inert.get(machine)
  if (known !== undefined) return known
  const self = createActor(machine)
  const ignore = (): void => undefined
  const { sessionId, system } = self
  const scope = {
    self,
    id: '',
    sessionId,
    system,
    logger: ignore,
    defer: ignore,
    emit: ignore,
    stopChild: ignore,
  }
  inert.set(machine, scope)
  return scope
}

/** The snapshot that `go` arrives at, and the actions on the way. */
const collected = (machine: AnyStateMachine, go: (scope: Scope) => AnyMachineSnapshot): Step => {
  const actions: ExecutableActionsFrom<AnyStateMachine>[] = []
  const collect = (action: ExecutableActionsFrom<AnyStateMachine>): void => void actions.push(action)
  const actionExecutor = collect as Scope['actionExecutor']
  return sort(go({ ...scopeOf(machine), actionExecutor }), actions)
}

export const firstStep = (machine: AnyStateMachine, input: unknown): Step =>
  collected(machine, (scope) => machine.getInitialSnapshot(scope, input))

export const nextStep = (
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  event: AnyEventObject,
): Step => collected(machine, (scope) => machine.transition(snapshot, event, scope))

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
