/**
 * What a host that reports presence looks like, and how its reports are calmed.
 *
 * Owns: the wait before idle counts, the end of a source, and whatever a source does that it should not: that is logged, and goes no
 *   further (P19).
 * Does not own: what presence means (presence.ts).
 */
import type { Cancel, Clock } from './actors/ports.js'
import { RunwardenError } from './errors.js'

/**
 * Reports of a host: an async iterable of them, or a function that is given the way to report and may return the way to unsubscribe
 * (`(report) => { screen.on('lock', () => report(false)); … }`). True: a person uses the machine. A report that is no boolean is ignored,
 * and logged once.
 */
export type PresenceSource =
  AsyncIterable<boolean> | ((report: (isInUse: boolean) => void) => (() => void) | undefined)

export interface PresenceSink {
  readonly clock: Clock
  readonly idleAfterMs: number
  readonly report: (isInUse: boolean) => void
  /** The source has nobody to report any more. */
  readonly failed: (error: unknown) => void
  /** The source did something that means nothing. */
  readonly misbehaved: (error: unknown) => void
}

const fault = (message: string): RunwardenError => new RunwardenError('invalid-option', message)

/** Calls what the host gave, and has its promise settle, whatever it is. */
const callGuarded = (call: () => unknown, failed: (error: unknown) => void): unknown => {
  try {
    const returned = call()
    Promise.resolve(returned).catch(failed)
    return returned
  } catch (error) {
    failed(error)
    return undefined
  }
}

const iterate = (
  source: AsyncIterable<boolean>,
  report: (isInUse: boolean) => void,
  { failed, misbehaved }: Pick<PresenceSink, 'failed' | 'misbehaved'>,
): (() => void) => {
  let isStopped = false
  const reports = source[Symbol.asyncIterator]()
  const run = async (): Promise<void> => {
    for (let next = await reports.next(); next.done !== true; next = await reports.next()) {
      if (isStopped) return
      report(next.value)
    }
    report(false)
  }
  run().catch(failed)
  return () => {
    isStopped = true
    // A source that cannot be told to end is simply not heard any more.
    callGuarded(() => reports.return?.(), misbehaved)
  }
}

const subscribe = (
  source: Exclude<PresenceSource, AsyncIterable<boolean>>,
  report: (isInUse: boolean) => void,
  { failed, misbehaved }: Pick<PresenceSink, 'failed' | 'misbehaved'>,
): (() => void) => {
  const unsubscribe: unknown = callGuarded(() => source(report), failed)
  if (unsubscribe !== undefined && typeof unsubscribe !== 'function')
    misbehaved(fault('it returned no function to unsubscribe with'))
  return () => {
    if (typeof unsubscribe === 'function') callGuarded(() => (unsubscribe as () => unknown)(), misbehaved)
  }
}

/** Returns the way to stop, which never throws: nothing is reported after it. */
export const followSource = (source: PresenceSource, sink: PresenceSink): (() => void) => {
  const { clock, idleAfterMs, misbehaved } = sink
  let isStopped = false
  let isIdleDue = false
  let isOddTold = false
  let cancelIdle: Cancel = () => undefined
  const report = (isInUse: unknown): void => {
    if (isStopped) return
    if (typeof isInUse !== 'boolean') {
      if (!isOddTold) misbehaved(fault(`it reported a ${typeof isInUse}, which is neither true nor false`))
      isOddTold = true
      return
    }
    if (!isInUse && isIdleDue) return
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
  let stopSource = (): void => undefined
  try {
    const faults = { failed, misbehaved }
    stopSource =
      typeof source === 'function' ? subscribe(source, report, faults) : iterate(source, report, faults)
  } catch (error) {
    failed(error)
  }
  return () => {
    if (isStopped) return
    isStopped = true
    cancelIdle()
    stopSource()
  }
}
