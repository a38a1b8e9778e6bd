/** Stopping hostile programs, however they were started, and checking the receipt's word against the machine. */
import { expect } from 'vitest'
import type { Engine, RunSpec, StopReceipt } from '../../src/index.js'
import type { Fixture } from '../fixtures/catalogue.js'
import { kill } from './end-tree.js'
import { startFixture } from './engine.js'
import type { StartedFixture } from './engine.js'
import { waitFor } from './wait-for.js'

/** Stops of each program on a terminal or in a pane: the plain ones are repeated most. */
export const REPEATS_ELSEWHERE = Math.max(1, Math.floor(Number(process.env['RUNWARDEN_REPEATS'] ?? 1) / 5))

/** Group and marks cannot see a process that lifted its limit and scrubbed its environment on purpose: docs/guarantees.md. */
const isBeyondMarks = ({ name }: Fixture): boolean => name === 'mark-shedding-daemon'

export async function stopWhenReady(
  engine: Engine,
  fixture: Fixture,
  spec: Partial<RunSpec> = {},
): Promise<[StartedFixture, StopReceipt]> {
  const started = await startFixture(engine, fixture.name, spec)
  // Where the leader ends by itself, the stop comes after that: what it left behind is being swept.
  const isUp = (): boolean =>
    fixture.leaderEnd === 'stays' ? started.isReady() : started.run.state.isSettled
  await waitFor(isUp, { deadlineMs: 120_000, what: `${fixture.name} is up` })
  return [started, await started.run.cancel({ timeoutMs: 60_000 })]
}

export function expectTruth(fixture: Fixture, started: StartedFixture, receipt: StopReceipt): void {
  const left = started.alive()
  const [line] = receipt.runs
  const saysGone = line?.status === 'confirmed' || line?.status === 'already-terminal'
  expect(saysGone, JSON.stringify(receipt)).toBe(true)
  if (isBeyondMarks(fixture)) expect(left.length).toBeLessThanOrEqual(1)
  else expect(left, `${fixture.name}: said ${String(line?.status)}`).toEqual([])
}

export function endBeyondMarks(fixture: Fixture, started: StartedFixture): void {
  if (isBeyondMarks(fixture)) started.alive().forEach(kill)
}
