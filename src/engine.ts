/**
 * The composition root: wires the charts, the actors and the adapters into one engine over one store.
 *
 * Owns: the life of an engine in this process. Does not own: any rule; those are in the charts and the actors.
 */
import type { DeliveryHooks } from './actors/deliveries.js'
import { Elsewheres, endOnRecord } from './actors/elsewhere.js'
import { FiledOrders } from './actors/filed-orders.js'
import type { Inspection, InspectionObserver } from './actors/inspection.js'
import type { HostServices } from './actors/actor-role.js'
import type { GuardianPort } from './actors/guardian.ports.js'
import type { Clock, LogPort, Logger, ProcessPort } from './actors/ports.js'
import type { EngineRow, StorePort } from './actors/store.ports.js'
import { RegistryActor } from './actors/registry.actor.js'
import { eventsOfTransition } from './actors/run-events.js'
import type { RunEventOut } from './actors/run-events.js'
import { thawAll } from './actors/freezing.js'
import type { RunActor } from './actors/run.actor.js'
import { isAdoptable } from './actors/run-survival.js'
import type { Wanted } from './actors/take-over.js'
import { inTime } from './actors/store-waits.js'
import type { StopReceipt } from './actors/stop-call.js'
import { RunwardenError, messageOf } from './errors.js'
import type { ClosePolicy } from './machines/registry/registry.machine.js'
import { parseOptions } from './option-types.js'
import {
  closeOptionsSchema,
  freezeOrderOptionsSchema,
  inspectOptionsSchema,
  scopeSchema,
  stopOptionsSchema,
} from './options.js'
import type { CloseOptions, FreezeOrderOptions, Scope, StopOptions } from './options.js'
import type { OnRecover } from './machines/run/run.context.js'
import type { FreezeMode } from './machines/stop-order/stop-order.context.js'
import { Records, toStopScope } from './records.js'
import type { HistoryQuery, LogOptions, RunHistory, RunProcess, RunQuery, RunSummary } from './records.js'
import type { LogPiece } from './adapters/process/log-reader.js'
import { Presence } from './presence.js'
import { Run } from './run.js'
import { RunFactory } from './run-factory.js'
import { parseRunSpec } from './run-spec.js'
import type { ParsedRunSpec, RunSpec } from './run-spec.js'
import type { EndOptions } from './run.js'

/** One execution that is still there, or not proven gone. */
export interface LiveExecution {
  readonly runId: string
  readonly headline: string
  readonly attempt: number
  readonly pid: number
  readonly containment: string
  readonly startedAt: number
  readonly ageMs: number
  readonly cpuMs: number | null
  readonly rssBytes: number | null
}

/** Everything an engine is made of; `open-engine.ts` fills it from the public options. */
export interface EngineParts {
  readonly host: HostServices & { readonly inspection: Inspection }
  readonly processes: ProcessPort
  readonly logs: LogPort
  readonly delivery: DeliveryHooks
  readonly row: EngineRow
  readonly onRecover: OnRecover
  /** Null: nobody ends the runs when this process dies. */
  readonly guardian: GuardianPort | null
  /** Ids that sort by time. */
  readonly newId: () => string
}

/** Whose runs are recovered, and in whose name. */
export interface Recovery extends Wanted {
  readonly by: 'recovery' | 'guardian'
}

/** What the jobs need of the engine that works them. */
export interface EngineSeam {
  readonly engineId: string
  readonly store: StorePort
  readonly clock: Clock
  readonly logger: Logger
  readonly newId: () => string
  /** The run ids under which this engine claims jobs now, whichever of its queues does. */
  readonly claims: Set<string>
  /** Starts a run of a job: both are recorded together, or neither. `refused` when the job is not claimed for it. */
  readonly start: (spec: RunSpec, jobId: string) => Promise<Run>
  /** R5: whether an engine is provably dead, or has closed. */
  readonly isGone: (engineId: string) => Promise<boolean>
  /** R3: takes up a run of a dead engine, as that run has chosen. */
  readonly recover: (runId: string) => Promise<unknown>
  readonly isClosing: () => boolean
  /** Of an engine that is closing: the runs that are left when it has. */
  readonly closed: () => Promise<{ readonly left: readonly string[] }>
}

const HEARTBEAT_MS = 5_000
/** Between two turns of the event loop, so that commands have theirs. */
const ORPHANS_PER_TURN = 32

export class Engine {
  readonly id: string
  /** Whether a person uses this machine: then the runs of this engine stand still (O16). */
  readonly presence: Presence
  readonly #parts: EngineParts
  readonly #registry: RegistryActor
  readonly #elsewhere: Elsewheres
  readonly #filed: FiledOrders
  readonly #records: Records
  readonly #factory: RunFactory
  readonly #listeners = new Set<(event: RunEventOut) => unknown>()
  /** Ids from the tick of their `start` on (L8). */
  readonly #starting = new Set<string>()
  readonly #claims = new Set<string>()
  readonly #stops = new Set<Promise<StopReceipt>>()
  /** Closing has come to where a stop has nothing to join any more. */
  #isOver = false
  #closed: Promise<{ readonly left: readonly string[] }> | null = null
  #cancelHeartbeat: () => void = () => undefined

  /** @internal Use `createEngine`. */
  constructor(parts: EngineParts) {
    const { host, processes, row, newId } = parts
    this.id = row.id
    this.#parts = parts
    this.#records = new Records(host.store, () => processes)
    this.#factory = new RunFactory({
      host,
      processes,
      logs: parts.logs,
      delivery: parts.delivery,
      onRecover: parts.onRecover,
      requestAdmission: (run) => {
        this.#registry.admitAttempt(run)
      },
      onDisowned: (run) => {
        this.#registry.letGo(run)
      },
    })
    this.#elsewhere = new Elsewheres({
      host,
      processes,
      hostId: row.hostId,
      isHeld: (runId) => this.#registry.runs.has(runId),
      makeRun: (stored) => this.#factory.fromRecord(stored),
      hold: (run) => {
        this.#hold(run)
      },
    })
    this.#registry = new RegistryActor(
      {
        engine: row,
        newId,
        findElsewhere: (call) => this.#elsewhere.find(call),
        findPartsElsewhere: (runIds, call) => this.#elsewhere.findIn({ runIds }, call),
        childrenOf: (runIds) => host.store.childrenOf(runIds),
        followElsewhere: (call) => this.#elsewhere.follow(call),
      },
      host,
    )
    this.presence = new Presence(host, () => this.#registry.runs.values())
    this.#filed = new FiledOrders(host, (filed) => this.#registry.serve(filed))
  }

  /** @internal What the jobs are built on. */
  get seam(): EngineSeam {
    this.#assertNotClosed('jobs')
    const { host, newId } = this.#parts
    return {
      engineId: this.id,
      newId,
      store: host.store,
      clock: host.clock,
      logger: host.logger,
      claims: this.#claims,
      start: (spec, jobId) => this.#start(spec, jobId),
      isGone: (engineId) => this.#elsewhere.isGone(engineId),
      recover: (runId) => this.recover({ by: 'recovery', of: null, runId }),
      isClosing: () => this.#closed !== null,
      closed: async () => (await this.#closed) ?? { left: [] },
    }
  }

  /** @internal Before there is any actor. */
  inspectFromStart(observer: InspectionObserver): void {
    this.#parts.host.inspection.observe(observer, [])
  }

  /** @internal Recovery comes before anything is admitted. */
  async open(recover: 'interrupt' | false): Promise<void> {
    await this.#registry.begin()
    await this.#elsewhere.abandonOrdersOfTheDead()
    this.#filed.start()
    this.#beat()
    if (recover === 'interrupt') await this.recover({ by: 'recovery', of: null, runId: null })
    await this.#registry.recovered()
    // P19: no hook is called before the host has its engine.
    setImmediate(() => {
      this.#factory.open()
    })
  }

  /** @internal Takes up the runs of dead engines, and interrupts those that nobody wanted to end (R3). Returns what was taken. */
  async recover({ by, ...wanted }: Recovery): Promise<readonly RunActor[]> {
    const runs = await this.#elsewhere.takeOverAll(wanted)
    // R8: they are held, and reached by every stop from here on; that they are ended is waited for by nobody.
    void this.#endOrphans(runs, by)
    return runs
  }

  async #endOrphans(runs: readonly RunActor[], by: Recovery['by']): Promise<void> {
    for (let from = 0; from < runs.length; from += ORPHANS_PER_TURN) {
      for (const run of runs.slice(from, from + ORPHANS_PER_TURN)) {
        // R3, R7: it goes on here; a guardian goes on with nothing.
        const goesOn = by === 'recovery' && isAdoptable(run.policy, run.state)
        // With its result there, the time it has to exit goes on, and ends it.
        const isEnding = run.isEndWanted || run.state.isSettled || run.state.work === 'open.finishing'
        if (!goesOn && !isEnding)
          void run.post({ type: 'run.interrupt', by, reason: 'the engine that ran it died', force: false })
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /**
   * Records and admits a run. Resolves when it is on record (not when it has launched); nothing is spawned before that.
   *
   * @throws `invalid-option`, `run-exists`, `scope-stopped`, `engine-closing`, `store-unavailable`. Nothing is launched then. After
   *   `store-unavailable` the run may be on record all the same, where the store's answer was lost: it is interrupted as soon as that is
   *   known, and its id is used.
   */
  async start(spec: RunSpec): Promise<Run> {
    return this.#start(spec, null)
  }

  async #start(spec: RunSpec, job: string | null): Promise<Run> {
    const parsed = parseRunSpec(spec)
    const runId = parsed.id ?? this.#parts.newId()
    const { session, task, labels } = parsed
    this.#registry.assertAdmits({ runId, session, task, labels })
    if (parsed.signal?.aborted === true) {
      throw new RunwardenError('invalid-option', 'start: option signal is already aborted')
    }
    this.#assertHasTerminal(parsed)
    if (this.#starting.has(runId) || this.#registry.runs.has(runId)) throw this.#exists(runId)
    this.#starting.add(runId)
    try {
      if (parsed.parent !== undefined) {
        await this.#assertParentGoesOn(parsed.parent)
        // What was admitted may be fenced by now. A run of its own was held in the tick of the call.
        this.#registry.assertAdmits({ runId, session, task, labels })
      }
      return await this.#startHeld(this.#factory.fromSpec(runId, parsed, job), parsed)
    } finally {
      this.#starting.delete(runId)
    }
  }

  async #startHeld(run: RunActor, { parent, onParentCancel, signal }: ParsedRunSpec): Promise<Run> {
    this.#hold(run)
    this.presence.admit(run)
    try {
      await this.#begin(run)
    } catch (error) {
      run.abandon()
      this.#registry.letGo(run)
      throw error
    }
    this.#followSignal(run, signal)
    if (parent !== undefined && onParentCancel === 'cancel' && !this.#registry.runs.has(parent))
      this.#followParent(run, parent).catch((error: unknown) => {
        this.#parts.host.logger.warn({ run: run.id, error: messageOf(error) }, 'a parent could not be read')
      })
    return this.#handle(run)
  }

  /**
   * Ends what a scope holds, whoever holds it: here, in another engine over the same store, or in one that died.
   * The intents of runs held here are in force when the call returns its promise (P1).
   *
   * @returns the receipt, when every run has answered or at `timeoutMs`. Never rejects because a process would not die.
   * @throws `invalid-option`; `unknown-run` when the scope names a run that is nowhere.
   */
  async stop(scope: Scope, options: StopOptions = {}): Promise<StopReceipt> {
    const { mode, force, reason, by, fence, timeoutMs, signal } = parseOptions(
      stopOptionsSchema,
      options,
      'stop',
    )
    const checked = parseOptions(scopeSchema, scope, 'stop: scope')
    if (this.#isOver) this.#assertNotClosed('stop')
    const isFenced = fence ?? checked.run === undefined
    const receipt = this.#registry.stop(toStopScope(checked), {
      mode,
      force,
      reason,
      by,
      isFenced,
      timeoutMs,
    })
    const isAnswered = (): boolean => this.#stops.delete(receipt)
    this.#stops.add(receipt)
    receipt.then(isAnswered, isAnswered)
    return signal === undefined ? receipt : abortable(receipt, signal)
  }

  /**
   * Pauses what a scope holds in the user's name (O4), whoever holds it: here, or in another living engine over the same store.
   *
   * @returns a receipt, when every run has answered or at `timeoutMs`: `confirmed` where every tree was seen frozen, `unconfirmed` where
   *   one is not (yet), with what still runs as `survivors`; a run that is being ended, or whose engine died, is `refused`.
   * @throws `invalid-option`; `unknown-run`.
   */
  pause(scope: Scope, options: FreezeOrderOptions = {}): Promise<StopReceipt> {
    return this.#orderFreeze('pause', scope, options)
  }

  /** Resumes what a scope holds in the user's name, also what presence has frozen (O4). Answers and throws as `pause` does. */
  resume(scope: Scope, options: FreezeOrderOptions = {}): Promise<StopReceipt> {
    return this.#orderFreeze('resume', scope, options)
  }

  /** K20: what is still running, or not proven gone, in this engine. */
  live(): readonly LiveExecution[] {
    const now = this.#parts.host.clock.wallMs()
    return [...this.#registry.runs.values()].flatMap((run) => {
      const identity = run.process?.identity
      if (run.process === null || run.process.isGone || identity == null) return []
      const usage = this.#parts.processes.usage(identity)
      const startedAt = run.launchedAt ?? now
      return [
        {
          runId: run.id,
          headline: run.state.headline,
          attempt: run.context.executionAttempt,
          pid: identity.pid,
          containment: run.process.containment ?? 'group',
          startedAt,
          ageMs: Math.max(0, now - startedAt),
          cpuMs: usage?.cpuMs ?? null,
          rssBytes: usage?.rssBytes ?? null,
        },
      ]
    })
  }

  /** The handle of a run that this engine holds, or undefined. */
  run(runId: string): Run | undefined {
    const actor = this.#registry.runs.get(runId)
    return actor === undefined ? undefined : this.#handle(actor)
  }

  async runs(query?: RunQuery): Promise<readonly RunSummary[]> {
    this.#assertNotClosed('runs')
    return this.#records.runs(query)
  }

  async history(runId: string, query?: HistoryQuery): Promise<RunHistory> {
    this.#assertNotClosed('history')
    return this.#records.history(runId, query)
  }

  /** The living processes of a run. Answers and throws as `Records.processes` does. */
  async processes(runId: string): Promise<readonly RunProcess[]> {
    this.#assertNotClosed('processes')
    return this.#records.processes(runId)
  }

  /** A number that changes when another process has changed the store; null where that cannot be told cheaply. */
  async changeToken(): Promise<number | null> {
    this.#assertNotClosed('changeToken')
    return this.#records.changeToken()
  }

  logs(runId: string, options?: LogOptions): AsyncGenerator<LogPiece> {
    return this.#records.logs(runId, options)
  }

  /** Removes runs that are settled, confirmed and delivered, and settled before that time (S4). Returns how many. */
  async prune(options: { readonly settledBefore: number }): Promise<number> {
    this.#assertNotClosed('prune')
    return this.#parts.host.store.prune(options.settledBefore)
  }

  /**
   * Shows an observer the charts as they move, in XState's inspection protocol: the registry, the runs and stop orders, and the processes
   * (`@xstate.actor`, `@xstate.event`, `@xstate.snapshot`). First it is told of the actors that are there. Events are told after their
   * commit, in a turn of their own, and redacted as in the journal (L7). An observer that throws, blocks or is flooded loses events, and
   * no run notices (F). Returns the way to stop.
   *
   * @throws `invalid-option` when it is neither a function nor an object with `next`.
   */
  inspect(observer: InspectionObserver): () => void {
    const options = parseOptions(inspectOptionsSchema, { observer }, 'inspect')
    const registry = { id: this.id, machine: this.#registry.machine, snapshot: this.#registry.state }
    const runs = [...this.#registry.runs.values()].map(({ id, machine, snapshot }) => ({
      id,
      machine,
      snapshot,
    }))
    return this.#parts.host.inspection.observe(options.observer, [registry, ...runs])
  }

  /** Every run's events but its output. A listener that throws hurts nobody (F). Returns the way to stop listening. */
  subscribe(listener: (event: RunEventOut) => unknown): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /**
   * Ends the engine: nothing is launched any more, its runs are ended or left, and what is not confirmed at the deadline is named (O10).
   * Rejects for an option only: what fails on the way is logged, and the rest is done.
   * Repeated calls join the first.
   */
  async close(options: CloseOptions = {}): Promise<{ readonly left: readonly string[] }> {
    const { runs, deadlineMs } = parseOptions(closeOptionsSchema, options, 'close')
    this.#closed ??= this.#close(runs, deadlineMs)
    return this.#closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(runs: ClosePolicy, deadlineMs: number): Promise<{ readonly left: readonly string[] }> {
    const { host } = this.#parts
    const graceMs = host.commitDeadlineMs
    // O10: what fails on the way is logged, and holds up nothing behind it. The first two are in force before the first wait (P1).
    const step = async (what: string, act: () => unknown): Promise<void> => {
      try {
        await act()
      } catch (error) {
        host.logger.error({ step: what, error: messageOf(error) }, 'a step of closing failed')
      }
    }
    let left: readonly string[] | null = null
    await Promise.all([
      step('presence', () => {
        this.presence.close()
      }),
      step('registry', async () => {
        left = await this.#registry.close(runs, deadlineMs)
      }),
    ])
    left ??= [...this.#registry.runs.keys()]
    this.#isOver = true
    // What joined the closing has its answer, and that is on record.
    if (left.length === 0)
      await inTime(host.clock, Promise.allSettled(this.#stops), graceMs).catch(() => undefined)
    // O10: nobody would ever continue a run that is left frozen.
    await step('thaw', () => thawAll(this.#registry.runs.values(), { clock: host.clock, timeoutMs: graceMs }))
    this.#cancelHeartbeat()
    // Runs that are left owe answers that will not come.
    await step('filed orders', () => this.#filed.close(left?.length === 0 ? graceMs : 0))
    for (const run of this.#registry.runs.values()) {
      await step(`run ${run.id}`, () => {
        run.leave()
      })
    }
    await host.commits.close(graceMs, async () => {
      await step('spool', () => host.spool?.discard())
      await step('store', () => host.store.close())
    })
    this.#parts.guardian?.dismiss({ hasLeft: runs !== 'leave' && left.length > 0 })
    return { left }
  }

  async #orderFreeze(mode: FreezeMode, scope: Scope, options: FreezeOrderOptions): Promise<StopReceipt> {
    const { reason, by, timeoutMs } = parseOptions(freezeOrderOptionsSchema, options, mode)
    const checked = parseOptions(scopeSchema, scope, `${mode}: scope`)
    this.#assertNotClosed(mode)
    return this.#registry.stop(toStopScope(checked), {
      mode,
      force: false,
      reason,
      by,
      isFenced: false,
      timeoutMs,
    })
  }

  #handle(run: RunActor): Run {
    return new Run(run, {
      clock: this.#parts.host.clock,
      end: (runId, mode, options: EndOptions) =>
        this.stop({ run: runId }, { ...options, mode, fence: false }),
      assertOpen: (verb) => {
        this.#assertNotClosed(verb)
      },
    })
  }

  /** A part of a run that is being ended, or was, would outlive it. */
  async #assertParentGoesOn(parent: string): Promise<void> {
    const end = await this.#wantedEndOf(parent)
    const name = `start: option parent ${JSON.stringify(parent)}`
    if (end === 'unknown') throw new RunwardenError('unknown-run', `${name} is not in this store`)
    if (end !== 'none') throw new RunwardenError('scope-stopped', `${name} is being ended, or was`)
  }

  async #wantedEndOf(runId: string): Promise<'none' | 'interrupt' | 'cancel' | 'unknown'> {
    const held = this.#registry.runs.get(runId)
    if (held !== undefined) return held.wantedEnd.kind
    const stored = await this.#parts.host.store.loadRun(runId)
    return stored === null ? 'unknown' : (endOnRecord(stored) ?? 'none')
  }

  /** K17: an order over its parent, given in another engine meanwhile, may not have found the part on record. */
  async #followParent(run: RunActor, parent: string): Promise<void> {
    const end = await this.#wantedEndOf(parent)
    if (end !== 'cancel' && end !== 'interrupt') return
    const order = { force: false, reason: `its parent ${parent} is being ended`, by: 'engine' }
    await this.#registry.stop(
      { runIds: [run.id] },
      { mode: end, ...order, isFenced: false, timeoutMs: undefined },
    )
  }

  #exists(runId: string): RunwardenError {
    return new RunwardenError(
      'run-exists',
      `start: option id ${JSON.stringify(runId)} is already used in this store`,
    )
  }

  #assertHasTerminal({ stdio }: ParsedRunSpec): void {
    const { terminalProblem } = this.#parts.processes
    if (stdio === 'pty' && terminalProblem !== null)
      throw new RunwardenError(
        'invalid-option',
        `start: option stdio "pty" cannot be had: ${terminalProblem}`,
      )
  }

  #assertNotClosed(verb: string): void {
    if (this.#closed !== null)
      throw new RunwardenError('engine-closing', `${verb}: the engine is closing or closed`)
  }

  async #begin(run: RunActor): Promise<void> {
    const recordedLate = (): void => void this.#endLate(run.id)
    let begun = await run.begin(recordedLate)
    // A fence whose engine died holds nobody up.
    if (begun === 'fenced' && (await this.#elsewhere.abandonOrdersOfTheDead()))
      begun = await run.begin(recordedLate)
    if (begun === 'exists') throw this.#exists(run.id)
    if (begun === 'fenced') {
      throw new RunwardenError('scope-stopped', `run ${run.id}: a stop order covers its scope`)
    }
    if (begun === 'unclaimed') {
      throw new RunwardenError('refused', `run ${run.id}: job ${String(run.row.job)} is not claimed for it`)
    }
    if (begun !== 'applied')
      throw new RunwardenError('store-unavailable', `run ${run.id} could not be recorded`)
  }

  /** `start` was answered `store-unavailable`, and the run is on record after all: it must not stay open with nobody at work on it. */
  async #endLate(runId: string): Promise<void> {
    const { logger } = this.#parts.host
    try {
      const run = await this.#elsewhere.reclaim(runId)
      await run?.post({
        type: 'run.interrupt',
        by: 'engine',
        reason: 'it was recorded too late',
        force: false,
      })
    } catch (error) {
      logger.error(
        { run: runId, error: messageOf(error) },
        'a run that was recorded too late waits for a stop',
      )
    }
  }

  #hold(run: RunActor): void {
    run.onTransition((transition) => {
      for (const event of eventsOfTransition(run, transition)) this.#publish(event)
      // INV-11: what is over is in the store; the handle that the host holds goes on answering.
      if (run.state.isDone) this.#registry.letGo(run)
    })
    // R7: before anything of it is on record.
    this.#parts.guardian?.arm()
    run.turns.onNews((news) => {
      this.#publish(news)
    })
    this.#registry.hold(run)
  }

  #publish(event: RunEventOut): void {
    const failed = (error: unknown): void => {
      this.#parts.host.logger.error({ error: messageOf(error) }, 'a subscriber failed')
    }
    for (const listener of [...this.#listeners]) {
      try {
        // An async listener's rejection is as much its own fault as a throw.
        Promise.resolve(listener(event)).catch(failed)
      } catch (error) {
        failed(error)
      }
    }
  }

  #followSignal(run: RunActor, signal: AbortSignal | undefined): void {
    if (signal === undefined) return
    const onAbort = (): void => {
      if (this.#closed !== null) return
      const options = { by: 'signal', reason: 'the signal given to start was aborted' }
      // P16: nobody cancels a persistent run.
      void (run.policy.isPersistent ? this.#handle(run).stop(options) : this.#handle(run).cancel(options))
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    void run.gone.then(() => {
      signal.removeEventListener('abort', onAbort)
    })
  }

  /** Runs that showed progress since the last beat. */
  #recentProgress(): { readonly runId: string; readonly lastProgressAt: number }[] {
    const since = this.#parts.host.clock.wallMs() - 2 * HEARTBEAT_MS
    return [...this.#registry.runs.values()].flatMap(({ id, progress }) => {
      const { lastProgressAt } = progress
      return lastProgressAt !== null && lastProgressAt >= since ? [{ runId: id, lastProgressAt }] : []
    })
  }

  #beat(): void {
    const { host } = this.#parts
    this.#cancelHeartbeat = host.clock.after(
      HEARTBEAT_MS,
      () => {
        host.store
          .heartbeat(this.id, host.clock.wallMs(), this.#recentProgress())
          .catch((error: unknown) => {
            host.logger.warn({ error: messageOf(error) }, 'a heartbeat could not be written')
          })
          .finally(() => {
            if (this.#closed === null) this.#beat()
          })
      },
      { isBackground: true },
    )
  }
}

/** P20: aborting a wait ends the wait only. */
const abortable = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(new RunwardenError('refused', 'the wait was aborted; the stop goes on'))
    }
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort)
    })
  })
