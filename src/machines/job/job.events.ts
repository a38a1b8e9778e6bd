/** What a job can be told: commands of people and of the engine that works the queue, and facts of the job's own run. */
import type { JobOutcome } from './job.context.js'

export type JobCommand =
  | { readonly type: 'job.claim'; readonly at: number; readonly runId: string; readonly engineId: string }
  /** The claim is given up before a run was recorded. */
  | { readonly type: 'job.unclaim'; readonly at: number; readonly runId: string; readonly reason: string }
  /** `runId` where a claimed job cannot be started; none where what it comes after will never be done. */
  | { readonly type: 'job.block'; readonly at: number; readonly runId?: string; readonly reason: string }
  | { readonly type: 'job.accept'; readonly at: number; readonly by: string }
  | { readonly type: 'job.retry'; readonly at: number; readonly by: string }
  | { readonly type: 'job.extend'; readonly at: number; readonly attempts: number; readonly by: string }
  | { readonly type: 'job.drop'; readonly at: number; readonly by: string; readonly reason: string }

/** What the job's run tells, in the transaction of the run's own transition (O13). */
export type JobFact =
  | { readonly type: 'run.recorded'; readonly at: number; readonly runId: string }
  | {
      readonly type: 'run.settled'
      readonly at: number
      readonly runId: string
      readonly outcome: JobOutcome
    }
  | { readonly type: 'run.confirmed'; readonly at: number; readonly runId: string }

export type JobEvent = JobCommand | JobFact
