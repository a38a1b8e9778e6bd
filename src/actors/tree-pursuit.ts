/**
 * The pursuit of one execution's tree to its end: look, signal what is there, wait a little longer each time.
 *
 * Owns: the one loop that looks at the tree, what was signalled already, and why a signal failed.
 * Does not own: when to pursue, and how (the process actor is told by the run chart).
 * Invariants: INV-5 (only two complete empty looks in a row are evidence), INV-11 (a kill has a deadline; after it the tree is only
 *   watched), C3 (kills go on until the tree is empty), C4.
 */
import { messageOf } from '../errors.js'
import type { Survivor } from '../machines/run/run.context.js'
import type { Cancel, Clock, Execution, Logger, TreeMember } from './ports.js'

/** Two complete looks: one alone can miss a child born behind the reader. */
const EMPTY_LOOKS_NEEDED = 2
const FIRST_WAIT_MS = 2
const MAX_WAIT_MS = 40
/** After a deadline the tree is only watched. */
const WATCH_WAIT_MS = 250
const FREEZE_DEADLINE_MS = 2_000

/** What is done with the members that a look finds. `watch` signals nothing. */
type Mode = 'watch' | 'terminate' | 'kill'

export interface PursuitReports {
  /** The tree is proven empty. Asked first whether that may be said already. */
  readonly mayBeGone: () => boolean
  readonly gone: () => void
  readonly survived: (survivors: readonly Survivor[], error: string | undefined) => void
  readonly signalFailed: (error: string) => void
}

export const keyOf = ({ pid, startTicks }: TreeMember): string => `${String(pid)}:${String(startTicks)}`

const isRunning = ({ state }: TreeMember): boolean => state !== 'T' && state !== 't'

export class TreePursuit {
  readonly #execution: Execution
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #reports: PursuitReports
  #mode: Mode = 'watch'
  #killDeadlineMs = Infinity
  #isLooping = false
  #isOver = false
  #isFreezing = false
  #terminated = new Set<string>()
  /** Why the last signal to a member failed, by pid. */
  #errors = new Map<number, string>()
  #wake: () => void = () => undefined

  constructor(execution: Execution, clock: Clock, logger: Logger, reports: PursuitReports) {
    this.#execution = execution
    this.#clock = clock
    this.#logger = logger
    this.#reports = reports
  }

  watch(): void {
    this.#begin('watch')
  }

  terminate(): void {
    this.#terminated.clear()
    this.#begin('terminate')
  }

  kill(deadlineMs: number): void {
    this.#killDeadlineMs = this.#clock.monotonicMs() + deadlineMs
    this.#begin('kill')
  }

  /** Looks again now: something has changed. */
  wake(): void {
    this.#wake()
  }

  end(): void {
    this.#isOver = true
    this.#wake()
  }

  /** INV-5: a look that failed is not a look. */
  async isEmpty(): Promise<boolean> {
    for (let look = 0; look < EMPTY_LOOKS_NEEDED; look += 1) {
      const members = await this.#look()
      if (members === null || members.length > 0) return false
    }
    return true
  }

  /** O1: stops every member until none runs; forks that come late are caught by the next look. */
  async freeze(): Promise<void> {
    this.#isFreezing = true
    const deadlineMs = this.#clock.monotonicMs() + FREEZE_DEADLINE_MS
    let quietLooks = 0
    const isWanted = (): boolean => this.#isFreezing && this.#clock.monotonicMs() < deadlineMs
    while (quietLooks < EMPTY_LOOKS_NEEDED && isWanted()) {
      const running = (await this.#look())?.filter(isRunning)
      quietLooks = running?.length === 0 ? quietLooks + 1 : 0
      if (running !== undefined) this.#signal('SIGSTOP', running)
      if (quietLooks === 0) await this.#pause(FIRST_WAIT_MS)
    }
  }

  async thaw(): Promise<void> {
    this.#isFreezing = false
    const members = await this.#look()
    if (members !== null) this.#signal('SIGCONT', members)
  }

  #begin(mode: Mode): void {
    this.#isFreezing = false
    this.#mode = mode
    this.#wake()
    if (this.#isLooping || this.#isOver) return
    this.#isLooping = true
    void this.#loop()
  }

  async #loop(): Promise<void> {
    let emptyLooks = 0
    let waitMs = FIRST_WAIT_MS
    let mode: Mode | null = null
    while (!this.#isOver) {
      if (mode !== this.#mode) waitMs = FIRST_WAIT_MS
      mode = this.#mode
      const lookedFromMs = this.#clock.monotonicMs()
      const members = await this.#look()
      const lookMs = this.#clock.monotonicMs() - lookedFromMs
      emptyLooks = members?.length === 0 ? emptyLooks + 1 : 0
      if (emptyLooks >= EMPTY_LOOKS_NEEDED && this.#reports.mayBeGone()) {
        this.#reports.gone()
        return
      }
      if (members !== null) this.#act(members)
      if (this.#mode === 'kill' && this.#clock.monotonicMs() >= this.#killDeadlineMs)
        await this.#nameSurvivors()
      else if (emptyLooks !== 1) {
        // Looking is not free on a full machine: never more than half of the time.
        await this.#pause(this.#mode === 'watch' ? WATCH_WAIT_MS : Math.max(waitMs, lookMs))
        waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)
      }
    }
  }

  #act(members: readonly TreeMember[]): void {
    if (this.#mode === 'kill') {
      this.#signal('SIGKILL', members)
    } else if (this.#mode === 'terminate') {
      const fresh = members.filter((member) => !this.#terminated.has(keyOf(member)))
      for (const member of fresh) this.#terminated.add(keyOf(member))
      this.#signal('SIGTERM', fresh)
      // C4: a stopped process cannot die of TERM; CONT always follows.
      this.#signal('SIGCONT', fresh)
    }
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT', members: readonly TreeMember[]): void {
    if (members.length === 0) return
    for (const { pid, error } of this.#execution.signal(signal, members)) {
      if (this.#errors.get(pid) === error) continue
      this.#errors.set(pid, error)
      this.#reports.signalFailed(`${error} for pid ${String(pid)}`)
    }
  }

  async #nameSurvivors(): Promise<void> {
    const members = await this.#look()
    // Another kill began meanwhile: its deadline counts.
    if (this.#clock.monotonicMs() < this.#killDeadlineMs) return
    this.#mode = 'watch'
    if (members?.length === 0) return
    const survivors = (members ?? []).map((member): Survivor => {
      const error = this.#errors.get(member.pid)
      return error === undefined ? member : { ...member, error }
    })
    this.#reports.survived(survivors, members === null ? 'the process tree could not be read' : undefined)
  }

  /** Null: the tree could not be read. */
  async #look(): Promise<readonly TreeMember[] | null> {
    try {
      return await this.#execution.scan()
    } catch (error) {
      this.#logger.warn({ error: messageOf(error) }, 'a process tree could not be read')
      return null
    }
  }

  async #pause(delayMs: number): Promise<void> {
    let cancel: Cancel = () => undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      cancel = this.#clock.after(delayMs, resolve)
    })
    cancel()
  }
}
