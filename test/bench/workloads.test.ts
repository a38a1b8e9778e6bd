/** Every benchmark runs small, so that it cannot rot: each contender does the same work, told by the hash of what it did. */
import { expect, it, vi } from 'vitest'
import { OURS } from '../../bench/contract.js'
import { hashOf } from '../../bench/measure.js'
import { workloads } from '../../bench/workloads.js'

vi.setConfig({ testTimeout: 120_000 })

/** What others do to processes that will not go is measured, and no test of ours. */
const OURS_ALONE = ['B2 execa', 'B9 child_process', 'B9 execa', 'B9 tree-kill', 'B9 pm2']

/** Of each workload whose id begins so, each contender: the values that they came to. */
const expectSame = async (ids: string, result: unknown): Promise<readonly number[]> => {
  const values: number[] = []
  for (const { id, tiny, contenders } of workloads.filter((one) => one.id.startsWith(ids))) {
    for (const { name, why, run } of contenders) {
      if (OURS_ALONE.includes(`${id} ${name}`) || (why?.() ?? null) !== null) continue
      const sample = await run(tiny)
      expect([id, name, hashOf(sample.result)]).toEqual([id, name, hashOf(result)])
      values.push(sample.value)
    }
  }
  expect(values.length, `workloads ${ids} with ${OURS}`).toBeGreaterThan(0)
  return values
}

it('B1: every contender has started all', () => expectSame('B1', { alive: 8 }))

it('B2: every contender has ended all', () => expectSame('B2', { processes: 10, left: 0 }))

it('B3: every contender has read every frame, the short and the large', async () => {
  await expectSame('B3s', { lines: 2_000 })
  await expectSame('B3l', { lines: 20 })
})

it('B4: every contender has all of them up', () => expectSame('B4', { up: 5 }))

it('B5: every contender has every transition on record', () =>
  expectSame('B5', { recorded: { rows: 40 }, heads: { low: 9, high: 9 } }))

it('B6: every contender has seen every end', () => expectSame('B6', { ends: 3 }))

it('B8: each size is done', () => expectSame('B8', { isDone: true }))

it('B9: what we say of nine hostile programs is true', async () => {
  expect(await expectSame('B9', { programs: 9 })).toEqual([9])
})
