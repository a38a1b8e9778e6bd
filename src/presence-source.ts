/**
 * What a host that reports presence looks like, and how its reports are calmed.
 *
 * Owns: the wait before idle counts, and the end of a source. Does not own: what presence means (presence.ts).
 */
import type { Cancel, Clock } from './actors/ports.js'

/**
 * Reports of a host: an async iterable of them, or a function that is given the way to report and may return the way to unsubscribe
 * (`(report) => { screen.on('lock', () => report(false)); … }`). True: a person uses the machine.
 */
export type PresenceSource =
  AsyncIterable<boolean> | ((report: (isInUse: boolean) => void) => (() => void) | undefined)

export interface PresenceSink {
  readonly clock: Clock
  readonly idleAfterMs: number
  readonly report: (isInUse: boolean) => void
  readonly failed: (error: unknown) => void
}

const iterate = (
  source: AsyncIterable<boolean>,
  report: (isInUse: boolean) => void,
  failed: (error: unknown) => void,
): (() => void) => {
  const reports = source[Symbol.asyncIterator]()
  const run = async (): Promise<void> => {
    for (let next = await reports.next(); next.done !== true; next = await reports.next()) report(next.value)
    report(false)
  }
  run().catch(failed)
  return () => {
    // A source that cannot be told to end is simply not heard any more.
    reports.return?.().catch(() => undefined)
  }
}

/** Returns the way to stop: nothing is reported after it. */
export const followSource = (source: PresenceSource, sink: PresenceSink): (() => void) => {
  const { clock, idleAfterMs } = sink
  let isStopped = false
  let isIdleDue = false
  let cancelIdle: Cancel = () => undefined
  const report = (isInUse: boolean): void => {
    if (isStopped || (!isInUse && isIdleDue)) return
    cancelIdle()
    isIdleDue = !isInUse
    if (isInUse) sink.report(true)
    else
      cancelIdle = clock.after(
        idleAfterMs,
        () => {
          sink.report(false)
        },
        { isBackground: true },
      )
  }
  const failed = (error: unknown): void => {
    if (isStopped) return
    sink.failed(error)
    report(false)
  }
  let stopSource: (() => void) | undefined
  try {
    stopSource = typeof source === 'function' ? source(report) : iterate(source, report, failed)
  } catch (error) {
    failed(error)
  }
  return () => {
    isStopped = true
    cancelIdle()
    stopSource?.()
  }
}
