/**
 * Orders that other engines filed in the store for runs that this engine holds.
 *
 * Owns: the look into the store, cheap while nothing changed, and the answer written back. Where the store tells when an order is filed,
 *   that brings the look at once; the looks behind it, less often, find what was not told.
 * Invariants: INV-2 (a filed order is served by the registry, like any other), INV-11.
 */
import { messageOf } from '../errors.js'
import type { StopLine } from '../machines/stop-order/stop-order.context.js'
import type { HostServices } from './actor-role.js'
import { doneLine } from './elsewhere.js'
import type { FiledHints, FiledLine } from './store.ports.js'

const LOOK_EVERY_MS = 75
const LOOK_BEHIND_HINTS_MS = 1_000
const LOOK_AGAIN_MAX_MS = 1_000
const ANSWER_AGAIN_MS = 200

export class FiledOrders {
  readonly #host: HostServices
  readonly #serve: (filed: FiledLine) => Promise<StopLine | null | undefined>
  #hints: FiledHints | null = null
  #token: number | null = null
  #isClosed = false
  #isLooking = false
  /** A hint came while the store was being read: what it told of may have been filed behind that read. */
  #isHinted = false
  #failures = 0
  #cancel: () => void = () => undefined
  #answering = new Set<Promise<void>>()

  constructor(host: HostServices, serve: (filed: FiledLine) => Promise<StopLine | null | undefined>) {
    this.#host = host
    this.#serve = serve
  }

  start(): void {
    const { store, engineId } = this.#host
    this.#hints = store.hintFiled(engineId, () => {
      this.#isHinted = true
      if (!this.#isLooking) this.#lookAfter(this.#waitMs())
    })
    this.#lookAfter(LOOK_EVERY_MS)
  }

  /** Answers that are there are written before this resolves; one that a left run owes is not waited for longer than `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.#isClosed = true
    this.#cancel()
    this.#hints?.close()
    await new Promise<void>((resolve) => {
      const cancel = this.#host.clock.after(deadlineMs, resolve)
      void Promise.all(this.#answering).then(() => {
        cancel()
        resolve()
      })
    })
  }

  #lookAfter(delayMs: number): void {
    if (this.#isClosed) return
    this.#cancel()
    this.#cancel = this.#host.clock.after(delayMs, () => void this.#lookAndWait(), { isBackground: true })
  }

  async #lookAndWait(): Promise<void> {
    this.#isLooking = true
    this.#isHinted = false
    await this.#look()
    this.#isLooking = false
    this.#lookAfter(this.#waitMs())
  }

  #waitMs(): number {
    if (this.#isHinted) return 0
    // A store that is away is not asked more often than it helps.
    if (this.#failures > 0) return Math.min(LOOK_EVERY_MS * 2 ** this.#failures, LOOK_AGAIN_MAX_MS)
    return this.#hints?.isLive === true ? LOOK_BEHIND_HINTS_MS : LOOK_EVERY_MS
  }

  async #look(): Promise<void> {
    const { store, engineId, logger } = this.#host
    try {
      const token = await store.changeToken()
      if (token === null || token !== this.#token) {
        this.#token = token
        for (const filed of await store.filedLines(engineId)) {
          const answering = this.#answer(filed).finally(() => this.#answering.delete(answering))
          this.#answering.add(answering)
        }
      }
      this.#failures = 0
    } catch (error) {
      this.#token = null
      this.#failures += 1
      // Once for each time that it is away.
      if (this.#failures === 1)
        logger.warn({ error: messageOf(error) }, 'filed stop orders could not be read')
    }
  }

  async #answer(filed: FiledLine): Promise<void> {
    const served = await this.#serve(filed)
    if (served === null) return
    for (;;) {
      try {
        const line = served ?? (await this.#doneLineOf(filed.runId))
        if (line !== null) await this.#host.store.answerLine(filed.orderId, line)
        return
      } catch (error) {
        if (this.#isClosed) return
        this.#host.logger.warn({ error: messageOf(error) }, 'an answer could not be written; it is repeated')
        await new Promise<void>((resolve) => this.#host.clock.after(ANSWER_AGAIN_MS, resolve))
      }
    }
  }

  /** It was over before it could be told: nobody else would answer, and the order, with its fence, would never settle. */
  async #doneLineOf(runId: string): Promise<StopLine | null> {
    const stored = await this.#host.store.loadRun(runId)
    return stored === null || stored.head.doneAt === null ? null : doneLine(stored)
  }
}
