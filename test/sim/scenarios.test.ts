/** What the simulator has found, each as the shortest course that showed it. */
import { expect, it, onTestFinished } from 'vitest'
import { busy, conversational, createSimulation } from '../../src/testing.js'
import type { Simulation } from '../../src/testing.js'

const simulate = async (): Promise<Simulation> => {
  const simulation = await createSimulation()
  onTestFinished(() => simulation.close())
  return simulation
}

const agent = { command: ['agent'], env: {} }

it('K13, INV-11: who asks to end a turn of a run that is never recorded is answered (seed 1205)', async () => {
  const { engine, store, drive } = await simulate().then((simulation) => ({
    engine: simulation.engine,
    store: simulation.store,
    drive: <T>(promise: Promise<T>): Promise<T> => simulation.drive(promise),
  }))
  store.trouble = busy()
  const starting = engine.start({ ...agent, id: 'run', protocol: conversational(), prompt: 'begin' })
  const refused = expect(drive(starting)).rejects.toMatchObject({ code: 'store-unavailable' })
  // Found by its id, before the start has failed.
  const asked = engine.run('run')?.cancelTurn()
  await refused
  expect(await drive(Promise.resolve(asked))).toMatchObject({ status: 'abandoned' })
})

it('K14, K16, INV-11: a run that ends before its engine sees an order of another one is answered for, and the fence falls (seed 2923)', async () => {
  const simulation = await simulate()
  const { clock } = simulation
  const run = await simulation.engine.start({ ...agent, session: 's' })
  await simulation.until(() => run.state.process === 'alive')
  const other = await simulation.openEngine()
  await simulation.advance(2_000)
  simulation.shared.areHintsLost = true
  const askedMs = clock.monotonicMs()
  const stopping = other.engine.stop({ session: 's' }, { timeoutMs: 60_000 })
  // The order is on its way when the agent ends by itself.
  await simulation.advance(1)
  simulation.machine.executions[0]?.exit(0)
  const receipt = await simulation.drive(stopping)
  expect(receipt.runs).toMatchObject([{ runId: run.id, status: 'already-terminal', work: 'completed' }])
  expect(clock.monotonicMs() - askedMs).toBeLessThan(5_000)
  const next = await simulation.drive(other.engine.start({ ...agent, session: 's' }))
  expect(next.state.isSettled).toBe(false)
})
