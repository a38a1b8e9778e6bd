/** Jobs that one worker passes over for a while, because what kept them from starting may pass; and how often that was. */
import type { Clock } from './ports.js'

const PASS_OVER_MS = 2_000
/** As often as this a job is passed over; after that what keeps it does not pass. */
const PASSES_MAX = 5

export class PassedOver {
  readonly #clock: Clock
  readonly #jobs = new Map<string, { readonly until: number; readonly times: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Passes the job over from now on; false when it has been often enough. */
  add(jobId: string): boolean {
    const times = (this.#jobs.get(jobId)?.times ?? 0) + 1
    if (times > PASSES_MAX) return !this.#jobs.delete(jobId)
    this.#jobs.set(jobId, { until: this.#clock.monotonicMs() + PASS_OVER_MS, times })
    return true
  }

  started(jobId: string): void {
    this.#jobs.delete(jobId)
  }

  /** Those that may not be claimed now. */
  get now(): readonly string[] {
    const now = this.#clock.monotonicMs()
    return [...this.#jobs].filter(([, { until }]) => until > now).map(([jobId]) => jobId)
  }

  /** Whether one may be claimed again. */
  get isDue(): boolean {
    const now = this.#clock.monotonicMs()
    return [...this.#jobs.values()].some(({ until }) => until <= now)
  }

  /** Who could have been claimed again and was not is somebody else's affair now. */
  forgetDue(): void {
    const now = this.#clock.monotonicMs()
    for (const [jobId, { until }] of this.#jobs) if (until <= now) this.#jobs.delete(jobId)
  }
}
