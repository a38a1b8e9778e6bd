/** What a chart declares: its transitions, guards and actions, by name. */
import type { AnyStateMachine } from 'xstate'

/** A transition as XState tells of it when it is taken. */
export interface TakenTransition {
  readonly source: { readonly id: string }
  readonly eventType: string
  readonly guard?: unknown
  readonly target?: readonly { readonly id: string }[] | undefined
}

interface StateNode {
  readonly id: string
  readonly path: readonly string[]
  readonly entry: readonly unknown[]
  readonly exit: readonly unknown[]
  readonly states: Readonly<Record<string, StateNode>>
  readonly transitions: ReadonlyMap<string, readonly Declared[]>
  readonly always?: readonly Declared[] | undefined
}

/** A transition as the chart declares it. */
export interface Declared extends TakenTransition {
  readonly source: StateNode
  readonly target?: readonly StateNode[] | undefined
  readonly actions: readonly unknown[]
}

/** The name of a guard or an action as the chart gives it, unless it is XState's own. */
export const namedOf = (named: unknown): string[] => {
  const name = typeof named === 'string' ? named : (named as { type?: unknown } | undefined)?.type
  return typeof name === 'string' && !name.startsWith('xstate.') ? [name] : []
}

/** `run.process.alive: process.exited [isTreeEmpty] → run.process.gone`. */
export const nameOf = ({ source, eventType, guard, target }: TakenTransition): string => {
  const [condition] = namedOf(guard)
  const when = condition === undefined ? '' : ` [${condition}]`
  const to = target === undefined ? '' : ` → ${target.map(({ id }) => id).join(', ')}`
  return `${source.id}: ${eventType || 'always'}${when}${to}`
}

const nodesOf = (node: StateNode): readonly StateNode[] => [
  node,
  ...Object.values(node.states).flatMap(nodesOf),
]
const allNodes = (machine: AnyStateMachine): readonly StateNode[] => nodesOf(machine.root)

export const declaredIn = (machine: AnyStateMachine): readonly Declared[] =>
  allNodes(machine).flatMap((node) => [...[...node.transitions.values()].flat(), ...(node.always ?? [])])

/** Every transition that the chart declares, by name. */
export const transitionsOf = (machine: AnyStateMachine): readonly string[] => declaredIn(machine).map(nameOf)

/** Every guard that the chart uses. */
export const guardsOf = (machine: AnyStateMachine): readonly string[] => [
  ...new Set(declaredIn(machine).flatMap(({ guard }) => namedOf(guard))),
]

/** Every action and effect that the chart uses. */
export const actionsOf = (machine: AnyStateMachine): readonly string[] => {
  const onTransitions = declaredIn(machine).flatMap(({ actions }) => actions)
  const onStates = allNodes(machine).flatMap(({ entry, exit }) => [...entry, ...exit])
  return [...new Set([...onTransitions, ...onStates].flatMap(namedOf))]
}
