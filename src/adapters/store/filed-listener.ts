/**
 * Hears from PostgreSQL that an order was filed for an engine: LISTEN on a connection of its own, made again when it breaks.
 *
 * Does not own: the look that follows a hint, nor the looks that find what no hint told of (filed-orders.ts).
 * Invariants: INV-11 (the waits between attempts grow to a maximum), and it keeps no process alive.
 */
import type { Client } from 'pg'
import type { FiledHints } from '../../actors/store.ports.js'
import { FILED_CHANNEL } from './dialect.js'

const AGAIN_FIRST_MS = 100
const AGAIN_MAX_MS = 5_000

export class FiledListener implements FiledHints {
  readonly #connect: () => Client
  readonly #engineId: string
  readonly #onHint: () => void
  #client: Client | null = null
  #isLive = false
  #isClosed = false
  #againMs = AGAIN_FIRST_MS
  #timer: NodeJS.Timeout | undefined

  constructor(connect: () => Client, engineId: string, onHint: () => void) {
    this.#connect = connect
    this.#engineId = engineId
    this.#onHint = onHint
    void this.#listen()
  }

  get isLive(): boolean {
    return this.#isLive
  }

  close(): void {
    this.#isClosed = true
    this.#isLive = false
    clearTimeout(this.#timer)
    this.#letGo(this.#client)
  }

  async #listen(): Promise<void> {
    const client = this.#connect()
    this.#client = client
    // Both come for one break, or only one: whichever is first.
    client.on('error', () => {
      this.#broke(client)
    })
    client.on('end', () => {
      this.#broke(client)
    })
    client.on('notification', ({ payload }) => {
      if (payload === this.#engineId) this.#onHint()
    })
    try {
      const connecting = client.connect()
      // Known to pg's pool, and missing from its types.
      ;(client as Client & { unref(): void }).unref()
      await connecting
      await client.query(`listen ${FILED_CHANNEL}`)
    } catch {
      // The looks go on without hints; the next attempt is set.
      this.#broke(client)
      return
    }
    if (this.#client !== client) return
    this.#againMs = AGAIN_FIRST_MS
    this.#isLive = true
    // What was filed while nobody listened was told to nobody.
    this.#onHint()
  }

  #broke(client: Client): void {
    if (this.#client !== client) return
    this.#client = null
    this.#isLive = false
    this.#letGo(client)
    if (this.#isClosed) return
    this.#timer = setTimeout(() => void this.#listen(), this.#againMs).unref()
    this.#againMs = Math.min(this.#againMs * 2, AGAIN_MAX_MS)
  }

  #letGo(client: Client | null): void {
    // It is over either way: a goodbye that cannot be said is none of anybody's concern.
    client?.end().catch(() => undefined)
  }
}
