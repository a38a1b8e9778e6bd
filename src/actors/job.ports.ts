/**
 * What the jobs need from a store: the queue in its order, each move of a job whole or not at all.
 * Wall-clock times are milliseconds since the epoch.
 */
import type { JobCommand, JobEvent, JobFact } from '../machines/job/job.events.js'
import type { JobInput } from '../machines/job/job.context.js'
import type { WorkspaceRef } from './workspace.ports.js'

/** The states in which a job fills a slot: a frozen or stopping run does too. */
export const ACTIVE_PHASES: readonly string[] = ['active.claimed', 'active.running', 'active.leaving']

/** What was asked for: written once. */
export interface JobRow {
  readonly id: string
  /** Tells this job from one with the same id in another store; the same for its whole life. */
  readonly token: string
  readonly title: string | null
  readonly project: string | null
  readonly account: string | null
  /** The program only: for lists (L7). */
  readonly program: string
  /** What its runs are started with, as JSON. The one place where arguments are stored: they are the work. */
  readonly spec: string
  readonly createdAt: number
}

export interface StoredJob {
  readonly row: JobRow
  readonly rev: number
  readonly machineVersion: number
  readonly snapshot: string
  /** `pending`, `active.running`, `review` … */
  readonly state: string
  /** Orders the queue; means nothing else, and may change when others are moved. */
  readonly place: number
  /** The jobs that must be done before it may be started. */
  readonly after: readonly string[]
  readonly workspace: WorkspaceRef | null
  readonly updatedAt: number
  readonly endedAt: number | null
  /** The headline of the run for which it is claimed, once that is on record. */
  readonly runHeadline: string | null
}

/** One pure step of the job chart, as data. Null where the event means nothing in that state. */
export interface JobStep {
  readonly snapshot: string
  readonly from: string
  readonly to: string
  readonly attemptsLeft: number
  readonly attemptsSpent: number
  readonly runId: string | null
  readonly engineId: string | null
  readonly isOver: boolean
}

/** The job chart, given to the store by the composition root: a job is stepped inside the transaction that moves it. */
export interface JobChart {
  readonly version: number
  first(input: JobInput): JobStep
  next(snapshot: string, event: JobEvent): JobStep | null
}

/** What a run's transition tells its job; `at` is the transition's. */
export interface JobFacts {
  readonly jobId: string
  readonly facts: readonly JobFact[]
}

export type JobPlace =
  { readonly at: 'first' | 'last' } | { readonly before: string } | { readonly after: string }

export interface JobCaps {
  readonly total: number
  readonly perProject: number | Readonly<Record<string, number>> | undefined
  readonly perAccount: number | Readonly<Record<string, number>> | undefined
}

export interface ClaimRequest {
  /** Names the claim: asked for again with the same id, the same job is answered. */
  readonly runId: string
  readonly engineId: string
  readonly at: number
  readonly caps: JobCaps
  /** Jobs that this engine passes over for now. */
  readonly except: readonly string[]
}

/** `none`: nothing may be started now; `isWaiting` when that may change without a person: a job is active somewhere, and is done, or comes back. */
export type ClaimReply =
  | { readonly kind: 'claimed'; readonly job: StoredJob }
  | { readonly kind: 'held'; readonly hold: QueueHold }
  | { readonly kind: 'none'; readonly isWaiting: boolean }

export interface QueueHold {
  readonly since: number
  readonly by: string
  readonly reason: string
}

export interface JobFilter {
  /** Default: those that are not over. */
  readonly states?: readonly string[]
  readonly project?: string
  readonly account?: string
  /** Behind this job, for the next page. */
  readonly behind?: string
  readonly limit: number
}

/** `refused`: the event means nothing in the state of the job, which stands as it was. */
export interface JobReply {
  readonly isMoved: boolean
  readonly job: StoredJob
}

export type JobChange = 'added' | 'changed' | 'ended' | 'removed'

/** What a follower compares: a job whose revision or headline differs has changed. */
export interface JobRevision {
  readonly id: string
  readonly rev: number
  readonly headline: string | null
}

export interface StoredJobTransition {
  readonly rev: number
  readonly at: number
  readonly event: string
  readonly detail: unknown
  readonly from: string
  readonly to: string
}

export interface NewJob {
  readonly row: JobRow
  readonly input: JobInput
  readonly place: JobPlace
  readonly after: readonly string[]
}

export interface JobStorePort {
  /**
   * All of them or none, in their order. Rejects `job-exists`; `unknown-job` for a place or a job to come after that is not there;
   * `refused` for one that is over.
   */
  add(jobs: readonly NewJob[]): Promise<readonly StoredJob[]>
  /** Null where there is none. */
  load(jobId: string): Promise<StoredJob | null>
  list(filter: JobFilter): Promise<readonly StoredJob[]>
  /** How many jobs are in each state. */
  count(): Promise<Readonly<Record<string, number>>>
  transitionsOf(jobId: string): Promise<readonly StoredJobTransition[]>
  /** Every job that is not over. */
  revisions(): Promise<readonly JobRevision[]>

  /** Each of these rejects `unknown-job`. */
  tell(jobId: string, event: JobCommand): Promise<JobReply>
  /** Rejects `refused` for a job that is over. */
  move(jobId: string, place: JobPlace, at: number, by: string): Promise<StoredJob>
  /** Forgets a pending job. Rejects `refused`: it is not pending, others come after it, or it has a worktree. */
  remove(jobId: string): Promise<void>
  /** Keeps where the job works; null once the worktree is gone. */
  keepWorkspace(jobId: string, workspace: WorkspaceRef | null): Promise<void>

  /** INV-8: the first job that may be started is claimed, by one engine. */
  claim(request: ClaimRequest): Promise<ClaimReply>

  hold(hold: QueueHold): Promise<void>
  release(): Promise<void>
  readHold(): Promise<QueueHold | null>
}
