/** The repository of a job: where its common folder is, and what its branches and commits are. */
import { isAbsolute } from 'node:path'
import { stat } from 'node:fs/promises'
import { codeOf } from '../../errors.js'
import type { Git } from './git.js'
import { branchOriginOf } from './names.js'
import { refuse } from './obstacle.js'

/** `worktree add --lock --reason`. */
const GIT_MINIMUM = [2, 33] as const

export interface Repository {
  /** Where commands run: the folder that was given. */
  readonly folder: string
  /** `.git` of the main worktree, or the bare repository. */
  readonly commonDir: string
}

const withoutLineEnd = (text: string): string => text.replace(/\r?\n$/, '')

/** Gits whose version is enough. */
const versionChecked = new WeakSet<Git>()

const checkVersion = async (git: Git, folder: string): Promise<void> => {
  if (versionChecked.has(git)) return
  const text = await git.run({ doing: 'say its version', cwd: folder, args: ['version'] })
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(text) ?? []
  const isEnough =
    Number(major) > GIT_MINIMUM[0] || (Number(major) === GIT_MINIMUM[0] && Number(minor) >= GIT_MINIMUM[1])
  if (!isEnough) {
    refuse('git-too-old', `${text.trim()} is too old: worktrees need git ${GIT_MINIMUM.join('.')} or later`)
  }
  versionChecked.add(git)
}

const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory()
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false
    throw error
  }
}

/** Refuses what is no repository, what git will not touch, and a git that is missing or too old. */
export const openRepository = async (git: Git, folder: string): Promise<Repository> => {
  if (!isAbsolute(folder) || !(await isFolder(folder))) {
    refuse('not-a-repository', `${folder} is not a folder named by its whole path`)
  }
  await checkVersion(git, folder)
  const commonDir = await git.run({
    doing: `find the repository of ${folder}`,
    cwd: folder,
    args: ['rev-parse', '--path-format=absolute', '--git-common-dir'],
  })
  return { folder, commonDir: withoutLineEnd(commonDir) }
}

/** The commit of a name, or null. */
const commitOf = async (git: Git, { folder }: Repository, name: string): Promise<string | null> => {
  const { exitCode, stdout } = await git.attempt({
    doing: `look up ${name}`,
    cwd: folder,
    args: ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`],
  })
  return exitCode === 0 ? stdout.trim() : null
}

export const baseCommitOf = async (git: Git, repository: Repository, base = 'HEAD'): Promise<string> => {
  const commit = await commitOf(git, repository, base)
  if (commit !== null) return commit
  const { stdout } = await git.attempt({
    doing: 'look for a commit',
    cwd: repository.folder,
    args: ['rev-list', '--max-count=1', '--all'],
  })
  if (stdout.trim() === '') {
    refuse(
      'no-commits',
      `the repository ${repository.folder} has no commit yet: a branch has nowhere to begin`,
    )
  }
  return refuse('unknown-base', `${base} names no commit of the repository ${repository.folder}`)
}

export const checkBranchName = async (git: Git, { folder }: Repository, branch: string): Promise<void> => {
  // `refs/heads/HEAD` is a valid ref and a trap for whoever says HEAD afterwards; a dash would be taken for an option.
  const isTrap = branch === 'HEAD' || branch.startsWith('-')
  const { exitCode } = await git.attempt({
    doing: `check the branch name ${branch}`,
    cwd: folder,
    args: ['check-ref-format', `refs/heads/${branch}`],
  })
  if (isTrap || exitCode !== 0)
    refuse('branch-invalid', `${branch} is not a name that git allows for a branch`)
}

export interface BranchFact {
  readonly tip: string
  /** The worktree that has it checked out, or null. */
  readonly checkedOutAt: string | null
}

/** Null where there is no such branch. */
export const branchFactOf = async (
  git: Git,
  { folder }: Repository,
  branch: string,
): Promise<BranchFact | null> => {
  const text = await git.run({
    doing: `look up the branch ${branch}`,
    cwd: folder,
    args: ['for-each-ref', '--format=%(refname) %(objectname) %(worktreepath)', `refs/heads/${branch}`],
  })
  // A folder of branches by this name has no fact of its own.
  const opening = `refs/heads/${branch} `
  if (!text.startsWith(opening)) return null
  const [, tip = '', checkedOutAt = ''] =
    /^(\S+) (.*)$/s.exec(withoutLineEnd(text.slice(opening.length))) ?? []
  return { tip, checkedOutAt: checkedOutAt === '' ? null : checkedOutAt }
}

/** Creates the branch, or refuses: of two who ask at once, one gets it. */
export const makeBranch = async (
  git: Git,
  { folder, commonDir }: Repository,
  {
    branch,
    commit,
    jobToken,
  }: { readonly branch: string; readonly commit: string; readonly jobToken: string },
): Promise<void> => {
  await git.run({
    doing: `create the branch ${branch}`,
    cwd: folder,
    writesTo: commonDir,
    args: [
      'update-ref',
      '--create-reflog',
      '-m',
      branchOriginOf(jobToken),
      `refs/heads/${branch}`,
      commit,
      // It must not exist yet.
      '',
    ],
  })
}

/** Whether the branch was made for the job, by the first entry of its reflog. */
export const isBranchMadeFor = async (
  git: Git,
  { folder }: Repository,
  branch: string,
  jobToken: string,
): Promise<boolean> => {
  const { exitCode, stdout } = await git.attempt({
    doing: `look where the branch ${branch} comes from`,
    cwd: folder,
    args: ['reflog', 'show', '--format=%gs', `refs/heads/${branch}`, '--'],
  })
  return exitCode === 0 && stdout.trimEnd().split('\n').at(-1) === branchOriginOf(jobToken)
}

/** Only if it still is at `tip`. */
export const deleteBranch = async (
  git: Git,
  { folder }: Repository,
  branch: string,
  tip: string,
): Promise<void> => {
  await git.run({
    doing: `delete the branch ${branch}`,
    cwd: folder,
    args: ['update-ref', '-d', `refs/heads/${branch}`, tip],
  })
}

/** Whether a branch, remote branch, tag or kept ref other than `except` leads to the commit. */
export const isHeldElsewhere = async (
  git: Git,
  { folder }: Repository,
  commit: string,
  except?: string,
): Promise<boolean> => {
  const text = await git.run({
    doing: `look what holds the commit ${commit}`,
    cwd: folder,
    args: [
      'for-each-ref',
      '--count=2',
      `--contains=${commit}`,
      '--format=%(refname)',
      'refs/heads',
      'refs/remotes',
      'refs/tags',
      'refs/runwarden',
    ],
  })
  return text.split('\n').some((ref) => ref !== '' && ref !== except)
}
