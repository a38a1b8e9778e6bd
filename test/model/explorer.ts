/**
 * Breadth-first exploration of everything that can happen in a model, with a judgement on every edge.
 *
 * Owns: the walk, the shortest path to each violation, and the graph that reachability questions are asked of. It does not go on behind a
 *   violation: what follows from a fault is not another one.
 * Does not own: what a node is, which events are offered in it, nor what is right.
 */

/** One thing that may happen in a node. */
export interface Offer {
  readonly label: string
  readonly event: { readonly type: string }
}

export interface Edge<Node, Offered extends Offer> {
  readonly before: Node
  readonly offer: Offered
  readonly after: Node
}

/** A claim on the edges of some events, or on every edge that changes anything. */
export interface Check<E> {
  /** The rule or invariant: `INV-3`. */
  readonly id: string
  readonly claim: string
  /** Types of the events whose edges it judges, also where nothing changes; `change`: every edge that changes anything. */
  readonly on: 'change' | readonly string[]
  readonly holds: (edge: E) => boolean
}

export interface Model<Node, Offered extends Offer, E extends Edge<Node, Offered>> {
  readonly name: string
  readonly initial: Node
  keyOf(node: Node): string
  offersAt(node: Node): readonly Offered[]
  take(node: Node, offer: Offered): E
  readonly checks: readonly Check<E>[]
}

export interface Violation {
  readonly id: string
  readonly claim: string
  /** The events that lead to it, the last one is where the claim broke. */
  readonly path: readonly string[]
  readonly state: string
  /** Edges on which the same claim broke. */
  count: number
}

interface GraphEdge<Offered> {
  readonly from: number
  readonly to: number
  readonly offer: Offered
}

export interface Exploration<Node, Offered extends Offer> {
  readonly name: string
  readonly nodes: readonly Node[]
  readonly keys: readonly string[]
  /** Edges that change the state; those that do not are only counted. */
  readonly graph: readonly GraphEdge<Offered>[]
  readonly edgeCount: number
  readonly violations: readonly Violation[]
  readonly cpuMs: number
  pathTo(node: number): readonly string[]
}

export interface ExploreOptions {
  readonly maxStates: number
  /** Ends the walk at the first violation that it accepts. */
  readonly stopAt?: (violation: Violation) => boolean
}

/** An id no rule has: what no chart may do whatever its rules are. */
export const ROBUST = 'ROBUST'

class Walk<Node, Offered extends Offer, E extends Edge<Node, Offered>> {
  readonly nodes: Node[] = []
  readonly keys: string[] = []
  readonly graph: GraphEdge<Offered>[] = []
  readonly violations = new Map<string, Violation>()
  readonly #model: Model<Node, Offered, E>
  readonly #options: ExploreOptions
  readonly #indexes = new Map<string, number>()
  readonly #checks = new Map<
    string,
    { readonly ofType: readonly Check<E>[]; readonly all: readonly Check<E>[] }
  >()
  readonly #parents: { readonly from: number; readonly label: string }[] = []
  edgeCount = 0
  isStopped = false

  constructor(model: Model<Node, Offered, E>, options: ExploreOptions) {
    this.#model = model
    this.#options = options
  }

  run(): void {
    this.#add(this.#model.initial, -1, '')
    for (let index = 0; index < this.nodes.length && !this.isStopped; index += 1) this.#expand(index)
  }

  pathTo(node: number): readonly string[] {
    const path: string[] = []
    for (let at = node; ;) {
      const parent = this.#parents[at]
      if (parent === undefined || parent.from < 0) return path.reverse()
      path.push(parent.label)
      at = parent.from
    }
  }

  #expand(index: number): void {
    const node = this.nodes[index]
    if (node === undefined) return
    for (const offer of this.#model.offersAt(node)) {
      if (this.isStopped) return
      this.edgeCount += 1
      const edge = this.#take(index, node, offer)
      if (edge === undefined) continue
      const broken = this.#checksOf(edge).filter(({ holds }) => !holds(edge))
      for (const { id, claim } of broken) this.#report(id, claim, index, offer.label)
      if (broken.length === 0 && edge.after !== node) {
        const to = this.#add(edge.after, index, offer.label)
        if (to !== index) this.graph.push({ from: index, to, offer })
      }
    }
  }

  #checksOf({ before, after, offer }: E): readonly Check<E>[] {
    const { checks } = this.#model
    const { type } = offer.event
    let found = this.#checks.get(type)
    if (found === undefined) {
      const ofType = checks.filter(({ on }) => on !== 'change' && on.includes(type))
      found = { ofType, all: [...ofType, ...checks.filter(({ on }) => on === 'change')] }
      this.#checks.set(type, found)
    }
    return after === before ? found.ofType : found.all
  }

  #take(index: number, node: Node, offer: Offered): E | undefined {
    try {
      return this.#model.take(node, offer)
    } catch (error) {
      this.#report(ROBUST, `no event throws: ${String(error)}`, index, offer.label)
      return undefined
    }
  }

  #add(node: Node, from: number, label: string): number {
    const key = this.#model.keyOf(node)
    const known = this.#indexes.get(key)
    if (known !== undefined) return known
    const index = this.nodes.length
    if (index >= this.#options.maxStates) {
      throw new Error(`${this.#model.name} has more than ${this.#options.maxStates} states: abstract more`)
    }
    this.#indexes.set(key, index)
    this.nodes.push(node)
    this.keys.push(key)
    this.#parents.push({ from, label })
    return index
  }

  #report(id: string, claim: string, index: number, label: string): void {
    const name = `${id}: ${claim}`
    const known = this.violations.get(name)
    if (known !== undefined) {
      known.count += 1
      return
    }
    const path = [...this.pathTo(index), label]
    const violation = { id, claim, path, state: this.keys[index] ?? '', count: 1 }
    this.violations.set(name, violation)
    if (this.#options.stopAt?.(violation) === true) this.isStopped = true
  }
}

export const explore = <Node, Offered extends Offer, E extends Edge<Node, Offered>>(
  model: Model<Node, Offered, E>,
  options: ExploreOptions,
): Exploration<Node, Offered> => {
  const startedAt = process.cpuUsage()
  const walk = new Walk(model, options)
  walk.run()
  const { user, system } = process.cpuUsage(startedAt)
  return {
    name: model.name,
    nodes: walk.nodes,
    keys: walk.keys,
    graph: walk.graph,
    edgeCount: walk.edgeCount,
    violations: [...walk.violations.values()],
    cpuMs: (user + system) / 1000,
    pathTo: (node) => walk.pathTo(node),
  }
}

/** The nodes from which a goal is reachable over usable edges. */
export const reaching = <Node, Offered extends Offer>(
  { nodes, graph }: Exploration<Node, Offered>,
  isGoal: (node: Node) => boolean,
  isUsable: (offer: Offered, from: Node) => boolean,
): ReadonlySet<number> => {
  const sources = new Map<number, number[]>()
  for (const { from, to, offer } of graph) {
    const node = nodes[from]
    if (node === undefined || !isUsable(offer, node)) continue
    const known = sources.get(to)
    if (known === undefined) sources.set(to, [from])
    else known.push(from)
  }
  const found = new Set<number>()
  nodes.forEach((node, index) => {
    if (isGoal(node)) found.add(index)
  })
  // A set is walked in the order of insertion, what is added on the way included.
  for (const index of found) for (const source of sources.get(index) ?? []) found.add(source)
  return found
}

/** The checks that a chart keeps: only these can tell what a planted fault breaks. */
export const keptBy = <E>(
  checks: readonly Check<E>[],
  violations: readonly Violation[],
): readonly Check<E>[] => {
  const broken = new Set(violations.map(({ claim }) => claim))
  return checks.filter(({ claim }) => !broken.has(claim))
}

/** One line per exploration, and the shortest path to each kind of violation. */
export const describe = ({
  name,
  nodes,
  edgeCount,
  violations,
  cpuMs,
}: Exploration<unknown, Offer>): string => {
  const figures = `${nodes.length} states, ${edgeCount} edges, ${violations.length} violations, ${cpuMs.toFixed(0)} ms`
  const lines = violations.map(
    ({ id, claim, path, count }) => `  ${id}: ${claim} (${count} edges)\n    ${path.join(' → ')}`,
  )
  return [`exploration ${name}: ${figures}`, ...lines].join('\n')
}
