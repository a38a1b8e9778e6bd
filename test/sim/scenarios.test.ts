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
