/**
 * Which arrows of the drawing a transition went along.
 *
 * The journal says where each region stood before and after, and the event. A region may have passed through a state, and may have moved
 * for an event that another region raised: the shortest way is taken, arrows of that very event first. Pure.
 */

export interface Edge {
  readonly id: string
  readonly source: string
  readonly event: string
  readonly target: string
}

/** `source|event|target|n`; lines that stay in a state have no target. */
export const parseEdge = (id: string): Edge => {
  const [source = '', event = '', target = ''] = id.split('|')
  return { id, source, event, target }
}

const isWithin = (state: string, outer: string): boolean => state === outer || state.startsWith(`${outer}.`)

/** Steps from one stable state to the next: launched and frozen at once, gone and confirmed at once. */
const STEPS_MAX = 3
const PASSED = new Set(['always', ''])

const costOf = ({ event: own }: Edge, event: string, internal: ReadonlySet<string>): number => {
  if (own === event) return 0
  if (PASSED.has(own) || own.startsWith('xstate.done')) return 1
  return internal.has(own) ? 1 : 20
}

/** Raised by one region for another. */
const INTERNAL: ReadonlySet<string> = new Set([
  'intent.recorded',
  'execution.dismissed',
  'tree.confirmed',
  'work.settled',
])

export const wayOf = (
  edges: readonly Edge[],
  { from, to, event }: { readonly from: string; readonly to: string; readonly event: string },
): readonly Edge[] => {
  if (from === to)
    return edges.filter(
      ({ source, target, event: own }) => target === '' && own === event && isWithin(from, source),
    )
  let frontier: { readonly at: string; readonly way: readonly Edge[]; readonly cost: number }[] = [
    { at: from, way: [], cost: 0 },
  ]
  let best: { readonly way: readonly Edge[]; readonly cost: number } | null = null
  for (let step = 0; step < STEPS_MAX; step += 1) {
    frontier = frontier.flatMap(({ at, way, cost }) =>
      edges
        .filter(({ source, target }) => target !== '' && isWithin(at, source))
        .map((edge) => ({
          at: edge.target,
          way: [...way, edge],
          cost: cost + costOf(edge, event, INTERNAL) + 2,
        })),
    )
    for (const each of frontier)
      if (isWithin(to, each.at) && (best === null || each.cost < best.cost)) best = each
  }
  return best?.way ?? []
}
