/** A short budget of the simulator: what `npm run sim` plays at length. */
import { expect, it } from 'vitest'
import { failureOf, play, shrink } from './play.js'
import { planOf } from './plan.js'

const { RUNWARDEN_SEED, RUNWARDEN_SIM_MS: budgetMs = '15000' } = process.env
/** So many worlds at least, however slow the machine is. */
const WORLDS_MIN = 20

it('INV-1, INV-3, INV-4, INV-5, INV-7, INV-8, INV-11, INV-12, INV-13, P1, R2, S3, O9, O12: whatever happens to engines over one store, in worlds from seeds', async () => {
  const seed = Number(RUNWARDEN_SEED ?? Math.floor(Math.random() * 1e6))
  const endMs = performance.now() + Number(budgetMs)
  let runs = 0
  let at = seed
  for (; performance.now() < endMs || at < seed + WORLDS_MIN; at += 1) {
    const report = await play(planOf(at))
    expect({ seed: at, failure: failureOf(report), report: report.violations, stuck: report.stuck }).toEqual({
      seed: at,
      failure: null,
      report: [],
      stuck: [],
    })
    runs += report.runs
  }
  console.log(`simulated: seeds ${String(seed)} to ${String(at - 1)}, ${String(runs)} runs`)
}, 120_000)

it('F: the same seed goes the same way, to the last commit', async () => {
  for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
    const [one, again] = [
      await play(planOf(seed), { isKept: true }),
      await play(planOf(seed), { isKept: true }),
    ]
    expect(again.lines).toEqual(one.lines)
    expect(again.hash).toBe(one.hash)
  }
}, 60_000)

it('F: a failure is made smaller as long as it stays the same', async () => {
  const plan = planOf(3)
  // A plan in which nothing fails cannot: the claim is about what is left out, which is all of it.
  const smaller = await shrink(plan, (report) => (report.runs >= 0 ? 'always' : null), 'always')
  expect([smaller.steps, smaller.runs, smaller.jobs]).toEqual([[], [], []])
}, 60_000)
