/**
 * The composition root: wires the charts, the actors and the adapters into one engine over one store.
 *
 * Owns: the life of an engine in this process. Does not own: any rule; those are in the charts and the actors.
 */
import { uuidv7 } from 'uuidv7'
import { Elsewheres } from './actors/elsewhere.js'
import { FiledOrders } from './actors/filed-orders.js'
import type { HostServices } from './actors/actor-role.js'
import type { LogPort, ProcessPort } from './actors/ports.js'
import type { EngineRow } from './actors/store.ports.js'
import { RegistryActor } from './actors/registry.actor.js'
import { eventsOfTransition } from './actors/run-events.js'
import type { RunEventOut } from './actors/run-events.js'
import type { RunActor } from './actors/run.actor.js'
import type { StopReceipt } from './actors/stop-call.js'
import { RunwardenError, messageOf } from './errors.js'
import { parseOptions } from './option-types.js'
import { closeOptionsSchema, scopeSchema, stopOptionsSchema } from './options.js'
import type { CloseOptions, Scope, StopOptions } from './options.js'
import { Records, toStopScope } from './records.js'
import type { RunHistory, RunQuery, RunSummary } from './records.js'
import type { LogPiece } from './adapters/process/log-reader.js'
import { Run } from './run.js'
import { RunFactory } from './run-factory.js'
import { parseRunSpec } from './run-spec.js'
import type { RunSpec } from './run-spec.js'
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
  readonly host: HostServices
  readonly processes: ProcessPort
  readonly logs: LogPort
  readonly row: EngineRow
}

const HEARTBEAT_MS = 5_000

export class Engine {
  readonly id: string
  readonly #parts: EngineParts
  readonly #registry: RegistryActor
  readonly #elsewhere: Elsewheres
  readonly #filed: FiledOrders
  readonly #records: Records
  readonly #factory: RunFactory
  readonly #listeners = new Set<(event: RunEventOut) => unknown>()
  /** Ids from the tick of their `start` on (L8). */
  readonly #starting = new Set<string>()
  #closed: Promise<{ readonly left: readonly string[] }> | null = null
  #cancelHeartbeat: () => void = () => undefined

  /** @internal Use `createEngine`. */
  constructor(parts: EngineParts) {
    const { host, processes, row } = parts
    this.id = row.id
    this.#parts = parts
    this.#records = new Records(host.store)
    this.#factory = new RunFactory({
      host,
      processes,
      logs: parts.logs,
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
        newId: uuidv7,
        findElsewhere: (scope) => this.#elsewhere.find(scope),
        followElsewhere: (call) => this.#elsewhere.follow(call),
      },
      host,
    )
    this.#filed = new FiledOrders(host, (filed) => this.#registry.serve(filed))
  }

  /** @internal Recovery comes before anything is admitted. */
  async open(recover: 'interrupt' | false): Promise<void> {
    await this.#registry.begin()
    await this.#elsewhere.abandonOrdersOfTheDead()
    this.#filed.start()
    this.#beat()
    if (recover === 'interrupt') {
      for (const run of await this.#elsewhere.takeOverAll()) {
        if (run.state.isSettled || run.state.intent !== null) continue
        void run.post({
          type: 'run.interrupt',
          by: 'recovery',
          reason: 'the engine that ran it died',
          force: false,
        })
      }
    }
    await this.#registry.recovered()
  }

  /**
   * Records and admits a run. Resolves when it is on record (not when it has launched); nothing is spawned before that.
   *
   * @throws `invalid-option`, `run-exists`, `scope-stopped`, `engine-closing`, `store-unavailable`. Nothing is half-done then.
   */
  async start(spec: RunSpec): Promise<Run> {
    const parsed = parseRunSpec(spec)
    const runId = parsed.id ?? uuidv7()
    const { session, task, labels } = parsed
    this.#registry.assertAdmits({ runId, session, task, labels })
    if (parsed.signal?.aborted === true) {
      throw new RunwardenError('invalid-option', 'start: option signal is already aborted')
    }
    if (this.#starting.has(runId) || this.#registry.runs.has(runId)) throw this.#exists(runId)
    this.#starting.add(runId)
    const run = this.#factory.fromSpec(runId, parsed)
    this.#hold(run)
    try {
      await this.#begin(run)
    } catch (error) {
      run.abandon()
      this.#registry.letGo(run)
      throw error
    } finally {
      this.#starting.delete(runId)
    }
    this.#followSignal(run, parsed.signal)
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
    this.#assertNotClosed('stop')
    const isFenced = fence ?? checked.run === undefined
    const receipt = this.#registry.stop(toStopScope(checked), {
      mode,
      force,
      reason,
      by,
      isFenced,
      timeoutMs,
    })
    return signal === undefined ? receipt : abortable(receipt, signal)
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

  async history(runId: string): Promise<RunHistory> {
    this.#assertNotClosed('history')
    return this.#records.history(runId)
  }

  logs(runId: string, options?: { readonly follow?: boolean }): AsyncGenerator<LogPiece> {
    return this.#records.logs(runId, options)
  }

  /** Removes runs that are settled, confirmed and delivered, and settled before that time (S4). Returns how many. */
  async prune(options: { readonly settledBefore: number }): Promise<number> {
    this.#assertNotClosed('prune')
    return this.#parts.host.store.prune(options.settledBefore)
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

  async #close(
    runs: 'interrupt' | 'cancel' | 'leave',
    deadlineMs: number,
  ): Promise<{ readonly left: readonly string[] }> {
    const { host } = this.#parts
    const left = await this.#registry.close(runs, deadlineMs)
    this.#cancelHeartbeat()
    // Runs that are left owe answers that will not come.
    await this.#filed.close(left.length > 0 ? 0 : host.commitDeadlineMs)
    for (const run of this.#registry.runs.values()) run.leave()
    await host.commits.close(host.commitDeadlineMs, async () => {
      host.spool?.discard()
      await host.store.close()
    })
    return { left }
  }

  #handle(run: RunActor): Run {
    return new Run(run, (runId, mode, options: EndOptions) =>
      this.stop({ run: runId }, { ...options, mode, fence: false }),
    )
  }

  #exists(runId: string): RunwardenError {
    return new RunwardenError(
      'run-exists',
      `start: option id ${JSON.stringify(runId)} is already used in this store`,
    )
  }

  #assertNotClosed(verb: string): void {
    if (this.#closed !== null)
      throw new RunwardenError('engine-closing', `${verb}: the engine is closing or closed`)
  }

  async #begin(run: RunActor): Promise<void> {
    let begun = await run.begin()
    // A fence whose engine died holds nobody up.
    if (begun === 'fenced' && (await this.#elsewhere.abandonOrdersOfTheDead())) begun = await run.begin()
    if (begun === 'exists') throw this.#exists(run.id)
    if (begun === 'fenced') {
      throw new RunwardenError('scope-stopped', `run ${run.id}: a stop order covers its scope`)
    }
    if (begun !== 'applied')
      throw new RunwardenError('store-unavailable', `run ${run.id} could not be recorded`)
  }

  #hold(run: RunActor): void {
    run.onTransition((transition) => {
      for (const event of eventsOfTransition(run, transition)) this.#publish(event)
      // INV-11: what is over is in the store; the handle that the host holds goes on answering.
      if (run.state.isDone) this.#registry.letGo(run)
    })
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
      if (this.#closed === null)
        void this.#handle(run).cancel({ by: 'signal', reason: 'the signal given to start was aborted' })
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
