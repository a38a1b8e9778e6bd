/**
 * The freeze of one execution's tree: every member stopped, kept stopped, and continued again.
 *
 * Owns: the loop that looks for members that run, and which members it has stopped. Only these are continued: one that had stopped by
 *   itself stays as it was.
 * Does not own: when (the process actor is told by the run chart), nor what an incomplete freeze means.
 * Invariants: INV-5 (complete is said after two complete looks without a running member), INV-11 (the answer comes by a deadline; what
 *   goes on behind it slows down), O1.
 */
import type { Survivor } from '../machines/run/run.context.js'
import type { TreeMember } from './ports.js'
import { LookPause, keyOf } from './tree-reach.js'
import type { TreeReach } from './tree-reach.js'

/** Two complete looks: one alone can miss a child born behind the reader. */
const QUIET_LOOKS_NEEDED = 2
const FIRST_WAIT_MS = 2
const MAX_WAIT_MS = 40
const DEADLINE_MS = 2_000
/** A parent that takes longer than so many looks to stop is not waited for: a tree that forks must be overtaken. */
const PARENT_LOOKS_MAX = 4
/** Once answered, a tree is looked at for as long as it is to be frozen: somebody else may continue a member. */
const MAX_WATCH_MS = 4_000

export interface FreezeReports {
  readonly frozen: () => void
  readonly failed: (running: readonly Survivor[], error: string | undefined) => void
}

type Verdict = 'none' | 'frozen' | 'failed'

const isRunning = ({ state }: TreeMember): boolean => state !== 'T' && state !== 't'

const judge = (quietLooks: number, isLate: boolean): Verdict => {
  if (quietLooks >= QUIET_LOOKS_NEEDED) return 'frozen'
  return isLate && quietLooks === 0 ? 'failed' : 'none'
}

export class TreeFreeze {
  readonly #reach: TreeReach
  readonly #reports: FreezeReports
  readonly #pause = new LookPause()
  readonly #stopped = new Set<string>()
  /** Another engine may have stopped members: they count as stopped here, until the tree is continued. */
  #isTakenUp = false
  /** In how many looks a member was let run because its parent still did. */
  readonly #passedOver = new Map<string, number>()
  /** The loop that counts; an older one sees that it is over when its look or its wait returns. */
  #loop = 0

  constructor(reach: TreeReach, reports: FreezeReports) {
    this.#reach = reach
    this.#reports = reports
  }

  /** A tree that is taken up from another engine may have been stopped by that one, wholly or in part. */
  takeUp(): void {
    this.#isTakenUp = true
  }

  /** Resolves when the first report is given, or when something else is wanted; keeps the tree frozen until then. */
  freeze(): Promise<void> {
    return new Promise((resolve) => {
      void this.#keepFrozen(this.#begin(), resolve).finally(resolve)
    })
  }

  /** Resolves when every member that was stopped here is continued, or at the deadline; goes on trying behind it. */
  thaw(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#reach.clock.after(DEADLINE_MS, resolve)
      void this.#continueAll(this.#begin()).finally(() => {
        cancel()
        resolve()
      })
    })
  }

  /** The ladder takes over, or nothing is left: it continues whom it must itself (C4). */
  end(): void {
    this.#begin()
  }

  #begin(): () => boolean {
    this.#loop += 1
    this.#passedOver.clear()
    const loop = this.#loop
    this.#pause.wake()
    return () => this.#loop === loop
  }

  async #keepFrozen(isWanted: () => boolean, answered: () => void): Promise<void> {
    const { clock } = this.#reach
    let verdict: Verdict = 'none'
    let quietLooks = 0
    let waitMs = FIRST_WAIT_MS
    let deadlineMs = clock.monotonicMs() + DEADLINE_MS
    while (isWanted()) {
      const lookedFromMs = clock.monotonicMs()
      const members = await this.#reach.look()
      // A look that was under way when the tree was to be continued or ended stops nobody.
      if (!isWanted()) return
      const running = members?.filter(isRunning)
      const mustWait = members !== null && this.#stop(members)
      if (running?.length === 0) quietLooks += 1
      else if (quietLooks > 0) {
        quietLooks = 0
        waitMs = FIRST_WAIT_MS
        deadlineMs = clock.monotonicMs() + DEADLINE_MS
      }
      const isEmpty = members?.length === 0
      const found = isEmpty ? 'none' : judge(quietLooks, clock.monotonicMs() >= deadlineMs)
      if (found !== 'none' && found !== verdict) {
        verdict = found
        this.#report(found, running)
        answered()
      }
      const lookMs = clock.monotonicMs() - lookedFromMs
      await this.#pause.wait(clock, quietLooks === 1 ? FIRST_WAIT_MS : Math.max(waitMs, lookMs))
      waitMs = mustWait ? FIRST_WAIT_MS : Math.min(waitMs * 2, found === 'none' ? MAX_WAIT_MS : MAX_WATCH_MS)
    }
  }

  #report(verdict: Verdict, running: readonly TreeMember[] | undefined): void {
    if (verdict === 'frozen') this.#reports.frozen()
    else {
      const error = running === undefined ? 'the process tree could not be read' : undefined
      this.#reports.failed(
        (running ?? []).map((member) => this.#reach.named(member)),
        error,
      )
    }
  }

  /**
   * Parents first: one that watches its children must not see them stop, so that a child waits until its parent was seen stopped, for a
   * few looks. A child between its `vfork` and its `exec` is let on: its parent takes no stop before (ADR 0036). True when some must wait.
   */
  #stop(members: readonly TreeMember[]): boolean {
    const heldUp = members.filter((member) => {
      const isOurs = this.#isTakenUp || this.#stopped.has(keyOf(member))
      return member.holdsUpParent === true && !isRunning(member) && isOurs
    })
    const unstopped = this.#reach.signal('SIGCONT', heldUp)
    for (const member of heldUp) if (!unstopped.has(member.pid)) this.#stopped.delete(keyOf(member))
    const running = members.filter((member) => isRunning(member) && member.holdsUpParent !== true)
    const due = running.filter((member) => !this.#mustWait(member))
    const failed = this.#reach.signal('SIGSTOP', due)
    const ours = this.#isTakenUp ? members.filter(({ holdsUpParent }) => holdsUpParent !== true) : due
    for (const member of ours) if (!failed.has(member.pid)) this.#stopped.add(keyOf(member))
    return due.length < running.length
  }

  #mustWait(member: TreeMember): boolean {
    const looks = this.#passedOver.get(keyOf(member)) ?? 0
    if (member.hasRunningParent !== true || looks >= PARENT_LOOKS_MAX) return false
    this.#passedOver.set(keyOf(member), looks + 1)
    return true
  }

  async #continueAll(isWanted: () => boolean): Promise<void> {
    let waitMs = FIRST_WAIT_MS
    // Before the look: whom it stopped may be dead, and others still held by it.
    let isHeld = !this.#reach.unfreeze()
    while (isWanted() && (isHeld || this.#isTakenUp || this.#stopped.size > 0)) {
      const members = await this.#reach.look()
      if (!isWanted()) return
      if (members !== null) this.#continue(members)
      isHeld &&= !this.#reach.unfreeze()
      if (!isHeld && !this.#isTakenUp && this.#stopped.size === 0) return
      await this.#pause.wait(this.#reach.clock, waitMs)
      waitMs = Math.min(waitMs * 2, MAX_WATCH_MS)
    }
  }

  /** Children first: a parent that goes on must find them going. */
  #continue(members: readonly TreeMember[]): void {
    const ours = members.filter(
      (member) => (this.#isTakenUp && !isRunning(member)) || this.#stopped.has(keyOf(member)),
    )
    this.#isTakenUp = false
    const failed = this.#reach.signal('SIGCONT', ours.toReversed())
    this.#stopped.clear()
    for (const member of ours) if (failed.has(member.pid)) this.#stopped.add(keyOf(member))
  }
}
