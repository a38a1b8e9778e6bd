/**
 * One simulated world: engines over one store on one machine, and what its plan does to them.
 *
 * Owns: the course of the plan, and the calls whose answers are awaited. Does not own: what must hold (witness.ts, ending.ts).
 */
import type { Delivery, Run, RunSpec, Scope, StopReceipt } from '../../src/index.js'
import { RunwardenError } from '../../src/errors.js'
import { openJobs } from '../../src/jobs.js'
import type { JobQueue } from '../../src/jobs.js'
import { conversational } from '../../src/testing/simulated-agent.js'
import { busy, openMemoryStore } from '../../src/testing/simulated-store.js'
import { Simulation } from '../../src/testing/simulation.js'
import type { SimulatedHost } from '../../src/testing/simulation.js'
import { FAIR_AGENT, animate, behaviourOf, makeFair } from './agents.js'
import type { AgentPlan, JobPlan, Plan, RunPlan, Step } from './plan.js'
import { Trace } from './trace.js'
import { Witness } from './witness.js'

const STOP_TIMEOUT_MS = 20_000
const CLOSE_DEADLINE_MS = 15_000
/** Two writes of an order that the store does not take, and the looks around them. */
const SLACK_MS = 10_000
/** What the calls of the public door may reject with, where the plan gives them at random. */
const EXPECTED = [
  'run-exists',
  'unknown-run',
  'job-exists',
  'unknown-job',
  'refused',
  'engine-closing',
  'scope-stopped',
  'store-unavailable',
]

export interface Slot {
  readonly host: SimulatedHost
  readonly queue: JobQueue
  isClosing: boolean
}

interface Call {
  readonly name: string
  readonly host: SimulatedHost
  isOver: boolean
}

export class World {
  readonly plan: Plan
  readonly simulation: Simulation
  readonly trace: Trace
  readonly witness: Witness
  readonly slots: (Slot | null)[] = []
  readonly handles = new Map<string, Run>()
  readonly calls = new Set<Call>()
  readonly jobsAdded = new Set<string>()
  hooks: 'answer' | 'throw' | 'hang' = 'answer'
  observersFail = false
  isFair = false
  #sleptMs = 0
  readonly #runs: ReadonlyMap<string, RunPlan>
  readonly #jobs: ReadonlyMap<string, JobPlan>
  readonly #agents = new Map<string, AgentPlan>()
  readonly #jobRuns = new Map<string, number>()

  private constructor(plan: Plan, simulation: Simulation, { isKept }: { readonly isKept: boolean }) {
    this.plan = plan
    this.simulation = simulation
    this.#runs = new Map(plan.runs.map((run) => [run.id, run]))
    this.#jobs = new Map(plan.jobs.map((job) => [job.id, job]))
    this.trace = new Trace({ isKept })
    this.witness = new Witness(this.trace, () => simulation.clock.monotonicMs())
    const { machine, shared, spools, clock } = simulation
    machine.reusesPids = plan.reusesPids
    shared.onCommitted = (write) => {
      this.witness.committed(write)
    }
    spools.onAppend = (write) => {
      this.witness.spooled(write)
    }
    machine.behaviourOf = (spec) => {
      this.witness.launchBegins(spec)
      const agent = this.#agentOf(spec.runId, spec.attempt)
      this.#agents.set(spec.marks.cookie, agent)
      return behaviourOf(agent, clock)
    }
    machine.onLaunch = (execution) => {
      this.witness.launched(execution)
      const agent = this.isFair ? FAIR_AGENT : this.#agents.get(execution.spec.marks.cookie)
      // Its launch may have begun before the world was fair.
      if (this.isFair) makeFair(execution)
      const speaks = this.#runs.get(execution.spec.runId)?.speaks ?? 'lines'
      if (agent !== undefined) animate(execution, agent, speaks, clock)
    }
  }

  static async open(plan: Plan, options: { readonly isKept: boolean }): Promise<World> {
    const pace = { eachTurns: plan.turns, lastTurns: plan.turns, restTurns: 10 }
    const world = new World(plan, new Simulation(plan.seed, await openMemoryStore(), pace), options)
    for (let slot = 0; slot < plan.slots; slot += 1) await world.openSlot(slot)
    return world
  }

  async openSlot(index: number): Promise<Slot> {
    const { engine, ...rest } = await this.simulation.openEngine({
      delivery: {
        deliver: (delivery) => this.#deliver(delivery),
        finalize: ({ runId }) => this.#finalize(runId),
        deliverDeadlineMs: 3_000,
        finalizeDeadlineMs: 3_000,
      },
    })
    const host = { engine, ...rest }
    engine.subscribe(() => {
      if (this.observersFail) throw new Error('an observer')
    })
    const queue = await openJobs(engine, { caps: { total: 2 } })
    const slot: Slot = { host, queue, isClosing: false }
    this.slots[index] = slot
    return slot
  }

  /** Every step at its time. */
  async play(): Promise<void> {
    const { clock } = this.simulation
    for (const step of this.plan.steps) {
      await clock.advance(Math.max(0, step.atMs - clock.monotonicMs()))
      this.witness.say(`step ${step.do} ${String(step.slot)} ${step.of} ${String(step.amount)}`)
      await this.#do(step)
    }
  }

  /** A call to an engine whose answer must come, where the engine lives; and in time, where there is a time. */
  call<T>(name: string, { host }: Slot, act: () => Promise<T>, boundMs = Infinity): Promise<T | null> {
    const call: Call = { name, host, isOver: false }
    this.calls.add(call)
    const { clock } = this.simulation
    const startedMs = clock.monotonicMs() - this.#sleptMs
    const over = (how: string): void => {
      this.calls.delete(call)
      const tookMs = clock.monotonicMs() - this.#sleptMs - startedMs
      this.witness.say(`answer ${name}: ${how}`)
      this.witness.claim(tookMs <= boundMs, 'INV-11', `${name} took ${String(tookMs)} ms`)
    }
    return act().then(
      (value) => {
        over('given')
        return value
      },
      (error: unknown) => {
        const code = error instanceof RunwardenError ? error.code : 'unknown'
        over(code)
        this.witness.claim(EXPECTED.includes(code), 'F', `${name} rejects with ${String(error)}`)
        return null
      },
    )
  }

  /** An order to end things; what it calls confirmed is gone (INV-5). */
  stop(slot: Slot, name: string, act: () => Promise<StopReceipt>): Promise<StopReceipt | null> {
    return this.call(name, slot, act, STOP_TIMEOUT_MS + SLACK_MS).then((receipt) => {
      for (const { runId, status } of receipt?.runs ?? [])
        if (status === 'confirmed')
          this.witness.claim(
            this.witness.aliveOf(runId) === 0,
            'INV-5',
            `${name} says of ${runId} that it is confirmed`,
          )
      return receipt
    })
  }

  close(slot: Slot, runs: 'interrupt' | 'cancel' | 'leave' | 'suppress'): Promise<unknown> {
    slot.isClosing = true
    const act = () => slot.host.engine.close({ runs, deadlineMs: CLOSE_DEADLINE_MS })
    return this.call(`close ${runs}`, slot, act, CLOSE_DEADLINE_MS + SLACK_MS).then((closed) => {
      // The process ends.
      slot.host.life.end()
      this.slots[this.slots.indexOf(slot)] = null
      return closed
    })
  }

  #agentOf(runId: string, attempt: number): AgentPlan {
    const plan = this.#runs.get(runId)
    const job = this.#jobs.get(this.witness.runs.get(runId)?.job ?? '')
    const nth = job === undefined ? attempt - 1 : (this.#jobRuns.get(job.id) ?? 0)
    if (job !== undefined) this.#jobRuns.set(job.id, nth + 1)
    const agents = plan?.agents ?? job?.agents ?? []
    const agent = this.isFair ? FAIR_AGENT : agents[Math.min(nth, agents.length - 1)]
    if (agent === undefined) throw new Error(`nobody planned ${runId}`)
    return agent
  }

  async #deliver(delivery: Delivery): Promise<void> {
    this.witness.delivering(delivery)
    if (this.hooks === 'throw') throw new Error('the host is away')
    if (this.hooks === 'hang') await new Promise(() => undefined)
    this.witness.taken(delivery.runId)
  }

  async #finalize(runId: string): Promise<string> {
    if (this.hooks === 'throw') throw new Error('the host is away')
    if (this.hooks === 'hang') await new Promise(() => undefined)
    return runId
  }

  #specOf(run: RunPlan): RunSpec {
    const { speaks, askGraceMs, timeoutMs, watchdogMs } = run
    const [, ...others] = run.agents
    return {
      id: run.id,
      command: ['agent'],
      cwd: '/',
      env: {},
      ...(run.session === null ? {} : { session: run.session }),
      ...(speaks === 'lines' ? {} : { protocol: conversational(), prompt: 'begin' }),
      oneShot: speaks === 'one turn',
      ...(watchdogMs === null
        ? {}
        : { watchdog: { neverStartedMs: watchdogMs, advisoryMs: watchdogMs, stalledMs: 2 * watchdogMs } }),
      stop: {
        termGraceMs: run.termGraceMs,
        killGraceMs: run.killGraceMs,
        pauseGraceMs: run.pauseGraceMs,
        ...(askGraceMs === null ? {} : { askGraceMs }),
      },
      limits: timeoutMs === null ? {} : { timeoutMs },
      persistent: run.isPersistent,
      ...(run.parent === null ? {} : { parent: run.parent }),
      ...(others.length === 0
        ? {}
        : {
            fallback: {
              candidates: others.map(() => ({ command: ['other'] })),
              ...(run.fallback === 'default'
                ? {}
                : {
                    when: () => {
                      if (run.fallback === 'throws') throw new Error('no idea')
                      return true
                    },
                  }),
            },
          }),
    }
  }

  async #do(step: Step): Promise<void> {
    const slot = this.slots[step.slot]
    if (slot == null) {
      if (step.do === 'open') this.#reopen(step.slot)
      return
    }
    if (this.#doToWorld(step, slot) || this.#doToRun(step, slot) || this.#doToJob(step, slot)) return
    await this.#doToEngine(step, slot)
  }

  #doToRun({ do: verb, of, amount }: Step, slot: Slot): boolean {
    const { engine } = slot.host
    const plan = this.#runs.get(of)
    if (plan === undefined) return false
    if (verb === 'start') {
      void this.call(`start ${of}`, slot, () => engine.start(this.#specOf(plan))).then((run) => {
        if (run !== null) this.handles.set(of, run)
      })
      return true
    }
    const held = engine.run(of)
    const end = (mode: 'cancel' | 'interrupt' | 'terminate', force: boolean): void => {
      const options = { mode, force, by: 'sim', timeoutMs: STOP_TIMEOUT_MS, fence: false }
      const isAsked = held !== undefined && mode !== 'terminate' && !slot.isClosing
      void this.stop(slot, `${mode} ${of}`, () => engine.stop({ run: of }, options))
      if (isAsked) this.witness.wanted.add(of)
    }
    if (verb === 'cancel') end('cancel', false)
    else if (verb === 'force') end('cancel', true)
    else if (verb === 'interrupt' || verb === 'terminate') end(verb, false)
    else if (held !== undefined) this.#tellRun(verb, held, slot, amount)
    return true
  }

  #tellRun(verb: Step['do'], run: Run, slot: Slot, amount: number): void {
    const name = `${verb} ${run.id}`
    const timeoutMs = 5_000
    if (verb === 'pause') void this.call(name, slot, () => run.pause({ timeoutMs }), timeoutMs + SLACK_MS)
    else if (verb === 'resume')
      void this.call(name, slot, () => run.resume({ timeoutMs }), timeoutMs + SLACK_MS)
    else if (verb === 'prompt') void this.call(name, slot, () => run.prompt(`more ${String(amount)}`))
    else if (verb === 'cancelTurn') void this.call(name, slot, () => run.cancelTurn())
    else if (verb === 'finish') void this.call(name, slot, () => run.finish())
    else if (verb === 'steer')
      void this.call(name, slot, async () => {
        run.steer('this way')
      })
  }

  #doToJob({ do: verb, of, amount }: Step, slot: Slot): boolean {
    const plan = this.#jobs.get(of)
    if (plan === undefined) return false
    const { queue } = slot
    const name = `${verb} ${of}`
    if (verb === 'add') {
      const { id, attempts, review, after } = plan
      const spec = { id, attempts, review, command: ['agent'], cwd: '/', env: { inherit: false } }
      const stop = { termGraceMs: 500, killGraceMs: 1_000 }
      void this.call(name, slot, () =>
        queue.add({ ...spec, stop, ...(after === null ? {} : { after: [after] }) }),
      ).then((job) => {
        if (job !== null) this.jobsAdded.add(of)
      })
    } else if (verb === 'drop') void this.call(name, slot, () => queue.drop(of))
    else if (verb === 'accept') void this.call(name, slot, () => queue.accept(of))
    else if (verb === 'retry') void this.call(name, slot, () => queue.retry(of))
    else if (verb === 'extend')
      void this.call(name, slot, () => queue.extend(of, { by: 'sim', attempts: amount }))
    else if (verb === 'hold') void this.call(name, slot, () => queue.hold({ by: 'sim', reason: 'now' }))
    else if (verb === 'release') void this.call(name, slot, () => queue.release())
    return true
  }

  async #doToEngine({ do: verb, of, amount }: Step, slot: Slot): Promise<void> {
    const { engine } = slot.host
    const options = { by: 'sim', timeoutMs: STOP_TIMEOUT_MS }
    const scope: Scope = { session: of }
    if (verb === 'stop session') void this.stop(slot, `stop ${of}`, () => engine.stop(scope, options))
    else if (verb === 'interrupt session')
      void this.stop(slot, `interrupt ${of}`, () =>
        engine.stop(scope, { ...options, mode: 'interrupt', fence: false }),
      )
    else if (verb === 'stop all') void this.stop(slot, 'stop all', () => engine.stop({ all: true }, options))
    else if (verb === 'pause session')
      void this.call(`pause ${of}`, slot, () => engine.pause(scope, options), STOP_TIMEOUT_MS + SLACK_MS)
    else if (verb === 'resume session')
      void this.call(`resume ${of}`, slot, () => engine.resume(scope, options), STOP_TIMEOUT_MS + SLACK_MS)
    else if (verb === 'in use') void this.call('in use', slot, async () => engine.presence.inUse())
    else if (verb === 'idle') void this.call('idle', slot, async () => engine.presence.idle())
    else if (verb === 'work') void this.call('work', slot, () => slot.queue.work({ until: 'stopped' }))
    else if (verb === 'close') void this.close(slot, 'interrupt')
    else if (verb === 'leave' || verb === 'suppress') void this.close(slot, verb)
    else if (verb === 'prune')
      void this.call('prune', slot, () =>
        engine.prune({ settledBefore: this.simulation.clock.wallMs() - amount }),
      )
    await Promise.resolve()
  }

  #doToWorld({ do: verb, slot: index, amount }: Step, { host }: Slot): boolean {
    const { clock, shared, spools } = this.simulation
    const for_ = (begin: () => void, end: () => void): true => {
      begin()
      clock.after(amount, end)
      return true
    }
    switch (verb) {
      case 'crash':
        host.crash()
        this.#reopenLater(index, amount)
        return true
      case 'crash at call':
      case 'crash behind call':
        host.life.endAt(amount, { isDone: verb === 'crash behind call' })
        this.#reopenLater(index, 5_000)
        return true
      case 'store away':
        return for_(
          () => (host.store.trouble = busy()),
          () => (host.store.trouble = null),
        )
      case 'commits held':
        clock.after(amount, host.store.hold())
        return true
      case 'answers lost':
        host.store.answersToLose = 1 + (amount % 4)
        return true
      case 'hints lost':
        return for_(
          () => (shared.areHintsLost = true),
          () => (shared.areHintsLost = false),
        )
      case 'spool full':
        return for_(
          () => (spools.isFull = true),
          () => (spools.isFull = false),
        )
      case 'wall steps':
        clock.stepWall(amount % 2 === 0 ? amount : -amount)
        return true
      case 'machine sleeps':
        this.#sleptMs += amount
        clock.skip(amount)
        return true
      case 'hooks throw':
      case 'hooks hang':
        return for_(
          () => (this.hooks = verb === 'hooks throw' ? 'throw' : 'hang'),
          () => (this.hooks = 'answer'),
        )
      case 'observers fail':
        return for_(
          () => (this.observersFail = true),
          () => (this.observersFail = false),
        )
      default:
        return false
    }
  }

  /** Someone starts the program again: some time after it died, if it did. */
  #reopenLater(index: number, afterMs: number): void {
    this.simulation.clock.after(afterMs, () => {
      if (this.slots[index]?.host.life.isOver === true) this.#reopen(index)
    })
  }

  #reopen(index: number): void {
    this.openSlot(index).catch((error: unknown) => {
      this.witness.claim(false, 'INV-13', `an engine cannot be opened: ${String(error)}`)
    })
  }

  /** Nothing fails any more, and every agent does as it is told: what was begun must come to its end. */
  makeFair(): void {
    this.isFair = true
    this.hooks = 'answer'
    this.observersFail = false
    const { shared, spools, machine } = this.simulation
    shared.areHintsLost = false
    spools.isFull = false
    for (const slot of this.slots) {
      if (slot == null) continue
      slot.host.life.endAt(Infinity, { isDone: false })
      Object.assign(slot.host.store, { trouble: null, answersToLose: 0 })
    }
    for (const execution of machine.executions) makeFair(execution)
  }
}
