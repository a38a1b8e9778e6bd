/**
 * Making a job's worktree, and taking it up again (O14, O9).
 *
 * The order is the guarantee: the branch is created with its origin in the reflog; the worktree is registered, empty, under a lock that
 * names the job; the manifest is written; the files are checked out; the lock is taken off. Whatever crash comes between, the next call
 * finds whose it is and how far it came. No agent has worked in it before the last step.
 */
import { mkdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ProvisionReply, ProvisionRequest } from '../../actors/workspace.ports.js'
import { discardWorktree, unlock } from './discard.js'
import type { Git } from './git.js'
import { forgetRemoved, newManifest, writeManifest } from './manifest.js'
import { keyOf, makingLockOf, nameOf } from './names.js'
import { refuse } from './obstacle.js'
import { findOwn, isThere, registeredAt } from './registration.js'
import type { Found, OwnWorktree } from './registration.js'
import { finishRemoval } from './remove.js'
import { checkNotMissing, checkPathIsFree, planBranch } from './plan.js'
import type { Plan } from './plan.js'
import { deleteBranch, makeBranch, openRepository } from './repository.js'
import type { Repository } from './repository.js'
import { lockFileIn, placeHindranceOf, statusOf, workHindranceOf } from './state.js'
import type { Status } from './state.js'

type Provisioned = Extract<ProvisionReply, { isOk: true }>

/** Makes the folder when it is missing, hidden from the status of a repository around it. Its real path. */
const makeRoot = async (git: Git, root: string): Promise<string> => {
  const isNew = (await mkdir(root, { recursive: true })) !== undefined
  if (isNew) {
    const { stdout } = await git.attempt({
      doing: `look what is around ${root}`,
      cwd: root,
      args: ['rev-parse', '--is-inside-work-tree'],
    })
    if (stdout.trim() === 'true') await writeFile(join(root, '.gitignore'), '*\n')
  }
  // Git writes down real paths: ours are compared with them.
  return realpath(root)
}

// ── taking up ──────────────────────────────────────────────────────────────────────────────────

const notesOf = ({ path, manifest }: OwnWorktree, { branch, head }: Status): readonly string[] => {
  if (head === null)
    return [`the worktree ${path} is on the branch ${String(branch)}, which has no commit yet`]
  if (branch === null) return [`the worktree ${path} is on no branch, at ${head}`]
  if (branch === manifest.branch) return []
  return [`the worktree ${path} is on the branch ${branch}, not on ${manifest.branch}`]
}

const replyOf = (
  request: ProvisionRequest,
  { path, manifest }: OwnWorktree,
  taken: Pick<Provisioned, 'isTakenUp' | 'notes'>,
): Provisioned => ({
  isOk: true,
  jobId: request.jobId,
  jobToken: request.jobToken,
  repository: request.repository,
  path,
  branch: manifest.branch,
  baseCommit: manifest.baseCommit,
  state: manifest.state,
  ...taken,
})

const takeUp = async (git: Git, request: ProvisionRequest, own: OwnWorktree): Promise<Provisioned> => {
  let place = await placeHindranceOf(own)
  if (place?.code === 'locked' && own.foreignLock === null) {
    // Somebody's git may be at work for a moment.
    await git.waitUntil(async () => (await lockFileIn(own)) === null)
    place = await placeHindranceOf(own)
  }
  if (place !== null) refuse(place.code, place.reason)
  const status = await statusOf(git, own)
  const hindrance = await workHindranceOf(own, status)
  if (hindrance !== null) refuse(hindrance.code, hindrance.reason)
  return replyOf(request, own, { isTakenUp: true, notes: notesOf(own, status) })
}

// ── making ─────────────────────────────────────────────────────────────────────────────────────

/** A lock file of a checkout that cannot be going on any more: nobody else has work in a worktree that was never handed out. */
const clearOldLock = async (git: Git, own: OwnWorktree): Promise<void> => {
  if (await git.waitUntil(async () => (await lockFileIn(own)) === null)) return
  const lockFile = await lockFileIn(own)
  if (lockFile === null) return
  const ageMs = git.nowMs() - (await stat(lockFile)).mtimeMs
  if (ageMs < git.checkoutDeadlineMs) {
    refuse(
      'busy',
      `another git is checking out ${own.path}, or was killed at it: ${lockFile} is too young to tell`,
    )
  }
  await rm(lockFile, { force: true })
}

/** Checks the files out, as `git worktree add` would have, and hands the worktree out. May be repeated. */
const populate = async (git: Git, repository: Repository, own: OwnWorktree): Promise<OwnWorktree> => {
  const { adminDir, path } = own
  await git.run({
    doing: `check out the files of ${path}`,
    cwd: path,
    at: { adminDir, path },
    args: ['reset', '--hard', '--quiet', '--no-recurse-submodules'],
    isCheckout: true,
  })
  const at = git.nowMs()
  const manifest = { ...own.manifest, populatedAt: at, changedAt: at }
  await writeManifest(adminDir, manifest)
  await unlock(git, repository, path)
  return { ...own, manifest, hasMakingLock: false }
}

const register = async (
  git: Git,
  repository: Repository,
  request: ProvisionRequest,
  { path, branch, baseCommit }: Plan,
): Promise<OwnWorktree> => {
  const { jobId, jobToken } = request
  const lock = ['--lock', '--reason', makingLockOf(jobToken)]
  await git.run({
    doing: `make the worktree ${path}`,
    cwd: repository.folder,
    writesTo: dirname(path),
    args: ['worktree', 'add', '--quiet', '--no-checkout', ...lock, '--', path, branch],
  })
  const adminDir = await registeredAt(repository, path)
  if (adminDir === null) return refuse('git-failed', `git made the worktree ${path} and does not list it`)
  const manifest = newManifest({ jobId, jobToken, path, branch, baseCommit }, git.nowMs())
  await writeManifest(adminDir, manifest)
  return { adminDir, path, foreignLock: null, hasMakingLock: true, manifest }
}

const takeBack = async (
  git: Git,
  repository: Repository,
  { jobToken }: ProvisionRequest,
  { branch, baseCommit, isNewBranch, path }: Plan,
): Promise<void> => {
  const found = await findOwn(repository, jobToken, path)
  // Whole, whatever failed after: the next call takes it up.
  if (found.kind === 'made' && found.manifest.populatedAt !== null) return
  await discardWorktree(git, repository, found)
  if (isNewBranch) await deleteBranch(git, repository, branch, baseCommit)
}

/** All of it or nothing: what cannot be finished is taken back, so that a full disk is not left fuller. */
const make = async (
  git: Git,
  repository: Repository,
  request: ProvisionRequest,
  plan: Plan,
): Promise<Provisioned> => {
  if (plan.isNewBranch) {
    await makeBranch(git, repository, {
      branch: plan.branch,
      commit: plan.baseCommit,
      jobToken: request.jobToken,
    })
  }
  try {
    const own = await populate(git, repository, await register(git, repository, request, plan))
    await forgetRemoved(repository.commonDir, keyOf(request.jobToken))
    return replyOf(request, own, { isTakenUp: false, notes: [] })
  } catch (error) {
    // What cannot even be taken back is found by the next call: the first fault is the one to tell.
    await takeBack(git, repository, request, plan).catch(() => undefined)
    throw error
  }
}

/** What is left to make, after what an earlier call left half done is out of the way. */
const settle = async (
  git: Git,
  repository: Repository,
  request: ProvisionRequest,
  found: Found,
): Promise<OwnWorktree | null> => {
  if (found.kind === 'none') {
    await checkNotMissing(repository, request)
    return null
  }
  if (found.kind === 'half-made') {
    await discardWorktree(git, repository, found)
    return null
  }
  if (found.manifest.state === 'removed') {
    await finishRemoval(git, repository, found)
    return null
  }
  if (found.manifest.populatedAt === null) {
    await clearOldLock(git, found)
    return populate(git, repository, found)
  }
  if (found.hasMakingLock) await unlock(git, repository, found.path)
  const isLost = found.foreignLock === null && !(await isThere(found.path))
  if (!isLost || request.recreatesMissing !== true) return found
  await finishRemoval(git, repository, found)
  return null
}

export const provision = async (git: Git, request: ProvisionRequest): Promise<Provisioned> => {
  const repository = await openRepository(git, request.repository)
  const root = await makeRoot(git, request.worktreesRoot)
  const path = join(root, nameOf(request.jobId, request.jobToken))
  const found = await findOwn(repository, request.jobToken, path)
  const own = await settle(git, repository, request, found)
  if (own !== null) return takeUp(git, request, own)
  await checkPathIsFree(git, repository, path)
  return make(git, repository, request, { ...(await planBranch(git, repository, request)), path })
}
