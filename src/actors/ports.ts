/**
 * What the actors need from the world. Adapters implement these and import nothing else from here.
 * Durations and times end in `Ms`; wall-clock times are milliseconds since the epoch.
 */
import type { Readable } from 'node:stream'
import type { EvidenceKind, ExitStatus, TurnResult } from '../machines/run/run.context.js'
import type { PanePlace, PaneRecord, PaneSpec } from './pane.ports.js'

// ── time ───────────────────────────────────────────────────────────────────────────────────────

export type Cancel = () => void

export interface Clock {
  /** Wall clock, for records only: it may step in both directions. */
  wallMs(): number
  /** Never steps; the base of every wait. */
  monotonicMs(): number
  /** Calls `fire` once, `delayMs` from now, however long that is (also beyond 2³¹ ms). A background wait keeps no process alive. */
  after(delayMs: number, fire: () => void, options?: { readonly isBackground: boolean }): Cancel
}

// ── processes ──────────────────────────────────────────────────────────────────────────────────

/** INV-6: a bare pid is never an identity. */
export interface ProcessIdentity {
  readonly pid: number
  /** Kernel start time in clock ticks since boot (`/proc/PID/stat`, field 22). */
  readonly startTicks: number
  readonly bootId: string
  /** `pid:[4026531836]`, the link of `/proc/PID/ns/pid`. */
  readonly pidNamespace: string
}

/** What every process of one execution inherits and is recognised by. Minted before the launch is recorded (R2). */
export interface ExecutionMarks {
  readonly cookie: string
  /** The value of an unused soft resource limit, or null where it cannot be set. */
  readonly limit: number | null
  /** The folder of its cgroup, where it gets one; nothing else is ever put into that. */
  readonly cgroup?: string
}

/** Holds the cookies of all executions that a process descends from, `:` between them. */
export const COOKIE_VARIABLE = 'RUNWARDEN_COOKIE'

export const cookiesOf = (spec: Pick<LaunchSpec, 'env' | 'marks'>): string => {
  const inherited = spec.env[COOKIE_VARIABLE]
  return inherited === undefined ? spec.marks.cookie : `${inherited}:${spec.marks.cookie}`
}

export type Containment = 'cgroup' | 'group+marks' | 'group' | 'job-object' | 'pane'

export type StdinSource = 'ignore' | 'pipe' | { readonly text: string } | Readable

/** In characters. */
export interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

export interface TerminalSpec extends TerminalSize {
  /** What the command finds in `TERM`. */
  readonly name: string
}

export interface LaunchSpec {
  readonly runId: string
  readonly attempt: number
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: StdinSource
  /** A terminal of its own in place of pipes (L9): all it writes is one stream, `stdout`. */
  readonly terminal?: TerminalSpec | undefined
  /** A pane of a terminal program in place of pipes (P12). */
  readonly pane?: PaneSpec | undefined
  /** R10: the folder of its log, whose files take the place of pipes; stdin is text or nothing then. */
  readonly outputFolder?: string | undefined
  readonly marks: ExecutionMarks
}

export type OutputStream = 'stdout' | 'stderr'

/** One process of an execution, as one scan saw it. Zombies are not members: they are dead (C6). */
export interface TreeMember {
  readonly pid: number
  readonly startTicks: number
  /** Stopped (`T`) only where every thread of it is (O1). */
  readonly state: string
  readonly name: string
  readonly parent?: number
  /** Its parent waits in the kernel until it has exec'ed, and cannot be stopped before (`vfork`). */
  readonly holdsUpParent?: boolean
  /** Its parent is a member that is not stopped, and would see it stop. */
  readonly hasRunningParent?: boolean
}

/** INV-5: one empty look alone can miss a child born behind the reader. */
export const EMPTY_LOOKS_NEEDED = 2

export interface SignalFailure {
  readonly pid: number
  /** `EPERM`; `refused` for what may never be signalled (C8); `escaped` for what its tier does not reach (C2). */
  readonly error: string
}

/** The handle on one execution's process tree. It obeys; it decides nothing. */
export interface Execution {
  /** Null when only the marks are known and no process bears them. */
  readonly identity: ProcessIdentity | null
  readonly containment: Containment
  /** True when this process is the leader's parent, so that the exit status will be known. */
  readonly isOwnChild: boolean
  /** Whether `exited` will settle: for an own child, and for one that is taken up to go on (R3). */
  readonly isExitTold?: boolean
  /** The leader's exit; that of another engine's child is `isUnseen`. */
  readonly exited: Promise<ExitStatus>
  /** Registers the one receiver of output. Chunks are shared: copy what is kept. What comes from files waits for the receiver's promise. */
  onOutput(receive: (stream: OutputStream, chunk: Buffer) => unknown): void
  /** Resolves when both streams have ended. */
  readonly drained: Promise<void>
  /** Of output in files: resolves when what stands there now has been acted upon, or after a while. */
  readonly caughtUp?: () => Promise<void>
  /** Cuts whatever pipe is still open; true when something had to be cut (L2). */
  cutOutput(): boolean
  /** The process goes on without us: its output is read and thrown away, and it keeps this process alive no longer. */
  letGo(): void
  /** Writes to the agent's stdin; false when it is gone (L5). */
  writeInput(chunk: string | Uint8Array): boolean
  /** On a terminal: types the end-of-file character, which a program that reads lines takes for the end. */
  endInput(): void
  /** False when there is no terminal, or it is closed (L9). */
  resize(size: TerminalSize): boolean
  /** One complete look at the living members, parents before their children. Rejects when the tree cannot be read: unknown is not empty (INV-5). */
  scan(): Promise<readonly TreeMember[]>
  /** Signals each member whose identity still holds at that moment (INV-6). */
  signal(
    signal: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT',
    members: readonly TreeMember[],
  ): readonly SignalFailure[]
  /**
   * Lets go what was frozen as a whole (O1): also whom no SIGCONT is meant for, or could reach. Null when nothing is held so any more, else
   * why it still is.
   */
  unfreeze?(): string | null
  /** The evidence an empty tree of this containment gives. */
  readonly emptyEvidence: EvidenceKind
  /** The pane it lives in, if any. */
  readonly pane?: PaneRecord
  /**
   * Closes what the execution lives in besides its processes, when its tree is gone or cannot be seen (P12). Null when there is nothing
   * of it any more, else why not. Answers within that time (P14).
   */
  closeSurface?(withinMs: number): Promise<string | null>
  /** Removes what held the processes, once they are gone. False when it could not be removed: there is no more to it than an empty folder. */
  discard?(): boolean
}

/** How an execution is found again in a later process. */
export interface ExecutionRecord {
  readonly runId: string
  readonly attempt: number
  readonly marks: ExecutionMarks
  readonly containment: Containment
  readonly identity: ProcessIdentity | null
  readonly launchedAt: number | null
  readonly pane?: PaneRecord | null
  /** R10: where its output is read on. */
  readonly outputFolder?: string | null
}

export interface ProcessPort {
  /** The identity of this engine's own process. */
  readonly self: ProcessIdentity
  mintMarks(): ExecutionMarks
  /** The containment a launch will get on this machine. */
  readonly containment: Containment
  /** Why no command can be given a terminal of its own here, or null (L9). */
  readonly terminalProblem: string | null
  /** Rejects when there is no process, with the system's code and a message that names the program and the cause (L1). */
  launch(spec: LaunchSpec): Promise<Execution>
  /** Finds what is left of an execution by its record. Its tree may be empty. */
  adopt(record: ExecutionRecord): Promise<Execution>
  /** Whether the process of an identity lives. Another boot is gone; unreadable is unknown (R1). */
  lookUp(identity: ProcessIdentity): Promise<'alive' | 'gone' | 'unknown'>
  /** Cost and age of a live process, for people. */
  usage(
    process: Pick<ProcessIdentity, 'pid' | 'startTicks'>,
  ): { readonly cpuMs: number; readonly rssBytes: number } | null
}

// ── output ─────────────────────────────────────────────────────────────────────────────────────

/** A tool call that is open. The title is a name or a kind, never arguments: it is shown to people (K8, L7). */
export interface OpenTool {
  readonly id: string
  readonly title: string
}

/** The agent waits for its model and says so: no progress, but people may want to know. Null: it does not say. */
export interface RetryNotice {
  readonly attempt: number | null
  readonly attemptsMax: number | null
  readonly delayMs: number | null
  readonly reason: string
}

/** What a protocol reports of the bytes it is given. */
export interface ProtocolSink {
  /** Evidence of work in the open turn (K1). Frames that come in one chunk are one piece of it. */
  progress(): void
  /** The turn is complete. */
  completed(result: TurnResult): void
  /** The turn is over because it was asked to end (K13). */
  cancelled(): void
  /** The agent has heard that the turn is to end; protocols without such an answer only end it. */
  cancelAcknowledged(): void
  /** The agent said that it is done, and the turn stays open (K10). Later progress or a retry takes it back. */
  completionSignalled(): void
  /** Not evidence of anything, and as frequent as the agent likes: not to be recorded. */
  retrying(notice: RetryNotice): void
  /** A person is asked for the first open question, and the last one was answered. Not told again at the turn's end. */
  personAsked(): void
  personAnswered(): void
  /** A type of frame that the protocol does not know came for the first time in this session (K2). */
  unknownFrame(type: string): void
  /** Whether `line` is to be called: asked once a chunk, so that nothing is decoded for nobody. */
  wantsLines(): boolean
  /** One framed line, for those who listen. `isTruncated` when it was longer than the maximum (L3). */
  line(stream: OutputStream, text: string, isTruncated: boolean): void
}

/** The way from a session to its agent. */
export interface ProtocolIo {
  /** To the agent's stdin; false when it is gone. */
  write(chunk: string | Uint8Array): boolean
  /** Where the agent works: an absolute path. */
  readonly cwd: string
  readonly clock: Clock
}

export type ProtocolReply = { readonly isOk: true } | { readonly isOk: false; readonly message: string }

export interface ProtocolSession {
  push(stream: OutputStream, chunk: Buffer): void
  /** The stream ended: an unfinished last line is delivered, and whoever waits for the agent is answered. */
  end(): void
  /** The open top-level tool calls of the turn, oldest first. */
  readonly openTools: readonly OpenTool[]
  /** How often each type of frame came that the protocol does not know. */
  readonly unknownFrames: ReadonlyMap<string, number>

  // Interactive protocols have all of these but `steer`, which some agents do not know.

  /** Once, when the agent runs: whatever must be said before a prompt. From here on nothing counts but between a prompt and its end. */
  start?(io: ProtocolIo): Promise<ProtocolReply>
  /** Gives the agent a prompt, after the start. Answers when it is written; the turn's end is told to the sink. */
  prompt?(text: string): Promise<ProtocolReply>
  /** Asks the agent to end the open turn; false when there is none or the agent is gone. Works while the agent hangs. */
  cancelTurn?(): boolean
  /** More input for the open turn; false when there is none or the agent is gone. */
  steer?(text: string): boolean
}

export interface Protocol {
  readonly name: string
  /** Whether watchdogs mean anything for it: plain bytes may be silent for good reasons. */
  readonly hasWatchdog: boolean
  /** Whether its sessions take prompts, one after the other. */
  readonly isInteractive: boolean
  open(sink: ProtocolSink, limits: { readonly maxLineBytes: number }): ProtocolSession
}

export interface LogWriter {
  write(stream: OutputStream, chunk: Buffer, atMs: number): void
  close(): Promise<void>
}

export interface LogPort {
  /** The folder of one execution's log, or null where nothing is kept. */
  pathOf(runId: string, attempt: number): string | null
  open(runId: string, attempt: number): LogWriter | null
  /** R10: of an execution that writes its output files itself; what is written here are the times, and how far they were read. */
  openIndex(runId: string, attempt: number, options: { readonly isAdopted: boolean }): LogWriter | null
}

// ── logging ────────────────────────────────────────────────────────────────────────────────────

export type LogFn = (detail: Readonly<Record<string, unknown>>, message: string) => void
/** Any pino-shaped logger. */
export interface Logger {
  readonly debug: LogFn
  readonly info: LogFn
  readonly warn: LogFn
  readonly error: LogFn
}

export type { EvidenceKind, ExitStatus, PanePlace, PaneRecord, PaneSpec, TurnResult }
