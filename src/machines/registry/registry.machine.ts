/**
 * The registry chart: the life of an engine, as the one stop authority over its runs.
 *
 * Owns: whether launches are admitted, which fences are in force, how closing goes.
 * Does not own: the runs. It knows ids, not references.
 * Messages out: `runs.stop` when draining begins.
 * Invariants: INV-2, INV-7 (a fence refuses launches in its scope), INV-11 (closing has a deadline).
 */
import { assign, setup } from 'xstate'
import type { StopScope } from '../stop-order/stop-order.context.js'

export const REGISTRY_MACHINE_VERSION = 1

export interface RegistryContext {
  readonly engineId: string
  /** Scopes in which no launch is admitted, by the order that set each. */
  readonly fences: Readonly<Record<string, StopScope>>
  readonly closing: { readonly runs: ClosePolicy; readonly deadlineMs: number } | null
  /** Runs not confirmed when the close deadline passed. */
  readonly left: readonly string[]
}

/** What closing does to the runs that are still going. */
export type ClosePolicy = 'suppress' | 'interrupt' | 'cancel' | 'leave'

export type RegistryEvent =
  | { readonly type: 'registry.recovered'; readonly at: number }
  | {
      readonly type: 'order.recorded'
      readonly at: number
      readonly orderId: string
      readonly fence?: StopScope
    }
  | { readonly type: 'order.settled'; readonly at: number; readonly orderId: string }
  | {
      readonly type: 'registry.close'
      readonly at: number
      readonly runs: ClosePolicy
      readonly deadlineMs: number
    }
  | { readonly type: 'registry.emptied'; readonly at: number; readonly left: readonly string[] }

const registrySetup = setup({
  types: {
    context: {} as RegistryContext,
    events: {} as RegistryEvent,
    input: {} as { engineId: string },
  },
  delays: { closeDeadline: ({ context }) => context.closing?.deadlineMs ?? 0 },
  actions: {
    'runs.stop': (_: unknown, _params: { mode: ClosePolicy }) => undefined,
    'runs.name-survivors': (_: unknown, _params: Record<string, never>) => undefined,
    raiseFence: assign(({ context, event }) =>
      event.type === 'order.recorded' && event.fence !== undefined
        ? { fences: { ...context.fences, [event.orderId]: event.fence } }
        : {},
    ),
    liftFence: assign(({ context, event }) => {
      if (event.type !== 'order.settled') return {}
      const { [event.orderId]: _lifted, ...fences } = context.fences
      return { fences }
    }),
    noteClosing: assign(({ event }) =>
      event.type === 'registry.close' ? { closing: { runs: event.runs, deadlineMs: event.deadlineMs } } : {},
    ),
    noteLeft: assign(({ event }) => (event.type === 'registry.emptied' ? { left: event.left } : {})),
  },
})

const orders = {
  'order.recorded': { actions: 'raiseFence' },
  'order.settled': { actions: 'liftFence' },
} as const

const close = { target: 'draining', actions: 'noteClosing' } as const

export const registryMachine = registrySetup.createMachine({
  id: 'registry',
  version: String(REGISTRY_MACHINE_VERSION),
  description: 'The life of an engine, as the one stop authority over its runs.',
  context: ({ input }) => ({ engineId: input.engineId, fences: {}, closing: null, left: [] }),
  initial: 'recovering',
  states: {
    recovering: {
      description: "Dead engines' runs are brought to their guarantees; nothing is admitted, commands wait.",
      on: { ...orders, 'registry.recovered': { target: 'open' }, 'registry.close': close },
    },
    open: {
      description: 'Launches are admitted, except inside a fence.',
      on: { ...orders, 'registry.close': close },
    },
    draining: {
      description: 'No launches; the runs end, or are left, as the host chose.',
      entry: {
        type: 'runs.stop',
        params: ({ context }) => ({ mode: context.closing?.runs ?? 'interrupt' }),
      },
      on: { ...orders, 'registry.emptied': { target: 'closed', actions: 'noteLeft' } },
      after: { closeDeadline: { actions: { type: 'runs.name-survivors', params: {} } } },
    },
    closed: {
      type: 'final',
      description: 'Every run it owned is confirmed, left on purpose, or named.',
    },
  },
  options: { maxIterations: 1000 },
})

/** Whether a labelled run lies in a scope. An empty scope covers nothing. */
export const isInScope = (
  scope: StopScope,
  run: {
    readonly runId: string
    readonly session?: string | undefined
    readonly task?: string | undefined
    readonly labels?: Readonly<Record<string, string>> | undefined
  },
): boolean => {
  if (scope.all === true) return true
  const labels = Object.entries(scope.labels ?? {})
  const isNamed =
    scope.runIds !== undefined || scope.session !== undefined || scope.task !== undefined || labels.length > 0
  return (
    isNamed &&
    (scope.runIds === undefined || scope.runIds.includes(run.runId)) &&
    (scope.session === undefined || scope.session === run.session) &&
    (scope.task === undefined || scope.task === run.task) &&
    labels.every(([name, value]) => run.labels?.[name] === value)
  )
}

export type Admission = 'admitted' | 'waiting' | 'scope-stopped' | 'engine-closing'

/** INV-7, K16: whether a launch may go ahead now. Pure; decided in the tick that launches. */
export const admits = (
  state: { readonly value: string; readonly context: RegistryContext },
  run: Parameters<typeof isInScope>[1],
): Admission => {
  if (state.value === 'recovering') return 'waiting'
  if (state.value !== 'open') return 'engine-closing'
  const isFenced = Object.values(state.context.fences).some((scope) => isInScope(scope, run))
  return isFenced ? 'scope-stopped' : 'admitted'
}
