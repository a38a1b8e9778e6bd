/**
 * The worktree of a job, before its run and after it (O14).
 *
 * Owns: when a worktree is asked for and marked. Does not own: what is done with git (the port), nor when it is removed (people ask).
 * Invariants: O14 (it is there before the run is admitted), O9 (an interruption leaves it as it is), P21.
 */
import type { JobContext } from '../machines/job/job.context.js'
import type { Evidence } from '../machines/run/run.context.js'
import type { Prepared } from './job-worker.js'
import type { JobStorePort, StoredJob } from './job.ports.js'
import type { Logger } from './ports.js'
import type { ProvisionRequest, WorkspaceMark, WorkspacePort } from './workspace.ports.js'

/** What a job says of the worktree it wants. */
export type WorkspaceWish = Pick<ProvisionRequest, 'repository' | 'branch' | 'base'>

export interface JobWorkspaces {
  readonly port: WorkspacePort
  /** Absolute: worktrees are made below it. */
  readonly root: string
}

export interface WorkspaceParts {
  readonly jobs: JobStorePort
  readonly logger: Logger
  /** Null: this engine makes no worktrees. */
  readonly workspaces: JobWorkspaces | null
  readonly wishOf: (job: StoredJob) => WorkspaceWish | null
}

const contextOf = ({ snapshot }: StoredJob): JobContext =>
  (JSON.parse(snapshot) as { readonly context: JobContext }).context

/** A worktree that was there before is taken up as it is: commits, uncommitted files and all (O9). */
export const prepareWorkspace = async (
  { jobs, logger, workspaces, wishOf }: WorkspaceParts,
  job: StoredJob,
): Promise<Prepared> => {
  const wish = wishOf(job)
  if (wish === null) return { isOk: true, workspace: null }
  if (workspaces === null) {
    const reason = 'it wants a worktree, and this queue was opened without a place for worktrees'
    return { isOk: false, reason, mayPass: false }
  }
  const { id, token } = job.row
  const reply = await workspaces.port.provision({
    ...wish,
    jobId: id,
    jobToken: token,
    worktreesRoot: workspaces.root,
    ...(job.workspace === null ? {} : { previous: job.workspace }),
  })
  if (!reply.isOk) return { isOk: false, reason: `${reply.code}: ${reply.reason}`, mayPass: reply.mayPass }
  for (const note of reply.notes) logger.info({ job: id }, note)
  const { jobId, jobToken, repository, path, branch, baseCommit } = reply
  const ref = { jobId, jobToken, repository, path, branch }
  // On record before the run is: what was made for a job is found again, whatever happens next.
  await jobs.keepWorkspace(id, ref)
  const runId = contextOf(job).claim?.runId
  if (runId !== undefined) {
    const marked = await workspaces.port.record(ref, { state: 'running', runId })
    if (!marked.isOk)
      return { isOk: false, reason: `${marked.code}: ${marked.reason}`, mayPass: marked.mayPass }
  }
  return { isOk: true, workspace: { ...ref, baseCommit } }
}

const markOf = (job: StoredJob, runId: string, evidence: Evidence | null): WorkspaceMark => {
  const { lastOutcome } = contextOf(job)
  // A run that never was: the worktree waits for the next.
  if (lastOutcome?.runId !== runId) return { state: 'provisioned', runId }
  const { status } = lastOutcome
  if (status === 'completed') return { state: 'ready-for-review', runId }
  // P21: said only with the evidence that the tree is gone.
  if (status === 'cancelled' && evidence !== null)
    return { state: 'cancelled', runId, evidence: evidence.kind, confirmedAt: evidence.at }
  return status === 'interrupted' ? { state: 'provisioned', runId } : { state: 'failed', runId }
}

/** P21: what became of the last run, in the worktree's own record. Nothing where another run has begun since. */
export const markWorkspace = async (
  { jobs, logger, workspaces }: WorkspaceParts,
  jobId: string,
  { runId, evidence }: { readonly runId: string; readonly evidence: Evidence | null },
): Promise<void> => {
  const job = await jobs.load(jobId)
  if (job === null || job.workspace === null || workspaces === null || contextOf(job).claim !== null) return
  const marked = await workspaces.port.record(job.workspace, markOf(job, runId, evidence))
  if (!marked.isOk) logger.warn({ job: jobId, reason: marked.reason }, 'a worktree could not be marked')
}

/** Names by which git is sent to another repository than the one it stands in: they must not reach an agent with a worktree. */
const GIT_PLACES = [
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_CONFIG',
  'GIT_CONFIG_COUNT',
  'GIT_CONFIG_PARAMETERS',
  'GIT_DIR',
  'GIT_GRAFT_FILE',
  'GIT_IMPLICIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_NAMESPACE',
  'GIT_NO_REPLACE_OBJECTS',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_REPLACE_REF_BASE',
  'GIT_SHALLOW_FILE',
  'GIT_WORK_TREE',
]

export const withoutGitPlaces = (
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !GIT_PLACES.includes(name)))
