/**
 * The closing of one engine, on behalf of its registry.
 *
 * Owns: that the runs are told, and that there is an answer: when none is left, or at the deadline; also where the store takes no record
 *   of it, or another process writes over it.
 * Does not own: what closing is (the registry chart), nor how a run ends.
 * Invariants: INV-4 (what is left is named), INV-11, O10.
 */
import { messageOf } from '../errors.js'
import type { ClosePolicy } from '../machines/registry/registry.machine.js'
import type { HostServices, Posted } from './actor-role.js'
import type { StopRequest } from './registry-contract.js'
import type { RunActor } from './run.actor.js'
import { closingOrder, hasNothingToWaitFor, leftOf } from './runs-at-close.js'

/** What the registry lends. */
interface Drained {
  readonly runs: ReadonlyMap<string, RunActor>
  readonly post: (
    event:
      | { readonly type: 'registry.close'; readonly runs: ClosePolicy; readonly deadlineMs: number }
      | { readonly type: 'registry.emptied'; readonly left: readonly string[] },
  ) => Promise<Posted>
  /** Whether the registry's record says that it drains. */
  readonly isDraining: () => boolean
  readonly stop: (runIds: readonly string[], request: StopRequest) => Promise<unknown>
}

export class Closing {
  readonly #host: HostServices
  readonly #registry: Drained
  /** Draining without a record of it. */
  #isUnrecorded = false
  #answer: Promise<readonly string[]> | null = null
  #onClosed: (left: readonly string[]) => void = () => undefined

  constructor(host: HostServices, registry: Drained) {
    this.#host = host
    this.#registry = registry
  }

  /** In force from the tick of the call on. */
  get isBegun(): boolean {
    return this.#answer !== null
  }

  /** Resolves with the runs that are left. Repeated calls join the first. */
  begin(policy: ClosePolicy, deadlineMs: number): Promise<readonly string[]> {
    this.#answer ??= new Promise((resolve) => {
      this.#onClosed = resolve
      void this.#registry.post({ type: 'registry.close', runs: policy, deadlineMs }).then((posted) => {
        if (posted !== 'applied') this.#drainUnrecorded(policy, deadlineMs)
      })
    })
    return this.#answer
  }

  stopAll(mode: ClosePolicy): void {
    const { runIds, request } = closingOrder(this.#registry.runs, mode)
    if (runIds.length > 0) {
      this.#registry.stop(runIds, request).catch((error: unknown) => {
        this.#host.logger.error(
          { error: messageOf(error) },
          'the runs of a closing engine could not be stopped',
        )
      })
    }
    if (mode === 'leave') this.empty()
    else this.whenEmpty()
  }

  whenEmpty(): void {
    if (!this.isBegun || !hasNothingToWaitFor(this.#registry.runs)) return
    if (this.#isUnrecorded || this.#registry.isDraining()) this.empty()
  }

  empty(): void {
    const left = leftOf(this.#registry.runs)
    // Answered by what is recorded, and all the same where nothing can be.
    void this.#registry.post({ type: 'registry.emptied', left }).then(() => {
      this.answer(left)
    })
  }

  answer(left: readonly string[]): void {
    this.#onClosed(left)
  }

  #drainUnrecorded(policy: ClosePolicy, deadlineMs: number): void {
    this.#host.logger.error({}, 'the closing of the engine could not be recorded')
    this.#isUnrecorded = true
    const cancel = this.#host.clock.after(deadlineMs, () => {
      this.empty()
    })
    void this.#answer?.then(cancel)
    this.stopAll(policy)
  }
}
