/** Every benchmark runs small, so that it cannot rot: each contender does the same work, told by the hash of what it did. */
import { describe, expect, it } from 'vitest'
import { OURS } from '../../bench/contract.js'
import { hashOf } from '../../bench/measure.js'
import { workloads } from '../../bench/workloads.js'

const RESULTS: Readonly<Record<string, unknown>> = {
  B1: { alive: 8 },
  B2: { processes: 10, left: 0 },
  B3s: { lines: 2_000 },
  B3l: { lines: 20 },
  B4: { up: 5 },
  B5: { recorded: { rows: 40 }, heads: { low: 9, high: 9 } },
  B6: { ends: 3 },
  B9: { programs: 9 },
}
const DONE = { isDone: true }

describe.each(workloads)('$id', ({ id, tiny, contenders }) => {
  const rule = id.slice(0, 2)

  it(`${rule}: every contender does the same`, { timeout: 120_000 }, async () => {
    const expected = hashOf(RESULTS[id] ?? DONE)
    for (const { name, why, run } of contenders) {
      // What others do to hostile programs is measured, and no test of ours.
      if ((rule === 'B9' || (rule === 'B2' && name === 'execa')) && name !== OURS) continue
      if ((await why?.()) != null) continue
      const { value, result } = await run(tiny)
      expect([name, hashOf(result)]).toEqual([name, expected])
      if (rule === 'B9') expect(value, 'true answers').toBe(9)
    }
  })
})
