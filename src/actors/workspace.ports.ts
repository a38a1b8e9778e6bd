/**
 * What the jobs need from the place in which their agents work: one git worktree and branch per job (O14).
 *
 * A port answers, it does not throw: what stands in the way of a job is an answer with a stable code and a sentence for people.
 * Every call is bounded by deadlines of its own, and may be repeated: after a crash, a second time, by another engine.
 *
 * What the caller guarantees: it holds the job (one engine per job), and calls `provision` and `remove` only when no process of an
 * earlier run of the job is left (`confirmed`). The environment of the agent is the caller's too: `GIT_*` variables such as
 * `GIT_DIR` must not reach an agent whose work is in a worktree.
 */
import type { EvidenceKind } from '../machines/run/run.context.js'

/** What a job's worktree records of itself (P21). `cancelled` is said only of a run that is confirmed gone. */
export type WorkspaceState =
  'provisioned' | 'running' | 'ready-for-review' | 'failed' | 'cancelled' | 'removed'

/** Why a worktree cannot be had, used or removed. Stable words; the sentence beside them is for people. */
export type WorkspaceCode =
  // what a person has to mend in the worktree
  /** Uncommitted or untracked files that would be lost, or that are not of this job. */
  | 'dirty'
  | 'conflicts'
  | 'rebase-in-progress'
  | 'am-in-progress'
  | 'merge-in-progress'
  | 'cherry-pick-in-progress'
  | 'revert-in-progress'
  | 'bisect-in-progress'
  /** Locked by `git worktree lock`, or by a lock file that a git process left behind. */
  | 'locked'
  /** The job had a worktree, and its folder or its registration in the repository is gone. */
  | 'missing'
  /** The manifest is torn, or of a newer version. */
  | 'manifest-unreadable'
  // what a person has to mend around it
  | 'branch-taken'
  | 'branch-checked-out-elsewhere'
  | 'branch-invalid'
  /** Something that is not this job's worktree is at its path. Never touched. */
  | 'path-occupied'
  | 'not-a-repository'
  /** Git refuses the repository because another user owns it (`safe.directory`). */
  | 'unsafe-repository'
  | 'no-commits'
  | 'unknown-base'
  | 'git-missing'
  | 'git-too-old'
  | 'no-permission'
  | 'read-only'
  // what stands in the way of a removal or a record
  /** Its manifest says that a run is at work in it, or another run than the one named. */
  | 'running'
  /** Commits that nothing else holds would be lost. */
  | 'unmerged-commits'
  /** Submodules were checked out in it: their own commits live inside the worktree. */
  | 'submodules'
  /** There is a worktree, and nothing proves that it is this job's. */
  | 'not-ours'
  // what may pass by itself
  /** Another process is creating or removing this worktree. */
  | 'busy'
  | 'disk-full'
  | 'timeout'
  /** Git failed for a reason without a word of its own; the sentence quotes it. */
  | 'git-failed'
  /** The file system failed for a reason without a word of its own; the sentence quotes it. */
  | 'io-failed'

export interface WorkspaceRefusal {
  readonly isOk: false
  readonly code: WorkspaceCode
  /** A sentence that names the path or branch, what is wrong with it, and where possible what to do. */
  readonly reason: string
  /** True when trying again later may succeed without anyone mending anything. */
  readonly mayPass: boolean
}

/** The names by which a worktree is found again. Plain data: keep it with the job. */
export interface WorkspaceRef {
  readonly jobId: string
  /**
   * Proves that a worktree is this job's and not of a job with the same id in another store. Made once, when the job is
   * added, and the same for the life of the job; any text that no other job has (a random id, or job id and moment).
   */
  readonly jobToken: string
  /** Any folder of the repository, absolute. */
  readonly repository: string
  /** The worktree, absolute. */
  readonly path: string
  /** The branch that was made for the job. The agent may have gone to another one since: see `inspect`. */
  readonly branch: string
}

export interface ProvisionRequest {
  readonly jobId: string
  readonly jobToken: string
  /** Any folder of the repository, absolute; a bare repository too. */
  readonly repository: string
  /** Below this folder the worktree is made, at a path that follows from the job's id and token. Absolute; made when missing. */
  readonly worktreesRoot: string
  /** The branch to make. Default `runwarden/<job id>-<hash of the token>`. It must not exist yet, unless it was made for this job. */
  readonly branch?: string
  /** Where the branch begins: any name of a commit. Default: the repository's HEAD. Only looked at when the branch is made. */
  readonly base?: string
  /** What an earlier `provision` of this job answered, if one did: a worktree that has vanished since is `missing`, not made anew in silence. */
  readonly previous?: WorkspaceRef
  /** Makes a `missing` worktree anew from the job's branch. What was not committed is lost already. Default false. */
  readonly recreatesMissing?: boolean
}

export interface Workspace extends WorkspaceRef {
  /** The commit at which the job's branch began. */
  readonly baseCommit: string
}

export type ProvisionReply =
  | (Workspace & {
      readonly isOk: true
      /** True when the worktree was there and is taken up as it is: commits, uncommitted files and all (O9). */
      readonly isTakenUp: boolean
      /** The state it was in; `provisioned` for a new one. */
      readonly state: WorkspaceState
      /** What a person may want to know of it: the agent went to another branch, is on no branch, … Sentences. */
      readonly notes: readonly string[]
    })
  | WorkspaceRefusal

/** What to record of a worktree (P21). */
export type WorkspaceMark =
  /** `provisioned`: the run was interrupted and the worktree waits for the next one. */
  | { readonly state: 'provisioned' | 'running' | 'ready-for-review' | 'failed'; readonly runId: string }
  /** Only with the evidence that the tree of the run is gone. */
  | {
      readonly state: 'cancelled'
      readonly runId: string
      readonly evidence: EvidenceKind
      readonly confirmedAt: number
    }

export interface WorkspaceView {
  readonly isOk: true
  readonly path: string
  readonly state: WorkspaceState
  /** The branch the worktree is on, which may not be the job's; null on a detached head, or when it is removed. */
  readonly branch: string | null
  /** The commit it is at; after a removal, the one it was at. Null before the first commit of an orphan branch. */
  readonly head: string | null
  readonly baseCommit: string
  /** Commits of `head` that the base does not have; null when that cannot be said. */
  readonly aheadCount: number | null
  /** Changed, staged, conflicting and untracked entries; an untracked folder counts as one. Ignored files do not count. */
  readonly uncommittedCount: number
  /** What would keep the next run of this job from starting here, as `provision` would say it. */
  readonly obstacle: { readonly code: WorkspaceCode; readonly reason: string } | null
  /** The runs that worked here, oldest first. */
  readonly runIds: readonly string[]
  readonly createdAt: number
  readonly changedAt: number
}

export interface RemoveOptions {
  /** Removes it with what is uncommitted. Commits stay reachable all the same: see `keptRefs`. Default false. */
  readonly force?: boolean
  /**
   * The caller has proof that no process of the job's last run is left, whatever the manifest says: the engine that was to record it
   * died before it could. Default false: then a manifest that says `running` refuses the removal.
   */
  readonly isConfirmed?: boolean
  /** Deletes the job's branch too: refused when only it holds its commits, unless forced. Default false. */
  readonly deletesBranch?: boolean
}

export type RemoveReply =
  | {
      readonly isOk: true
      /** True when there was nothing left to remove. */
      readonly wasRemovedBefore: boolean
      /** The job's branch where it is kept, else null. */
      readonly keptBranch: string | null
      /** Refs that now hold commits that would have been lost with the worktree or the branch. */
      readonly keptRefs: readonly string[]
    }
  | WorkspaceRefusal

export interface WorkspacePort {
  /** Makes the worktree of a job, or takes up the one it has. Calls for one job follow each other. */
  provision(request: ProvisionRequest): Promise<ProvisionReply>
  /** Records what becomes of the worktree in its manifest; on disk when it is answered. */
  record(ref: WorkspaceRef, mark: WorkspaceMark): Promise<{ readonly isOk: true } | WorkspaceRefusal>
  /** What is there now. Changes nothing, takes no lock. */
  inspect(ref: WorkspaceRef): Promise<WorkspaceView | WorkspaceRefusal>
  /**
   * Removes the worktree, never its commits in silence: refused with uncommitted or untracked files unless forced, refused
   * while its manifest says `running` unless the caller knows better, whatever is forced. Idempotent. The folder of somebody else is never removed.
   */
  remove(ref: WorkspaceRef, options?: RemoveOptions): Promise<RemoveReply>
}
