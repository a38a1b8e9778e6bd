/**
 * The workspace port through the real git: one worktree and branch per job.
 *
 * Owns: the order of calls for one job, the records in its manifest, and the view of it.
 * Does not own: when a worktree is made or removed, and whether the job's last tree is gone: the jobs decide.
 * Messages in: provision, record, inspect, remove. Messages out: none; nothing runs between the calls.
 * Invariants: nothing that is not proven the job's is written to or removed; what a crash left is found by the next call.
 */
import type {
  ProvisionReply,
  RemoveReply,
  WorkspaceMark,
  WorkspacePort,
  WorkspaceRef,
  WorkspaceRefusal,
  WorkspaceView,
} from '../../actors/workspace.ports.js'
import { RunwardenError } from '../../errors.js'
import { createGit } from './git.js'
import type { Git, GitOptions } from './git.js'
import { RUN_IDS_MAX, readRemoved, writeManifest } from './manifest.js'
import type { Manifest } from './manifest.js'
import { keyOf } from './names.js'
import { answerOf, refuse } from './obstacle.js'
import { provision } from './provision.js'
import { findOwn } from './registration.js'
import type { OwnWorktree } from './registration.js'
import { remove } from './remove.js'
import { openRepository } from './repository.js'
import type { Repository } from './repository.js'
import { placeHindranceOf, statusOf, workHindranceOf } from './state.js'

// ── records ────────────────────────────────────────────────────────────────────────────────────

const confirmationOf = (mark: WorkspaceMark): Manifest['confirmation'] => {
  if (mark.state !== 'cancelled') return null
  const { evidence, confirmedAt, runId } = mark
  // P21: the word is said of a tree that is proven gone, and the proof stands beside it.
  if ((evidence as string) === '' || !Number.isFinite(confirmedAt)) {
    throw new RunwardenError(
      'invariant-broken',
      `P21: cancelled was to be recorded of ${runId} without evidence`,
    )
  }
  return { evidence, confirmedAt }
}

const withRun = (runIds: readonly string[], runId: string): string[] =>
  [...runIds.filter((id) => id !== runId), runId].slice(-RUN_IDS_MAX)

const record = async (git: Git, ref: WorkspaceRef, mark: WorkspaceMark): Promise<{ readonly isOk: true }> => {
  const confirmation = confirmationOf(mark)
  const repository = await openRepository(git, ref.repository)
  const own = await findOwn(repository, ref.jobToken, ref.path)
  if (own.kind !== 'made' || own.manifest.state === 'removed') {
    refuse('missing', `the repository does not know the worktree ${ref.path} of the job ${ref.jobId}`)
  }
  const { manifest } = own
  const isStale = manifest.state === 'running' && manifest.runIds.at(-1) !== mark.runId
  // INV-10: a word about an earlier run says nothing of the one at work now.
  if (isStale && mark.state !== 'running') {
    refuse('running', `${manifest.runIds.at(-1) ?? ''} is at work in ${own.path}, not ${mark.runId}`)
  }
  const { state, runId } = mark
  const runIds = withRun(manifest.runIds, runId)
  await writeManifest(own.adminDir, {
    ...manifest,
    path: own.path,
    state,
    runIds,
    confirmation,
    changedAt: git.nowMs(),
  })
  return { isOk: true }
}

// ── views ──────────────────────────────────────────────────────────────────────────────────────

const aheadCountOf = async (
  git: Git,
  { folder }: Repository,
  baseCommit: string,
  head: string | null,
): Promise<number | null> => {
  if (head === null) return null
  const { exitCode, stdout } = await git.attempt({
    doing: `count the commits of ${head}`,
    cwd: folder,
    args: ['rev-list', '--count', `${baseCommit}..${head}`, '--'],
  })
  return exitCode === 0 ? Number(stdout) : null
}

type Seen = Pick<WorkspaceView, 'branch' | 'head' | 'uncommittedCount' | 'obstacle'>

const viewOf = async (
  git: Git,
  repository: Repository,
  manifest: Manifest,
  seen: Seen,
): Promise<WorkspaceView> => {
  const { path, state, baseCommit, runIds, createdAt, changedAt } = manifest
  const aheadCount = await aheadCountOf(git, repository, baseCommit, seen.head)
  return { isOk: true, path, state, baseCommit, runIds, createdAt, changedAt, aheadCount, ...seen }
}

const seenOf = async (git: Git, own: OwnWorktree): Promise<Seen> => {
  const status = await statusOf(git, own)
  const obstacle = (await placeHindranceOf(own)) ?? (await workHindranceOf(own, status))
  const { branch, head, uncommittedCount } = status
  return { branch, head, uncommittedCount, obstacle }
}

const inspect = async (git: Git, ref: WorkspaceRef): Promise<WorkspaceView> => {
  const repository = await openRepository(git, ref.repository)
  const own = await findOwn(repository, ref.jobToken, ref.path)
  if (own.kind === 'made' && own.manifest.state !== 'removed') {
    const place = await placeHindranceOf(own)
    if (place !== null && place.code !== 'locked') refuse(place.code, place.reason)
    return viewOf(git, repository, { ...own.manifest, path: own.path }, await seenOf(git, own))
  }
  const removed =
    own.kind === 'made' ? own.manifest : await readRemoved(repository.commonDir, keyOf(ref.jobToken))
  if (removed === null) {
    return refuse('missing', `the repository does not know the worktree ${ref.path} of the job ${ref.jobId}`)
  }
  const head = removed.removal?.head ?? null
  return viewOf(git, repository, removed, { branch: null, head, uncommittedCount: 0, obstacle: null })
}

// ── the port ───────────────────────────────────────────────────────────────────────────────────

/** Calls for one job in the order in which they came; those for different jobs side by side. */
const createOrder = () => {
  const last = new Map<string, Promise<unknown>>()
  return async <T>(key: string, step: () => Promise<T>): Promise<T> => {
    const turn = (last.get(key) ?? Promise.resolve()).then(step, step)
    last.set(key, turn)
    try {
      return await turn
    } finally {
      if (last.get(key) === turn) last.delete(key)
    }
  }
}

/** Worktrees through git. Every call answers within its deadlines, and none rejects for what git or the disk say. */
export const createGitWorkspaces = (options: GitOptions): WorkspacePort => {
  const git = createGit(options)
  const inOrder = createOrder()
  const answered = <T>(jobToken: string, step: () => Promise<T>): Promise<T | WorkspaceRefusal> =>
    inOrder(jobToken, () => answerOf(step))
  return {
    provision: (request): Promise<ProvisionReply> =>
      answered(request.jobToken, () => provision(git, request)),
    record: (ref, mark) => answered(ref.jobToken, () => record(git, ref, mark)),
    inspect: (ref) => answerOf(() => inspect(git, ref)),
    remove: (ref, options = {}): Promise<RemoveReply> =>
      answered(ref.jobToken, () => remove(git, ref, options)),
  }
}
