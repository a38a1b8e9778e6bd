/**
 * The durable timers of one actor.
 *
 * Owns: which timers are armed, which of them stand still (O7), and the token that makes a replaced one stale (INV-10).
 * Waits are measured on the monotonic clock; the wall-clock due time is only what another process resumes from. The row of a timer that
 * stands still says what is left of it, and is no nearer to its end however old it grows.
 */
import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import type { ActorRole } from './actor-role.js'
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
  /** On the monotonic clock. */
  readonly dueMs: number
  readonly isStill: boolean
  readonly cancel: Cancel
}

/** Whether a timer stands still in the state that the actor is in, or is about to be in. */
export type Stillness = (timerId: string) => boolean

export const stillnessIn =
  (role: ActorRole, snapshot: AnyMachineSnapshot): Stillness =>
  (timerId) =>
    role.standsStill?.(snapshot, timerId) ?? false

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

  /**
   * The rows of the timers that are to be stopped or to go on, as they are committed: each with what is left of it, and with a token that
   * makes an event stale which the old one has on its way.
   */
  turned(isStill: Stillness, token: string, at: number): readonly TimerRow[] {
    return [...this.#armed.values()]
      .filter((armed) => armed.isStill !== isStill(armed.row.id))
      .map((armed) => {
        const delayMs = this.#leftMs(armed)
        return { ...armed.row, token, delayMs, dueAt: at + delayMs }
      })
  }

  arm(row: TimerRow, isStill: Stillness, delayMs = row.delayMs): void {
    this.forget(row.id)
    const { id, token } = row
    const dueMs = this.#clock.monotonicMs() + delayMs
    if (isStill(id)) {
      this.#armed.set(id, { row, dueMs, isStill: true, cancel: () => undefined })
      return
    }
    const cancel = this.#clock.after(delayMs, () => {
      this.#fire({ id, token, event: JSON.parse(row.event) as AnyEventObject })
    })
    this.#armed.set(id, { row, dueMs, isStill: false, cancel })
  }

  /** After a restart: what is left of each, never more than its whole length, whatever the wall clock did. */
  resume(rows: readonly TimerRow[], isStill: Stillness): void {
    for (const row of rows) {
      const leftMs = Math.min(Math.max(row.dueAt - this.#clock.wallMs(), 0), row.delayMs)
      this.arm(row, isStill, isStill(row.id) ? row.delayMs : leftMs)
    }
  }

  #leftMs({ row, dueMs, isStill }: Armed): number {
    return isStill ? row.delayMs : Math.max(0, Math.ceil(dueMs - this.#clock.monotonicMs()))
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
