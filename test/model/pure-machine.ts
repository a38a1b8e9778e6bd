/**
 * A chart as a pure function, cheap enough to be stepped a million times.
 *
 * Owns: one actor scope for all steps of a machine (a fresh one per step costs more than the step), and the trace of the
 *   transitions taken.
 * Does not own: which events come, nor what the effects do.
 */
import { createActor } from 'xstate'
import type {
  AnyActorScope,
  AnyEventObject,
  AnyMachineSnapshot,
  AnyStateMachine,
  InspectionEvent,
} from 'xstate'

import { nameOf } from './chart.js'
import type { TakenTransition } from './chart.js'

export interface Effect {
  readonly type: string
  readonly params: unknown
}

export interface Timer {
  readonly id: string
  readonly delayMs: number
  readonly event: AnyEventObject
}

export interface PureStep<Snapshot> {
  readonly snapshot: Snapshot
  readonly effects: readonly Effect[]
  /** Types of the events raised for the same step, in order. */
  readonly raised: readonly string[]
  readonly timersSet: readonly Timer[]
  readonly timersCleared: readonly string[]
}

interface Action {
  readonly type: string
  readonly params: unknown
}

interface RaiseParams {
  readonly id?: string
  readonly delay?: number
  readonly event: AnyEventObject
}

/** XState's built-in actions arrive as data: a delayed raise is a timer, a cancel ends one, the rest are effects. */
const sort = <Snapshot>(snapshot: Snapshot, actions: readonly Action[]): PureStep<Snapshot> => {
  const effects: Effect[] = []
  const raised: string[] = []
  const timers = new Map<string, Timer>()
  const cleared: string[] = []
  for (const { type, params } of actions) {
    if (type === 'xstate.raise') {
      const { id, delay, event } = params as RaiseParams
      if (delay === undefined) raised.push(event.type)
      else timers.set(id ?? event.type, { id: id ?? event.type, delayMs: delay, event })
    } else if (type === 'xstate.cancel') {
      const { sendId } = params as { readonly sendId: string }
      timers.delete(sendId)
      cleared.push(sendId)
    } else if (type.includes('.') && !type.startsWith('xstate.')) {
      effects.push({ type, params })
    }
  }
  return { snapshot, effects, raised, timersSet: [...timers.values()], timersCleared: cleared }
}

export class PureMachine<Snapshot extends AnyMachineSnapshot, Event extends AnyEventObject> {
  /** Names of the transitions that the last step took, where they are asked for. */
  taken: string[] = []
  readonly #machine: AnyStateMachine
  readonly #input: unknown
  readonly #scope: AnyActorScope
  #actions: Action[] = []

  constructor(machine: AnyStateMachine, input: unknown, options: { readonly isTraced: boolean }) {
    this.#machine = machine
    this.#input = input
    const names = new Map<TakenTransition, string>()
    const trace = (inspected: InspectionEvent): void => {
      if (inspected.type !== '@xstate.microstep') return
      for (const transition of inspected._transitions) {
        const name = names.get(transition) ?? nameOf(transition)
        names.set(transition, name)
        this.taken.push(name)
      }
    }
    const self = createActor(machine, { input, ...(options.isTraced ? { inspect: trace } : {}) })
    this.#scope = {
      self,
      id: '',
      sessionId: '',
      logger: () => undefined,
      defer: () => undefined,
      emit: () => undefined,
      system: self.system,
      stopChild: () => undefined,
      actionExecutor: (action: Action) => {
        this.#actions.push(action)
      },
    }
  }

  /** Most events mean nothing in most states; XState would find that out each time anew. */
  #isHandled(snapshot: Snapshot, type: string): boolean {
    const nodes = snapshot._nodes
    return nodes.some((node) => node.transitions.has(type))
  }

  first(): PureStep<Snapshot> {
    this.#actions = []
    this.taken = []
    const snapshot = this.#machine.getInitialSnapshot(this.#scope as never, this.#input)
    return sort(snapshot as unknown as Snapshot, this.#actions)
  }

  next(before: Snapshot, event: Event): PureStep<Snapshot> {
    this.#actions = []
    this.taken = []
    if (!this.#isHandled(before, event.type)) return { ...NOTHING, snapshot: before }
    const snapshot = this.#machine.transition(before, event, this.#scope as never) as unknown as Snapshot
    return sort(snapshot, this.#actions)
  }
}

const NOTHING = { effects: [], raised: [], timersSet: [], timersCleared: [] } as const
