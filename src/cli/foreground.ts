/**
 * One run in the foreground, from its acceptance to its end.
 *
 * Owns: what a signal or a closed stdout means, and how long an unconfirmed run is waited for.
 * Does not own: what is printed (run-printer.ts).
 * Invariants: INV-11 (the command ends by itself, whatever the tree and the reader of its output do; a reader that is merely slow is
 *   given its time, until a further signal).
 */
import type { EndOptions, Engine, Gone, Outcome, Run } from '../index.js'
import type { AskingSignals } from './signals.js'
import { stderr, stdout } from './streams.js'

/** From the first deadline that the tree outlived: the kill is repeated in between. */
const UNCONFIRMED_WAIT_MS = 8_000

export type End =
  | { readonly isConfirmed: true; readonly outcome: Outcome; readonly gone: Gone }
  | { readonly isConfirmed: false; readonly outcome: Outcome | null }

/** Resolves when the tree has outlived its deadline, and the wait after it. Told by the engine: the printing may be far behind. */
const outlived = (
  engine: Engine,
  run: Run,
): { readonly passed: Promise<void>; readonly cancel: () => void } => {
  let timer: NodeJS.Timeout | undefined
  let unsubscribe = (): void => undefined
  const passed = new Promise<void>((resolve) => {
    const look = (): void => {
      if (run.state.process === 'unconfirmed') timer ??= setTimeout(resolve, UNCONFIRMED_WAIT_MS)
    }
    unsubscribe = engine.subscribe((event) => {
      if ('runId' in event && event.runId === run.id) look()
    })
    look()
  })
  return {
    passed,
    cancel: () => {
      unsubscribe()
      clearTimeout(timer)
    },
  }
}

const interrupt = (run: Run, options: EndOptions): void => {
  if (run.state.isDone) return
  // The answer comes as the run's end. It can only be refused by an engine that is closing, and then the end has come.
  run.interrupt(options).catch(() => undefined)
}

/** The first signal interrupts, the second forces. */
const endOnRequest = (run: Run, signals: AskingSignals): void => {
  signals.onEach((signal, count) => {
    if (count <= 2) interrupt(run, { by: 'signal', reason: signal, force: count === 2 })
  })
  stdout.onClosed(() => {
    const why = stdout.closedBy ?? ''
    const reason = why === 'EPIPE' ? 'nobody reads the output any more' : 'the output cannot be written'
    interrupt(run, { by: 'cli', reason: `${reason} (${why})` })
  })
}

export const awaitEnd = async (engine: Engine, run: Run, signals: AskingSignals): Promise<End> => {
  endOnRequest(run, signals)
  const deadline = outlived(engine, run)
  const confirmed = Promise.all([run.outcome, run.gone])
  const end = await Promise.race([
    confirmed.then(([outcome, gone]): End => ({ isConfirmed: true, outcome, gone })),
    deadline.passed.then((): End => ({ isConfirmed: false, outcome: run.state.outcome })),
  ])
  deadline.cancel()
  return end
}

/** Waits until the output is out. Someone who pages through it may take an hour; a further signal ends the wait. */
export const awaitPrinted = (printed: Promise<void>, signals: AskingSignals): Promise<void> => {
  const seen = signals.count
  return new Promise((resolve, reject) => {
    signals.onEach((_, count) => {
      if (count <= seen) return
      for (const sink of [stdout, stderr]) sink.giveUpIfBehind()
      resolve()
    })
    printed.then(resolve, reject)
  })
}
