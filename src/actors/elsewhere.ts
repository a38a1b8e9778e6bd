/**
 * The runs that other engines began, in a store that several share.
 *
 * Owns: what an order's scope holds there, and the answers that living engines owe.
 * Does not own: how runs of dead engines are taken (take-over.ts), what happens to a run once it is held here (the registry).
 * Invariants: INV-13, R5, R9 (an unknown chart version is refused by name).
 */
import { messageOf } from '../errors.js'
import type { RunContext } from '../machines/run/run.context.js'
import { RUN_MACHINE_VERSION } from '../machines/run/run.machine.js'
import { isFreezeMode } from '../machines/stop-order/stop-order.context.js'
import type { StopLine, StopScope } from '../machines/stop-order/stop-order.context.js'
import type { StoredRun } from './store.ports.js'
import type { Elsewhere } from './registry-contract.js'
import type { RunActor } from './run.actor.js'
import type { StopCall } from './stop-call.js'
import { TakeOver, unknownVersion } from './take-over.js'
import type { TakeOverOptions, Wanted } from './take-over.js'

const FOLLOW_WAIT_MS = 40
/** An engine that owes an answer is looked at with every fifth look for it. */
const JUDGE_EVERY = 5

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
  readonly #options: TakeOverOptions
  readonly #takeOver: TakeOver

  constructor(options: TakeOverOptions) {
    this.#options = options
    this.#takeOver = new TakeOver(options)
  }

  /** R3: takes every run whose engine is provably dead, as far as they are wanted. */
  takeOverAll(wanted: Wanted): Promise<readonly RunActor[]> {
    return this.#takeOver.takeAll(wanted)
  }

  async isGone(engineId: string): Promise<boolean> {
    return (await this.#takeOver.judge((await this.#takeOver.engines()).get(engineId))) === 'gone'
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
    const engines = await this.#takeOver.engines()
    for (const run of strangers.filter(({ head }) => head.doneAt === null)) {
      if (run.machineVersion !== RUN_MACHINE_VERSION) {
        answered.push(refusedLine(run))
        continue
      }
      if (isFreezeMode(mode) && (await this.#takeOver.judge(engines.get(run.owner))) === 'gone') {
        answered.push(orphanLine(run))
        continue
      }
      const taken = isFreezeMode(mode) ? null : await this.#takeOver.take(run, engines)
      if (taken === null) owned.push({ runId: run.row.id, work: 'open', owner: run.owner })
      else takenOver.push(taken)
    }
    return { takenOver, owned, answered }
  }

  /** A run of this engine's own that it does not hold: on record when nobody reckoned with it any more. */
  async reclaim(runId: string): Promise<RunActor | null> {
    const stored = await this.#options.host.store.loadRun(runId)
    return stored?.owner === this.#options.host.engineId ? this.#takeOver.take(stored, new Map()) : null
  }

  /** Orders whose engine died with them fence nothing any more. True when one was lifted. */
  async abandonOrdersOfTheDead(): Promise<boolean> {
    const { store, clock } = this.#options.host
    const orders = await store.openOrders()
    if (orders.length === 0) return false
    const engines = await this.#takeOver.engines()
    let hasLifted = false
    for (const { orderId, owner } of orders) {
      if ((await this.#takeOver.judge(engines.get(owner))) !== 'gone') continue
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
    const engines = await this.#takeOver.engines()
    for (const [runId] of [...call.awaited]) {
      const stored = await this.#options.host.store.loadRun(runId)
      if (stored === null) continue
      if (isFreezeMode(call.input.mode)) {
        if ((await this.#takeOver.judge(engines.get(stored.owner))) === 'gone')
          call.answeredElsewhere(orphanLine(stored))
        continue
      }
      const run = await this.#takeOver.take(stored, engines)
      if (run !== null) call.tell(run)
    }
  }
}
