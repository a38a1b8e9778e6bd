/** The public door to the jobs: a durable queue over the engine's store, and the work on it. */
export { openJobList, openJobs } from './open-jobs.js'
export type { JobList } from './job-list.js'
export type { JobQueue, WorkOptions } from './job-queue.js'
export type { JobEventOut, JobHistory, JobRecord } from './job-record.js'
export type { ProtocolMaker } from './job-protocol.js'
export type {
  ByOptions,
  JobQuery,
  JobSpec,
  JobState,
  Place,
  QueueOptions,
  RemoveWorkspaceOptions,
} from './job-options.js'
export type { QueueHold } from './actors/job.ports.js'
export type { WorkEnd, WorkReport } from './actors/job-worker.js'
export type { JobOutcome } from './machines/job/job.context.js'
export type {
  RemoveReply,
  WorkspaceCode,
  WorkspaceRefusal,
  WorkspaceState,
  WorkspaceView,
} from './actors/workspace.ports.js'
