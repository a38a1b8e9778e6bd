/**
 * Presence: whether a person uses this machine. While one does, the runs of this engine that are not in the foreground stand still (O16).
 *
 * Owns: what the host reported last, and which runs were told. What could not be recorded is told again until it is, or until the
 *   opposite is reported.
 * Does not own: who is there (the host says so), nor whether a run takes the command: what a user paused or resumed by hand stays so (O4).
 */
import type { Cancel, Clock, Logger } from './actors/ports.js'
import { pauseRun, resumeRun } from './actors/freezing.js'
import type { PauseAnswer } from './actors/freezing.js'
import type { RunActor } from './actors/run.actor.js'
import { RunwardenError, codeOf, messageOf } from './errors.js'
import { parseOptions } from './option-types.js'
import { presenceSourceOptionsSchema, presenceSourceSchema } from './options.js'
import type { PresenceSourceOptions } from './options.js'
import { followSource } from './presence-source.js'
import type { PresenceSource } from './presence-source.js'

/** How one run took the report. */
export interface PresenceLine {
  readonly runId: string
  /**
   * As for `Run.pause`, and: `resumed`; `held`: a user keeps it paused; `refused`: it is being ended, or over; `unrecorded`: the store did
   * not take it, and it is told again.
   */
  readonly status: PauseAnswer['status'] | 'resumed' | 'held' | 'refused' | 'unrecorded'
  readonly running?: PauseAnswer['running']
  readonly error?: string
}

export interface PresenceReceipt {
  readonly isInUse: boolean
  readonly runs: readonly PresenceLine[]
}

const ANSWER_WITHIN_MS = 5_000
const TELL_AGAIN_MS = 1_000

export class Presence {
  readonly #host: { readonly clock: Clock; readonly logger: Logger }
  readonly #runs: () => Iterable<RunActor>
  /** Runs that the machine froze, or was about to. */
  readonly #told = new WeakSet<RunActor>()
  readonly #sources = new Set<() => void>()
  #isInUse = false
  #isClosed = false
  #last: Promise<PresenceReceipt> = Promise.resolve({ isInUse: false, runs: [] })
  #cancelTellAgain: Cancel = () => undefined

  /** @internal */
  constructor(host: { readonly clock: Clock; readonly logger: Logger }, runs: () => Iterable<RunActor>) {
    this.#host = host
    this.#runs = runs
  }

  get isInUse(): boolean {
    return this.#isInUse
  }

  /**
   * A person uses the machine: freezes every run of this engine that is not `foreground`, and each that is started from now on as soon as
   * it is launched (O8). Repeated reports join the first.
   *
   * @returns what became of each run, by its answer or within 5 s.
   * @throws `engine-closing`.
   */
  async inUse(): Promise<PresenceReceipt> {
    return this.#report(true)
  }

  /**
   * Nobody uses the machine: continues what presence froze, and nothing that a user paused. Repeated reports join the first.
   *
   * @throws `engine-closing`.
   */
  async idle(): Promise<PresenceReceipt> {
    return this.#report(false)
  }

  /**
   * Follows a host that reports: in use counts at once, idle once it has lasted `idleAfterMs` (30 000), so that a person who pauses to
   * think does not start everything. A source that ends or fails has nobody to report: it counts as idle. What it throws, now or when it
   * is told to stop, is logged and goes no further (P19).
   *
   * @returns the way to stop following, which never throws; presence stays as it was reported last.
   * @throws `invalid-option`, `engine-closing`.
   */
  follow(source: PresenceSource, options: PresenceSourceOptions = {}): () => void {
    parseOptions(presenceSourceSchema, { source }, 'presence.follow')
    const { idleAfterMs } = parseOptions(presenceSourceOptionsSchema, options, 'presence.follow')
    this.#assertOpen('follow')
    const { clock, logger } = this.#host
    const stop = followSource(source, {
      clock,
      idleAfterMs,
      report: (isInUse) => {
        if (!this.#isClosed) void this.#report(isInUse)
      },
      failed: (error) => {
        logger.warn({ error: messageOf(error) }, 'a source of presence failed and counts as idle')
      },
      misbehaved: (error) => {
        logger.warn({ error: messageOf(error) }, 'a source of presence misbehaved')
      },
    })
    const end = (): void => {
      this.#sources.delete(end)
      stop()
    }
    this.#sources.add(end)
    return end
  }

  /** @internal O8: called before the run is on record, so that nothing of it is launched before it is told. */
  admit(run: RunActor): void {
    if (this.#isInUse && !this.#isClosed) void this.#tell([run])
  }

  /** @internal */
  close(): void {
    this.#isClosed = true
    this.#cancelTellAgain()
    for (const end of [...this.#sources]) end()
  }

  #assertOpen(verb: string): void {
    if (this.#isClosed)
      throw new RunwardenError('engine-closing', `presence.${verb}: the engine is closing or closed`)
  }

  #report(isInUse: boolean): Promise<PresenceReceipt> {
    this.#assertOpen(isInUse ? 'inUse' : 'idle')
    if (isInUse !== this.#isInUse) {
      this.#isInUse = isInUse
      this.#cancelTellAgain()
      this.#last = this.#tell(this.#runs())
    }
    return this.#last
  }

  async #tell(runs: Iterable<RunActor>): Promise<PresenceReceipt> {
    const isInUse = this.#isInUse
    // Every command is in its mailbox when this returns its promise: the opposite report comes after it.
    const lines = await Promise.all(
      [...runs].filter((run) => this.#concerns(run)).map((run) => this.#tellOne(run)),
    )
    const unrecorded = new Set(
      lines.filter(({ status }) => status === 'unrecorded').map(({ runId }) => runId),
    )
    if (unrecorded.size > 0 && isInUse === this.#isInUse && !this.#isClosed) this.#tellAgain(unrecorded)
    return { isInUse, runs: lines }
  }

  #concerns(run: RunActor): boolean {
    if (run.policy.isForeground || run.state.isSettled || run.isEndWanted) return false
    return this.#isInUse || this.#told.has(run)
  }

  async #tellOne(run: RunActor): Promise<PresenceLine> {
    const isInUse = this.#isInUse
    const runId = run.id
    const wait = { clock: this.#host.clock, timeoutMs: ANSWER_WITHIN_MS }
    if (isInUse) this.#told.add(run)
    try {
      if (isInUse) return { runId, ...(await pauseRun(run, 'machine', wait)) }
      return { runId, status: (await resumeRun(run, 'machine', wait)) ? 'resumed' : 'held' }
    } catch (error) {
      // A run that ends while it is told is no failure of the report.
      const status = codeOf(error) === 'store-unavailable' ? 'unrecorded' : 'refused'
      return { runId, status, error: messageOf(error) }
    }
  }

  #tellAgain(runIds: ReadonlySet<string>): void {
    this.#cancelTellAgain = this.#host.clock.after(
      TELL_AGAIN_MS,
      () => void this.#tell([...this.#runs()].filter(({ id }) => runIds.has(id))),
      { isBackground: true },
    )
  }
}

export type { PresenceSource }
