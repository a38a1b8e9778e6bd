/** A whole engine, or one run of it, on a simulated clock, over simulated processes and a real store in memory, for the tests of one engine. */
import { uuidv7 } from 'uuidv7'
import { onTestFinished } from 'vitest'
import type { DeliveryHooks } from '../../src/actors/deliveries.js'
import type { Logger } from '../../src/actors/ports.js'
import type { RunActor, RunMessage } from '../../src/actors/run.actor.js'
import type { EngineOptions, Run, RunEventOut, RunSpec } from '../../src/index.js'
import { GroupCommit } from '../../src/internal.js'
import { RunFactory } from '../../src/run-factory.js'
import { parseRunSpec } from '../../src/run-spec.js'
import { line } from '../../src/testing/simulated-agent.js'
import type { Frame } from '../../src/testing/simulated-agent.js'
import { SimulatedClock, turns } from '../../src/testing/simulated-clock.js'
import type { Behaviour } from '../../src/testing/simulated-execution.js'
import { SimulatedProcesses } from '../../src/testing/simulated-processes.js'
import type { SimulatedStore } from '../../src/testing/simulated-store.js'
import { createSimulation } from '../../src/testing/simulation.js'
import type { SimulatedHost, Simulation } from '../../src/testing/simulation.js'

/** An engine looks into its store all the time: after each look a few turns are enough. */
const PACE = { eachTurns: 4, lastTurns: 20 }
const STEP_MS = 50
const STEPS_MAX = 20_000

/** The clock moves until that has happened. */
export async function drive<T>(clock: SimulatedClock, promise: Promise<T>): Promise<T> {
  const waiting = new Set([promise])
  const settled = (): void => {
    waiting.clear()
  }
  promise.then(settled, settled)
  await turns()
  for (let step = 0; waiting.size > 0; step += 1) {
    if (step === STEPS_MAX) throw new Error(`not within ${String(STEP_MS * STEPS_MAX)} simulated ms`)
    await clock.advance(STEP_MS)
  }
  return promise
}

/** What the agent of the newest execution writes, each as one chunk. */
const sayOf =
  (processes: SimulatedProcesses) =>
  async (...frames: readonly (Frame | string)[]): Promise<void> => {
    for (const frame of frames) processes.last.say(line(frame))
    await turns()
  }

const quiet = (warnings: string[]): Logger => {
  const note = (_: unknown, message: string): void => void warnings.push(message)
  return { debug: () => undefined, info: () => undefined, warn: () => undefined, error: note }
}

export interface SimulatedEngine extends SimulatedHost {
  readonly simulation: Simulation
  readonly clock: SimulatedClock
  /** Everything that subscribers were told. */
  readonly heard: RunEventOut[]
  readonly start: (spec: Partial<RunSpec>) => Promise<Run>
  readonly say: (...frames: readonly (Frame | string)[]) => Promise<void>
  readonly drive: <T>(promise: Promise<T>) => Promise<T>
}

export async function openSimulatedEngine(
  more: Pick<EngineOptions, 'delivery'> & {
    /** The engine is opened over what this one has left behind. */
    readonly after?: SimulatedEngine
  } = {},
): Promise<SimulatedEngine> {
  const { after, ...options } = more
  const simulation = after?.simulation ?? (await createSimulation({ engine: options }))
  if (after === undefined) onTestFinished(() => simulation.close())
  else await simulation.openEngine(options)
  const { engine, clock, processes, store, errors, life } = simulation
  const heard: RunEventOut[] = []
  engine.subscribe((event) => heard.push(event))
  return {
    simulation,
    engine,
    clock,
    store,
    processes,
    errors,
    life,
    crash: () => {
      life.end()
    },
    heard,
    start: async (spec) => {
      const run = await engine.start({ command: ['agent'], env: {}, ...spec })
      await turns()
      return run
    },
    say: sayOf(processes),
    drive: (promise) => drive(clock, promise),
  }
}

export interface SimulatedRun {
  readonly run: RunActor
  readonly clock: SimulatedClock
  readonly processes: SimulatedProcesses
  readonly errors: string[]
  readonly say: (...frames: readonly (Frame | string)[]) => Promise<void>
  readonly post: (message: RunMessage) => Promise<string>
  /** Ends whatever is left of it. */
  readonly end: () => Promise<void>
}

/** One run without the engine around it, for what no public door leads to, and for many of them. */
export async function startSimulatedRun(
  store: SimulatedStore,
  spec: Partial<RunSpec>,
  {
    behaviour = {},
    delivery = {},
    meet = () => undefined,
  }: {
    readonly behaviour?: Behaviour
    readonly delivery?: Partial<DeliveryHooks>
    /** Called before anything happens. */
    readonly meet?: (simulated: SimulatedRun) => void
  } = {},
): Promise<SimulatedRun> {
  const clock = new SimulatedClock(PACE)
  const processes = new SimulatedProcesses()
  processes.behaviour = behaviour
  const errors: string[] = []
  const logger = quiet(errors)
  const commits = new GroupCommit(store, clock, logger)
  const factory = new RunFactory({
    host: { engineId: 'simulated', clock, commits, store, spool: null, logger, commitDeadlineMs: 2_000 },
    processes,
    delivery: { finalizeDeadlineMs: 30_000, deliverDeadlineMs: 30_000, ...delivery },
    logs: { pathOf: () => null, open: () => null, openIndex: () => null },
    onRecover: 'interrupt',
    requestAdmission: (run) => void run.post({ type: 'run.admitted' }),
    onDisowned: () => undefined,
  })
  factory.open()
  const run = factory.fromSpec(uuidv7(), parseRunSpec({ command: ['agent'], env: {}, ...spec }), null)
  const simulated: SimulatedRun = {
    run,
    clock,
    processes,
    errors,
    say: sayOf(processes),
    post: async (message) => {
      const posted = await run.post(message)
      await turns()
      return posted
    },
    end: async () => {
      run.leave()
      await drive(
        clock,
        commits.close(10_000, () => Promise.resolve()),
      )
    },
  }
  meet(simulated)
  await run.begin(() => undefined)
  await turns()
  return simulated
}
