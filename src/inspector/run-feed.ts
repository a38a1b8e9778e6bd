/**
 * One run, for one client that looks at it.
 *
 * Owns: what of its journal was told already. At most ten updates a second; its processes once a second.
 * Invariants: INV-11 (of a long journal the last `JOURNAL_MAX` rows), L7 (marks of executions stay here).
 */
import type { RunHistory } from '../index.js'
import { messageOf } from './problem.js'
import type { Source } from './source.js'
import type { ProcessesUpdate, RunUpdate } from './wire.js'

const JOURNAL_MAX = 2_000
const LOOK_MS = 100
/** Effects are marked as done, and lines answered, without a transition. */
const SURE_LOOK_MS = 1_000
const PROCESSES_MS = 1_000

export interface RunFeedEvents {
  readonly update: (update: RunUpdate) => void
  readonly processes: (update: ProcessesUpdate) => void
  readonly failed: (error: unknown) => void
}

const toUpdate = (history: RunHistory): RunUpdate => {
  const { executions, ...rest } = history
  return { ...rest, now: Date.now(), executions: executions.map(({ marks: _marks, ...shown }) => shown) }
}

const hasLivingProcess = ({ process }: RunHistory['run']): boolean =>
  process !== 'waiting' && process !== 'confirmed'

export class RunFeed {
  readonly #runId: string
  readonly #source: Source
  readonly #events: RunFeedEvents
  readonly #timer: NodeJS.Timeout
  #afterRev = -1
  #toldText = ''
  #generation = -1
  #lookedAt = 0
  #processesAt = 0
  #run: RunHistory['run'] | null = null
  #isLooking = false
  #isEnded = false

  constructor(runId: string, source: Source, events: RunFeedEvents) {
    this.#runId = runId
    this.#source = source
    this.#events = events
    this.#timer = setInterval(() => void this.#tick(), LOOK_MS)
    this.#timer.unref()
    void this.#tick()
  }

  end(): void {
    this.#isEnded = true
    clearInterval(this.#timer)
  }

  async #tick(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      await this.#look()
      await this.#lookAtProcesses()
    } catch (error) {
      if (!this.#isEnded) this.#events.failed(error)
    } finally {
      this.#isLooking = false
    }
  }

  async #look(): Promise<void> {
    const { generation, inspected } = this.#source
    const now = Date.now()
    if (generation === this.#generation && now - this.#lookedAt < SURE_LOOK_MS) return
    this.#generation = generation
    this.#lookedAt = now
    const history = await inspected.history(this.#runId, { afterRev: this.#afterRev, limit: JOURNAL_MAX })
    if (this.#isEnded) return
    this.#run = history.run
    const update = toUpdate(history)
    const text = JSON.stringify({ ...update, now: 0 })
    if (text === this.#toldText) return
    this.#events.update(update)
    this.#afterRev = this.#nextAfter(history)
    // What the next look shows of the same state: from where the journal is read next.
    const next = history.transitions.filter(({ rev }) => rev > this.#afterRev)
    this.#toldText = JSON.stringify({ ...update, now: 0, transitions: next })
  }

  /** Rows with an effect that is not done yet are read again. */
  #nextAfter({ transitions }: RunHistory): number {
    const pending = transitions.find(({ effects }) => effects.some(({ doneAt }) => doneAt === null))
    const last = transitions.at(-1)?.rev ?? this.#afterRev
    return Math.max(pending === undefined ? last : pending.rev - 1, last - 50)
  }

  async #lookAtProcesses(): Promise<void> {
    const now = Date.now()
    if (this.#run === null || now - this.#processesAt < PROCESSES_MS) return
    this.#processesAt = now
    const isAlive = hasLivingProcess(this.#run)
    const update = isAlive ? await this.#processes() : { processes: [], problem: null }
    if (!this.#isEnded) this.#events.processes({ now: Date.now(), ...update })
    // Nothing will come to life again.
    if (this.#run.process === 'confirmed') this.#processesAt = Number.MAX_SAFE_INTEGER
  }

  async #processes(): Promise<Omit<ProcessesUpdate, 'now'>> {
    try {
      return { processes: await this.#source.inspected.processes(this.#runId), problem: null }
    } catch (error) {
      return { processes: [], problem: messageOf(error) }
    }
  }
}
