/** What a launcher tells of itself and of the command's end, a line each. */
import type { Socket } from 'node:net'
import { constants } from 'node:os'
import type { ExitStatus } from '../../actors/ports.js'

/** Past these a shell tells a signal as 128 and its number. */
const SIGNAL_BASE = 128

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** A command that exits by itself with such a code looks the same: a shell cannot tell them apart. */
const exitOfShell = (code: number): ExitStatus => {
  const signal = SIGNALS.get(code - SIGNAL_BASE)
  return signal === undefined ? { exitCode: code, signal: null } : { exitCode: null, signal }
}

export class PaneReports {
  /** The process that will become the command; null when the launcher ended before it was there. */
  readonly agent: Promise<number | null>
  /** How the command ended; null when the launcher ended without a word on it. */
  readonly exit: Promise<ExitStatus | null>
  #rest = ''
  #tellAgent: (pid: number | null) => void = () => undefined
  #tellExit: (exit: ExitStatus | null) => void = () => undefined

  constructor(socket: Socket) {
    this.agent = new Promise((resolve) => (this.#tellAgent = resolve))
    this.exit = new Promise((resolve) => (this.#tellExit = resolve))
    socket.on('data', (chunk: Buffer) => {
      const lines = (this.#rest + chunk.toString('latin1')).split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#take(line)
    })
    socket.once('close', () => {
      this.#tellAgent(null)
      this.#tellExit(null)
    })
  }

  #take(line: string): void {
    const [what, number] = line.split(' ')
    if (what === 'agent') this.#tellAgent(Number(number))
    if (what === 'exit') this.#tellExit(exitOfShell(Number(number)))
  }
}
