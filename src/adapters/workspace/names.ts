/** The names that follow from a job: the same at every call, and another job's never. */
import { createHash } from 'node:crypto'

const READABLE_MAX = 60
const KEY_LENGTH = 16
const SUFFIX_LENGTH = 8

/** Stands for the token in names of files and refs. */
export const keyOf = (jobToken: string): string =>
  createHash('sha256').update(jobToken).digest('hex').slice(0, KEY_LENGTH)

/** For the folder of the worktree and the end of its branch: readable, and safe for both. */
export const nameOf = (jobId: string, jobToken: string): string => {
  const readable = jobId
    .replace(/[^A-Za-z0-9_]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, READABLE_MAX)
    .replace(/-+$/, '')
  return `${readable === '' ? 'job' : readable}-${keyOf(jobToken).slice(0, SUFFIX_LENGTH)}`
}

export const defaultBranchOf = (jobId: string, jobToken: string): string =>
  `runwarden/${nameOf(jobId, jobToken)}`

/** The reason of git's own lock on a worktree until its manifest and files are there: says whose it is from its first moment. */
export const makingLockOf = (jobToken: string): string =>
  `runwarden is making this worktree for job ${keyOf(jobToken)}`

/** The first entry in the reflog of a branch that was made for the job. */
export const branchOriginOf = (jobToken: string): string => `runwarden: made for job ${keyOf(jobToken)}`

/** Holds a commit that would otherwise be lost with a worktree or a branch. */
export const keptRefOf = (jobId: string, jobToken: string, commit: string): string =>
  `refs/runwarden/kept/${nameOf(jobId, jobToken)}/${commit.slice(0, 12)}`
