/**
 * The process actor: owns one execution, from its launch to the proof that nothing of it is left.
 *
 * Owns: the child, its output, and the pursuit of its tree. Executes orders already committed.
 * Does not own: any decision about the run. It reports facts; the run chart decides.
 * Messages in: launch, adopt, terminate, kill, freeze, thaw, release.
 * Messages out: `process.launched`, `process.launch-failed`, `process.exited`, `process.gone`, `process.survived`, `process.signal-failed`.
 * Invariants: INV-5 (only two complete empty looks in a row, after the leader was reaped, are evidence), INV-11 (every pursuit has a
 *   deadline or slows down), C3, C4.
 */
import { messageOf } from '../errors.js'
import type { RunFact } from '../machines/run/run.events.js'
import type {
  Cancel,
  Clock,
  Execution,
  ExecutionRecord,
  ExitStatus,
  LaunchFailure,
  LaunchSpec,
  Logger,
  OutputStream,
  ProcessIdentity,
  ProcessPort,
  TreeMember,
} from './ports.js'

/** Two complete looks: one alone can miss a child born behind the reader. */
const EMPTY_LOOKS_NEEDED = 2
const PURSUIT_FIRST_WAIT_MS = 2
const PURSUIT_MAX_WAIT_MS = 40
/** After a deadline the tree is only watched. */
const WATCH_WAIT_MS = 250
const FREEZE_DEADLINE_MS = 2_000

/** A fact before the mailbox has given it its time. */
export type ProcessFact = RunFact extends infer F ? (F extends { at: number } ? Omit<F, 'at'> : never) : never

/** What the actor does with the tree at the moment. `watch` signals nothing. */
type Pursuit = 'none' | 'watch' | 'terminate' | 'kill'

export interface ProcessActorOptions {
  readonly attempt: number
  readonly processes: ProcessPort
  readonly clock: Clock
  readonly logger: Logger
  readonly drainMs: number
  readonly report: (fact: ProcessFact) => void
  readonly onOutput: (stream: OutputStream, chunk: Buffer) => void
  /** All output there will be has been given to `onOutput`. */
  readonly onDrained: (isCut: boolean) => void
}

export class ProcessActor {
  readonly #options: ProcessActorOptions
  #execution: Execution | null = null
  #exit: ExitStatus | null = null
  #isExitReported = false
  #isGone = false
  #pursuit: Pursuit = 'none'
  #killDeadline = Infinity
  #isPursuing = false
  #wake: () => void = () => undefined
  #asked = new Set<string>()
  #frozen = false
  /** Why the last signal to a member failed, by pid. */
  #errors = new Map<number, string>()

  constructor(options: ProcessActorOptions) {
    this.#options = options
  }

  get identity(): ProcessIdentity | null {
    return this.#execution?.identity ?? null
  }

  get containment(): Execution['containment'] | null {
    return this.#execution?.containment ?? null
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Starts the candidate; `isWanted` is asked in the same tick as the spawn (P4). */
  async launch(spec: LaunchSpec, isWanted: () => boolean): Promise<void> {
    const { attempt, processes, report, logger } = this.#options
    if (!isWanted()) {
      this.#isGone = true
      this.#options.onDrained(false)
      const message = 'stopped before the launch'
      report({ type: 'process.launch-failed', attempt, code: 'not-wanted', message, isFallbackEligible: false })
      return
    }
    try {
      const execution = await processes.launch(spec)
      this.#own(execution)
      report({ type: 'process.launched', attempt })
    } catch (error) {
      this.#isGone = true
      this.#options.onDrained(false)
      const { code, message } = error as LaunchFailure
      logger.info({ code, message }, 'a launch failed')
      report({ type: 'process.launch-failed', attempt, code, message, isFallbackEligible: true })
    }
  }

  /** Takes up an execution that another process launched. Reports `process.gone` when nothing of it is left. */
  async adopt(record: ExecutionRecord): Promise<void> {
    this.#own(await this.#options.processes.adopt(record))
    this.#isExitReported = true
    this.#pursue('watch')
  }

  writeInput(chunk: string | Uint8Array): boolean {
    return this.#execution?.writeInput(chunk) ?? false
  }

  endInput(): void {
    this.#execution?.endInput()
  }

  terminate(): void {
    this.#frozen = false
    this.#asked.clear()
    this.#pursue('terminate')
  }

  kill(deadlineMs: number): void {
    this.#frozen = false
    this.#killDeadline = this.#options.clock.monotonicMs() + deadlineMs
    this.#pursue('kill')
  }

  /** O1: stops every member until none runs; forks that come late are caught by the next look. */
  async freeze(): Promise<void> {
    const execution = this.#execution
    if (execution === null) return
    this.#frozen = true
    const deadline = this.#options.clock.monotonicMs() + FREEZE_DEADLINE_MS
    let quietLooks = 0
    while (this.#frozen && quietLooks < EMPTY_LOOKS_NEEDED && this.#options.clock.monotonicMs() < deadline) {
      const members = await this.#look(execution)
      const running = members?.filter(({ state }) => state !== 'T' && state !== 't')
      quietLooks = running?.length === 0 ? quietLooks + 1 : 0
      if (running !== undefined && running.length > 0) this.#report(execution.signal('SIGSTOP', running))
      if (quietLooks === 0) await this.#pause(PURSUIT_FIRST_WAIT_MS)
    }
  }

  async thaw(): Promise<void> {
    const execution = this.#execution
    this.#frozen = false
    if (execution === null) return
    const members = await this.#look(execution)
    if (members !== null) this.#report(execution.signal('SIGCONT', members))
  }

  /** Stops looking at the tree and lets it be. */
  leave(): void {
    this.#isGone = true
    this.#wake()
    this.#execution?.letGo()
  }

  #own(execution: Execution): void {
    this.#execution = execution
    execution.onOutput(this.#options.onOutput)
    void execution.exited.then((exit) => this.#onExit(execution, exit))
  }

  async #onExit(execution: Execution, exit: ExitStatus): Promise<void> {
    this.#exit = exit
    const isTreeEmpty = await this.#isEmpty(execution)
    const { attempt, report } = this.#options
    this.#isExitReported = true
    if (isTreeEmpty) await this.#finish(execution)
    report({
      type: 'process.exited',
      attempt,
      ...exit,
      isTreeEmpty,
      evidence: execution.emptyEvidence,
      isFallbackEligible: false,
    })
    this.#wake()
  }

  /** INV-5: looks that failed are not looks. */
  async #isEmpty(execution: Execution): Promise<boolean> {
    for (let look = 0; look < EMPTY_LOOKS_NEEDED; look += 1) {
      const members = await this.#look(execution)
      if (members === null || members.length > 0) return false
    }
    return true
  }

  #pursue(pursuit: Pursuit): void {
    this.#pursuit = pursuit
    this.#wake()
    const execution = this.#execution
    if (execution !== null && !this.#isPursuing && !this.#isGone) {
      this.#isPursuing = true
      void this.#pursueTree(execution)
    }
  }

  /** The one loop that follows a tree to its end: look, signal what is there, wait a little longer each time. */
  async #pursueTree(execution: Execution): Promise<void> {
    let emptyLooks = 0
    let waitMs = PURSUIT_FIRST_WAIT_MS
    let pursuit: Pursuit = 'none'
    while (!this.#isGone) {
      if (pursuit !== this.#pursuit) {
        pursuit = this.#pursuit
        waitMs = PURSUIT_FIRST_WAIT_MS
      }
      const lookedFrom = this.#options.clock.monotonicMs()
      const members = await this.#look(execution)
      const lookMs = this.#options.clock.monotonicMs() - lookedFrom
      emptyLooks = members?.length === 0 ? emptyLooks + 1 : 0
      // The leader must be reaped, not only out of sight, and its exit told first, so that the status is never lost.
      if (emptyLooks >= EMPTY_LOOKS_NEEDED && (this.#isExitReported || !execution.isOwnChild)) {
        await this.#finish(execution)
        const { attempt, report } = this.#options
        report({ type: 'process.gone', attempt, evidence: execution.emptyEvidence })
        return
      }
      if (members !== null && members.length > 0) this.#signalMembers(execution, members)
      if (this.#pursuit === 'kill' && this.#options.clock.monotonicMs() >= this.#killDeadline) {
        await this.#nameSurvivors(execution)
        continue
      }
      if (emptyLooks === 1) continue
      // Looking is not free on a full machine: never more than half of the time.
      await this.#pause(this.#pursuit === 'watch' ? WATCH_WAIT_MS : Math.max(waitMs, lookMs))
      waitMs = Math.min(waitMs * 2, PURSUIT_MAX_WAIT_MS)
    }
  }

  #signalMembers(execution: Execution, members: readonly TreeMember[]): void {
    if (this.#pursuit === 'kill') {
      this.#report(execution.signal('SIGKILL', members))
    } else if (this.#pursuit === 'terminate') {
      const key = ({ pid, startTicks }: TreeMember): string => `${String(pid)}:${String(startTicks)}`
      const fresh = members.filter((member) => !this.#asked.has(key(member)))
      if (fresh.length === 0) return
      for (const member of fresh) this.#asked.add(key(member))
      // C4: a stopped process cannot die of TERM; CONT always follows.
      this.#report([...execution.signal('SIGTERM', fresh), ...execution.signal('SIGCONT', fresh)])
    }
  }

  async #nameSurvivors(execution: Execution): Promise<void> {
    const members = await this.#look(execution)
    const { attempt, report } = this.#options
    this.#pursuit = 'watch'
    if (members?.length === 0) return
    report({
      type: 'process.survived',
      attempt,
      survivors: (members ?? []).map((member) => {
        const error = this.#errors.get(member.pid)
        return error === undefined ? member : { ...member, error }
      }),
      ...(members === null ? { error: 'the process tree could not be read' } : {}),
    })
  }

  /** L2: what is still in the pipes is read for a moment; a pipe that an escapee holds is cut. */
  async #finish(execution: Execution): Promise<void> {
    if (this.#isGone) return
    this.#isGone = true
    const timeout = this.#timeout(this.#options.drainMs)
    void Promise.race([execution.drained.then(() => false), timeout.passed.then(() => true)]).then((isLate) => {
      timeout.cancel()
      this.#options.onDrained(isLate && execution.cutOutput())
    })
  }

  async #look(execution: Execution): Promise<readonly TreeMember[] | null> {
    try {
      return await execution.scan()
    } catch (error) {
      this.#options.logger.warn({ error: messageOf(error) }, 'a process tree could not be read')
      return null
    }
  }

  #report(failures: readonly { readonly pid: number; readonly error: string }[]): void {
    const { attempt, report } = this.#options
    for (const { pid, error } of failures) {
      if (this.#errors.get(pid) === error) continue
      this.#errors.set(pid, error)
      report({ type: 'process.signal-failed', attempt, error: `${error} for pid ${String(pid)}` })
    }
  }

  #timeout(delayMs: number): { readonly passed: Promise<void>; readonly cancel: Cancel } {
    let cancel: Cancel = () => undefined
    const passed = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(delayMs, resolve)
    })
    return { passed, cancel }
  }

  async #pause(delayMs: number): Promise<void> {
    const timeout = this.#timeout(delayMs)
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    await Promise.race([timeout.passed, woken])
    timeout.cancel()
  }
}
