/** The signals that ask this command to end. Watched from the start, so that one that comes early is not lost. */

const ASKING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type AskingSignal = (typeof ASKING)[number]

type Listener = (signal: AskingSignal, count: number) => void

export class AskingSignals {
  readonly #received: AskingSignal[] = []
  #listener: Listener = () => undefined

  constructor() {
    for (const signal of ASKING) {
      process.on(signal, () => {
        this.#listener(signal, this.#received.push(signal))
      })
    }
  }

  get count(): number {
    return this.#received.length
  }

  /** The one listener; it is told at once of what has come before. `count` is 1 for the first signal. */
  onEach(listener: Listener): void {
    this.#listener = listener
    for (const [index, signal] of [...this.#received].entries()) listener(signal, index + 1)
  }
}

/** Resolves at the next signal, where a verb watches them; elsewhere a signal ends the command as it ends any other. */
export const nextSignal = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ASKING) {
      if (process.listenerCount(signal) === 0) continue
      process.once(signal, () => {
        resolve()
      })
    }
  })
