/**
 * The stop-order actor: the durable record of one stop order.
 *
 * Does not own: the runs, nor the receipt (stop-call.ts), which is given also when this record cannot be written.
 */
import { pathOf } from '../machines/run/run.headline.js'
import type { StopLine, StopOrderContext, StopOrderInput } from '../machines/stop-order/stop-order.context.js'
import { STOP_ORDER_MACHINE_VERSION, stopOrderMachine } from '../machines/stop-order/stop-order.machine.js'
import { AuthorityRole } from './authority-role.js'
import { DurableActor } from './durable-actor.js'
import type { ActorRole, HostServices, Posted, Transition } from './actor-role.js'
import type { KindRows } from './store.ports.js'

const isSettled = (snapshot: { readonly value: unknown }): boolean =>
  pathOf(snapshot.value).startsWith('settled')

export class StopOrderActor extends AuthorityRole implements ActorRole {
  readonly kind = 'stop-order'
  readonly machine = stopOrderMachine
  readonly machineVersion = STOP_ORDER_MACHINE_VERSION
  /** Settles when every line has its answer on record. */
  readonly settled: Promise<void>
  readonly #input: StopOrderInput
  readonly #durable: DurableActor
  /** The engines whose answers are awaited through the store, by run. */
  #owners: ReadonlyMap<string, string> = new Map()
  #settle: () => void = () => undefined

  constructor(input: StopOrderInput, host: HostServices) {
    super()
    this.#input = input
    this.#durable = new DurableActor(input.orderId, this, host)
    this.settled = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  /** `recordedLate`: see `DurableActor.begin`. */
  begin(recordedLate: () => void): Promise<Posted> {
    return this.#durable.begin(this.#input, recordedLate)
  }

  dispatched(
    lines: readonly StopLine[],
    owners: ReadonlyMap<string, string>,
    lookup: 'complete' | 'incomplete',
  ): Promise<Posted> {
    this.#owners = owners
    return this.#durable.post({ type: 'order.dispatched', lines, lookup })
  }

  answered(line: StopLine): Promise<Posted> {
    return this.#durable.post({ type: 'line.answered', line })
  }

  refused(error: string): Promise<Posted> {
    return this.#durable.post({ type: 'order.refused', error })
  }

  // ── the role ─────────────────────────────────────────────────────────────────────────────────

  describe(snapshot: { readonly value: unknown }): string {
    return JSON.stringify({ order: pathOf(snapshot.value) })
  }

  rows({ before, after, at }: Transition): KindRows {
    const { scope, mode, force, isFenced, reason, by, requestedAt, lines } = after.context as StopOrderContext
    const isFiled = ({ runId, status }: StopLine): boolean =>
      status === 'requested' && this.#owners.has(runId)
    const was = (before?.context as StopOrderContext | undefined)?.lines ?? {}
    return {
      kind: 'stop-order',
      ...(before === null
        ? { created: { scope, mode, isForced: force, isFenced, reason, by, requestedAt } }
        : {}),
      state: pathOf(after.value),
      // Only what this transition changed: the other engines write their lines themselves.
      lines: Object.values(lines)
        .filter((line) => was[line.runId] !== line)
        .map((line) => ({ ...line, owner: isFiled(line) ? (this.#owners.get(line.runId) ?? null) : null })),
      settledAt: isSettled(after) ? at : null,
    }
  }

  committed({ after }: Transition): void {
    if (isSettled(after)) this.#settle()
  }

  faulted(): void {
    this.#settle()
  }

  disowned(): void {
    this.#settle()
  }
}
