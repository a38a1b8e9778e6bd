/** The queue as any process over the store sees and changes it. Nothing is started from here: see job-queue.ts. */
import { JobFollower } from './actors/job-follower.js'
import type { FollowedStore } from './actors/job-follower.js'
import { ACTIVE_PHASES } from './actors/job.ports.js'
import type { JobStorePort, NewJob, QueueHold, StoredJob } from './actors/job.ports.js'
import type { Clock, Logger } from './actors/ports.js'
import type { RemoveReply, WorkspacePort, WorkspaceRefusal, WorkspaceView } from './actors/workspace.ports.js'
import { RunwardenError } from './errors.js'
import { JobListeners } from './job-listeners.js'
import type { JobListener } from './job-listeners.js'
import {
  byOptionsSchema,
  extendOptionsSchema,
  jobQuerySchema,
  assertFolders,
  assertJobId,
  assertListener,
  jobSpecSchema,
  placeSchema,
  removeWorkspaceSchema,
  specsSchema,
} from './job-options.js'
import type { ByOptions, JobQuery, JobSpec, JobState, Place, RemoveWorkspaceOptions } from './job-options.js'
import { assertSpeakable } from './job-protocol.js'
import { refusalOf, toHistory, toNewJob, toRecord } from './job-record.js'
import type { JobHistory, JobRecord } from './job-record.js'
import type { JobCommand } from './machines/job/job.events.js'
import { parseOptions } from './option-types.js'

/** What a list is made of. */
export interface JobListParts {
  readonly store: FollowedStore
  readonly clock: Clock
  readonly logger: Logger
  readonly newId: () => string
  readonly workspaces: WorkspacePort
  /** Nothing is answered any more: the store is closing, or closed. */
  readonly isClosed: () => boolean
}

const toStates = (states: readonly JobState[]): readonly string[] =>
  states.flatMap((state) => (state === 'active' ? ACTIVE_PHASES : [state]))

const only = ([job]: readonly StoredJob[]): StoredJob => {
  if (job === undefined) throw new RunwardenError('invariant-broken', 'a job was added and is not there')
  return job
}

export class JobList {
  /** @internal */
  protected readonly parts: JobListParts
  readonly #follower: JobFollower
  readonly #listeners: JobListeners

  /** @internal Use `openJobList` or `openJobs`. */
  constructor(parts: JobListParts) {
    this.parts = parts
    this.#listeners = new JobListeners(parts.store.jobs, parts.logger)
    this.#follower = new JobFollower(parts, (id, change) => this.#listeners.publish(id, change))
  }

  /**
   * Adds a job, at the end or at a place. It is in the store when this resolves.
   *
   * @throws `invalid-option`; `job-exists`; `unknown-job` for a job it is to stand beside or come after; `refused` when that is over or dropped.
   */
  async add(spec: JobSpec): Promise<JobRecord> {
    const job = this.#newJob(spec, 'add')
    return this.#change('add', async (jobs) => only(await jobs.add([job])))
  }

  /** Adds several jobs, all of them or none, at most 10 000 at once; one may come after another that stands before it in the list. */
  async addAll(specs: readonly JobSpec[]): Promise<readonly JobRecord[]> {
    const checked = parseOptions(specsSchema, specs, 'addAll')
    const jobs = checked.map((spec, index) =>
      this.#newJob(spec as JobSpec, `addAll: job ${String(index + 1)}`),
    )
    await this.#enter('addAll')
    const added = await this.parts.store.jobs.add(jobs)
    this.nudge()
    return added.map(toRecord)
  }

  /** A page of the queue, in its order. Throws `unknown-job` for `behind`. */
  async list(query: JobQuery = {}): Promise<readonly JobRecord[]> {
    const { states, project, account, behind, limit } = parseOptions(jobQuerySchema, query, 'list')
    this.#assertOpen('list')
    const jobs = await this.parts.store.jobs.list({
      ...(states === undefined ? {} : { states: toStates(states) }),
      ...(project === undefined ? {} : { project }),
      ...(account === undefined ? {} : { account }),
      ...(behind === undefined ? {} : { behind }),
      limit,
    })
    return jobs.map(toRecord)
  }

  /** Throws `unknown-job`. */
  async get(jobId: string): Promise<JobRecord> {
    return toRecord(await this.#find('get', jobId))
  }

  /** The job, what may be shown of its spec, and its journal. Throws `unknown-job`. */
  async history(jobId: string): Promise<JobHistory> {
    const job = await this.#find('history', jobId)
    return toHistory(job, await this.parts.store.jobs.transitionsOf(jobId))
  }

  /** How many jobs are in each state. */
  async count(): Promise<Readonly<Record<JobState, number>>> {
    this.#assertOpen('count')
    const counts: Record<JobState, number> = {
      pending: 0,
      active: 0,
      review: 0,
      blocked: 0,
      exhausted: 0,
      done: 0,
      cancelled: 0,
    }
    for (const [state, count] of Object.entries(await this.parts.store.jobs.count()))
      counts[state.split('.')[0] as JobState] += count
    return counts
  }

  /** Gives a job another place; an active one takes it when it comes back. Throws `unknown-job`; `refused` beside what is over. */
  async reorder(jobId: string, place: Place): Promise<JobRecord> {
    assertJobId(jobId, 'reorder')
    const parsed = parseOptions(placeSchema, place, 'reorder: place')
    return this.#change('reorder', (jobs) => jobs.move(jobId, parsed, this.#now, 'host'))
  }

  /** Forgets a pending job. Throws `unknown-job`; `refused` when it is not pending, is waited for, or has worked in a worktree. */
  async remove(jobId: string): Promise<void> {
    assertJobId(jobId, 'remove')
    await this.#enter('remove')
    await this.parts.store.jobs.remove(jobId)
    this.nudge()
  }

  /** Gives a job up for good; its worktree stays. Throws `unknown-job`; `refused` while a run of it is going, naming the run. */
  async drop(jobId: string, options: ByOptions = {}): Promise<JobRecord> {
    const { by, reason } = parseOptions(byOptionsSchema, options, 'drop')
    return this.#tell('drop', jobId, { type: 'job.drop', at: this.#now, by, reason })
  }

  /** Takes work that is under review: the job is done. Throws `unknown-job`, `refused`. */
  async accept(jobId: string, options: Pick<ByOptions, 'by'> = {}): Promise<JobRecord> {
    const { by } = parseOptions(byOptionsSchema, options, 'accept')
    return this.#tell('accept', jobId, { type: 'job.accept', at: this.#now, by })
  }

  /** Puts a blocked job, or work under review, back in its place for another run. Throws `unknown-job`, `refused` (also without attempts). */
  async retry(jobId: string, options: Pick<ByOptions, 'by'> = {}): Promise<JobRecord> {
    const { by } = parseOptions(byOptionsSchema, options, 'retry')
    return this.#tell('retry', jobId, { type: 'job.retry', at: this.#now, by })
  }

  /** Grants further attempts; an exhausted job is pending again, in its place. Throws `unknown-job`, `refused`. */
  async extend(
    jobId: string,
    options: { readonly attempts: number; readonly by?: string },
  ): Promise<JobRecord> {
    const { attempts, by } = parseOptions(extendOptionsSchema, options, 'extend')
    return this.#tell('extend', jobId, { type: 'job.extend', at: this.#now, attempts, by })
  }

  /** Pauses the whole queue, for every engine: nothing more is claimed; what runs goes on. */
  async hold(options: ByOptions = {}): Promise<void> {
    const { by, reason } = parseOptions(byOptionsSchema, options, 'hold')
    await this.#enter('hold')
    await this.parts.store.jobs.hold({ since: this.#now, by, reason })
    this.nudge()
  }

  async release(): Promise<void> {
    await this.#enter('release')
    await this.parts.store.jobs.release()
    this.nudge()
  }

  /** Who holds the queue, since when and why; or null. */
  async held(): Promise<QueueHold | null> {
    this.#assertOpen('held')
    return this.parts.store.jobs.readHold()
  }

  /** What is in the job's worktree now; null where it has none. Throws `unknown-job`. */
  async inspectWorkspace(jobId: string): Promise<WorkspaceView | WorkspaceRefusal | null> {
    const { workspace } = await this.#find('inspectWorkspace', jobId)
    return workspace === null ? null : this.parts.workspaces.inspect(workspace)
  }

  /**
   * Removes the worktree of a job that is over (O14). Never with uncommitted files unless forced; commits stay reachable.
   *
   * @returns what became of it, or why it is still there; null where there was none.
   * @throws `unknown-job`; `refused` while the job is not done or cancelled: it may be started at any moment.
   */
  async removeWorkspace(jobId: string, options: RemoveWorkspaceOptions = {}): Promise<RemoveReply | null> {
    const parsed = parseOptions(removeWorkspaceSchema, options, 'removeWorkspace')
    const { workspace, endedAt, state } = await this.#find('removeWorkspace', jobId)
    if (endedAt === null) {
      throw new RunwardenError(
        'refused',
        `removeWorkspace: job ${jobId} is ${state}: accept or drop it first`,
      )
    }
    if (workspace === null) return null
    const reply = await this.parts.workspaces.remove(workspace, { ...parsed, isConfirmed: true })
    if (reply.isOk) await this.parts.store.jobs.keepWorkspace(jobId, null)
    return reply
  }

  /**
   * Tells of every change of the queue, whichever process makes it, within some 200 ms; several changes of one job in that time are one.
   * A listener that throws hurts nobody (F). Returns the way to stop listening.
   */
  subscribe(listener: JobListener): () => void {
    assertListener(listener)
    this.#assertOpen('subscribe')
    this.#listeners.add(listener)
    this.#follower.start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.isEmpty) this.#follower.stop()
    }
  }

  /** Resolves when the listeners were told of every change that was made before this call. */
  caughtUp(): Promise<void> {
    return this.#follower.catchUp()
  }

  /** @internal The queue was changed by this process. */
  protected nudge(): void {
    this.#follower.nudge()
  }

  /** Nobody is told any more. The store stays open where it was opened by somebody else. */
  close(): void {
    this.#listeners.clear()
    this.#follower.stop()
  }

  get #now(): number {
    return this.parts.clock.wallMs()
  }

  #newJob(spec: JobSpec, what: string): NewJob {
    const parsed = parseOptions(jobSpecSchema, spec, what)
    assertFolders(parsed, what)
    assertSpeakable(parsed, what)
    return toNewJob(parsed, this.parts.newId, this.#now)
  }

  /** Nobody comes in behind the end: the store is gone, or will be in the middle of the answer. */
  #assertOpen(verb: string): void {
    if (this.parts.isClosed())
      throw new RunwardenError('engine-closing', `${verb}: the engine or the list is closing or closed`)
  }

  /** For what changes the queue: what is changed after `subscribe` was called is told. */
  async #enter(verb: string): Promise<void> {
    this.#assertOpen(verb)
    await this.#follower.ready
    this.#assertOpen(verb)
  }

  async #find(verb: string, jobId: string): Promise<StoredJob> {
    assertJobId(jobId, verb)
    this.#assertOpen(verb)
    const job = await this.parts.store.jobs.load(jobId)
    if (job === null) throw new RunwardenError('unknown-job', `job ${jobId} is not in this store`)
    return job
  }

  async #tell(verb: string, jobId: string, event: JobCommand): Promise<JobRecord> {
    assertJobId(jobId, verb)
    await this.#enter(verb)
    const { isMoved, job } = await this.parts.store.jobs.tell(jobId, event)
    if (!isMoved) throw refusalOf(verb, job, toRecord(job))
    this.nudge()
    return toRecord(job)
  }

  async #change(verb: string, change: (jobs: JobStorePort) => Promise<StoredJob>): Promise<JobRecord> {
    await this.#enter(verb)
    const job = await change(this.parts.store.jobs)
    this.nudge()
    return toRecord(job)
  }
}
