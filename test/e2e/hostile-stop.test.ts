/** Every hostile program, stopped: an independent reader of /proc must agree with every receipt. */
import { describe, expect, it } from 'vitest'
import { catalogue } from '../fixtures/catalogue.js'
import { EMPTY, openTestEngine } from '../support/engine.js'
import { endBeyondMarks, expectTruth, stopWhenReady } from '../support/hostile.js'
import { loadCores } from '../support/load.js'

/** How often each program is stopped with both cores busy. CI asks for 20. */
const REPEATS = Number(process.env['RUNWARDEN_REPEATS'] ?? 2)
const AT_ONCE = 10

describe('hostile programs, one at a time', () => {
  it.each(catalogue.map((fixture) => [fixture.name, fixture] as const))(
    'C5: %s is gone when its stop says so',
    async (_name, fixture) => {
      const engine = await openTestEngine()
      const [started, receipt] = await stopWhenReady(engine, fixture)
      expectTruth(fixture, started, receipt)
      endBeyondMarks(fixture, started)
      const outcome = await started.run.outcome
      expect(outcome.status).toBe(fixture.outcome)
      const gone = await started.run.gone
      expect(gone.evidence).toMatchObject([{ attempt: 1, kind: EMPTY }])
    },
    120_000,
  )
})

describe('hostile programs, both cores busy', () => {
  it(`INV-5: no false "confirmed" in ${REPEATS} stops of each`, async () => {
    const engine = await openTestEngine()
    await loadCores(2)
    const queue = Array.from({ length: REPEATS }, () => catalogue).flat()
    const work = async (): Promise<void> => {
      for (let fixture = queue.pop(); fixture !== undefined; fixture = queue.pop()) {
        const [started, receipt] = await stopWhenReady(engine, fixture)
        expectTruth(fixture, started, receipt)
        endBeyondMarks(fixture, started)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }, 1_200_000)
})
