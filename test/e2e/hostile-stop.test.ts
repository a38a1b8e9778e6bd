/** Every hostile program, stopped: an independent reader of /proc must agree with every receipt. */
import { describe, expect, it } from 'vitest'
import type { Engine, StopReceipt } from '../../src/index.js'
import { catalogue } from '../fixtures/catalogue.js'
import type { Fixture } from '../fixtures/catalogue.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import type { StartedFixture } from '../support/engine.js'
import { loadCores } from '../support/load.js'
import { waitFor } from '../support/wait-for.js'

/** How often each program is stopped with both cores busy. CI asks for 20. */
const REPEATS = Number(process.env['RUNWARDEN_REPEATS'] ?? 2)
const AT_ONCE = 10

/** Group and marks cannot see a process that lifted its limit and scrubbed its environment on purpose: docs/guarantees.md. */
const isBeyondMarks = ({ name }: Fixture): boolean => name === 'mark-shedding-daemon'

const stopWhenReady = async (engine: Engine, fixture: Fixture): Promise<[StartedFixture, StopReceipt]> => {
  const started = await startFixture(engine, fixture.name)
  // Where the leader ends by itself, the stop comes after that: what it left behind is being swept.
  const isUp = (): boolean =>
    fixture.leaderEnd === 'stays' ? started.isReady() : started.run.state.isSettled
  await waitFor(isUp, { deadlineMs: 60_000, what: `${fixture.name} is up` })
  return [started, await started.run.cancel({ timeoutMs: 60_000 })]
}

/** The receipt's word against the machine. */
const expectTruth = (fixture: Fixture, started: StartedFixture, receipt: StopReceipt): void => {
  const left = started.alive()
  const [line] = receipt.runs
  const saysGone = line?.status === 'confirmed' || line?.status === 'already-terminal'
  expect(saysGone, JSON.stringify(receipt)).toBe(true)
  if (isBeyondMarks(fixture)) expect(left.length).toBeLessThanOrEqual(1)
  else expect(left, `${fixture.name}: said ${String(line?.status)}`).toEqual([])
}

const endBeyondMarks = (fixture: Fixture, started: StartedFixture): void => {
  if (isBeyondMarks(fixture)) for (const { pid } of started.alive()) process.kill(pid, 'SIGKILL')
}

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
      expect(gone.evidence).toMatchObject([{ attempt: 1, kind: 'tree-reaped' }])
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
