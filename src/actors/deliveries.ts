/**
 * The delivery of outcomes to the host, through the hooks that it gave the engine.
 *
 * Owns: that each hook is bounded, and what its answer, its silence or its throw means.
 * Does not own: when to deliver, and whether again (the run chart).
 * Invariants: INV-11 (a hook has a deadline; what it says later changes nothing), INV-12 (a delivery that was acknowledged is not made
 *   again, also when the host acknowledged it in a transaction of its own), P19 (a throw reaches nothing else).
 */
import { RunwardenError, messageOf } from '../errors.js'
import type { Outcome } from '../machines/run/run.context.js'
import type { HostServices } from './actor-role.js'
import type { RunActor } from './run.actor.js'
import type { ResultRow } from './store.ports.js'

/** A run whose work is settled, for `finalize`. Its processes may still be being ended (INV-15). */
export interface SettledRun {
  readonly runId: string
  readonly session: string | null
  readonly task: string | null
  readonly labels: Readonly<Record<string, string>>
  readonly outcome: Outcome
}

/** One outcome on its way to the host. */
export interface Delivery extends SettledRun {
  /** The same in every repetition: a host that has seen it has the outcome (INV-12). */
  readonly deliveryId: string
  /** What `finalize` made of it, as JSON would have it. */
  readonly finalized?: unknown
  /** Why `finalize` made nothing of it. */
  readonly finalizeError?: string
}

export interface HookContext {
  /** Aborts when the answer is not awaited any more. */
  readonly signal: AbortSignal
}

export interface DeliveryHooks {
  /** Called once a run is settled, to add what the host wants delivered with the outcome. The outcome itself stands (P3). */
  readonly finalize?: (run: SettledRun, context: HookContext) => unknown
  /** Called until it returns or resolves without a throw. */
  readonly deliver?: (delivery: Delivery, context: HookContext) => unknown
  /** Default 30 000 ms. */
  readonly finalizeDeadlineMs: number
  /** Default 30 000 ms. */
  readonly deliverDeadlineMs: number
}

const FINALIZED_CHARS_MAX = 1024 * 1024

/** P3: a copy, so that nothing that the host does to it reaches the record. */
const settledRun = (run: RunActor, outcome: Outcome): SettledRun => {
  const { id: runId, session, task, labels } = run.row
  return structuredClone({ runId, session, task, labels, outcome })
}

const deliveryOf = (run: RunActor, { deliveryId, body, finalized }: ResultRow): Delivery => {
  const made = (finalized === null ? {} : JSON.parse(finalized)) as {
    readonly value?: unknown
    readonly error?: string
  }
  return {
    ...settledRun(run, JSON.parse(body) as Outcome),
    deliveryId,
    ...('value' in made ? { finalized: made.value } : {}),
    ...(made.error === undefined ? {} : { finalizeError: made.error }),
  }
}

const bodyOf = (value: unknown): string => {
  const body = JSON.stringify({ value })
  return body.length > FINALIZED_CHARS_MAX
    ? JSON.stringify({
        error: `finalize returned more than ${String(FINALIZED_CHARS_MAX)} characters of JSON`,
      })
    : body
}

export class Deliveries {
  readonly #hooks: DeliveryHooks
  readonly #host: HostServices
  readonly #isOpen: Promise<void>
  #open: () => void = () => undefined

  constructor(hooks: DeliveryHooks, host: HostServices) {
    this.#hooks = hooks
    this.#host = host
    this.#isOpen = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  /** Whether there is a hook that an outcome can be given to. */
  get canDeliver(): boolean {
    return this.#hooks.deliver !== undefined
  }

  get canFinalize(): boolean {
    return this.#hooks.finalize !== undefined
  }

  /** No hook is called before the host can have the engine, which its hooks may want to ask. */
  open(): void {
    this.#open()
  }

  /** Answers in time or not at all: the chart has the same deadline. */
  async finalize(run: RunActor): Promise<void> {
    const { finalize, finalizeDeadlineMs } = this.#hooks
    const { outcome } = run.context
    if (finalize === undefined && run.policy.hasFinalize) {
      // It was accepted by an engine that finalizes. One that can may take it up in time; without one the chart goes on at its deadline.
      this.#host.logger.warn({ run: run.id }, 'an outcome waits for an engine with a finalize hook')
      return
    }
    if (finalize === undefined || outcome === null) {
      await run.post({ type: 'delivery.finalized' })
      return
    }
    const body = await this.#inTime('finalize', finalizeDeadlineMs, (context) =>
      finalize(settledRun(run, outcome), context),
    )
      .then(bodyOf)
      .catch((error: unknown) => JSON.stringify({ error: messageOf(error) }))
    await run.post({ type: 'delivery.finalized', body })
  }

  /** R4: what an engine that died had begun to deliver is delivered from the start, under the same id. */
  resume(run: RunActor): void {
    const { delivery } = run.state
    if (delivery === 'finalizing') void this.finalize(run)
    if (delivery === 'delivering') void this.deliver(run)
  }

  async deliver(run: RunActor): Promise<void> {
    const { deliver, deliverDeadlineMs } = this.#hooks
    if (deliver === undefined) {
      // It was accepted by an engine that delivers; this one cannot, and the next one that can will.
      this.#host.logger.warn({ run: run.id }, 'an outcome waits for an engine with a deliver hook')
      return
    }
    try {
      const row = await this.#host.store.resultOf(run.id)
      // S2: settled on the strength of the spool; the row follows when the store answers.
      if (row === null) throw new RunwardenError('store-unavailable', 'the outcome is not in the store yet')
      if (row.acknowledgedAt === null) {
        await this.#inTime('deliver', deliverDeadlineMs, (context) =>
          // P18: it may have been suppressed since it was begun.
          run.state.delivery === 'delivering' ? deliver(deliveryOf(run, row), context) : undefined,
        )
      }
      await run.post({ type: 'delivery.acknowledged' })
    } catch (error) {
      this.#host.logger.warn({ run: run.id, error: messageOf(error) }, 'a delivery failed')
      await run.post({ type: 'delivery.failed', error: messageOf(error) })
    }
  }

  async #inTime(name: string, deadlineMs: number, hook: (context: HookContext) => unknown): Promise<unknown> {
    await this.#isOpen
    const patience = new AbortController()
    return new Promise((resolve, reject) => {
      const cancel = this.#host.clock.after(deadlineMs, () => {
        reject(new RunwardenError('refused', `${name} did not answer within ${String(deadlineMs)} ms`))
        patience.abort()
      })
      // In a turn of its own: a hook may call the engine.
      Promise.resolve()
        .then(() => hook({ signal: patience.signal }))
        .then(resolve, reject)
        .finally(cancel)
    })
  }
}
