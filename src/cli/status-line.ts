/** One line at the bottom of a terminal that says how the run is. It steps aside for output, and waits while a line is unfinished. */
import type { Sink } from './streams.js'

const DRAW_EVERY_MS = 500
const ERASE_LINE = '\r\u001b[K'
const NEWLINE = 10

export class StatusLine {
  readonly #terminal: Sink | null
  readonly #describe: () => string
  readonly #timer: NodeJS.Timeout | null
  #isShown = false
  #isLineOpen = false

  /** Without a sink, or with one that is no terminal, there is no line. */
  constructor(sink: Sink | null, describe: () => string) {
    this.#terminal = sink?.isTerminal ? sink : null
    this.#describe = describe
    this.#timer = this.#terminal === null ? null : setInterval(() => void this.#draw(), DRAW_EVERY_MS)
    this.#timer?.unref()
  }

  /** To be called before anything else is written to the terminal. */
  async makeWayFor(sink: Sink, chunk: Uint8Array): Promise<void> {
    if (!sink.isTerminal) return
    this.#isLineOpen = chunk.at(-1) !== NEWLINE
    await this.hide()
  }

  async hide(): Promise<void> {
    if (!this.#isShown) return
    this.#isShown = false
    await this.#terminal?.write(ERASE_LINE)
  }

  async end(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.hide()
  }

  async #draw(): Promise<void> {
    const terminal = this.#terminal
    // A terminal that is behind is not helped by more.
    if (terminal === null || this.#isLineOpen || terminal.isBehind) return
    this.#isShown = true
    await terminal.write(`${ERASE_LINE}${this.#describe().slice(0, terminal.columns - 1)}`)
  }
}
