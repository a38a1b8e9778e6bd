/**
 * What a command writes in its pane, as tmux passes it on.
 *
 * Owns: where the output begins (one byte that says that tmux has connected it) and where it ends (a mark that the launcher writes after
 * the command's end, in the same terminal: what came before it has come). Terminals ignore the mark, and it is not passed on.
 */
import type { Socket } from 'node:net'
import type { OutputStream } from '../../actors/ports.js'

/**
 * The shell command through which tmux passes it on: one byte first, then all of it, to a FIFO that is quoted already. A FIFO without a
 * reader would hold a writer at its opening for ever, so it is opened to both sides first, and then written to nobody.
 */
export const passOnTo = (fifo: string): string => `exec 3<>${fifo}; exec >${fifo} 3>&-; echo; exec cat`

type Receive = (stream: OutputStream, chunk: Buffer) => void

/** How much of the end of `data` could be the beginning of `mark`. */
const heldBytes = (data: Buffer, mark: Buffer): number => {
  for (let length = Math.min(mark.length - 1, data.length); length > 0; length -= 1)
    if (data.subarray(data.length - length).equals(mark.subarray(0, length))) return length
  return 0
}

export class PaneOutput {
  /** tmux passes the pane's output on from here. */
  readonly connected: Promise<void>
  /** All there is of the command itself has been given to the receiver. */
  readonly drained: Promise<void>
  readonly #socket: Socket
  readonly #mark: Buffer
  #held: Buffer = Buffer.alloc(0)
  #receive: Receive | null = null
  #isConnected = false
  #isDrained = false
  #connect: () => void = () => undefined
  #drain: () => void = () => undefined

  constructor(socket: Socket, endMark: string) {
    this.#socket = socket
    this.#mark = Buffer.from(endMark)
    this.connected = new Promise((resolve) => (this.#connect = resolve))
    this.drained = new Promise((resolve) => (this.#drain = resolve))
    socket.on('data', (chunk: Buffer) => {
      this.#take(chunk)
    })
    socket.once('close', () => {
      this.#give(this.#held)
      this.#end()
    })
  }

  onOutput(receive: Receive): void {
    this.#receive = receive
  }

  cut(): boolean {
    const wasOpen = !this.#isDrained
    this.#socket.destroy()
    return wasOpen
  }

  letGo(): void {
    this.#socket.unref()
  }

  #take(chunk: Buffer): void {
    if (this.#isConnected) {
      this.#pass(chunk)
      return
    }
    this.#isConnected = true
    this.#connect()
    this.#pass(chunk.subarray(1))
  }

  #pass(chunk: Buffer): void {
    if (this.#isDrained) {
      this.#give(chunk)
      return
    }
    const data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const at = data.indexOf(this.#mark)
    if (at >= 0) {
      this.#held = Buffer.alloc(0)
      this.#give(data.subarray(0, at))
      this.#give(data.subarray(at + this.#mark.length))
      this.#end()
      return
    }
    const end = data.length - heldBytes(data, this.#mark)
    this.#held = data.subarray(end)
    this.#give(data.subarray(0, end))
  }

  #give(chunk: Buffer): void {
    if (chunk.length > 0) this.#receive?.('stdout', chunk)
  }

  #end(): void {
    this.#isDrained = true
    this.#drain()
  }
}
