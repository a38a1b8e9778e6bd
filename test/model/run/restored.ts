/** Snapshots taken up again from their record, as after a crash, and put under the same events. */
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { RunContext } from '../../../src/machines/run/run.context.js'
import type { RunMachine } from '../../../src/machines/run/run.machine.js'
import { isSame } from './checks/check.js'
import { modelOf } from './exploration.js'
import type { RunExploration } from './liveness.js'
import type { RunEdge, RunNode, RunSnapshot } from './node.js'

type Stored = Pick<RunSnapshot, 'value'> & { readonly context: RunContext }

/** The node with its snapshot as a record gives it back: the state value and the context, through JSON. */
export const restored = (node: RunNode, machine: RunMachine): RunNode => {
  const { value, context } = node.snapshot
  const stored = JSON.parse(JSON.stringify({ value, context })) as Stored
  return { ...node, snapshot: machine.resolveState(stored), context: stored.context }
}

/** What an edge amounts to. The regions are apart: in which order one step has their events and effects does not matter. */
export const resultOf = ({ after, effects, raised }: RunEdge) => [
  after.snapshot.value,
  after.context,
  [...after.timers.values()],
  effects.map((effect) => JSON.stringify(effect)).sort(),
  [...raised].sort(),
]

/** States and events where the restored snapshot does something else. */
export const changedByRestore = ({ nodes, keys }: RunExploration): string[] =>
  nodes.flatMap((node, index) => {
    const { policy } = node.context
    const model = modelOf('legal', 'restored', { ...policy, isTimeLimited: policy.timeoutMs !== null })
    const copy = restored(node, runMachine)
    return model
      .offersAt(node)
      .filter(({ isStale }) => !isStale)
      .filter((offer) => !isSame(resultOf(model.take(node, offer)), resultOf(model.take(copy, offer))))
      .map(({ label }) => `${keys[index] ?? ''}: ${label}`)
  })
