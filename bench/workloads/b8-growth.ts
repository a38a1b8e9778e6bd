/** B8: does a run cost the same among a hundred and among three thousand? Ours against itself at a hundred. */
import type { Contender, Params, Sample, Workload } from '../contract.js'
import { OURS } from '../contract.js'
import { start } from './b1-start.js'
import { stopAll } from './b2-stop-all.js'
import { journal } from './b5-journal.js'

const COUNTS = [100, 300, 1_000, 3_000]

const ours = ({ contenders }: Workload): Contender['run'] => {
  const contender = contenders.find(({ name }) => name === OURS)
  if (contender === undefined) throw new Error('a workload without us')
  return contender.run
}

const grown = (
  of: Workload,
  title: string,
  unit: string,
  /** What `count` runs are to the workload, and by what its value is divided. */
  at: (count: number) => { readonly params: Params; readonly by: number },
): Workload => ({
  id: `B8-${of.id}`,
  title: `growth: ${title}`,
  unit,
  floor: 'at 100',
  reach: 'within 1.3 × of itself at 100',
  isReached: (median) => COUNTS.every((count) => median(`at ${count}`).ratio <= 1.3),
  sizes: [{ scale: 1 }],
  tiny: { scale: 0.04 },
  contenders: COUNTS.map((count) => ({
    name: `at ${count}`,
    run: async ({ scale = 1 }): Promise<Sample> => {
      const { params, by } = at(Math.round(count * scale))
      const { value } = await ours(of)(params)
      return { value: value / by, result: { isDone: true } }
    },
  })),
})

export const growth: readonly Workload[] = [
  grown(start, 'start', 'ms a run', (count) => ({ params: { count, concurrency: 16 }, by: count })),
  grown(stopAll, 'stop all', 'ms a run', (count) => ({ params: { count }, by: count })),
  // As many at once as can share a commit, whatever their number.
  grown(journal, 'journal', 'µs a transition', (count) => ({
    params: { runs: count, transitions: count * 20 },
    by: 1,
  })),
]
