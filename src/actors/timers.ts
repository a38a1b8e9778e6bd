/**
 * The durable timers of one actor.
 *
 * Owns: which timers are armed, and the token that makes a replaced one stale (INV-10).
 * Waits are measured on the monotonic clock; the wall-clock due time is only what another process resumes from.
 */
import type { AnyEventObject } from 'xstate'
import type { Cancel, Clock } from './ports.js'
import type { TimerRow } from './store.ports.js'
import type { TimerRequest } from './step.js'

export interface FiredTimer {
  readonly id: string
  readonly token: string
  readonly event: AnyEventObject
}

interface Armed {
  readonly row: TimerRow
  readonly cancel: Cancel
}

export class Timers {
  readonly #clock: Clock
  readonly #fire: (timer: FiredTimer) => void
  readonly #armed = new Map<string, Armed>()

  constructor(clock: Clock, fire: (timer: FiredTimer) => void) {
    this.#clock = clock
    this.#fire = fire
  }

  /** The row of a timer as it is committed; it starts to run only with `arm`. */
  prepare(timer: TimerRequest, token: string, at: number): TimerRow {
    const { id, delayMs, event } = timer
    return { id, token, dueAt: at + delayMs, delayMs, event: JSON.stringify(event) }
  }

  arm(row: TimerRow, delayMs = row.delayMs): void {
    this.forget(row.id)
    const { id, token } = row
    const cancel = this.#clock.after(delayMs, () => {
      this.#fire({ id, token, event: JSON.parse(row.event) as AnyEventObject })
    })
    this.#armed.set(id, { row, cancel })
  }

  /** After a restart: what is left of each, never more than its whole length, whatever the wall clock did. */
  resume(rows: readonly TimerRow[]): void {
    for (const row of rows) {
      this.arm(row, Math.min(Math.max(row.dueAt - this.#clock.wallMs(), 0), row.delayMs))
    }
  }

  isCurrent(timer: { readonly id: string; readonly token: string }): boolean {
    return this.#armed.get(timer.id)?.row.token === timer.token
  }

  forget(id: string): void {
    this.#armed.get(id)?.cancel()
    this.#armed.delete(id)
  }

  clear(): void {
    for (const id of [...this.#armed.keys()]) this.forget(id)
  }

  rows(): readonly TimerRow[] {
    return [...this.#armed.values()].map(({ row }) => row)
  }
}
