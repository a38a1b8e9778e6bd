/**
 * The registry actor: the single stop authority of one engine (INV-2).
 *
 * Owns: which runs this engine holds, the admission of launches, the fences, the stop calls.
 * Does not own: how a run ends (its chart and its process actor), closing (closing.ts), nor the runs of other engines (elsewhere.ts).
 * Messages in: start, stop, close; orders that other engines filed in the store.
 * Messages out: intents to runs.
 * Invariants: INV-2, INV-4 (closing names what is left), INV-7, INV-11 (every answer has a deadline), K14–K18.
 */
import { RunwardenError, messageOf } from '../errors.js'
import {
  REGISTRY_MACHINE_VERSION,
  admits,
  isInScope,
  registryMachine,
} from '../machines/registry/registry.machine.js'
import type { ClosePolicy, RegistryContext } from '../machines/registry/registry.machine.js'
import { isFreezeMode } from '../machines/stop-order/stop-order.context.js'
import type { StopLine, StopMode, StopScope } from '../machines/stop-order/stop-order.context.js'
import { AuthorityRole } from './authority-role.js'
import { Closing } from './closing.js'
import { DurableActor } from './durable-actor.js'
import type { ActorRole, HostServices, Transition } from './actor-role.js'
import { findParts, isPartOf, tellParts } from './cascade.js'
import { endRun } from './ending.js'
import type { FiledLine, KindRows } from './store.ports.js'
import type { Elsewhere, RegistryOptions, RunIdentity, StopRequest } from './registry-contract.js'
import type { RunActor } from './run.actor.js'
import { inTime } from './store-waits.js'
import { StopCall } from './stop-call.js'
import type { StopReceipt } from './stop-call.js'

const LADDER_SLACK_MS = 5_000
const LOOKUP_MAX_MS = 5_000
/** The ladder of a run whose policy is not known here. */
const UNKNOWN_LADDER_MS = 7_000

const identityOf = ({ id, row }: RunActor): RunIdentity => ({
  runId: id,
  session: row.session ?? undefined,
  task: row.task ?? undefined,
  labels: row.labels,
})

const ladderMs = ({ policy }: RunActor): number =>
  (policy.canAsk ? policy.askGraceMs : 0) + policy.termGraceMs + policy.killGraceMs

/** O10: closing is in force from its call on, like a cancel. */
const refusedByClosing = ({ id, state }: RunActor, mode: StopMode, requestedAt: number): StopLine => ({
  runId: id,
  status: 'refused',
  work: state.outcome?.status ?? 'open',
  requestedAt,
  repeated: false,
  isLive: !state.isSettled,
  error: `${mode}: the engine that holds the run is closing`,
})

export class RegistryActor extends AuthorityRole implements ActorRole {
  readonly kind = 'registry'
  readonly machine = registryMachine
  readonly machineVersion = REGISTRY_MACHINE_VERSION
  readonly runs = new Map<string, RunActor>()
  readonly #options: RegistryOptions
  readonly #host: HostServices
  readonly #durable: DurableActor
  /** Calls from their first tick on: their fences hold before they are on record (K17). */
  readonly #calls = new Map<string, StopCall>()
  readonly #served = new Set<string>()
  readonly #closing: Closing

  constructor(options: RegistryOptions, host: HostServices) {
    super()
    this.#options = options
    this.#host = host
    this.#durable = new DurableActor(options.engine.id, this, host)
    this.#closing = new Closing(host, {
      runs: this.runs,
      post: (event) => this.#durable.post(event),
      isDraining: () => this.state.value === 'draining',
      stop: (runIds, request) => this.stop({ runIds }, request),
    })
  }

  get state(): { readonly value: string; readonly context: RegistryContext } {
    const { snapshot } = this.#durable
    return { value: snapshot.value as string, context: snapshot.context as RegistryContext }
  }

  async begin(): Promise<void> {
    await this.#durable.begin({ engineId: this.#options.engine.id })
  }

  async recovered(): Promise<void> {
    await this.#durable.post({ type: 'registry.recovered' })
  }

  // ── admission ────────────────────────────────────────────────────────────────────────────────

  /** Throws when nothing may be launched for this run now. Decided in the tick that asks. */
  assertAdmits(run: RunIdentity): void {
    const isFencedNow = [...this.#calls.values()].some(
      ({ input }) => input.isFenced && isInScope(input.scope, run),
    )
    const verdict = this.#closing.isBegun ? 'engine-closing' : admits(this.state, run)
    if (verdict === 'engine-closing') {
      throw new RunwardenError(
        'engine-closing',
        `run ${run.runId}: the engine is closing and launches nothing`,
      )
    }
    if (verdict === 'scope-stopped' || isFencedNow) {
      throw new RunwardenError('scope-stopped', `run ${run.runId}: a stop order covers its scope`)
    }
  }

  /** Holds the run from now on; every scope that is being resolved reaches it (K17). */
  hold(run: RunActor): void {
    this.runs.set(run.id, run)
    for (const call of this.#calls.values()) {
      const isCovered = isInScope(call.scope, identityOf(run)) || isPartOf(run, call)
      if (!call.isDispatched && isCovered) call.tell(run)
    }
    run.onTransition(() => {
      this.#closing.whenEmpty()
    })
  }

  letGo(run: RunActor): void {
    if (this.runs.get(run.id) === run) this.runs.delete(run.id)
    this.#closing.whenEmpty()
  }

  /** Each attempt asks again: what was admitted before may be fenced now (INV-7). */
  admitAttempt(run: RunActor): void {
    try {
      this.assertAdmits(identityOf(run))
    } catch (error) {
      void run.post({ type: 'run.interrupt', by: 'registry', reason: messageOf(error), force: false })
      return
    }
    void run.post({ type: 'run.admitted' })
  }

  // ── stopping ─────────────────────────────────────────────────────────────────────────────────

  /**
   * Ends what a scope holds. The intents of runs held here are in force when this call returns its promise (P1).
   * Never rejects because a process would not die; rejects `unknown-run` when the scope names a run that is nowhere.
   */
  async stop(scope: StopScope, request: StopRequest): Promise<StopReceipt> {
    const calledMs = this.#host.clock.monotonicMs()
    const call = this.#open(scope, request)
    const { lookup, ...elsewhere } = await this.#lookUp(call, request.timeoutMs)
    const missing = this.#missing(call, elsewhere, lookup)
    if (missing.length > 0) {
      await call.refuse(`unknown run ${missing.join(', ')}`)
      await this.#lift(call)
      throw new RunwardenError('unknown-run', `run ${missing.join(', ')} is not in this store`)
    }
    this.#tellHeld(call)
    for (const run of elsewhere.takenOver) call.tell(run)
    const stopFollowing = this.#options.followElsewhere(call)
    await call.dispatch({ ...elsewhere, lookup })
    const timeoutMs = request.timeoutMs ?? this.#defaultTimeoutMs(call, elsewhere)
    const isAnswered = await call.settled(timeoutMs - (this.#host.clock.monotonicMs() - calledMs))
    const receipt = call.receipt()
    // INV-11: the receipt is given now; the order goes on until every run has answered.
    const end = call.recorded().then(async () => {
      stopFollowing()
      await this.#lift(call)
    })
    if (isAnswered) await end
    return receipt
  }

  #open(scope: StopScope, request: StopRequest): StopCall {
    const { mode, force, reason, by, isFenced } = request
    const orderId = this.#options.newId()
    const requestedAt = this.#host.clock.wallMs()
    const call = new StopCall({ orderId, scope, mode, force, reason, by, isFenced, requestedAt }, this.#host)
    this.#calls.set(orderId, call)
    // A call that names a run which is nowhere is refused whole: it is looked up before anyone is told.
    if (this.#isAllHeld(scope) || scope.runIds === undefined) this.#tellHeld(call)
    if (isFenced) void this.#durable.post({ type: 'order.recorded', orderId, fence: scope })
    return call
  }

  #isAllHeld({ runIds }: StopScope): boolean {
    return runIds?.every((runId) => this.runs.has(runId)) ?? false
  }

  #tellHeld(call: StopCall): void {
    for (const run of this.runs.values()) if (isInScope(call.scope, identityOf(run))) call.tell(run)
    tellParts(call, this.runs)
  }

  async #lookUp(
    call: StopCall,
    timeoutMs = LOOKUP_MAX_MS,
  ): Promise<Elsewhere & { readonly lookup: StopReceipt['lookup'] }> {
    try {
      return { ...(await inTime(this.#host.clock, this.#findElsewhere(call), timeoutMs)), lookup: 'complete' }
    } catch (error) {
      // K15: what could not be looked up is not "nothing"; what is known here is stopped all the same.
      this.#host.logger.error({ error: messageOf(error) }, 'a stop could not look into the store')
      return { takenOver: [], owned: [], answered: [], lookup: 'incomplete' }
    }
  }

  async #findElsewhere(call: StopCall): Promise<Elsewhere> {
    const { scope } = call
    const isAllHeld = this.#isAllHeld(scope)
    const first = isAllHeld
      ? { takenOver: [], owned: [], answered: [] }
      : await this.#options.findElsewhere(call)
    return findParts(call, first, this.runs, this.#options)
  }

  #missing(
    call: StopCall,
    { takenOver, owned, answered }: Elsewhere,
    lookup: StopReceipt['lookup'],
  ): readonly string[] {
    if (lookup === 'incomplete') return []
    const found = new Set([
      ...[...owned, ...answered].map(({ runId }) => runId),
      ...takenOver.map(({ id }) => id),
    ])
    return (call.scope.runIds ?? []).filter(
      (runId) => !this.runs.has(runId) && !call.hasTold(runId) && !found.has(runId),
    )
  }

  #defaultTimeoutMs(call: StopCall, { owned }: Elsewhere): number {
    const ladders = [...this.runs.values()].filter(({ id }) => call.hasTold(id)).map(ladderMs)
    return Math.max(0, ...ladders, owned.length > 0 ? UNKNOWN_LADDER_MS : 0) + LADDER_SLACK_MS
  }

  async #lift(call: StopCall): Promise<void> {
    this.#calls.delete(call.input.orderId)
    if (call.input.isFenced) await this.#durable.post({ type: 'order.settled', orderId: call.input.orderId })
  }

  /** Another engine filed an order over a run. Served once, null after that; resolves with the answer; undefined: it is not held here. */
  async serve(filed: FiledLine): Promise<StopLine | null | undefined> {
    const key = `${filed.orderId} ${filed.runId}`
    if (this.#served.has(key)) return null
    this.#served.add(key)
    const run = this.runs.get(filed.runId)
    if (run === undefined) return undefined
    const { isForced, mode, reason, by, requestedAt } = filed
    const request = { mode: mode as StopMode, force: isForced, reason, by, requestedAt }
    if (this.#closing.isBegun && isFreezeMode(request.mode))
      return refusedByClosing(run, request.mode, requestedAt)
    return endRun(run, request, this.#host.clock).answer
  }

  // ── closing ──────────────────────────────────────────────────────────────────────────────────

  /** O10: resolves with the runs that are left, empty when every one is confirmed. Repeated calls join the first. */
  close(policy: ClosePolicy, deadlineMs: number): Promise<readonly string[]> {
    // S2: what the store did not even take on record holds nothing.
    if (this.#durable.current === null) return Promise.resolve([])
    return this.#closing.begin(policy, deadlineMs)
  }

  // ── the role ─────────────────────────────────────────────────────────────────────────────────

  describe(snapshot: { readonly value: unknown }): string {
    return JSON.stringify({ registry: snapshot.value })
  }

  rows({ before, after, at }: Transition): KindRows {
    const state = after.value as string
    return {
      kind: 'registry',
      ...(before === null ? { created: this.#options.engine } : {}),
      state,
      closedAt: state === 'closed' ? at : null,
    }
  }

  committed({ after, effects }: Transition): void {
    for (const { type, params } of effects) {
      if (type === 'runs.stop') this.#closing.stopAll((params as { mode: ClosePolicy }).mode)
      if (type === 'runs.name-survivors') this.#closing.empty()
    }
    if (after.value === 'closed') this.#closing.answer((after.context as RegistryContext).left)
  }

  faulted(error: unknown): void {
    this.#host.logger.error({ error: messageOf(error) }, 'the registry chart failed')
  }

  disowned(): void {
    this.#host.logger.error({}, 'another process writes as this engine')
  }
}
