/**
 * Where the run chart uses each of its transitions and each answer of its guards, over everything reachable in a legal world.
 *
 * A planted fault shows where the faulty part is used, or nowhere. So these places are tried first, by the shortest path to each, and a
 * part without any place is never used, as the exploration was exhaustive.
 */
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { RunMachine } from '../../../src/machines/run/run.machine.js'
import { exploreRun, modelOf, POLICIES } from './exploration.js'
import { provide } from './model.js'
import type { RunExploration } from './liveness.js'
import type { RunNode } from './node.js'

/** An edge on which a part was used, or the beginning. */
export interface Use {
  readonly policy: string
  readonly node: RunNode
  readonly event: string
  /** Labels of the offers to take, from the initial node; none: it is used before any. */
  readonly path: () => readonly string[]
}

export interface Uses {
  /** The explorations of the chart itself, by policy. */
  readonly explorations: ReadonlyMap<string, RunExploration>
  readonly ofTransition: ReadonlyMap<string, readonly Use[]>
  /** By guard and answer: `isForcedNow = true`. */
  readonly ofAnswer: ReadonlyMap<string, readonly Use[]>
}

const BEGINNING = 'xstate.init'

type Guard = (args: unknown, params: unknown) => boolean

/** The chart with guards that tell what they answered. */
const withWitness = (witness: (guard: string, answer: boolean) => void): RunMachine => {
  const guards = Object.entries(runMachine.implementations.guards).map(([name, guard]) => [
    name,
    (args: unknown, params: unknown): boolean => {
      const answer = (guard as unknown as Guard)(args, params)
      witness(name, answer)
      return answer
    },
  ])
  return provide({ guards: Object.fromEntries(guards) as Record<string, unknown> })
}

/** For each part, the first edge of each kind: the exploration goes breadth first, so the first is the nearest. */
class Ledger {
  readonly #found = new Map<string, Map<string, Use>>()

  note(part: string, use: Use): void {
    const places = this.#found.get(part) ?? new Map<string, Use>()
    this.#found.set(part, places)
    const place = `${use.node.work} ${use.node.process} ${use.event}`
    if (!places.has(place)) places.set(place, use)
  }

  addTo(uses: Map<string, Use[]>): void {
    for (const [part, places] of this.#found) uses.set(part, [...(uses.get(part) ?? []), ...places.values()])
  }
}

/** Explores the chart under every policy in a legal world, and notes what is used where. */
export const exploreLegal = (): Uses => {
  const explorations = new Map<string, RunExploration>()
  const ofTransition = new Map<string, Use[]>()
  const ofAnswer = new Map<string, Use[]>()
  for (const [policy, features] of Object.entries(POLICIES)) {
    const [transitions, answers] = [new Ledger(), new Ledger()]
    const given = new Set<string>()
    const machine = withWitness((guard, answer) => given.add(`${guard} = ${answer}`))
    const model = modelOf('legal', policy, features, { machine, isTraced: true })
    const note = (taken: readonly string[], use: Use): void => {
      for (const name of taken) transitions.note(name, use)
      for (const answer of given) answers.note(answer, use)
    }
    note(model.firstTaken, { policy, node: model.initial, event: BEGINNING, path: () => [] })
    const pathTo = (node: RunNode): readonly string[] => exploration.pathTo(exploration.nodes.indexOf(node))
    const exploration = exploreRun({
      ...model,
      take: (node, offer) => {
        given.clear()
        const edge = model.take(node, offer)
        const { label, event } = offer
        note(edge.taken, { policy, node, event: event.type, path: () => [...pathTo(node), label] })
        return edge
      },
    })
    explorations.set(policy, exploration)
    transitions.addTo(ofTransition)
    answers.addTo(ofAnswer)
  }
  return { explorations, ofTransition, ofAnswer }
}
