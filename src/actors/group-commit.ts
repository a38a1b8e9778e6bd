/**
 * Group commit: transitions that many actors have ready in the same tick share one transaction.
 *
 * Owns: the queue of writes on their way to the store, their order, and the repeats while the store does not answer.
 * Does not own: what an actor does while it waits (see durable-actor.ts), nor what a verdict means to it.
 * Invariants: INV-1 (a verdict is given only after the transaction returned), INV-11 (a batch and a wait have a maximum), INV-13 (a write
 *   whose commit was not answered is given again until the store has said what became of it: it is never abandoned).
 */
import { RunwardenError, messageOf } from '../errors.js'
import type { Clock, Logger } from './ports.js'
import type { ActorWrite, CommitVerdict, EffectMark, StorePort } from './store.ports.js'

const BATCH_MAX = 256
const RETRY_FIRST_MS = 20
const RETRY_MAX_MS = 1_000
/** A finished effect is noted with the next transition, or after this long by itself. */
const MARK_DELAY_MS = 50

interface Pending {
  readonly write: ActorWrite
  /** Past this the next failure abandons the write: at once (K7), at the commit deadline (a pause), never (Infinity). */
  abandonAt: number
  /** Whether the write is still wanted: asked in the tick in which it goes to the store (K4). */
  readonly isStill: () => boolean
  /** The store was given it, and has not yet said that nothing of it is in. */
  mayBeIn: boolean
  readonly resolve: (verdict: CommitVerdict) => void
  readonly reject: (error: RunwardenError) => void
}

export class GroupCommit {
  readonly #store: StorePort
  readonly #clock: Clock
  readonly #logger: Logger
  #queue: Pending[] = []
  #marks: EffectMark[] = []
  #batchMax = BATCH_MAX
  #isScheduled = false
  #isFlushing = false
  #retryMs = 0
  #isClosing = false
  #isClosed = false
  /** Set once someone waits for the queue to be empty. */
  #onIdle: (() => void) | null = null

  constructor(store: StorePort, clock: Clock, logger: Logger) {
    this.#store = store
    this.#clock = clock
    this.#logger = logger
  }

  /** True while the store has not answered the last attempt. */
  get isDegraded(): boolean {
    return this.#retryMs > 0
  }

  /**
   * Resolves with the verdict once the transaction is durable. A write that may be abandoned rejects when the store fails after
   * `abandonAfterMs`, or when it is not wanted any more; the others wait for the store for as long as it takes.
   */
  submit(
    write: ActorWrite,
    abandonAfterMs = Infinity,
    isStill: () => boolean = () => true,
  ): Promise<CommitVerdict> {
    const abandonAt = this.#clock.monotonicMs() + abandonAfterMs
    return new Promise((resolve, reject) => {
      this.#queue.push({ write, abandonAt, isStill, mayBeIn: false, resolve, reject })
      this.#schedule(0)
    })
  }

  /**
   * Nobody waits for this write any more. It is dropped, and rejects, unless it may be in the store: what is recorded must be acted upon.
   * One that is on its way there is dropped as soon as the store says that nothing of it is in.
   */
  withdraw(write: ActorWrite): void {
    const pending = this.#queue.find((one) => one.write === write)
    if (pending === undefined) return
    if (pending.mayBeIn) {
      pending.abandonAt = 0
      return
    }
    this.#queue = this.#queue.filter((one) => one !== pending)
    pending.reject(new RunwardenError('store-unavailable', 'the store did not answer'))
  }

  /** What this write says has been acted upon: it is not abandoned from now on. */
  keep(write: ActorWrite): void {
    const pending = this.#queue.find((one) => one.write === write)
    if (pending !== undefined) pending.abandonAt = Infinity
  }

  mark(mark: EffectMark): void {
    this.#marks.push(mark)
    if (!this.#isScheduled && !this.#isFlushing) this.#schedule(MARK_DELAY_MS)
  }

  /**
   * Resolves when nothing is on its way, or after `deadlineMs`; `flushed` is called when nothing is on its way any more, now or later:
   * the rows follow when the store answers, without keeping the process alive for it.
   */
  async close(deadlineMs: number, flushed: () => Promise<void>): Promise<void> {
    this.#isClosing = true
    if (this.#queue.length > 0 || this.#marks.length > 0 || this.#isFlushing) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(deadlineMs, resolve)
        this.#onIdle = () => {
          cancel()
          void this.#end(flushed).then(resolve)
        }
        this.#schedule(0)
      })
      return
    }
    await this.#end(flushed)
  }

  async #end(flushed: () => Promise<void>): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#cancelScheduled()
    await flushed()
  }

  #cancelScheduled: () => void = () => undefined

  #schedule(delayMs: number): void {
    if (this.#isFlushing || this.isDegraded || this.#isClosed) return
    if (this.#isScheduled && delayMs > 0) return
    this.#cancelScheduled()
    this.#isScheduled = true
    if (delayMs === 0) {
      // One turn of the event loop gathers what all actors have ready in this tick.
      const immediate = setImmediate(() => void this.#flush())
      this.#cancelScheduled = () => {
        clearImmediate(immediate)
      }
    } else {
      this.#cancelScheduled = this.#clock.after(delayMs, () => void this.#flush())
    }
  }

  async #flush(): Promise<void> {
    this.#isScheduled = false
    if (this.#isFlushing || this.#isClosed) return
    this.#isFlushing = true
    this.#abandon(
      ({ isStill }) => !isStill(),
      () => new RunwardenError('refused', 'it is not so any more'),
    )
    const batch = this.#queue.slice(0, this.#batchMax)
    const marks = this.#marks
    this.#marks = []
    const wasDoubtful = new Set(batch.filter(({ mayBeIn }) => mayBeIn))
    for (const pending of batch) pending.mayBeIn = true
    try {
      const verdicts = await this.#store.commit(
        batch.map(({ write }) => write),
        marks,
      )
      this.#retryMs = 0
      this.#batchMax = BATCH_MAX
      this.#queue = this.#queue.slice(batch.length)
      batch.forEach(({ resolve }, index) => {
        resolve(verdicts[index] ?? 'stale')
      })
    } catch (error) {
      if (!this.#store.isInDoubt(error)) {
        for (const pending of batch) pending.mayBeIn = wasDoubtful.has(pending)
      }
      this.#fail(error, batch, marks)
    } finally {
      this.#isFlushing = false
    }
    this.#continue()
  }

  #fail(error: unknown, batch: readonly Pending[], marks: readonly EffectMark[]): void {
    if (!this.#store.isPassing(error)) {
      if (batch.length > 0) this.#marks = [...marks, ...this.#marks]
      this.#isolate(error, batch)
      return
    }
    this.#logger.warn({ error: messageOf(error) }, 'the store did not take a commit; it is repeated')
    this.#marks = [...marks, ...this.#marks]
    this.#retryMs = Math.min(Math.max(this.#retryMs * 2, RETRY_FIRST_MS), RETRY_MAX_MS)
    const now = this.#clock.monotonicMs()
    this.#abandon(
      ({ abandonAt }) => abandonAt <= now,
      () => new RunwardenError('store-unavailable', messageOf(error), { cause: error }),
    )
  }

  /** What may be on record must be acted upon: it is not abandoned. */
  #abandon(isUnwanted: (pending: Pending) => boolean, reason: () => RunwardenError): void {
    const abandoned = new Set(this.#queue.filter((pending) => !pending.mayBeIn && isUnwanted(pending)))
    if (abandoned.size === 0) return
    this.#queue = this.#queue.filter((pending) => !abandoned.has(pending))
    for (const { reject } of abandoned) reject(reason())
  }

  /** F: a write that the store can never take must not hold up the others: one at a time, until the culprit stands alone. */
  #isolate(error: unknown, batch: readonly Pending[]): void {
    const [culprit] = batch
    if (batch.length === 1 && culprit !== undefined) {
      this.#queue.splice(0, 1)
      this.#batchMax = BATCH_MAX
      culprit.reject(new RunwardenError('invariant-broken', messageOf(error), { cause: error }))
    } else {
      this.#batchMax = 1
    }
  }

  #continue(): void {
    if (this.#isClosed) return
    if (this.isDegraded) {
      this.#isScheduled = true
      this.#cancelScheduled = this.#clock.after(this.#retryMs, () => void this.#flush(), {
        isBackground: this.#isClosing,
      })
    } else if (this.#queue.length > 0) {
      this.#schedule(0)
    } else if (this.#marks.length > 0) {
      this.#schedule(this.#onIdle === null ? MARK_DELAY_MS : 0)
    } else {
      this.#onIdle?.()
    }
  }
}
