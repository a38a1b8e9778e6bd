/** A whole engine, or one run of it, on a simulated clock, over simulated processes and a real store in memory. */
import { uuidv7 } from 'uuidv7'
import { onTestFinished } from 'vitest'
import type { DeliveryHooks } from '../../src/actors/deliveries.js'
import type { Logger } from '../../src/actors/ports.js'
import type { StorePort } from '../../src/actors/store.ports.js'
import type { RunActor, RunMessage } from '../../src/actors/run.actor.js'
import type { Engine, EngineOptions, Run, RunEventOut, RunSpec } from '../../src/index.js'
import { GroupCommit, engineOptionsSchema, openEngineOver, parseOptions } from '../../src/internal.js'
import { RunFactory } from '../../src/run-factory.js'
import { parseRunSpec } from '../../src/run-spec.js'
import { ManualClock, turns } from './manual-clock.js'
import { line } from './simulated-agent.js'
import type { Frame } from './simulated-agent.js'
import { SimulatedProcesses } from './simulated-processes.js'
import type { Behaviour } from './simulated-processes.js'
import { openMemoryStore, openTroubledStore } from './troubled-store.js'
import type { TroubledStore } from './troubled-store.js'

/** An engine looks into its store all the time: after each look a few turns are enough. */
const PACE = { eachTurns: 4, lastTurns: 20 }
const STEP_MS = 50
const STEPS_MAX = 20_000

/** The clock moves until that has happened. */
export async function drive<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
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

export interface SimulatedEngine {
  readonly engine: Engine
  readonly clock: ManualClock
  readonly store: TroubledStore
  readonly processes: SimulatedProcesses
  /** The same without its troubles, for the next engine. */
  readonly base: StorePort
  /** It does nothing any more from now on. */
  readonly die: () => void
  /** Everything that subscribers were told. */
  readonly heard: RunEventOut[]
  /** What the engine logged as an error. */
  readonly errors: string[]
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
  const { after, ...given } = more
  const base = after?.base ?? (await openMemoryStore())
  const store = await openTroubledStore(base)
  const clock = new ManualClock(PACE)
  const processes = new SimulatedProcesses(after?.processes)
  const errors: string[] = []
  const options = parseOptions(
    engineOptionsSchema,
    { database: ':memory:', logs: false, logger: quiet(errors), ...given },
    'test',
  )
  const engine = await openEngineOver(store, options, clock, processes)
  const heard: RunEventOut[] = []
  engine.subscribe((event) => heard.push(event))
  let isDead = false
  onTestFinished(async () => {
    if (isDead) return
    store.trouble = null
    for (const execution of processes.executions) execution.diesOf = ['SIGTERM', 'SIGKILL']
    await drive(clock, engine.close({ runs: 'cancel' }))
  })
  return {
    engine,
    clock,
    store,
    base,
    die: () => {
      isDead = true
      store.trouble = new Error('dead')
    },
    processes,
    heard,
    errors,
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
  readonly clock: ManualClock
  readonly processes: SimulatedProcesses
  readonly errors: string[]
  readonly say: (...frames: readonly (Frame | string)[]) => Promise<void>
  readonly post: (message: RunMessage) => Promise<string>
  /** Ends whatever is left of it. */
  readonly end: () => Promise<void>
}

/** One run without the engine around it, for what no public door leads to, and for many of them. */
export async function startSimulatedRun(
  store: TroubledStore,
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
  const clock = new ManualClock(PACE)
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
