/**
 * Every run in the store, for all who look at once.
 *
 * Owns: the rows as they were last told, and the looks. One look serves every client; updates are coalesced to five a second.
 * Invariants: INV-11 (the newest `RUNS_MAX` runs and no more), and nothing is read while nobody looks.
 */
import type { RunSummary } from '../index.js'
import { Pulse } from './pulse.js'
import { isEngine } from './source.js'
import type { Source } from './source.js'
import type { FleetRow, FleetUpdate } from './wire.js'

export const RUNS_MAX = 5_000
const LOOK_MS = 200
/** Progress between transitions moves in this process, and is not in the store yet. */
const PROGRESS_LOOK_MS = 1_000
/** Runs that were removed from the store are found missing this late. */
const WHOLE_LOOK_MS = 15_000
/** A transition has the time of its event, and is in the store a little later; machines that share a server differ in their clocks. */
const OVERLAP_MS = 2_500

export type FleetListener = (update: FleetUpdate) => void

const isSame = (one: RunSummary, other: RunSummary): boolean =>
  one.headline === other.headline &&
  one.work === other.work &&
  one.process === other.process &&
  one.delivery === other.delivery &&
  one.attempt === other.attempt &&
  one.pid === other.pid &&
  one.lastProgressAt === other.lastProgressAt

export class Fleet {
  readonly #source: Source
  readonly #onProblem: (error: unknown) => void
  readonly #listeners = new Set<FleetListener>()
  readonly #rows = new Map<string, RunSummary>()
  readonly #pulses = new Map<string, Pulse>()
  #timer: NodeJS.Timeout | null = null
  #lookedAt = 0
  #wholeLookAt = 0
  #progressLookAt = 0
  #isLooking = false

  constructor(source: Source, onProblem: (error: unknown) => void) {
    this.#source = source
    this.#onProblem = onProblem
  }

  /** Tells what is there as soon as that is known, and then what changes. Returns the way to stop. */
  follow(listener: FleetListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#begin()
    else if (this.#lookedAt > 0) listener(this.#whole())
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.#end()
    }
  }

  #begin(): void {
    this.#source.begin()
    this.#wholeLookAt = 0
    this.#timer = setInterval(() => void this.#look(), LOOK_MS)
    this.#timer.unref()
    void this.#look()
  }

  #end(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#lookedAt = 0
    this.#source.end()
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const hasChanged = await this.#source.hasChanged()
      if (Date.now() - this.#wholeLookAt >= WHOLE_LOOK_MS) await this.#lookAtAll()
      else if (hasChanged) await this.#lookAtChanged()
      this.#lookAtProgress()
    } catch (error) {
      // The next look may find the store again.
      this.#onProblem(error)
    } finally {
      this.#isLooking = false
    }
  }

  async #lookAtAll(): Promise<void> {
    const begunAt = Date.now()
    const { inspected } = this.#source
    const [open, newest] = await Promise.all([
      inspected.runs({ onlyOpen: true, newestFirst: true, limit: RUNS_MAX }),
      inspected.runs({ newestFirst: true, limit: RUNS_MAX }),
    ])
    const isFirst = this.#lookedAt === 0
    const found = new Map([...newest, ...open].map((run) => [run.runId, run]))
    const gone = [...this.#rows.keys()].filter((runId) => !found.has(runId))
    for (const runId of gone) this.#forget(runId)
    const changed = this.#take([...found.values()])
    this.#lookedAt = begunAt
    this.#wholeLookAt = begunAt
    if (isFirst) this.#tell(this.#whole())
    else if (changed.length > 0 || gone.length > 0) this.#tell(this.#update(changed, gone))
  }

  async #lookAtChanged(): Promise<void> {
    const begunAt = Date.now()
    const changedSince = this.#lookedAt - OVERLAP_MS
    const runs = await this.#source.inspected.runs({ changedSince, newestFirst: true, limit: RUNS_MAX })
    this.#lookedAt = begunAt
    const changed = this.#take(runs)
    const gone = this.#trim()
    if (changed.length > 0 || gone.length > 0) this.#tell(this.#update(changed, gone))
  }

  #lookAtProgress(): void {
    const { inspected } = this.#source
    const now = Date.now()
    if (!isEngine(inspected) || now - this.#progressLookAt < PROGRESS_LOOK_MS) return
    this.#progressLookAt = now
    const moved: RunSummary[] = []
    for (const row of this.#rows.values()) {
      if (row.settledAt !== null) continue
      const lastProgressAt = inspected.run(row.runId)?.activity.lastProgressAt ?? null
      if (lastProgressAt !== null && lastProgressAt > (row.lastProgressAt ?? 0))
        moved.push({ ...row, lastProgressAt })
    }
    const changed = this.#take(moved)
    if (changed.length > 0) this.#tell(this.#update(changed, []))
  }

  /** Keeps the rows that are new or differ. What this process knows of progress is fresher than the store. */
  #take(runs: readonly RunSummary[]): RunSummary[] {
    const now = Date.now()
    return runs.flatMap((run) => {
      const known = this.#rows.get(run.runId)
      const lastProgressAt = Math.max(run.lastProgressAt ?? 0, known?.lastProgressAt ?? 0)
      const row = lastProgressAt === 0 ? run : { ...run, lastProgressAt }
      if (known !== undefined && isSame(known, row)) return []
      if (known !== undefined) this.#pulseOf(run.runId).beat(now)
      this.#rows.set(run.runId, row)
      return [row]
    })
  }

  #trim(): string[] {
    if (this.#rows.size <= 2 * RUNS_MAX) return []
    const over = [...this.#rows.values()]
      .filter(({ settledAt }) => settledAt !== null)
      .sort((one, other) => one.createdAt - other.createdAt)
      .slice(0, this.#rows.size - 2 * RUNS_MAX)
      .map(({ runId }) => runId)
    for (const runId of over) this.#forget(runId)
    return over
  }

  #forget(runId: string): void {
    this.#rows.delete(runId)
    this.#pulses.delete(runId)
  }

  #pulseOf(runId: string): Pulse {
    const pulse = this.#pulses.get(runId) ?? new Pulse()
    this.#pulses.set(runId, pulse)
    return pulse
  }

  #whole(): FleetUpdate {
    return { ...this.#update([...this.#rows.values()], []), isWhole: true }
  }

  #update(runs: readonly RunSummary[], gone: readonly string[]): FleetUpdate {
    const now = Date.now()
    const rows = runs.map((run): FleetRow => ({ ...run, pulse: this.#pulses.get(run.runId)?.at(now) ?? [] }))
    return { now, isWhole: false, rows, gone }
  }

  #tell(update: FleetUpdate): void {
    for (const listener of [...this.#listeners]) listener(update)
  }
}
