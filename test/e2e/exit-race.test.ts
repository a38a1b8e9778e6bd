/**
 * A process exits at T, its cancel comes at T ± 1 ms: one terminal state, and an answer that says which. Real processes, a real store.
 * `RUNWARDEN_RACE_ROUNDS` (40) sets how often. T is where the two meet: each round moves it towards the side that lost.
 */
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import type { Delivery, Engine, Run, StopReceipt } from '../../src/index.js'
import { EMPTY, openTestEngine } from '../support/engine.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_RACE_ROUNDS'] ?? 40)
/** So many rounds have met both sides, on any machine. */
const ENOUGH = 40
const JITTER_MS = 1
const STEPS_MS = { first: 4, last: 0.5 }
const EXIT_CODE = 7

/** Timers are too coarse for this, and what is on its way must be able to arrive: the loop turns. */
const pass = async (ms: number): Promise<void> => {
  const end = performance.now() + ms
  while (performance.now() < end) await new Promise((resolve) => setImmediate(resolve))
}

interface Round {
  readonly run: Run
  readonly receipt: StopReceipt
}

/** Tells the process to exit, and cancels it so much later (or, below zero, earlier). */
const race = async (engine: Engine, lateMs: number): Promise<Round> => {
  const stdin = new PassThrough()
  const run = await engine.start({
    command: ['sh', '-c', `read line; exit ${String(EXIT_CODE)}`],
    stdin,
    stop: { termGraceMs: 5_000, killGraceMs: 5_000 },
  })
  await waitFor(() => run.state.process === 'alive', { deadlineMs: 60_000, what: 'it is launched' })
  const cancel = (): Promise<StopReceipt> => run.cancel({ reason: 'enough' })
  const early = lateMs < 0 ? cancel() : undefined
  await pass(-lateMs)
  stdin.end('\n')
  await pass(lateMs)
  return { run, receipt: await (early ?? cancel()) }
}

it(`P3, P6, INV-3, INV-12: an exit at T and a cancel at T ± 1 ms, ${String(ROUNDS)} times: one terminal state, and an honest receipt`, async () => {
  const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
  const random = seededRandom(seed)
  const deliveries = new Map<string, Delivery[]>()
  const engine = await openTestEngine({
    delivery: {
      deliver: (delivery) => {
        deliveries.set(delivery.runId, [...(deliveries.get(delivery.runId) ?? []), delivery])
      },
    },
  })
  const counts = { cancelled: 0, failed: 0 }
  let meetMs = 1
  let stepMs = STEPS_MS.first
  let wasLast = true
  for (let round = 0; round < ROUNDS; round += 1) {
    const lateMs = meetMs + (random() * 2 - 1) * JITTER_MS
    const { run, receipt } = await race(engine, lateMs)
    const what = `seed ${String(seed)}, round ${String(round)}, cancelled ${lateMs.toFixed(2)} ms after`
    await waitFor(() => deliveries.has(run.id), { deadlineMs: 60_000, what: `${what}: it is delivered` })
    const outcome = await run.outcome
    const { run: record, transitions, executions } = await engine.history(run.id)
    expect(record.outcome, what).toEqual(outcome)
    const [line] = receipt.runs
    const wasCancelled = outcome.status === 'cancelled'
    counts[wasCancelled ? 'cancelled' : 'failed'] += 1
    if (wasCancelled !== wasLast) stepMs = Math.max(stepMs / 2, STEPS_MS.last)
    wasLast = wasCancelled
    meetMs += wasCancelled ? stepMs : -stepMs
    if (wasCancelled) {
      expect(line, what).toMatchObject({ status: 'confirmed', work: 'cancelled' })
      expect([EXIT_CODE, null], what).toContain(outcome.exitCode)
      expect(outcome.exitCode === null ? outcome.signal : 'SIGTERM', what).toBe('SIGTERM')
    } else {
      expect(outcome, what).toMatchObject({ status: 'failed', exitCode: EXIT_CODE })
      expect(outcome, what).not.toHaveProperty('cancellation')
      expect(line, what).toMatchObject({ status: 'already-terminal', work: 'failed' })
    }
    // INV-5: whatever was answered, nothing is left.
    expect(executions[0]?.evidence, what).toBe(EMPTY)
    const events = transitions.map(({ event }) => event)
    const isSettled = (states: { readonly work: string } | null): boolean =>
      states?.work.startsWith('settled.') === true
    expect(
      transitions.filter(({ from, to }) => isSettled(to) && !isSettled(from)),
      what,
    ).toHaveLength(1)
    const [cancelledAt, exitedAt] = [events.indexOf('run.cancel'), events.indexOf('process.exited')]
    // The order on record is the order that the outcome goes by.
    expect(cancelledAt > -1 && (exitedAt === -1 || cancelledAt < exitedAt), what).toBe(wasCancelled)
    expect(deliveries.get(run.id), what).toMatchObject([{ deliveryId: `${run.id}/result`, outcome }])
  }
  process.stdout.write(
    `exit races, seed ${String(seed)}: ${JSON.stringify(counts)}, met at ${meetMs.toFixed(1)} ms\n`,
  )
  if (ROUNDS >= ENOUGH)
    expect(Math.min(counts.cancelled, counts.failed), 'rounds that each side won').toBeGreaterThan(0)
}, 3_600_000)
