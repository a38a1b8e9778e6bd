/**
 * One client of a stream of server-sent events.
 *
 * Owns: the client's buffer. Invariants: INV-11 (a client that does not read is dropped when its buffer is full; its browser comes again
 *   and is told everything anew).
 */
import { RunwardenError } from '../index.js'

/** What waits for one client: more than the largest first message, and little for a server. */
const BUFFER_MAX_BYTES = 8 * 1024 * 1024
/** Keeps a connection open that has nothing to tell, and finds out that nobody is there. */
const HEARTBEAT_MS = 15_000

const encoder = new TextEncoder()

export class EventClient {
  readonly body: ReadableStream<Uint8Array>
  readonly #serialize: (value: unknown) => string
  readonly #onClosed: () => void
  readonly #heartbeat: NodeJS.Timeout
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null

  constructor(serialize: (value: unknown) => string, onClosed: () => void) {
    this.#serialize = serialize
    this.#onClosed = onClosed
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#end()
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: BUFFER_MAX_BYTES }),
    )
    this.#heartbeat = setInterval(() => {
      this.#write(': still here\n\n')
    }, HEARTBEAT_MS)
    this.#heartbeat.unref()
    // A browser that lost the connection comes again after this.
    this.#write('retry: 1000\n\n')
  }

  get isOpen(): boolean {
    return this.#controller !== null
  }

  send(event: string, value: unknown): void {
    this.#write(`event: ${event}\ndata: ${this.#serialize(value)}\n\n`)
  }

  close(): void {
    try {
      this.#controller?.close()
    } catch {
      // It is closed.
    }
    this.#end()
  }

  #write(text: string): void {
    const controller = this.#controller
    if (controller === null) return
    controller.enqueue(encoder.encode(text))
    // INV-11: the buffer is full.
    if ((controller.desiredSize ?? 0) > 0) return
    controller.error(new RunwardenError('refused', 'the client reads too slowly'))
    this.#end()
  }

  #end(): void {
    if (this.#controller === null) return
    this.#controller = null
    clearInterval(this.#heartbeat)
    this.#onClosed()
  }
}
