/** What is going on in a worktree: its branch, its uncommitted files, operations that were begun and locks that stand. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorkspaceCode } from '../../actors/workspace.ports.js'
import type { Git } from './git.js'
import { isThere, pointsTo } from './registration.js'
import type { OwnWorktree } from './registration.js'

export interface Status {
  /** Null on a detached head. */
  readonly branch: string | null
  /** Null before the first commit of a branch. */
  readonly head: string | null
  readonly uncommittedCount: number
  readonly conflictCount: number
  /** Uncommitted entries that are more than a file that is not there: all that a removal broken off leaves are such. */
  readonly presentCount: number
}

export interface Hindrance {
  readonly code: WorkspaceCode
  readonly reason: string
}

/** Changed, in conflict, untracked: how an entry of `git status --porcelain=v2 -z --no-renames` begins. */
const ENTRY_KINDS = ['1', 'u', '?']
/** Of `1 XY …`: the state of the file in the worktree is the Y. */
const WORKTREE_COLUMN = 3

const headerOf = (fields: readonly string[], name: string): string | null =>
  fields.find((field) => field.startsWith(`# ${name} `))?.slice(name.length + 3) ?? null

export const statusOf = async (git: Git, { adminDir, path }: OwnWorktree): Promise<Status> => {
  const text = await git.run({
    doing: `look at the worktree ${path}`,
    cwd: path,
    at: { adminDir, path },
    args: [
      'status',
      '--porcelain=v2',
      '-z',
      '--branch',
      '--untracked-files=normal',
      '--ignore-submodules=none',
      '--no-renames',
    ],
  })
  const fields = text.split('\0')
  const entries = fields.filter((field) => ENTRY_KINDS.includes(field[0] ?? ''))
  const head = headerOf(fields, 'branch.oid')
  const branch = headerOf(fields, 'branch.head')
  return {
    branch: branch === '(detached)' ? null : branch,
    head: head === '(initial)' ? null : head,
    uncommittedCount: entries.length,
    conflictCount: entries.filter((entry) => entry.startsWith('u')).length,
    presentCount: entries.filter((entry) => entry.startsWith('?') || entry[WORKTREE_COLUMN] !== 'D').length,
  }
}

/** Files with a mark that hides them from every status, and that are there all the same. */
export const hiddenCountOf = async (git: Git, { adminDir, path }: OwnWorktree): Promise<number> => {
  const text = await git.run({
    doing: `list the files of ${path}`,
    cwd: path,
    at: { adminDir, path },
    args: ['ls-files', '-v', '-z'],
  })
  // `h`: assumed unchanged; `S`, `s`: outside a sparse checkout, where a file has no business to be.
  const marked = text.split('\0').filter((line) => /^[a-zS] /.test(line))
  const present = await Promise.all(marked.map((line) => isThere(join(path, line.slice(2)))))
  return present.filter(Boolean).length
}

const OPERATIONS: readonly (readonly [file: string, code: WorkspaceCode, name: string])[] = [
  ['rebase-merge', 'rebase-in-progress', 'rebase'],
  ['rebase-apply/applying', 'am-in-progress', 'am'],
  ['rebase-apply', 'rebase-in-progress', 'rebase'],
  ['MERGE_HEAD', 'merge-in-progress', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry-pick-in-progress', 'cherry-pick'],
  ['REVERT_HEAD', 'revert-in-progress', 'revert'],
  // Several picks or reverts, between two of them.
  ['sequencer', 'cherry-pick-in-progress', 'cherry-pick'],
  ['BISECT_LOG', 'bisect-in-progress', 'bisect'],
]

/** An operation that was begun and not ended. */
export const operationIn = async ({ adminDir, path }: OwnWorktree): Promise<Hindrance | null> => {
  for (const [file, code, name] of OPERATIONS) {
    if (!(await isThere(join(adminDir, file)))) continue
    const end = name === 'bisect' ? '`git bisect reset`' : `\`git ${name} --continue\` or \`--abort\``
    return { code, reason: `a ${name} is under way in the worktree ${path}: end it there with ${end}` }
  }
  return null
}

/** A lock file in the worktree's folder: of a git at work, or left behind by one that was killed. */
export const lockFileIn = async ({ adminDir }: OwnWorktree): Promise<string | null> => {
  const name = (await readdir(adminDir)).find((entry) => entry.endsWith('.lock'))
  return name === undefined ? null : join(adminDir, name)
}

/** What keeps anyone from working in the place at all: it is locked, gone, or not ours. */
export const placeHindranceOf = async (own: OwnWorktree): Promise<Hindrance | null> => {
  const { path, adminDir, foreignLock, manifest } = own
  // First: a worktree on a disk that is not there now is locked for that very reason.
  if (foreignLock !== null) {
    const why = foreignLock === '' ? 'without a reason' : `because: ${foreignLock}`
    return { code: 'locked', reason: `the worktree ${path} was locked with \`git worktree lock\` ${why}` }
  }
  if (!(await isThere(path))) {
    const reason = `the worktree ${path} is gone, and what was not committed with it; its commits are on the branch ${manifest.branch}`
    return { code: 'missing', reason }
  }
  if (!(await pointsTo(path, adminDir))) {
    return { code: 'path-occupied', reason: `what is at ${path} is not the worktree that was made there` }
  }
  const lockFile = await lockFileIn(own)
  if (lockFile === null) return null
  const reason = `${lockFile} is there: a git process is at work, or was killed and left it; remove it when no git runs there`
  return { code: 'locked', reason }
}

/** What keeps the next run from starting on what it finds there. Its own uncommitted files do not (O9). */
export const workHindranceOf = async (own: OwnWorktree, status: Status): Promise<Hindrance | null> => {
  const operation = await operationIn(own)
  if (operation !== null) return operation
  if (status.conflictCount > 0) {
    const reason = `${status.conflictCount} files in the worktree ${own.path} are in conflict: resolve them there`
    return { code: 'conflicts', reason }
  }
  // An agent that commits all it finds would make somebody's files its own.
  if (own.manifest.runIds.length === 0 && status.uncommittedCount > 0) {
    const reason = `the worktree ${own.path} has ${status.uncommittedCount} uncommitted entries, and no run of the job was there yet`
    return { code: 'dirty', reason }
  }
  return null
}
