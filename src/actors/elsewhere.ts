/**
 * The runs that other engines began, in a store that several share.
 *
 * Owns: the judgement whether an engine is dead, the fenced take-over of its runs, and the answers that living engines owe.
 * Does not own: what happens to a run once it is held here (the registry).
 * Invariants: INV-13, R2, R3, R5 (only a provably dead engine's runs are taken, and once), R9 (an unknown chart version is not touched).
 */
import { messageOf } from '../errors.js'
import type { RunContext } from '../machines/run/run.context.js'
import { RUN_MACHINE_VERSION } from '../machines/run/run.machine.js'
import { isFreezeMode } from '../machines/stop-order/stop-order.context.js'
import type { StopLine, StopScope } from '../machines/stop-order/stop-order.context.js'
import type { HostServices } from './actor-role.js'
import type { ExecutionRecord, ProcessPort } from './ports.js'
import type { EngineRow, ExecutionRow, StoredRun, TimerRow } from './store.ports.js'
import type { Elsewhere } from './registry-contract.js'
import type { ExecutionFacts } from './run-rows.js'
import type { RunActor } from './run.actor.js'
import type { StopCall } from './stop-call.js'

const FOLLOW_WAIT_MS = 40
/** An engine that owes an answer is looked at with every fifth look for it. */
const JUDGE_EVERY = 5

export interface ElsewhereOptions {
  readonly host: HostServices
  readonly processes: ProcessPort
  readonly hostId: string
  readonly isHeld: (runId: string) => boolean
  /** A run actor for a record, with no command to launch: it can be ended, watched and asked. */
  readonly makeRun: (stored: StoredRun) => RunActor
  readonly hold: (run: RunActor) => void
}

const recordOf = (execution: ExecutionRow & { readonly runId: string }): ExecutionRecord | null =>
  execution.marks === undefined
    ? null
    : {
        runId: execution.runId,
        attempt: execution.attempt,
        marks: execution.marks,
        containment: execution.containment ?? 'group',
        identity: execution.identity ?? null,
        launchedAt: execution.launchedAt ?? null,
        pane: execution.pane ?? null,
      }

const factsOf = (record: ExecutionRecord | null, logPath: string | null): ExecutionFacts | null =>
  record === null
    ? null
    : {
        marks: record.marks,
        containment: record.containment,
        logPath,
        identity: record.identity,
        launchedAt: record.launchedAt,
        pane: record.pane ?? null,
      }

export const doneLine = ({ row, head }: StoredRun): StopLine => {
  const outcome = head.outcome === null ? null : (JSON.parse(head.outcome) as { status: string })
  return {
    runId: row.id,
    status: 'already-terminal',
    work: outcome?.status ?? 'open',
    requestedAt: head.settledAt ?? row.createdAt,
    repeated: false,
    isLive: false,
  }
}

/** The order to end it that is on record. */
export const endOnRecord = ({ snapshot }: StoredRun): 'cancel' | 'interrupt' | null => {
  const kind = (JSON.parse(snapshot) as { readonly context: RunContext }).context.intent?.kind
  return kind === 'cancel' || kind === 'interrupt' ? kind : null
}

/** R9: another version's snapshot is another language; it is named, and touched by nothing. */
const unknownVersion = ({ row, machineVersion }: StoredRun): string =>
  `run ${row.id} was recorded with version ${String(machineVersion)} of the run chart; this library knows ${String(RUN_MACHINE_VERSION)}`

const refusedLine = (run: StoredRun): StopLine => ({
  ...doneLine(run),
  status: 'refused',
  isLive: true,
  error: unknownVersion(run),
})

/** Nobody is there to pause it, or to end its window: it is for a stop, or for the next engine. */
const orphanLine = (run: StoredRun): StopLine => ({
  ...doneLine(run),
  status: 'refused',
  isLive: true,
  error: 'the engine that ran it died: it can only be stopped',
})

export class Elsewheres {
  readonly #options: ElsewhereOptions

  constructor(options: ElsewhereOptions) {
    this.#options = options
  }

  /** What an order's scope holds besides what is held here. Rejects when the store cannot be read (K15). */
  async find(call: StopCall): Promise<Elsewhere> {
    // K17: unless the fence is on record first, another engine may launch what this does not find.
    if (call.input.isFenced) await call.isRecorded
    return this.findIn(call.scope, call)
  }

  /** The same for what the call reaches beyond its own scope: the parts of its runs. */
  async findIn(scope: StopScope, { input: { mode } }: StopCall): Promise<Elsewhere> {
    const { host, isHeld } = this.#options
    const stored = await host.store.listRuns({ scope, onlyOpen: scope.runIds === undefined })
    const strangers = stored.filter(({ row }) => !isHeld(row.id))
    const answered = strangers.filter(({ head }) => head.doneAt !== null).map(doneLine)
    const takenOver: RunActor[] = []
    const owned: { runId: string; work: string; owner: string }[] = []
    const engines = await this.#engines()
    for (const run of strangers.filter(({ head }) => head.doneAt === null)) {
      if (run.machineVersion !== RUN_MACHINE_VERSION) {
        answered.push(refusedLine(run))
        continue
      }
      if (isFreezeMode(mode) && (await this.#judge(engines.get(run.owner))) === 'gone') {
        answered.push(orphanLine(run))
        continue
      }
      const taken = isFreezeMode(mode) ? null : await this.#takeOver(run, engines)
      if (taken === null) owned.push({ runId: run.row.id, work: 'open', owner: run.owner })
      else takenOver.push(taken)
    }
    return { takenOver, owned, answered }
  }

  /** R3: takes every run whose engine is provably dead. */
  async takeOverAll(): Promise<readonly RunActor[]> {
    const { host } = this.#options
    const strangers = await host.store.openRunsOfOthers(host.engineId)
    if (strangers.length === 0) return []
    const engines = await this.#engines()
    const taken: RunActor[] = []
    for (const { runId } of strangers) {
      const stored = await host.store.loadRun(runId)
      const run = stored === null ? null : await this.#takeOver(stored, engines)
      if (run !== null) taken.push(run)
    }
    return taken
  }

  /** A run of this engine's own that it does not hold: on record when nobody reckoned with it any more. */
  async reclaim(runId: string): Promise<RunActor | null> {
    const stored = await this.#options.host.store.loadRun(runId)
    return stored?.owner === this.#options.host.engineId ? this.#takeOver(stored, new Map()) : null
  }

  /** Orders whose engine died with them fence nothing any more. True when one was lifted. */
  async abandonOrdersOfTheDead(): Promise<boolean> {
    const { store, clock } = this.#options.host
    const orders = await store.openOrders()
    if (orders.length === 0) return false
    const engines = await this.#engines()
    let hasLifted = false
    for (const { orderId, owner } of orders) {
      if ((await this.#judge(engines.get(owner))) !== 'gone') continue
      await store.abandonOrder(orderId, clock.wallMs())
      hasLifted = true
    }
    return hasLifted
  }

  /** Feeds the answers of other engines to a call; an engine that dies while it owes one loses its runs to this engine. */
  follow(call: StopCall): () => void {
    const { host } = this.#options
    let cancel = (): void => undefined
    let isOver = false
    let rounds = 0
    const look = async (): Promise<void> => {
      try {
        const lines = call.awaited.size === 0 ? [] : await host.store.linesOf(call.input.orderId)
        for (const line of lines) if (line.status !== 'requested') call.answeredElsewhere(line)
        rounds += 1
        if (rounds % JUDGE_EVERY === 0) await this.#takeFromTheDead(call)
      } catch (error) {
        host.logger.warn({ error: messageOf(error) }, 'the answers of other engines could not be read')
      }
      if (!isOver) wait()
    }
    const wait = (): void => {
      cancel = host.clock.after(FOLLOW_WAIT_MS, () => void look(), { isBackground: true })
    }
    wait()
    return () => {
      isOver = true
      cancel()
    }
  }

  async #takeFromTheDead(call: StopCall): Promise<void> {
    if (call.awaited.size === 0) return
    const engines = await this.#engines()
    for (const [runId] of [...call.awaited]) {
      const stored = await this.#options.host.store.loadRun(runId)
      if (stored === null) continue
      if (isFreezeMode(call.input.mode)) {
        if ((await this.#judge(engines.get(stored.owner))) === 'gone')
          call.answeredElsewhere(orphanLine(stored))
        continue
      }
      const run = await this.#takeOver(stored, engines)
      if (run !== null) call.tell(run)
    }
  }

  async #engines(): Promise<ReadonlyMap<string, EngineRow>> {
    const rows = await this.#options.host.store.listEngines()
    return new Map(rows.map((row) => [row.id, row]))
  }

  async isGone(engineId: string): Promise<boolean> {
    return (await this.#judge((await this.#engines()).get(engineId))) === 'gone'
  }

  /** R5: an engine that closed has given its runs up; one that cannot be judged keeps them. */
  async #judge(engine: EngineRow | undefined): Promise<'alive' | 'gone' | 'unknown'> {
    if (engine === undefined) return 'unknown'
    if (engine.closedAt !== null) return 'gone'
    if (engine.hostId !== this.#options.hostId) return 'unknown'
    return this.#options.processes.lookUp(engine.identity)
  }

  async #takeOver(stored: StoredRun, engines: ReadonlyMap<string, EngineRow>): Promise<RunActor | null> {
    const { host, isHeld } = this.#options
    const runId = stored.row.id
    const isOurs = stored.owner === host.engineId
    if (!isOurs && (await this.#judge(engines.get(stored.owner))) !== 'gone') return null
    if (stored.machineVersion !== RUN_MACHINE_VERSION) {
      host.logger.error({ run: runId }, `a run is left alone: ${unknownVersion(stored)}`)
      return null
    }
    if (!isOurs && !(await host.store.takeOver(runId, stored.owner, host.engineId))) return null
    // Read again: the dead engine's last write may have come between the first look and the take-over.
    const current = await host.store.loadRun(runId)
    if (current === null || isHeld(runId)) return null
    return this.#resume(current)
  }

  async #resume(stored: StoredRun): Promise<RunActor> {
    const { host, makeRun, hold } = this.#options
    const runId = stored.row.id
    const [executions, timers] = await Promise.all([
      host.store.executionsOf([runId]),
      host.store.timersOf('run', runId),
    ])
    const last = executions.at(-1)
    const record = last === undefined ? null : recordOf(last)
    const run = makeRun(stored)
    run.resume(
      stored,
      timers.map((timer) => this.#afresh(timer)),
      factsOf(record, last?.logPath ?? null),
    )
    hold(run)
    run.environment.deliveries.resume(run)
    if (record !== null && !run.state.isConfirmed) await this.#reconcile(run, record)
    return run
  }

  /** The kill is done again from here, and so is the hook: its deadline counts from now, not from the dead engine's. */
  #afresh(timer: TimerRow): TimerRow {
    const isAfresh = /^xstate\.after\.(killGrace|finalizeDeadline)/.test(timer.id)
    return isAfresh ? { ...timer, dueAt: this.#options.host.clock.wallMs() + timer.delayMs } : timer
  }

  /** Brings the chart and the machine together again: what is left of the tree is watched, and the ladder's step is done again (R4). */
  async #reconcile(run: RunActor, record: ExecutionRecord): Promise<void> {
    const processActor = run.newProcess(record.attempt, { isAdopted: true })
    await processActor.adopt(record)
    switch (run.state.process) {
      case 'launching':
        // R2: found by its marks, it is launched; not found, its tree is gone and the actor says so.
        if (processActor.identity !== null)
          await run.post({ type: 'process.launched', attempt: record.attempt })
        break
      case 'term-sent':
        processActor.terminate()
        break
      case 'kill-sent':
        processActor.kill(run.policy.killGraceMs)
        break
      case 'frozen':
        // Not waited for: others are to be taken up, and what ends this one ends the freeze.
        void processActor.freeze({ isTakenUp: true })
        break
      default:
        break
    }
  }
}
