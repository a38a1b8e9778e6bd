/**
 * Whole engines on a simulated machine: clock, processes and store obey the test, and the same seed gives the same course.
 *
 * Owns: the one machine, store and clock, and the engines that were opened on them.
 * Does not own: what agents do (the test says so), nor any rule of the engine, which is the real one.
 */
import * as v from 'valibot'
import type { SpoolPort } from '../actors/spool.ports.js'
import type { Logger } from '../actors/ports.js'
import type { StorePort } from '../actors/store.ports.js'
import type { Engine } from '../engine.js'
import { RunwardenError } from '../errors.js'
import { openEngineOver } from '../open-engine.js'
import type { EngineOptions } from '../open-engine.js'
import { parseOptions } from '../option-types.js'
import { engineOptionsSchema } from '../options.js'
import { Life, mortalProcesses, mortalSpool, mortalStore } from './life.js'
import { seededRandom } from './seeded-random.js'
import { SharedStore } from './shared-store.js'
import { SimulatedClock, turns } from './simulated-clock.js'
import type { Pace } from './simulated-clock.js'
import { SimulatedMachine, SimulatedProcesses } from './simulated-processes.js'
import type { SimulatedExecution } from './simulated-execution.js'
import { SimulatedSpools } from './simulated-spools.js'
import { openMemoryStore, openSimulatedStore } from './simulated-store.js'
import type { SimulatedStore } from './simulated-store.js'

/** An engine looks into its store all the time: after each look a few turns are enough. */
const PACE = { eachTurns: 4, lastTurns: 20 }
const PATIENCE_MS = 3_600_000
const HOST_ID = 'simulated'

export type SimulatedEngineOptions = Pick<
  EngineOptions,
  'delivery' | 'recover' | 'commitDeadlineMs' | 'logger'
>

const optionsSchema = v.strictObject({
  /** Of every id and of `random`. Default 1. */
  seed: v.optional(v.pipe(v.number(), v.integer('must be a whole number')), 1),
  /** Called with each process tree as soon as it is there: what the agents do. Default: they wait for their end. */
  onLaunch: v.optional(
    v.custom<(execution: SimulatedExecution) => void>((value) => typeof value === 'function'),
  ),
  /** Of the first engine. */
  engine: v.optional(
    v.custom<SimulatedEngineOptions>((value) => typeof value === 'object' && value !== null),
    {},
  ),
})

/** How a simulation begins. */
export type SimulationOptions = v.InferInput<typeof optionsSchema>

/** One engine in a process of its own, as far as anybody can tell. */
export interface SimulatedHost {
  readonly engine: Engine
  /** What this engine has launched, and how its next launches go. The trees are those of the whole machine. */
  readonly processes: SimulatedProcesses
  /** This engine's way to the store, and what is wrong with it. */
  readonly store: SimulatedStore
  /** What it logged as an error. */
  readonly errors: readonly string[]
  readonly life: Life
  /** The engine's process is killed: nothing of it does anything any more, and its agents live on. */
  crash(): void
}

const noting = (errors: string[], given: Logger | undefined): Logger => ({
  debug: (detail, message) => given?.debug(detail, message),
  info: (detail, message) => given?.info(detail, message),
  warn: (detail, message) => given?.warn(detail, message),
  error: (detail, message) => {
    errors.push(message)
    given?.error(detail, message)
  },
})

/** Version 7, made of the simulated time, a counter, and the seed. */
const idsOf = (clock: SimulatedClock, random: () => number): (() => string) => {
  let count = 0
  const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')
  return () => {
    count += 1
    const time = hex(clock.wallMs(), 12)
    const tail = hex(Math.floor(random() * 2 ** 48), 12)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(count % 4_096, 3)}-8${hex(Math.floor(count / 4_096) % 4_096, 3)}-${tail}`
  }
}

export class Simulation implements SimulatedHost, AsyncDisposable {
  readonly seed: number
  /** Numbers in [0, 1) from the seed. */
  readonly random: () => number
  readonly clock: SimulatedClock
  readonly machine = new SimulatedMachine()
  readonly spools = new SimulatedSpools()
  /** The store as it is, without any engine's troubles. */
  readonly shared: SharedStore
  readonly #newId: () => string
  readonly #hosts: SimulatedHost[] = []
  #isClosed = false

  /** @internal Use `createSimulation`. */
  constructor(seed: number, base: StorePort, pace: Pace = PACE) {
    this.seed = seed
    this.clock = new SimulatedClock(pace)
    this.random = seededRandom(seed)
    this.#newId = idsOf(this.clock, seededRandom(seed ^ 0x1d5))
    this.shared = new SharedStore(base)
  }

  /** The engine that was opened last. */
  get engine(): Engine {
    return this.#host.engine
  }

  get processes(): SimulatedProcesses {
    return this.#host.processes
  }

  get store(): SimulatedStore {
    return this.#host.store
  }

  get errors(): readonly string[] {
    return this.#host.errors
  }

  get life(): Life {
    return this.#host.life
  }

  /** Kills the process of the engine that was opened last. */
  crash(): void {
    this.#host.crash()
  }

  /**
   * Another engine over the same store, on the same machine: beside those that live, or after one that crashed, whose runs it takes up.
   *
   * @throws what `createEngine` throws.
   */
  async openEngine(options: SimulatedEngineOptions = {}): Promise<SimulatedHost> {
    const store = await openSimulatedStore(this.shared.connect())
    const processes = new SimulatedProcesses(this.machine)
    const life = new Life(() => {
      processes.die()
    })
    const errors: string[] = []
    const { clock } = this
    const parsed = parseOptions(
      engineOptionsSchema,
      { ...options, database: ':memory:', logs: false, logger: noting(errors, options.logger) },
      'openEngine',
    )
    const engine = await openEngineOver(
      mortalStore(store, life),
      parsed,
      {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs(),
        after: (delayMs, fire) =>
          clock.after(delayMs, () => {
            if (!life.isOver) fire()
          }),
      },
      mortalProcesses(processes, life),
      {
        newId: this.#newId,
        hostId: HOST_ID,
        spoolOf: (engineId): SpoolPort => mortalSpool(this.spools.of(engineId), life),
      },
    )
    const host = { engine, processes, store, errors, life, crash: () => life.end() }
    this.#hosts.push(host)
    return host
  }

  /** Time passes: what becomes due happens, in its order. */
  advance(ms: number): Promise<void> {
    return this.clock.advance(ms)
  }

  /**
   * Time passes, from one wait to the next, until the promise is settled.
   *
   * @throws `refused` when it is not settled after an hour of simulated time, or nothing is waited for any more.
   */
  async drive<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const settled = (): void => {
      isSettled = true
    }
    promise.then(settled, settled)
    await this.until(() => isSettled)
    return promise
  }

  /**
   * Time passes, from one wait to the next, until that holds.
   *
   * @throws `refused` when it does not hold within that time (default an hour), or nothing is waited for any more.
   */
  async until(holds: () => boolean, withinMs = PATIENCE_MS): Promise<void> {
    const endMs = this.clock.monotonicMs() + withinMs
    await turns()
    while (!holds()) {
      const { nextDueMs } = this.clock
      if (nextDueMs === null || nextDueMs > endMs) {
        throw new RunwardenError(
          'refused',
          `not within ${String(withinMs)} simulated ms (seed ${String(this.seed)})`,
        )
      }
      await this.clock.advance(Math.max(0, nextDueMs - this.clock.monotonicMs()))
    }
  }

  /** Every process obeys, the store works, and every engine that lives cancels what it has and closes. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.spools.isFull = false
    for (const execution of this.machine.executions) {
      execution.diesOf = ['SIGTERM', 'SIGKILL']
      execution.signalError = null
      execution.isReadable = true
      execution.deliverSignals()
      execution.tellExit()
      for (const pid of execution.pids) execution.wake(pid)
    }
    for (const { engine, life, store } of this.#hosts) {
      if (life.isOver) continue
      store.trouble = null
      await this.drive(engine.close({ runs: 'cancel' }))
      life.end()
    }
    await this.shared.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #host(): SimulatedHost {
    const host = this.#hosts.at(-1)
    if (host === undefined) throw new RunwardenError('refused', 'no engine was opened')
    return host
  }
}

/**
 * A simulated machine with one engine on it.
 *
 * @throws `invalid-option`.
 */
export const createSimulation = async (options: SimulationOptions = {}): Promise<Simulation> => {
  const { seed, onLaunch, engine } = parseOptions(optionsSchema, options, 'createSimulation')
  const simulation = new Simulation(seed, await openMemoryStore())
  if (onLaunch !== undefined) simulation.machine.onLaunch = onLaunch
  await simulation.openEngine(engine)
  return simulation
}
