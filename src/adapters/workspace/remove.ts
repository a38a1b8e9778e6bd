/**
 * Removing a job's worktree without losing what is in it (O14).
 *
 * The decision is recorded before the first file goes, so that a removal broken off is finished and not taken for uncommitted work.
 * Commits that only the worktree holds get a ref of their own first. The folder is removed by git, which knows what belongs to it;
 * ours is only to prove that it is the job's.
 */
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RemoveOptions, RemoveReply, WorkspaceCode, WorkspaceRef } from '../../actors/workspace.ports.js'
import { checkBranchCanGo, keepCommit, removeBranch } from './commits.js'
import { discardWorktree, unlock } from './discard.js'
import type { Git } from './git.js'
import { failureOf } from './git.js'
import { forgetRemoved, readRemoved, writeManifest, writeRemoved } from './manifest.js'
import type { Manifest } from './manifest.js'
import { keyOf } from './names.js'
import { Obstacle, refuse } from './obstacle.js'
import { findOwn, isThere, pointsTo } from './registration.js'
import type { OwnWorktree } from './registration.js'
import { branchFactOf, openRepository } from './repository.js'
import type { Repository } from './repository.js'
import { hiddenCountOf, operationIn, placeHindranceOf, statusOf } from './state.js'

type Removed = Extract<RemoveReply, { isOk: true }>

/** The commit a worktree is at, also when its folder is gone. */
const headOf = async (
  git: Git,
  { folder }: Repository,
  { adminDir }: OwnWorktree,
): Promise<string | null> => {
  const { exitCode, stdout } = await git.attempt({
    doing: `look up the commit of ${adminDir}`,
    cwd: folder,
    args: [`--git-dir=${adminDir}`, 'rev-parse', '--verify', '--quiet', 'HEAD^{commit}'],
  })
  return exitCode === 0 ? stdout.trim() : null
}

// ── checks ─────────────────────────────────────────────────────────────────────────────────────

const hasSubmodules = async ({ adminDir }: OwnWorktree): Promise<boolean> => {
  const modules = join(adminDir, 'modules')
  return (await isThere(modules)) && (await readdir(modules)).length > 0
}

/** Refuses what would lose work. */
const checkNothingIsLost = async (git: Git, own: OwnWorktree): Promise<void> => {
  const operation = await operationIn(own)
  if (operation !== null) refuse(operation.code, operation.reason)
  const { uncommittedCount } = await statusOf(git, own)
  if (uncommittedCount > 0) {
    refuse('dirty', `the worktree ${own.path} has ${uncommittedCount} uncommitted or untracked entries`)
  }
  const hiddenCount = await hiddenCountOf(git, own)
  if (hiddenCount > 0) {
    refuse(
      'dirty',
      `the worktree ${own.path} has ${hiddenCount} files that are marked so that no status shows them`,
    )
  }
  if (await hasSubmodules(own)) {
    refuse(
      'submodules',
      `submodules are checked out in ${own.path}: their own commits would go with the worktree`,
    )
  }
}

// ── removing ───────────────────────────────────────────────────────────────────────────────────

const isRefusedAsDirty = (stderr: string): boolean => /contains modified or untracked files/.test(stderr)
/** Git says it of every worktree with a submodule in its index, checked out or not. */
const isRefusedForSubmodules = (stderr: string): boolean => /containing submodules/.test(stderr)

/** Removes the folder and its registration. Unforced, git looks once more for what was written since we looked. */
const removeFiles = async (
  git: Git,
  { folder }: Repository,
  own: OwnWorktree,
  isForced: boolean,
): Promise<void> => {
  const call = (force: readonly string[]) => ({
    doing: `remove the worktree ${own.path}`,
    cwd: folder,
    writesTo: own.path,
    args: ['worktree', 'remove', ...force, '--', own.path],
    isCheckout: true,
  })
  let answer = await git.attempt(call(isForced ? ['--force'] : []))
  if (answer.exitCode !== 0 && isRefusedForSubmodules(answer.stderr)) {
    await checkNothingIsLost(git, own)
    answer = await git.attempt(call(['--force']))
  }
  if (answer.exitCode === 0) return
  if (isRefusedAsDirty(answer.stderr)) {
    refuse(
      'dirty',
      `the worktree ${own.path} has uncommitted or untracked files that were not there a moment ago`,
    )
  }
  throw await failureOf(call([]), answer)
}

interface Removal {
  readonly git: Git
  readonly repository: Repository
  readonly own: OwnWorktree
  /** Whether uncommitted files may go with it: what is recorded, also for the call that finishes it. */
  readonly isForced: boolean
  /** Whether git had begun to remove it before: then it finds deletions, and would refuse them unforced. */
  readonly wasBegun: boolean
}

/** With these, git may have removed a part. Any other refusal came before the first file. */
const MAY_HAVE_BEGUN: ReadonlySet<WorkspaceCode> = new Set([
  'timeout',
  'no-permission',
  'read-only',
  'disk-full',
  'io-failed',
  'git-failed',
])

const finish = async (
  { git, repository }: Pick<Removal, 'git' | 'repository'>,
  removed: Manifest,
): Promise<void> => {
  const removal = removed.removal && { ...removed.removal, finishedAt: git.nowMs() }
  await writeRemoved(repository.commonDir, keyOf(removed.jobToken), { ...removed, removal })
}

/** Records the decision, then acts on it. A decision that git refuses is taken back. The ref that was needed, or null. */
const removeRecorded = async (step: Removal): Promise<string | null> => {
  const { git, repository, own, isForced, wasBegun } = step
  const key = keyOf(own.manifest.jobToken)
  const head = await headOf(git, repository, own)
  const keptRef = head === null ? null : await keepCommit(git, repository, own.manifest, head)
  const removal = { head, isForced, finishedAt: null }
  const removed: Manifest = {
    ...own.manifest,
    path: own.path,
    state: 'removed',
    removal,
    changedAt: git.nowMs(),
  }
  await writeRemoved(repository.commonDir, key, removed)
  await writeManifest(own.adminDir, removed)
  try {
    await removeFiles(git, repository, own, isForced || wasBegun)
  } catch (error) {
    if (!wasBegun && error instanceof Obstacle && !MAY_HAVE_BEGUN.has(error.refusal.code)) {
      await writeManifest(own.adminDir, own.manifest)
      await forgetRemoved(repository.commonDir, key)
    }
    throw error
  }
  await finish(step, removed)
  return keptRef
}

const continueRemoval = async (
  git: Git,
  repository: Repository,
  own: OwnWorktree,
  isForced: boolean,
): Promise<string | null> => {
  const { adminDir, path, manifest } = own
  const mayLose = isForced || manifest.removal?.isForced === true
  if (await isThere(path)) {
    const dotGit = join(path, '.git')
    // Git removes the pointer in the course of the rest, and then does not know the folder any more.
    if (!(await isThere(dotGit))) await writeFile(dotGit, `gitdir: ${adminDir}\n`)
    if (!(await pointsTo(path, adminDir))) {
      refuse('not-ours', `what is at ${path} is not the worktree whose removal was begun`)
    }
    const { presentCount } = await statusOf(git, own)
    if (presentCount > 0 && !mayLose) {
      refuse(
        'dirty',
        `the removal of ${path} was broken off, and ${presentCount} uncommitted entries are there now`,
      )
    }
  }
  return removeRecorded({ git, repository, own, isForced: mayLose, wasBegun: true })
}

/**
 * The git of a process that died goes on, and may come to the end of the same removal: then nothing is registered any more, and at
 * most the pointer that was put back is left.
 */
const wasEndedByAnother = async ({ adminDir, path }: OwnWorktree): Promise<boolean> => {
  if (await isThere(adminDir)) return false
  if (!(await isThere(path))) return true
  if ((await readdir(path)).some((name) => name !== '.git')) return false
  await rm(path, { recursive: true, force: true })
  return true
}

/**
 * Ends a removal that a crash broke off, or takes the registration away when the folder is gone already. What was decided
 * without force removes nothing but what git had begun to remove.
 */
export const finishRemoval = async (
  git: Git,
  repository: Repository,
  own: OwnWorktree,
  isForced = false,
): Promise<string | null> => {
  try {
    return await continueRemoval(git, repository, own, isForced)
  } catch (error) {
    const removed = await readRemoved(repository.commonDir, keyOf(own.manifest.jobToken))
    if (removed === null || !(await wasEndedByAnother(own))) throw error
    await finish({ git, repository }, removed)
    return null
  }
}

const removeOwn = async (
  git: Git,
  repository: Repository,
  own: OwnWorktree,
  isForced: boolean,
): Promise<string | null> => {
  const { manifest, path } = own
  const place = await placeHindranceOf(own)
  // A person's lock is a word that force does not overrule; a lock file only says that a git may be at work.
  const isOverruled = isForced && own.foreignLock === null
  if (place?.code === 'locked' && !isOverruled) refuse(place.code, place.reason)
  if (manifest.state === 'removed') return finishRemoval(git, repository, own, isForced)
  if (manifest.populatedAt === null) {
    await discardWorktree(git, repository, { kind: 'made', ...own })
    return null
  }
  if (place?.code === 'path-occupied') refuse('not-ours', place.reason)
  if (own.hasMakingLock) await unlock(git, repository, path)
  if (place?.code === 'missing') return finishRemoval(git, repository, own)
  if (!isForced) await checkNothingIsLost(git, own)
  return removeRecorded({ git, repository, own, isForced, wasBegun: false })
}

// ── the whole ──────────────────────────────────────────────────────────────────────────────────

/** What is at the path of a worktree that is not registered any more is nobody's to remove but a person's. */
const checkNothingIsLeft = async ({ commonDir }: Repository, ref: WorkspaceRef): Promise<void> => {
  const removed = await readRemoved(commonDir, keyOf(ref.jobToken))
  if (removed?.removal?.finishedAt != null || !(await isThere(ref.path))) return
  const what =
    removed === null
      ? 'nothing proves that it is'
      : 'its removal was broken off, and nothing proves any more that it is'
  refuse('not-ours', `there is something at ${ref.path}: ${what} the worktree of the job ${ref.jobId}`)
}

export const remove = async (
  git: Git,
  given: WorkspaceRef,
  { force = false, deletesBranch = false, isConfirmed = false }: RemoveOptions,
): Promise<Removed> => {
  const repository = await openRepository(git, given.repository)
  const found = await findOwn(repository, given.jobToken, given.path)
  // It may have been moved since.
  const ref = found.kind === 'made' ? { ...given, path: found.path, branch: found.manifest.branch } : given
  if (found.kind === 'made' && found.manifest.state === 'running' && !isConfirmed) {
    refuse('running', `a run is at work in ${ref.path}: ${found.manifest.runIds.at(-1) ?? 'unnamed'}`)
  }
  if (deletesBranch) await checkBranchCanGo(git, repository, ref, force)

  const keptRefs: (string | null)[] = []
  if (found.kind === 'none') await checkNothingIsLeft(repository, ref)
  else if (found.kind === 'half-made') await discardWorktree(git, repository, found)
  else keptRefs.push(await removeOwn(git, repository, found, force))
  if (deletesBranch) keptRefs.push(await removeBranch(git, repository, ref))

  const isKept = (await branchFactOf(git, repository, ref.branch)) !== null
  return {
    isOk: true,
    wasRemovedBefore: found.kind === 'none',
    keptBranch: isKept ? ref.branch : null,
    keptRefs: keptRefs.filter((kept) => kept !== null),
  }
}
