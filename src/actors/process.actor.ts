/**
 * The process actor: owns one execution, from its launch to the proof that nothing of it is left.
 *
 * Owns: the child, its output, and the pursuit or the freeze of its tree. Executes orders already committed.
 * Does not own: any decision about the run. It reports facts; the run chart decides.
 * Messages in: launch, adopt, terminate, kill, freeze, thaw, leave.
 * Messages out: `process.launched`, `process.launch-failed`, `process.exited`, `process.gone`, `process.survived`, `process.signal-failed`,
 *   `process.frozen`, `process.freeze-failed`.
 * Invariants: INV-2 (it signals for nobody else), INV-5 (an own child is gone only after it was reaped and its status told).
 */
import { codeOf, messageOf } from '../errors.js'
import type { RunFact } from '../machines/run/run.events.js'
import type {
  Clock,
  Execution,
  ExecutionRecord,
  ExitStatus,
  LaunchSpec,
  Logger,
  OutputStream,
  PaneRecord,
  ProcessIdentity,
  ProcessPort,
  TerminalSize,
} from './ports.js'
import { TreeFreeze } from './tree-freeze.js'
import { TreePursuit } from './tree-pursuit.js'
import { TreeReach, keyOf } from './tree-reach.js'

/** A fact before the mailbox has given it its time. */
export type ProcessFact = RunFact extends infer F ? (F extends { at: number } ? Omit<F, 'at'> : never) : never

export interface ProcessActorOptions {
  readonly attempt: number
  readonly processes: ProcessPort
  readonly clock: Clock
  readonly logger: Logger
  /** How long output is read after the tree is empty, in ms. */
  readonly drainMs: number
  readonly report: (fact: ProcessFact) => void
  readonly onOutput: (stream: OutputStream, chunk: Buffer) => unknown
  /** All output there will be has been given to `onOutput`. */
  readonly onDrained: (isCut: boolean) => void
}

export class ProcessActor {
  readonly #options: ProcessActorOptions
  #execution: Execution | null = null
  #pursuit: TreePursuit | null = null
  #freeze: TreeFreeze | null = null
  #thawed: Promise<void> = Promise.resolve()
  #isExitReported = false
  /** Both streams have ended. */
  #hasOutputEnded = false
  #isDrainTold = false
  #isGone = false
  /** CPU time of each process at the last look; null before the first. */
  #cpuMs: ReadonlyMap<string, number> | null = null

  constructor(options: ProcessActorOptions) {
    this.#options = options
  }

  get identity(): ProcessIdentity | null {
    return this.#execution?.identity ?? null
  }

  get containment(): Execution['containment'] | null {
    return this.#execution?.containment ?? null
  }

  get pane(): PaneRecord | null {
    return this.#execution?.pane ?? null
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** The leader has exited, and its exit was told. */
  get hasExited(): boolean {
    return this.#isExitReported
  }

  /** CPU time that the processes below the leader have used since the last look, in ms; null where it cannot be told (K9). */
  async cpuUsedMs(): Promise<number | null> {
    const execution = this.#execution
    if (execution === null) return null
    const members = await execution.scan().catch(() => null)
    if (members === null) return null
    const before = this.#cpuMs
    const now = new Map<string, number>()
    for (const member of members) {
      if (member.pid === execution.identity?.pid) continue
      now.set(keyOf(member), this.#options.processes.usage(member)?.cpuMs ?? 0)
    }
    this.#cpuMs = now
    if (before === null) return null
    return [...now].reduce((usedMs, [key, cpuMs]) => usedMs + Math.max(0, cpuMs - (before.get(key) ?? 0)), 0)
  }

  /** Starts the candidate; `isWanted` is asked in the same tick as the spawn (P4). */
  async launch(spec: LaunchSpec, isWanted: () => boolean): Promise<void> {
    const { attempt, processes, report } = this.#options
    if (!isWanted()) {
      this.#failLaunch('not-wanted', 'stopped before the launch')
      return
    }
    try {
      this.#own(await processes.launch(spec))
      this.follow()
      report({ type: 'process.launched', attempt })
    } catch (error) {
      this.#failLaunch(codeOf(error) ?? 'launch-failed', messageOf(error))
    }
  }

  /** Takes up an execution that another process launched. Reports `process.gone` when nothing of it is left. */
  async adopt(record: ExecutionRecord): Promise<void> {
    this.#isExitReported = true
    const execution = await this.#options.processes.adopt(record)
    this.#own(execution)
    await this.#pursuit?.takeUp({ isWatched: execution.isExitTold === true })
  }

  /** From here on the leader's exit is told. Of an adopted one not before its run knows that it was launched. */
  follow(): void {
    const execution = this.#execution
    void execution?.exited.then((exit) => this.#onExit(execution, exit))
  }

  writeInput(chunk: string | Uint8Array): boolean {
    return this.#execution?.writeInput(chunk) ?? false
  }

  endInput(): void {
    this.#execution?.endInput()
  }

  resize(size: TerminalSize): boolean {
    return this.#execution?.resize(size) ?? false
  }

  terminate(): void {
    this.#freeze?.end()
    this.#pursuit?.terminate()
  }

  kill(deadlineMs: number): void {
    this.#freeze?.end()
    this.#pursuit?.kill(deadlineMs)
  }

  /** Resolves with the first report, by its deadline; the tree is kept frozen from then on. */
  async freeze(): Promise<void> {
    await this.#freeze?.freeze()
  }

  /** The engine before this one may have stopped the tree, wholly or in part: what is found stopped is continued by the next thaw. */
  takeUpFrozen(): void {
    this.#freeze?.takeUp()
  }

  async thaw(): Promise<void> {
    this.#thawed = this.#freeze?.thaw() ?? Promise.resolve()
    await this.#thawed
  }

  /** The last thaw is done, or past its deadline. */
  get thawed(): Promise<void> {
    return this.#thawed
  }

  /** Stops looking at the tree and lets it be. */
  leave(): void {
    this.#freeze?.end()
    this.#pursuit?.end()
    this.#execution?.letGo()
  }

  #failLaunch(code: string, message: string): void {
    const { attempt, report, onDrained } = this.#options
    this.#isGone = true
    onDrained(false)
    report({ type: 'process.launch-failed', attempt, code, message, isFallbackEligible: true })
  }

  #own(execution: Execution): void {
    const { attempt, clock, logger, report, onOutput } = this.#options
    this.#execution = execution
    const reach = new TreeReach(execution, clock, logger, (error) => {
      report({ type: 'process.signal-failed', attempt, error })
    })
    this.#freeze = new TreeFreeze(reach, {
      frozen: () => {
        report({ type: 'process.frozen', attempt })
      },
      failed: (running, error) => {
        report({
          type: 'process.freeze-failed',
          attempt,
          running,
          ...(error === undefined ? {} : { error }),
        })
      },
    })
    this.#pursuit = new TreePursuit(reach, {
      // The status must not be lost: the leader is reaped and its exit told before the tree is called gone.
      mayBeGone: () => this.#isExitReported,
      gone: () => {
        this.#finish(execution)
        report({ type: 'process.gone', attempt, evidence: execution.emptyEvidence })
      },
      survived: (survivors, error) => {
        report({ type: 'process.survived', attempt, survivors, ...(error === undefined ? {} : { error }) })
      },
    })
    execution.onOutput(onOutput)
    void execution.drained.then(() => {
      this.#hasOutputEnded = true
    })
  }

  async #onExit(execution: Execution, exit: ExitStatus): Promise<void> {
    const { attempt, report } = this.#options
    // L2: what it wrote came before its exit.
    await execution.caughtUp?.()
    const isTreeEmpty = (await this.#pursuit?.isEmpty()) ?? false
    if (this.#isGone) return
    this.#isExitReported = true
    // L2: a last line without a newline was written before the exit, and counts before it.
    if (this.#hasOutputEnded) this.#tellDrained(false)
    if (isTreeEmpty) this.#finish(execution)
    const evidence = execution.emptyEvidence
    report({ type: 'process.exited', attempt, ...exit, isTreeEmpty, evidence, isFallbackEligible: false })
    this.#pursuit?.wake()
  }

  /** L2: what is still in the pipes is read for a moment; a pipe that an escapee holds is cut. */
  #finish(execution: Execution): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#freeze?.end()
    this.#pursuit?.end()
    const { clock, drainMs, logger } = this.#options
    if (execution.discard?.() === false) logger.warn({}, 'an empty cgroup could not be removed')
    const cancel = clock.after(drainMs, () => {
      this.#tellDrained(execution.cutOutput())
    })
    void execution.drained.then(() => {
      cancel()
      this.#tellDrained(false)
    })
  }

  #tellDrained(isCut: boolean): void {
    if (this.#isDrainTold) return
    this.#isDrainTold = true
    this.#options.onDrained(isCut)
  }
}
