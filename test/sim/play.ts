/** Plays a plan, and says what came of it; and makes a plan that fails smaller, as long as it fails in the same way. */
import { endFairly } from './ending.js'
import type { Plan } from './plan.js'
import { World } from './world.js'
import type { Violation } from './witness.js'

export interface Report {
  readonly violations: readonly Violation[]
  readonly stuck: readonly string[]
  readonly hash: string
  readonly lines: readonly string[] | null
  readonly runs: number
  readonly launches: number
  readonly signals: number
  readonly commits: number
  readonly simulatedMs: number
  /** How many calls the first engine made to the world, before the fair end. */
  readonly calls: number
}

export const play = async (plan: Plan, options = { isKept: false }): Promise<Report> => {
  const world = await World.open(plan, options)
  const { witness, trace, simulation } = world
  const first = world.slots[0]?.host.life
  await world.play()
  // What the last step brings about belongs to the course.
  await simulation.advance(3_000)
  const calls = first?.calls ?? 0
  const stuck = await endFairly(world)
  return {
    violations: witness.violations,
    stuck: stuck.map(({ what }) => what),
    hash: trace.hash,
    lines: trace.lines,
    runs: witness.runs.size,
    launches: witness.launches,
    signals: witness.signals,
    commits: witness.commits,
    simulatedMs: simulation.clock.monotonicMs(),
    calls,
  }
}

/** What a failure is called: the same one is looked for while it is made smaller. */
export const failureOf = ({ violations: [first], stuck }: Report): string | null =>
  first !== undefined ? `safety ${first.id}` : stuck.length > 0 ? 'liveness' : null

const LISTS = ['steps', 'runs', 'jobs'] as const
const TRIES_MAX = 600

/** Leaves out pieces, half of a list at first and single ones in the end, while the plan fails as before. */
export const shrink = async (
  plan: Plan,
  judge: (report: Report) => string | null,
  failure: string,
): Promise<Plan> => {
  let best = plan
  let tries = 0
  const fails = async (smaller: Plan): Promise<boolean> => {
    tries += 1
    return judge(await play(smaller)) === failure
  }
  for (let hasShrunk = true; hasShrunk && tries < TRIES_MAX;) {
    hasShrunk = false
    for (const list of LISTS) {
      for (
        let size = Math.ceil(best[list].length / 2);
        size >= 1;
        size = size === 1 ? 0 : Math.ceil(size / 2)
      ) {
        for (let from = 0; from < best[list].length && tries < TRIES_MAX;) {
          const smaller = {
            ...best,
            [list]: [...best[list].slice(0, from), ...best[list].slice(from + size)],
          }
          if (await fails(smaller)) {
            best = smaller
            hasShrunk = true
          } else from += size
        }
      }
    }
  }
  return best
}
