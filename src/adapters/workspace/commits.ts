/** Commits outlive the worktree and the branch they were made on (O14): who holds them, and a ref for those that nobody holds. */
import type { WorkspaceRef } from '../../actors/workspace.ports.js'
import type { Git } from './git.js'
import { readRemoved } from './manifest.js'
import { defaultBranchOf, keptRefOf, keyOf } from './names.js'
import { refuse } from './obstacle.js'
import { branchFactOf, deleteBranch, isBranchMadeFor, isHeldElsewhere } from './repository.js'
import type { Repository } from './repository.js'

/** Gives a commit a ref of its own when nothing else holds it. The ref, or null. */
export const keepCommit = async (
  git: Git,
  repository: Repository,
  { jobId, jobToken }: Pick<WorkspaceRef, 'jobId' | 'jobToken'>,
  commit: string,
  exceptRef?: string,
): Promise<string | null> => {
  if (await isHeldElsewhere(git, repository, commit, exceptRef)) return null
  const ref = keptRefOf(jobId, jobToken, commit)
  await git.run({
    doing: `keep the commit ${commit}`,
    cwd: repository.folder,
    args: ['update-ref', ref, commit],
  })
  return ref
}

const isOwnBranch = async (git: Git, repository: Repository, ref: WorkspaceRef): Promise<boolean> => {
  if (ref.branch === defaultBranchOf(ref.jobId, ref.jobToken)) return true
  const removed = await readRemoved(repository.commonDir, keyOf(ref.jobToken))
  return removed?.branch === ref.branch || isBranchMadeFor(git, repository, ref.branch, ref.jobToken)
}

/** Refuses before anything is removed. */
export const checkBranchCanGo = async (
  git: Git,
  repository: Repository,
  ref: WorkspaceRef,
  isForced: boolean,
): Promise<void> => {
  const { branch } = ref
  const fact = await branchFactOf(git, repository, branch)
  if (fact === null) return
  if (!(await isOwnBranch(git, repository, ref))) {
    refuse('not-ours', `nothing proves that the branch ${branch} was made for the job ${ref.jobId}`)
  }
  if (fact.checkedOutAt !== null && fact.checkedOutAt !== ref.path) {
    refuse('branch-checked-out-elsewhere', `the branch ${branch} is checked out at ${fact.checkedOutAt}`)
  }
  if (!isForced && !(await isHeldElsewhere(git, repository, fact.tip, `refs/heads/${branch}`))) {
    refuse('unmerged-commits', `only the branch ${branch} holds its commits: merge it, or keep it`)
  }
}

/** The ref that was needed to lose nothing, or null. */
export const removeBranch = async (
  git: Git,
  repository: Repository,
  ref: WorkspaceRef,
): Promise<string | null> => {
  const fact = await branchFactOf(git, repository, ref.branch)
  if (fact === null) return null
  const keptRef = await keepCommit(git, repository, ref, fact.tip, `refs/heads/${ref.branch}`)
  await deleteBranch(git, repository, ref.branch, fact.tip)
  return keptRef
}
