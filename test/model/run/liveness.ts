/**
 * Whether a run can always come to its end: reachability over the graph of an exploration.
 *
 * Fair is what must come sooner or later if nobody does anything: a timer that is armed, the answer to a launch, a tree that was
 * killed and is gone, the host's acknowledgement. An order, a natural exit, progress are not: nobody may wait for them.
 */
import { reaching } from '../explorer.js'
import type { Exploration } from '../explorer.js'
import { isDone } from './node.js'
import type { RunNode, RunOffer } from './node.js'
import { isOver } from './checks/check.js'

export type RunExploration = Exploration<RunNode, RunOffer>

const FAIR_ANSWERS = [
  'process.launched',
  'process.launch-failed',
  'delivery.finalized',
  'delivery.acknowledged',
]

const isFair = ({ nature, event, isStale }: RunOffer, from: RunNode): boolean => {
  if (isStale) return false
  if (nature === 'timer' || FAIR_ANSWERS.includes(event.type)) return true
  // Only KILL is sure, and only in the end: TERM, a request and hope are not waited for.
  return event.type === 'process.gone' && ['kill-sent', 'unconfirmed'].includes(from.process)
}

const pathsOf = (exploration: RunExploration, isWrong: (node: RunNode, index: number) => boolean): string[] =>
  exploration.nodes.flatMap((node, index) =>
    isWrong(node, index)
      ? [`${exploration.keys[index] ?? ''} after ${exploration.pathTo(index).join(' → ')}`]
      : [],
  )

/** States in which nothing can change any more although the run is not done. */
export const deadEnds = (exploration: RunExploration): string[] => {
  const left = new Set(exploration.graph.map(({ from }) => from))
  return pathsOf(exploration, (node, index) => !isDone(node) && !left.has(index))
}

/** States from which no events at all lead to the end. */
export const stuck = (exploration: RunExploration): string[] => {
  const live = reaching(exploration, isDone, () => true)
  return pathsOf(exploration, (_, index) => !live.has(index))
}

/** States that are to end, and do not although the world is fair. */
export const endless = (exploration: RunExploration): string[] => {
  const live = reaching(exploration, isDone, isFair)
  return pathsOf(exploration, (node, index) => isOver(node) && !live.has(index))
}
