/** Every hostile program, each in a terminal of its own, stopped with both cores busy. */
import { describe, expect, it } from 'vitest'
import { catalogue } from '../fixtures/catalogue.js'
import { EMPTY, openTestEngine } from '../support/engine.js'
import {
  REPEATS_ELSEWHERE as REPEATS,
  endBeyondMarks,
  expectTruth,
  stopWhenReady,
} from '../support/hostile.js'
import { loadCores } from '../support/load.js'

const AT_ONCE = 6

describe('hostile programs on terminals', () => {
  it(`L9, C5: each is gone when its stop says so, in ${String(REPEATS)} stops of each with both cores busy`, async () => {
    const engine = await openTestEngine()
    await loadCores(2)
    const queue = Array.from({ length: REPEATS }, () => catalogue).flat()
    const work = async (): Promise<void> => {
      for (let fixture = queue.pop(); fixture !== undefined; fixture = queue.pop()) {
        const [started, receipt] = await stopWhenReady(engine, fixture, { stdio: 'pty' })
        expectTruth(fixture, started, receipt)
        endBeyondMarks(fixture, started)
        expect((await started.run.outcome).status, fixture.name).toBe(fixture.outcome)
        expect((await started.run.gone).evidence).toMatchObject([{ attempt: 1, kind: EMPTY }])
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }, 600_000)
})
