/**
 * Planted faults: the run chart with one part that is wrong or missing. The list is taken from the chart itself, so that a new guard,
 * action or transition is in it without being asked.
 */
import { createMachine } from 'xstate'
import { isInternalEvent } from '../../../src/machines/run/run.events.js'
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { RunMachine } from '../../../src/machines/run/run.machine.js'
import { actionsOf, declaredIn, guardsOf, nameOf, namedOf } from '../chart.js'
import type { Declared } from '../chart.js'
import { provide } from './model.js'
import type { RunNode } from './node.js'
import type { Use, Uses } from './uses.js'

export interface Mutant {
  readonly name: string
  readonly machine: () => RunMachine
  readonly lostEffect?: string
  /** Where the fault could show; null where it may show anywhere. */
  readonly uses: readonly Use[] | null
  /** Whether an event in a node can meet the faulty part at all. */
  readonly concerns: (node: RunNode, event: string) => boolean
}

const anywhere = (): boolean => true

/** Each guard, always yes and always no. */
export const guardMutants = ({ ofAnswer }: Uses): readonly Mutant[] =>
  guardsOf(runMachine).flatMap((guard) =>
    [true, false].map((answer) => ({
      name: `${guard} = ${answer}`,
      machine: () => provide({ guards: { [guard]: () => answer } }),
      uses: ofAnswer.get(`${guard} = ${!answer}`) ?? [],
      concerns: anywhere,
    })),
  )

/** Each action and each effect, left out. */
export const actionMutants = ({ ofTransition }: Uses): readonly Mutant[] =>
  actionsOf(runMachine).map((action) => {
    const isNamed = (actions: readonly unknown[]): boolean => actions.flatMap(namedOf).includes(action)
    const users = declaredIn(runMachine).filter(
      ({ actions, source, target }) =>
        isNamed(actions) || isNamed(source.exit) || target?.some(({ entry }) => isNamed(entry)),
    )
    const uses = users.flatMap((transition) => ofTransition.get(nameOf(transition)) ?? [])
    // A state is also entered and left with its parents: these places come first, and are not the only ones.
    const found = { uses: uses.length > 0 ? uses : null, concerns: anywhere }
    return action.includes('.')
      ? { name: `without effect ${action}`, machine: () => runMachine, lostEffect: action, ...found }
      : {
          name: `without ${action}`,
          machine: () => provide({ actions: { [action]: () => undefined } }),
          ...found,
        }
  })

type Json = Record<string, unknown>

const copyOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(copyOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copyOf(part)]))
}

/** The list in the chart's configuration that a transition is declared in. */
const listOf = (copy: Json, { source, eventType }: Declared): { holder: Json; key: string } => {
  const node = source.path.reduce<Json>((at, key) => (at['states'] as Json)[key] as Json, copy)
  if (eventType === '') return { holder: node, key: 'always' }
  if (!eventType.startsWith('xstate.after.')) return { holder: node['on'] as Json, key: eventType }
  const [, , delay = ''] = eventType.split('.')
  return { holder: node['after'] as Json, key: delay }
}

const changed = (declared: Declared, number: number, change: (transition: Json) => Json[]): RunMachine => {
  const copy = copyOf(runMachine.config) as Json
  const { holder, key } = listOf(copy, declared)
  const list = [holder[key]].flat() as Json[]
  holder[key] = list.flatMap((transition, index) => (index === number ? change(transition) : transition))
  return createMachine(copy as never, runMachine.implementations as never) as unknown as RunMachine
}

/** Whether the state that declares the transition is active. What is raised within a step may meet it from anywhere. */
const mayMeet = (declared: Declared) => {
  const { source, eventType } = declared
  const isRaised = eventType === '' || (isInternalEvent(eventType) && !eventType.startsWith('xstate.after.'))
  const [, region, ...path] = source.id.split('.')
  const state = `${path.join('.')}.`
  return (node: RunNode, event: string): boolean => {
    if (isRaised) return true
    if (event !== eventType) return false
    if (region === 'work') return `${node.work}.`.startsWith(state)
    return `${region === 'process' ? node.process : node.delivery}.` === state
  }
}

/** Each transition, left out; and each guarded one, without its guard. */
export const transitionMutants = ({ ofTransition, ofAnswer }: Uses): readonly Mutant[] => {
  const numbers = new Map<string, number>()
  return declaredIn(runMachine).flatMap((declared): Mutant[] => {
    const place = `${declared.source.id} ${declared.eventType}`
    const number = numbers.get(place) ?? 0
    numbers.set(place, number + 1)
    const name = nameOf(declared)
    const concerns = mayMeet(declared)
    const left = {
      name: `without ${name}`,
      machine: () => changed(declared, number, () => []),
      uses: ofTransition.get(name) ?? [],
      concerns,
    }
    const [guard] = namedOf(declared.guard)
    if (guard === undefined) return [left]
    const open = {
      name: `unguarded ${name}`,
      machine: () => changed(declared, number, ({ guard: _, ...rest }) => [rest]),
      uses: (ofAnswer.get(`${guard} = false`) ?? []).filter(({ node, event }) => concerns(node, event)),
      concerns,
    }
    return [left, open]
  })
}
