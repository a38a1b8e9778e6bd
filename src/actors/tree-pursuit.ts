/**
 * The pursuit of one execution's tree to its end: look, signal what is there, wait a little longer each time.
 *
 * Owns: the one loop that looks at the tree, what was signalled already, and why a signal failed.
 * Does not own: when to pursue, and how (the process actor is told by the run chart).
 * Invariants: INV-5 (only two complete empty looks in a row are evidence), INV-11 (a kill has a deadline; after it the tree is only
 *   watched), C3 (kills go on until the tree is empty), C4, P12 (a pane that goes with its run is gone too before the run is).
 */
import type { Survivor } from '../machines/run/run.context.js'
import { EMPTY_LOOKS_NEEDED } from './ports.js'
import type { TreeMember } from './ports.js'
import { LookPause, isSeenEmpty, keyOf } from './tree-reach.js'
import type { TreeReach } from './tree-reach.js'

const FIRST_WAIT_MS = 2
const MAX_WAIT_MS = 40
/** After a deadline the tree is only watched. */
const WATCH_WAIT_MS = 250
/** For the program that a pane belongs to, which may hang (P14); a kill has its own deadline. */
const SURFACE_DEADLINE_MS = 2_000
const SURFACE_RESERVE_MS = 500

/** What is done with the members that a look finds. `watch` signals nothing. */
type Mode = 'watch' | 'terminate' | 'kill'

export interface PursuitReports {
  /** The tree is proven empty. Asked first whether that may be said already. */
  readonly mayBeGone: () => boolean
  readonly gone: () => void
  readonly survived: (survivors: readonly Survivor[], error: string | undefined) => void
}

export class TreePursuit {
  readonly #reach: TreeReach
  readonly #reports: PursuitReports
  readonly #pause = new LookPause()
  #mode: Mode = 'watch'
  #killDeadlineMs = Infinity
  #isLooping = false
  #isOver = false
  #terminated = new Set<string>()

  constructor(reach: TreeReach, reports: PursuitReports) {
    this.#reach = reach
    this.#reports = reports
  }

  /** R3: a tree that is gone already is told of before anything is decided about its run. Any other is looked at, unless its exit is told. */
  async takeUp({ isWatched }: { readonly isWatched: boolean }): Promise<void> {
    const isGone = await this.isEmpty()
    if (!isGone || this.#isOver || !this.#reports.mayBeGone()) {
      if (!isWatched) this.#begin('watch')
      return
    }
    this.#isOver = true
    this.#reports.gone()
  }

  terminate(): void {
    this.#terminated.clear()
    this.#begin('terminate')
  }

  kill(deadlineMs: number): void {
    // A question to tmux may be answered a little late on a busy machine: what is then wrong must be said by the deadline all the same.
    const reserveMs = this.#reach.hasSurface ? Math.min(SURFACE_RESERVE_MS, deadlineMs / 4) : 0
    this.#killDeadlineMs = this.#nowMs + deadlineMs - reserveMs
    this.#begin('kill')
  }

  /** Looks again now: something has changed. */
  wake(): void {
    this.#pause.wake()
  }

  end(): void {
    this.#isOver = true
    this.#pause.wake()
  }

  /** INV-5: a look that failed is not a look. */
  async isEmpty(): Promise<boolean> {
    if (!(await isSeenEmpty(() => this.#reach.look()))) return false
    // In a ladder the loop closes it, within the time that the ladder leaves.
    return !this.#reach.hasSurface || (this.#mode === 'watch' && this.#closeSurface())
  }

  get #nowMs(): number {
    return this.#reach.clock.monotonicMs()
  }

  #begin(mode: Mode): void {
    this.#mode = mode
    this.#pause.wake()
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
      const lookedFromMs = this.#nowMs
      const members = await this.#reach.look()
      const lookMs = this.#nowMs - lookedFromMs
      emptyLooks = members?.length === 0 ? emptyLooks + 1 : 0
      if (emptyLooks >= EMPTY_LOOKS_NEEDED && this.#reports.mayBeGone() && (await this.#closeSurface())) {
        this.#reports.gone()
        return
      }
      if (members !== null) this.#act(members)
      // P13: what cannot be seen is not signalled; without its pane it may turn out to be gone.
      else if (this.#mode === 'kill') await this.#closeSurface()
      if (this.#mode === 'kill' && this.#nowMs >= this.#killDeadlineMs) await this.#nameSurvivors()
      else if (emptyLooks !== 1) {
        // Looking is not free on a full machine: never more than half of the time.
        const delayMs = this.#mode === 'watch' ? WATCH_WAIT_MS : Math.max(waitMs, lookMs)
        await this.#pause.wait(this.#reach.clock, delayMs)
        waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)
      }
    }
  }

  #act(members: readonly TreeMember[]): void {
    if (this.#mode === 'kill') {
      this.#reach.signal('SIGKILL', members)
    } else if (this.#mode === 'terminate') {
      const fresh = members.filter((member) => !this.#terminated.has(keyOf(member)))
      for (const member of fresh) this.#terminated.add(keyOf(member))
      this.#reach.signal('SIGTERM', fresh)
      // C4: a stopped process cannot die of TERM; CONT always follows.
      this.#reach.signal('SIGCONT', fresh)
    }
  }

  async #nameSurvivors(): Promise<void> {
    const members = await this.#reach.look()
    // Another kill began meanwhile: its deadline counts.
    if (this.#nowMs < this.#killDeadlineMs) return
    this.#mode = 'watch'
    const { surfaceError } = this.#reach
    if (members?.length === 0 && surfaceError === null) return
    const survivors = (members ?? []).map((member) => this.#reach.named(member))
    const unreadable = members === null ? 'the process tree could not be read' : null
    const error = [unreadable, surfaceError].filter((text) => text !== null).join('; ')
    this.#reports.survived(survivors, error === '' ? undefined : error)
  }

  /** True when there is nothing to close, or nothing of it any more. */
  #closeSurface(): Promise<boolean> {
    const leftMs = this.#mode === 'kill' ? this.#killDeadlineMs - this.#nowMs : SURFACE_DEADLINE_MS
    return this.#reach.closeSurface(Math.max(1, leftMs))
  }
}
