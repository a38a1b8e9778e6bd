/**
 * The gate between the agent's frames and the library that speaks ACP.
 *
 * Owns: which frames the library sees (answers to what it asked, and a bounded number of open requests), and what it writes.
 * Does not own: what frames mean for the run: that is decided before, from the bytes, whether or not the library sees them.
 * Invariants: INV-11 (requests in the library, and refusals that nobody may be reading, have a maximum).
 */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { RunwardenError } from '../../../errors.js'

const OPEN_REQUESTS_MAX = 64
/** Refusals are written to an agent that may not read them. */
const REFUSALS_MAX = 1_024
const BUSY = { code: -32_000, message: 'Too many requests are open' }

type Id = string | number

export interface GateOptions {
  /** To the agent's stdin; false when it is gone. */
  readonly write: (line: string) => boolean
  /** A request is on its way; called just before it is written. */
  readonly onSend: (method: string, id: Id) => void
  /** A request of the agent was answered. */
  readonly onAnswer: (id: Id) => void
}

interface Message {
  readonly id?: unknown
  readonly method?: unknown
}

const isId = (id: unknown): id is Id => typeof id === 'string' || typeof id === 'number'

export class AcpGate {
  readonly stream: Stream
  readonly #options: GateOptions
  readonly #awaited = new Set<Id>()
  readonly #open = new Set<Id>()
  #refusals = 0
  #controller: ReadableStreamDefaultController<AnyMessage> | null = null

  constructor(options: GateOptions) {
    this.#options = options
    this.stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#controller = null
        },
      }),
      writable: new WritableStream<AnyMessage>({
        write: (message) => {
          this.#send(message)
        },
      }),
    }
  }

  /** Takes a frame that is addressed to the library. */
  receive(frame: unknown): void {
    const { id, method } = frame as Message
    if (typeof method !== 'string') {
      // An answer to nothing that was asked is no answer.
      if (isId(id) && this.#awaited.delete(id)) this.#pass(frame)
    } else if (!isId(id)) {
      if (method === '$/cancel_request') this.#pass(frame)
    } else if (!this.#open.has(id)) {
      this.#admit(id, frame)
    }
  }

  close(): void {
    this.#controller?.close()
    this.#controller = null
  }

  #admit(id: Id, frame: unknown): void {
    if (this.#open.size < OPEN_REQUESTS_MAX) {
      this.#open.add(id)
      this.#pass(frame)
      return
    }
    // Nobody is asked: for the run it is answered, whether or not it is worth a line to an agent that asks like this.
    this.#options.onAnswer(id)
    this.#refusals += 1
    if (this.#refusals > REFUSALS_MAX) return
    this.#options.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: BUSY })}\n`)
  }

  #pass(frame: unknown): void {
    // Some agents leave the version out.
    this.#controller?.enqueue({ ...(frame as object), jsonrpc: '2.0' } as AnyMessage)
  }

  #send(message: AnyMessage): void {
    const { id, method } = message as Message
    if (isId(id) && typeof method === 'string') {
      this.#awaited.add(id)
      this.#options.onSend(method, id)
    } else if (isId(id) && this.#open.delete(id)) {
      this.#options.onAnswer(id)
    }
    if (!this.#options.write(`${JSON.stringify(message)}\n`)) {
      throw new RunwardenError('refused', 'the agent does not read its input any more')
    }
  }
}
