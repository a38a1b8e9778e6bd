/** What the actors keep of a run that lives in a terminal pane, and what its adapter needs proven (P12, P13). */
import type { ExecutionMarks, LaunchSpec, ProcessIdentity, ProcessPort } from './ports.js'

/** The pane in which a run is to live (P12). */
export interface PaneSpec {
  readonly kind: 'tmux'
  /** The server's socket: an absolute path. */
  readonly socket: string
  /** Made where it is not there. */
  readonly session: string
  readonly window?: string | undefined
  /** A pane that is there already (`%5`): its shell is told to run the command. */
  readonly paneId?: string | undefined
  readonly title?: string | undefined
  /** Never closed: only the command and its tree are ended. */
  readonly isRetained: boolean
}

/** Which pane it became. Pane ids begin anew with each server, so that only the server's identity gives one a meaning (R6). */
export interface PanePlace {
  readonly server: ProcessIdentity
  readonly paneId: string
  /** The pane's own process: a pane that was given another one is not ours any more. */
  readonly shell: ProcessIdentity
}

/** What is on record of a run's pane. The place is null until the command is launched in it. */
export interface PaneRecord {
  readonly kind: 'tmux'
  readonly socket: string
  readonly isRetained: boolean
  /** Whether the pane was there before the run. */
  readonly isBorrowed: boolean
  readonly place: PanePlace | null
}

/** A process that another one has started for us, proven to be ours. */
export interface Claimed {
  readonly leader: ProcessIdentity
  readonly shell: ProcessIdentity
}

/** The processes of this machine, with what it takes to bring one into a pane. */
export interface PaneProcessPort extends ProcessPort {
  /** Throws as `launch` rejects, where a launch would fail for what can be known before it (L1). */
  assertLaunchable(spec: LaunchSpec): void
  /**
   * The identity of a process that says it is ours: it bears the cookie, and is a pane's shell or a descendant of it (P13). Gives it the
   * limit mark. Null when any of this is not so.
   */
  claim(pid: number, shellPid: number, marks: ExecutionMarks): Claimed | null
  /**
   * Brings a process that waits to become the command into the cgroup that its marks name. Null when it is in there, else why it is not:
   * then there is no such cgroup. Throws where that is demanded (`containment.atLeast`).
   */
  hold(leader: ProcessIdentity, marks: ExecutionMarks): string | null
  identify(pid: number): ProcessIdentity | null
  /** Whether a shell has its terminal to itself, as at its prompt. */
  isForeground(pid: number): boolean
}
