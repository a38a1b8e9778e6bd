/** Planted faults for a small chart: each guard always yes and always no, each action and effect left out. */
import type { AnyStateMachine } from 'xstate'
import { explore, keptBy } from './explorer.js'
import type { Check, Edge, Model, Offer } from './explorer.js'
import { actionsOf, guardsOf } from './chart.js'
import type { Effect } from './pure-machine.js'

const MAX_STATES = 20_000

export interface Fault {
  readonly name: string
  readonly machine: AnyStateMachine
  readonly lostEffect?: string
}

export const faultsOf = (machine: AnyStateMachine): readonly Fault[] => [
  ...guardsOf(machine).flatMap((guard) =>
    [true, false].map((answer) => ({
      name: `${guard} = ${answer}`,
      machine: machine.provide({ guards: { [guard]: () => answer } }),
    })),
  ),
  ...actionsOf(machine).map((action) =>
    action.includes('.')
      ? { name: `without effect ${action}`, machine, lostEffect: action }
      : { name: `without ${action}`, machine: machine.provide({ actions: { [action]: () => undefined } }) },
  ),
]

export const losing = (effects: readonly Effect[], lost: string | undefined): readonly Effect[] =>
  lost === undefined ? effects : effects.filter(({ type }) => type !== lost)

/** A table of the faults and the claim each broke, of those that the chart itself keeps; a fault that broke none is a survivor. */
export const judgeFaults = <Node, Offered extends Offer, E extends Edge<Node, Offered>>(
  faults: readonly Fault[],
  modelOf: (fault?: Fault) => Model<Node, Offered, E>,
): { readonly table: string; readonly survivors: readonly string[] } => {
  const survivors: string[] = []
  const { violations } = explore(modelOf(), { maxStates: MAX_STATES })
  const rows = faults.map((fault) => {
    const model = modelOf(fault)
    const checks = keptBy(model.checks, violations)
    const [killer] = explore({ ...model, checks }, { maxStates: MAX_STATES, stopAt: () => true }).violations
    if (killer === undefined) survivors.push(fault.name)
    return `  ${fault.name.padEnd(32)} ${killer === undefined ? 'survived' : `killed by ${killer.id}: ${killer.claim}`}`
  })
  return { table: rows.join('\n'), survivors }
}

/** A claim on every edge, those that change nothing included. */
export const onEdge = <E>(
  id: string,
  claim: string,
  events: readonly string[],
  holds: (edge: E) => boolean,
): Check<E> => ({
  id,
  claim,
  on: events,
  holds,
})
