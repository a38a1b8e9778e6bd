/**
 * Orders that other engines filed in the store for runs that this engine holds.
 *
 * Owns: the look into the store, cheap while nothing changed, and the answer written back.
 * Invariants: INV-2 (a filed order is served by the registry, like any other), INV-11.
 */
import { messageOf } from '../errors.js'
import type { StopLine } from '../machines/stop-order/stop-order.context.js'
import type { HostServices } from './actor-role.js'
import type { FiledLine } from './store.ports.js'

const LOOK_EVERY_MS = 75
const ANSWER_AGAIN_MS = 200

export class FiledOrders {
  readonly #host: HostServices
  readonly #serve: (filed: FiledLine) => Promise<StopLine | null>
  #token: number | null = null
  #isClosed = false
  #cancel: () => void = () => undefined
  #answering = new Set<Promise<void>>()

  constructor(host: HostServices, serve: (filed: FiledLine) => Promise<StopLine | null>) {
    this.#host = host
    this.#serve = serve
  }

  start(): void {
    this.#cancel = this.#host.clock.after(
      LOOK_EVERY_MS,
      () => {
        void this.#look().finally(() => {
          if (!this.#isClosed) this.start()
        })
      },
      { isBackground: true },
    )
  }

  /** Answers that are there are written before this resolves; one that a left run owes is not waited for longer than `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.#isClosed = true
    this.#cancel()
    await new Promise<void>((resolve) => {
      const cancel = this.#host.clock.after(deadlineMs, resolve)
      void Promise.all(this.#answering).then(() => {
        cancel()
        resolve()
      })
    })
  }

  async #look(): Promise<void> {
    const { store, engineId, logger } = this.#host
    try {
      const token = await store.changeToken()
      if (token !== null && token === this.#token) return
      this.#token = token
      for (const filed of await store.filedLines(engineId)) {
        const answering = this.#answer(filed).finally(() => this.#answering.delete(answering))
        this.#answering.add(answering)
      }
    } catch (error) {
      this.#token = null
      logger.warn({ error: messageOf(error) }, 'filed stop orders could not be read')
    }
  }

  async #answer(filed: FiledLine): Promise<void> {
    const line = await this.#serve(filed)
    if (line === null) return
    for (;;) {
      try {
        await this.#host.store.answerLine(filed.orderId, line)
        return
      } catch (error) {
        if (this.#isClosed) return
        this.#host.logger.warn({ error: messageOf(error) }, 'an answer could not be written; it is repeated')
        await new Promise<void>((resolve) => this.#host.clock.after(ANSWER_AGAIN_MS, resolve))
      }
    }
  }
}
