/** Where a new worktree goes and on which branch, or why it cannot be made (O14). Looks only. */
import { readdir } from 'node:fs/promises'
import type { ProvisionRequest } from '../../actors/workspace.ports.js'
import type { Git } from './git.js'
import { readRemoved } from './manifest.js'
import { defaultBranchOf, keyOf } from './names.js'
import { refuse } from './obstacle.js'
import { isThere, pointsTo, registeredAt } from './registration.js'
import { baseCommitOf, branchFactOf, checkBranchName, isBranchMadeFor } from './repository.js'
import type { Repository } from './repository.js'

export interface Plan {
  readonly branch: string
  readonly baseCommit: string
  /** Whether the branch is to be created, or is the job's already. */
  readonly isNewBranch: boolean
  readonly path: string
}

/** The branch to be, or the one that was made for this job before. */
export const planBranch = async (
  git: Git,
  repository: Repository,
  request: ProvisionRequest,
): Promise<Omit<Plan, 'path'>> => {
  const { jobId, jobToken, previous } = request
  const defaultBranch = defaultBranchOf(jobId, jobToken)
  const branch = request.branch ?? defaultBranch
  await checkBranchName(git, repository, branch)
  const fact = await branchFactOf(git, repository, branch)
  if (fact === null) {
    return { branch, baseCommit: await baseCommitOf(git, repository, request.base), isNewBranch: true }
  }
  if (fact.checkedOutAt !== null) {
    refuse('branch-checked-out-elsewhere', `the branch ${branch} is checked out at ${fact.checkedOutAt}`)
  }
  const removed = await readRemoved(repository.commonDir, keyOf(jobToken))
  const isOwn =
    [defaultBranch, previous?.branch, removed?.branch].includes(branch) ||
    (await isBranchMadeFor(git, repository, branch, jobToken))
  if (!isOwn) {
    refuse('branch-taken', `the branch ${branch} exists already and was not made for the job ${jobId}`)
  }
  const baseCommit =
    removed?.branch === branch
      ? removed.baseCommit
      : await forkPointOf(git, repository, fact.tip, request.base)
  return { branch, baseCommit, isNewBranch: false }
}

/** Where a branch left its base, as far as that can still be said. */
const forkPointOf = async (
  git: Git,
  repository: Repository,
  tip: string,
  base: string | undefined,
): Promise<string> => {
  const baseCommit = await baseCommitOf(git, repository, base)
  const { exitCode, stdout } = await git.attempt({
    doing: `compare ${tip} with ${baseCommit}`,
    cwd: repository.folder,
    args: ['merge-base', baseCommit, tip],
  })
  return exitCode === 0 ? stdout.trim() : baseCommit
}

/** An empty folder is as good as none. */
export const checkPathIsFree = async (git: Git, repository: Repository, path: string): Promise<void> => {
  if (!(await isThere(path))) return
  const adminDir = await registeredAt(repository, path)
  if (adminDir !== null && (await pointsTo(path, adminDir))) {
    const { stdout } = await git.attempt({
      doing: `look at ${path}`,
      cwd: path,
      at: { adminDir, path },
      args: ['status', '--porcelain', '-z', '--untracked-files=normal'],
    })
    if (stdout !== '')
      refuse('dirty', `at ${path} is a worktree with uncommitted files that this job did not make`)
    refuse('path-occupied', `at ${path} is a worktree that this job did not make`)
  }
  const isEmpty = (await readdir(path)).length === 0
  if (!isEmpty) refuse('path-occupied', `at ${path} is something that this job did not make`)
}

export const checkNotMissing = async (
  { commonDir }: Repository,
  { jobId, jobToken, previous, recreatesMissing = false }: ProvisionRequest,
): Promise<void> => {
  if (previous === undefined || recreatesMissing) return
  if ((await readRemoved(commonDir, keyOf(jobToken))) !== null) return
  const files = (await isThere(previous.path))
    ? 'what is in the folder is no worktree any more'
    : 'so is the folder'
  refuse(
    'missing',
    `the repository does not know the worktree ${previous.path} of the job ${jobId} any more, and ${files}; commits are on the branch ${previous.branch}`,
  )
}
