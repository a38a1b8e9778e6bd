/**
 * One call to stop a scope: who was told, what each answered, and the receipt.
 *
 * Owns: the lines of the order while it is open, in memory first and on record as soon as the store takes them. A store that does not
 *   answer holds up the record, never the stop (K15).
 * Invariants: INV-11 (the receipt is given at its deadline; the first answer of a run stands), K17.
 */
import { messageOf } from '../errors.js'
import type { StopLine, StopOrderInput, StopScope } from '../machines/stop-order/stop-order.context.js'
import type { HostServices } from './actor-role.js'
import { endRun } from './ending.js'
import type { RunActor } from './run.actor.js'
import { StopOrderActor } from './stop-order.actor.js'

export interface StopReceipt {
  readonly orderId: string
  readonly requestedAt: number
  /** `requested`: at the deadline some run had not answered yet. */
  readonly status: 'confirmed' | 'unconfirmed' | 'requested' | 'nothing-to-stop' | 'refused'
  /** `incomplete`: the store could not be read; what the registry knew was stopped all the same. */
  readonly lookup: 'complete' | 'incomplete'
  readonly runs: readonly StopLine[]
}

/** A run that another engine must answer for. */
export interface OwnedElsewhere {
  readonly runId: string
  readonly work: string
  readonly owner: string
}

const isQuiet = ({ status, isLive }: StopLine): boolean => status === 'already-terminal' && !isLive

const statusOf = (lines: readonly StopLine[], lookup: StopReceipt['lookup']): StopReceipt['status'] => {
  if (lines.some(({ status }) => status === 'requested')) return 'requested'
  if (lines.some(({ status }) => status === 'unconfirmed')) return 'unconfirmed'
  // K15: a lookup that failed is never "nothing to stop".
  if (lines.every(isQuiet)) return lookup === 'complete' ? 'nothing-to-stop' : 'requested'
  if (lines.every(({ status }) => status === 'refused')) return 'refused'
  // INV-5: a run that refused is not proven gone.
  return lines.some(({ status }) => status === 'refused') ? 'unconfirmed' : 'confirmed'
}

export class StopCall {
  readonly input: StopOrderInput
  readonly #host: HostServices
  readonly #order: StopOrderActor
  readonly #lines = new Map<string, StopLine>()
  readonly #owners = new Map<string, string>()
  #open = 0
  #lookup: StopReceipt['lookup'] = 'complete'
  #isDispatched = false
  readonly #isRecorded: Promise<boolean>
  #onAnswered: () => void = () => undefined

  constructor(input: StopOrderInput, host: HostServices) {
    this.input = input
    this.#host = host
    this.#order = new StopOrderActor(input, host)
    this.#isRecorded = this.#order
      .begin(() => void this.#abandon())
      .then(
        () => true,
        (error: unknown) => {
          host.logger.error(
            { order: input.orderId, error: messageOf(error) },
            'a stop order could not be recorded',
          )
          return false
        },
      )
  }

  /** The order's record, and its fence, are in the store; false when that could not be had in time. */
  get isRecorded(): Promise<boolean> {
    return this.#isRecorded
  }

  get scope(): StopScope {
    return this.input.scope
  }

  /** Runs that are told from now on are not covered: the scope is resolved. */
  get isDispatched(): boolean {
    return this.#isDispatched
  }

  /** Whose line is in the receipt already. */
  covers(runId: string): boolean {
    return this.#lines.has(runId)
  }

  get covered(): readonly string[] {
    return [...this.#lines.keys()]
  }

  /** A pause is of the runs that it names, and what is settled has no parts that are to end with it. */
  get reachesParts(): boolean {
    return this.input.mode === 'cancel' || this.input.mode === 'interrupt'
  }

  hasTold(runId: string): boolean {
    const line = this.#lines.get(runId)
    return line !== undefined && !this.#owners.has(runId)
  }

  /** Gives a run held here its intent, in this tick (P1). */
  tell(run: RunActor): void {
    if (this.hasTold(run.id)) return
    // A run that was taken from a dead engine is awaited already.
    const isAwaited = this.#owners.delete(run.id)
    const { first, answer } = endRun(run, this.input, this.#host.clock)
    this.#lines.set(run.id, first)
    if (first.status !== 'requested') {
      if (isAwaited) this.#answer(first)
      return
    }
    if (!isAwaited) this.#open += 1
    void answer.then((line) => {
      this.#answer(line)
    })
  }

  /** The scope is resolved: what other engines hold, and what is done already, joins what was told. */
  async dispatch(elsewhere: {
    readonly owned: readonly OwnedElsewhere[]
    readonly answered: readonly StopLine[]
    readonly lookup: StopReceipt['lookup']
  }): Promise<void> {
    this.#isDispatched = true
    this.#lookup = elsewhere.lookup
    for (const { runId, work, owner } of elsewhere.owned) {
      const { requestedAt } = this.input
      this.#owners.set(runId, owner)
      this.#lines.set(runId, { runId, status: 'requested', work, requestedAt, repeated: false, isLive: true })
      this.#open += 1
    }
    for (const line of elsewhere.answered) this.#lines.set(line.runId, line)
    if (!(await this.#isRecorded)) return
    const lines = [...this.#lines.values()]
    await this.#order.dispatched(lines, new Map(this.#owners), elsewhere.lookup)
    for (const line of lines) {
      const current = this.#lines.get(line.runId)
      if (current !== undefined && current.status !== line.status) void this.#order.answered(current)
    }
  }

  /** The scope named something that is not there. */
  async refuse(error: string): Promise<void> {
    this.#isDispatched = true
    if (await this.#isRecorded) await this.#order.refused(error)
  }

  /** Runs whose answer another engine owes, by owner. */
  get awaited(): ReadonlyMap<string, string> {
    return this.#owners
  }

  /** Another engine answered through the store. */
  answeredElsewhere(line: StopLine): void {
    if (!this.#owners.delete(line.runId)) return
    this.#answer(line)
  }

  /** Resolves when every run has answered, true; or at the deadline, false. */
  async settled(timeoutMs: number): Promise<boolean> {
    if (this.#open === 0) return true
    return new Promise((resolve) => {
      const cancel = this.#host.clock.after(timeoutMs, () => {
        resolve(false)
      })
      this.#onAnswered = () => {
        cancel()
        resolve(true)
      }
    })
  }

  receipt(): StopReceipt {
    const { orderId, requestedAt } = this.input
    const runs = [...this.#lines.values()]
    return { orderId, requestedAt, status: statusOf(runs, this.#lookup), lookup: this.#lookup, runs }
  }

  /** The record is complete: every answer is in it. */
  async recorded(): Promise<void> {
    if (await this.#isRecorded) await this.#order.settled
  }

  /** On record after all, when nobody reckoned with it any more: its fence must not stand for ever. */
  async #abandon(): Promise<void> {
    const { store, clock, logger } = this.#host
    await store.abandonOrder(this.input.orderId, clock.wallMs()).catch((error: unknown) => {
      logger.error(
        { order: this.input.orderId, error: messageOf(error) },
        'the fence of an order that was recorded too late stands until this engine closes',
      )
    })
  }

  #answer(line: StopLine): void {
    this.#lines.set(line.runId, line)
    this.#open -= 1
    if (this.#isDispatched) void this.#order.answered(line)
    if (this.#open === 0 && this.#isDispatched) this.#onAnswered()
  }
}
