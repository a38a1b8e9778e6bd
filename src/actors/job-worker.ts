/**
 * The work on the queue: claims what may be started, and sees each run of a job to its end.
 *
 * Owns: which jobs this engine is at, what is passed over for now, when there is nothing left to do, and the way out.
 * Does not own: which job is next and where it goes (the store and the chart), how a run ends (the registry).
 * Messages in: `stop`. Messages out: claims, and claims given back, to the queue; starts and interrupts to the engine.
 * Invariants: INV-8 (a claim comes to one run, or back), INV-11 (every wait has an end), O11 (who may not run now is passed over).
 */
import { codeOf, messageOf } from '../errors.js'
import type { ClaimReply, JobCaps, JobStorePort, StoredJob } from './job.ports.js'
import type { Clock, Logger } from './ports.js'
import { PassedOver } from './passed-over.js'
import type { Workspace } from './workspace.ports.js'

const LOOK_EVERY_MS = 250
const RECOVER_EVERY_MS = 2_000
const STOPPED = 'the work on the queue was stopped'

/** A run of a job, on record. */
export interface StartedRun {
  /** Settles when its outcome is there and every process is proven gone. */
  readonly ended: Promise<unknown>
}

export type Prepared =
  | { readonly isOk: true; readonly workspace: Workspace | null }
  | { readonly isOk: false; readonly reason: string; readonly mayPass: boolean }

export interface WorkPorts {
  readonly engineId: string
  readonly jobs: JobStorePort
  readonly clock: Clock
  readonly logger: Logger
  readonly caps: JobCaps
  /** The runs for which this engine claims jobs now. */
  readonly claims: Set<string>
  readonly newId: () => string
  /** The place to work in (O14). Answers, and does not throw. */
  readonly prepare: (job: StoredJob) => Promise<Prepared>
  readonly start: (job: StoredJob, runId: string, workspace: Workspace | null) => Promise<StartedRun>
  /** Ends runs so that their jobs go on later; the ids of those that were not proven gone in time. */
  readonly interrupt: (runIds: readonly string[], reason: string) => Promise<readonly string[]>
  /** After the end of a run: what is kept beside its job. */
  readonly noteEnd: (jobId: string, runId: string) => Promise<void>
  /** Gives back what dead engines hold. */
  readonly recover: () => Promise<void>
  /** A number that changes when another process wrote, or null where that is not known. */
  readonly changeToken: () => Promise<number | null>
  /** A job was claimed, or is not any more. */
  readonly changed: () => void
  /** The engine launches nothing any more, and its store may close. */
  readonly isClosing: () => boolean
}

/** `idle`: nothing is left that may be started without a person. */
export type WorkEnd = 'idle' | 'held' | 'stopped' | 'engine-closing'

export interface WorkReport {
  readonly reason: WorkEnd
  /** Runs that were started. */
  readonly started: number
  /** Runs that were asked to end and not proven gone in time: their jobs are active until they are. */
  readonly left: readonly string[]
}

export class JobWorker {
  readonly #ports: WorkPorts
  /** What this worker is at, by run. */
  readonly #taken = new Map<string, Promise<void>>()
  /** Runs that are on record, and how their wait is ended where they will not go. */
  readonly #leave = new Map<string, () => void>()
  readonly #passed: PassedOver
  /** The last look for a job left some out: it says nothing of them. */
  #hasPassedOver = false
  readonly #left = new Set<string>()
  #started = 0
  #end: WorkEnd | null = null
  #wake: () => void = () => undefined
  #recoveredAt = -Infinity
  #isNudged = false

  constructor(ports: WorkPorts) {
    this.#ports = ports
    this.#passed = new PassedOver(ports.clock)
  }

  /** Resolves when it is over and everything it started has ended, or would not. */
  async work(until: 'idle' | 'stopped'): Promise<WorkReport> {
    while (this.#end === null) {
      this.#isNudged = false
      if (this.#ports.isClosing()) {
        this.stop('the engine is closing', 'engine-closing')
        continue
      }
      // Before the look: what changes during it is seen by the next.
      const token = await this.#readToken()
      await this.#recoverIfDue()
      const reply = await this.#claim()
      if (reply?.kind === 'claimed') continue
      if (reply !== null) this.#passed.forgetDue()
      this.#end ??= until === 'idle' && reply !== null ? this.#idleBy(reply) : null
      if (this.#end === null) await this.#nextLook(token)
    }
    await Promise.all(this.#taken.values())
    return { reason: this.#end, started: this.#started, left: [...this.#left] }
  }

  /** Nothing more is started; what runs is interrupted, and its jobs return to their places. */
  stop(reason = STOPPED, end: WorkEnd = 'stopped'): void {
    if (this.#end !== null && this.#leave.size === 0) return
    this.#end ??= end
    this.#interrupt([...this.#leave.keys()], reason)
    this.#wake()
  }

  /** Something changed here: look at once. */
  nudge(): void {
    this.#isNudged = true
    this.#wake()
  }

  #isStopping(): boolean {
    return this.#end !== null
  }

  #idleBy(reply: ClaimReply): WorkEnd | null {
    if (this.#taken.size > 0) return null
    if (reply.kind === 'held') return 'held'
    return reply.kind === 'none' && !reply.isWaiting && !this.#hasPassedOver ? 'idle' : null
  }

  /** Null where the store did not answer: asked again at the next look. */
  async #claim(): Promise<ClaimReply | null> {
    const { jobs, engineId, clock, caps, claims, newId, logger } = this.#ports
    const runId = newId()
    const except = this.#passed.now
    this.#hasPassedOver = except.length > 0
    // Before the claim is on record: recovery must never take it for one that was lost.
    claims.add(runId)
    try {
      const reply = await jobs.claim({
        runId,
        engineId,
        at: clock.wallMs(),
        caps,
        except,
      })
      if (reply.kind === 'claimed') this.#take(reply.job, runId)
      else claims.delete(runId)
      return reply
    } catch (error) {
      claims.delete(runId)
      logger.warn({ error: messageOf(error) }, 'a job could not be claimed; tried again')
      return null
    }
  }

  #take(job: StoredJob, runId: string): void {
    const taking = this.#see(job, runId).finally(() => {
      this.#ports.claims.delete(runId)
      this.#taken.delete(runId)
      this.#leave.delete(runId)
      this.nudge()
      this.#ports.changed()
    })
    this.#taken.set(runId, taking)
    this.#ports.changed()
  }

  /** One claimed job, until its run has ended or it was given back. Never rejects. */
  async #see(job: StoredJob, runId: string): Promise<void> {
    const { prepare, start, logger } = this.#ports
    const jobId = job.row.id
    try {
      const prepared = await prepare(job)
      if (!prepared.isOk) {
        await this.#refuse(job, runId, prepared)
        return
      }
      if (this.#isStopping()) {
        await this.#giveBack(jobId, runId, STOPPED)
        return
      }
      const run = await start(job, runId, prepared.workspace)
      this.#started += 1
      this.#passed.started(jobId)
      const left = new Promise<void>((resolve) => this.#leave.set(runId, resolve))
      if (this.#isStopping()) this.#interrupt([runId], STOPPED)
      await Promise.race([run.ended, left])
      if (!this.#left.has(runId)) await this.#noteEnd(jobId, runId)
    } catch (error) {
      logger.warn({ job: jobId, run: runId, error: messageOf(error) }, 'a claimed job was not started')
      await this.#refuse(job, runId, this.#refusalOf(error))
      await this.#noteEnd(jobId, runId)
    }
  }

  async #noteEnd(jobId: string, runId: string): Promise<void> {
    const { noteEnd, logger } = this.#ports
    await noteEnd(jobId, runId).catch((error: unknown) => {
      logger.warn({ job: jobId, run: runId, error: messageOf(error) }, 'the end of a run could not be noted')
    })
  }

  #refusalOf(error: unknown): { readonly reason: string; readonly mayPass: boolean } {
    const code = codeOf(error)
    if (code === 'engine-closing') this.stop('the engine is closing', 'engine-closing')
    // What is wrong with the job itself does not pass; a fence, a store that is away and the like do.
    return { reason: messageOf(error), mayPass: code !== 'invalid-option' }
  }

  async #refuse(
    job: StoredJob,
    runId: string,
    { reason, mayPass }: { readonly reason: string; readonly mayPass: boolean },
  ): Promise<void> {
    const { jobs, clock, logger } = this.#ports
    const jobId = job.row.id
    if (this.#isStopping() || (mayPass && this.#passed.add(jobId)))
      return this.#giveBack(jobId, runId, reason)
    await jobs
      .tell(jobId, { type: 'job.block', at: clock.wallMs(), runId, reason })
      .catch((error: unknown) => {
        // It stays claimed, by nobody: the next recovery gives it back.
        logger.warn({ job: jobId, error: messageOf(error) }, 'a job could not be blocked')
      })
  }

  async #giveBack(jobId: string, runId: string, reason: string): Promise<void> {
    const { jobs, clock, logger } = this.#ports
    await jobs
      .tell(jobId, { type: 'job.unclaim', at: clock.wallMs(), runId, reason })
      .catch((error: unknown) => {
        logger.warn({ job: jobId, error: messageOf(error) }, 'a claim could not be given back')
      })
  }

  #interrupt(runIds: readonly string[], reason: string): void {
    const { interrupt, logger } = this.#ports
    for (const runId of runIds) {
      interrupt([runId], reason)
        .catch((error: unknown) => {
          logger.error({ run: runId, error: messageOf(error) }, 'a run of a job could not be interrupted')
          return [runId]
        })
        .then(
          (left) => {
            for (const id of left) this.#left.add(id)
            if (left.includes(runId)) this.#leave.get(runId)?.()
          },
          () => undefined,
        )
    }
  }

  async #recoverIfDue(): Promise<void> {
    const { clock, recover, logger } = this.#ports
    if (clock.monotonicMs() - this.#recoveredAt < RECOVER_EVERY_MS) return
    this.#recoveredAt = clock.monotonicMs()
    await recover().catch((error: unknown) => {
      logger.warn({ error: messageOf(error) }, 'what dead engines hold could not be looked for')
    })
  }

  #readToken(): Promise<number | null> {
    return this.#ports.changeToken().catch(() => null)
  }

  /** Until something changed, here or elsewhere, or something is due. A store that cannot tell is looked at each time. */
  async #nextLook(token: number | null): Promise<void> {
    const { clock } = this.#ports
    while (!this.#isNudged && this.#end === null) {
      await this.#wait()
      const isRecoveryDue = clock.monotonicMs() - this.#recoveredAt >= RECOVER_EVERY_MS
      const now = await this.#readToken()
      if (isRecoveryDue || this.#passed.isDue || now === null || now !== token) return
    }
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#wake = () => undefined
        cancel()
        resolve()
      }
      const cancel = this.#ports.clock.after(LOOK_EVERY_MS, wake)
      this.#wake = wake
    })
  }
}
