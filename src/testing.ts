/** The public door to simulations: whole engines on a simulated clock, machine and store, for the tests of a host. Not for production. */
export { createSimulation } from './testing/simulation.js'
export type {
  SimulatedEngineOptions,
  SimulatedHost,
  Simulation,
  SimulationOptions,
} from './testing/simulation.js'
export type { Life } from './testing/life.js'
export type { Pace, SimulatedClock } from './testing/simulated-clock.js'
export type { Behaviour, SimulatedExecution, SimulatedSignal } from './testing/simulated-execution.js'
export type { SimulatedMachine, SimulatedProcesses } from './testing/simulated-processes.js'
export type { SimulatedSpools } from './testing/simulated-spools.js'
export { busy } from './testing/simulated-store.js'
export type { SimulatedStore, StoreTroubles } from './testing/simulated-store.js'
export { conversational, line, single } from './testing/simulated-agent.js'
export type { Frame } from './testing/simulated-agent.js'
export { seededRandom } from './testing/seeded-random.js'
