/**
 * Looks on while a simulated world goes its way, and says what must never be.
 *
 * Owns: a ledger of its own, of what was committed, launched, signalled and told; it asks the engine nothing.
 */
import type { Delivery } from '../../src/index.js'
import type { ActorWrite, RunHead } from '../../src/actors/store.ports.js'
import type { LaunchSpec } from '../../src/actors/ports.js'
import type { SimulatedExecution, SimulatedSignal } from '../../src/testing/simulated-execution.js'
import type { Trace } from './trace.js'

export interface Violation {
  readonly id: string
  readonly what: string
  readonly atMs: number
}

export interface RunEntry {
  readonly id: string
  readonly job: string | null
  rev: number
  event: string
  head: RunHead
  /** The process states that the current execution was seen in. */
  seen: Set<string>
  readonly cookies: Map<number, string>
  readonly launched: Set<number>
  result: { readonly deliveryId: string; readonly body: string } | null
  isAcknowledged: boolean
  taken: number
}

type RunWrite = ActorWrite & { readonly rows: Extract<ActorWrite['rows'], { kind: 'run' }> }

const isToEnd = ({ work }: RunHead): boolean =>
  work.startsWith('settled') || work.includes('cancel-requested') || work.includes('interrupting')

/** What each signal needs to have been recorded before it (INV-1). */
const REASONS: Readonly<Record<SimulatedSignal, readonly string[]>> = {
  SIGTERM: ['term-sent'],
  SIGKILL: ['kill-sent'],
  SIGSTOP: ['frozen'],
  SIGCONT: ['frozen', 'asking', 'term-sent'],
}

export class Witness {
  readonly violations: Violation[] = []
  readonly runs = new Map<string, RunEntry>()
  readonly trees = new Map<string, SimulatedExecution[]>()
  /** An end was asked of these, in an engine that held them. */
  readonly wanted = new Set<string>()
  launches = 0
  signals = 0
  commits = 0
  readonly #trace: Trace
  readonly #now: () => number

  constructor(trace: Trace, now: () => number) {
    this.#trace = trace
    this.#now = now
  }

  say(text: string): void {
    this.#trace.note(this.#now(), text)
  }

  claim(holds: boolean, id: string, what: string): void {
    if (holds) return
    this.violations.push({ id, what, atMs: this.#now() })
    this.say(`VIOLATION ${id} ${what}`)
  }

  aliveOf(runId: string): number {
    return (this.trees.get(runId) ?? []).reduce((count, { size }) => count + size, 0)
  }

  // ── the store ──────────────────────────────────────────────────────────────────────────────────

  committed(write: ActorWrite): void {
    this.commits += 1
    this.say(
      `commit ${write.kind} ${write.actor} ${String(write.rev)} ${write.journal.event} ${write.journal.to}`,
    )
    if (write.rows.kind === 'run') this.#runCommitted(write as RunWrite)
  }

  /** The store did not answer, and the spool was asked: what runs ahead is on record there. */
  spooled(write: ActorWrite): void {
    this.say(`spool ${write.actor} ${write.journal.event}`)
    if (write.rows.kind === 'run') this.runs.get(write.actor)?.seen.add(write.rows.head.process)
  }

  #runCommitted(write: RunWrite): void {
    const { actor, rev, journal, rows } = write
    const entry = this.runs.get(actor)
    if (entry === undefined) {
      this.claim(rows.created !== undefined && rev === 0, 'S3', `${actor} began at rev ${String(rev)}`)
      this.runs.set(actor, {
        id: actor,
        job: rows.created?.job ?? null,
        rev,
        event: journal.event,
        head: rows.head,
        seen: new Set(),
        cookies: new Map(),
        launched: new Set(),
        result: null,
        isAcknowledged: false,
        taken: 0,
      })
      this.#follow(write, null)
      return
    }
    // Given again, because its answer was lost.
    if (rev <= entry.rev) {
      this.claim(rev < entry.rev || journal.event === entry.event, 'S3', `${actor} rev ${String(rev)} twice`)
      return
    }
    this.claim(rev === entry.rev + 1, 'S3', `${actor} went from rev ${String(entry.rev)} to ${String(rev)}`)
    const before = entry.head
    entry.rev = rev
    entry.event = journal.event
    entry.head = rows.head
    this.#follow(write, before)
  }

  #follow({ actor, journal, rows }: RunWrite, before: RunHead | null): void {
    const entry = this.runs.get(actor)
    if (entry === undefined) return
    const { head } = rows
    const launches = journal.effects.some(({ kind }) => kind === 'process.launch')
    if (launches) {
      entry.seen = new Set()
      this.claim(before === null || !isToEnd(before), 'INV-7', `${actor} launches although it is to end`)
    }
    entry.seen.add(head.process)
    for (const { attempt, marks, confirmedAt } of rows.executions) {
      if (marks !== undefined) {
        this.claim(!entry.cookies.has(attempt), 'R2', `${actor} records attempt ${String(attempt)} twice`)
        entry.cookies.set(attempt, marks.cookie)
      }
      if (confirmedAt !== undefined) this.#assertGone(entry, attempt)
    }
    if (before !== null && before.outcome !== null)
      this.claim(
        head.outcome === before.outcome,
        'INV-3',
        `${actor}: ${before.outcome} became ${String(head.outcome)}`,
      )
    if (before?.process === 'confirmed')
      this.claim(head.process === 'confirmed', 'INV-4', `${actor} was confirmed and is ${head.process}`)
    if (isToEnd(head))
      this.claim(
        !['waiting', 'alive', 'frozen'].includes(head.process),
        'INV-4',
        `${actor} is ${head.work} and ${head.process}`,
      )
    if (head.process === 'confirmed')
      this.claim(
        this.aliveOf(actor) === 0,
        'INV-5',
        `${actor} is confirmed, ${String(this.aliveOf(actor))} live`,
      )
    this.claim(head.outcome?.includes('invariant-broken') !== true, 'F', `${actor}: ${String(head.outcome)}`)
    if (rows.result !== undefined) {
      this.claim(entry.result === null, 'INV-12', `${actor} has a second result`)
      entry.result = rows.result
    }
    if (rows.acknowledged === true) entry.isAcknowledged = true
  }

  #assertGone({ id, cookies }: RunEntry, attempt: number): void {
    const tree = (this.trees.get(id) ?? []).find(({ spec }) => spec.marks.cookie === cookies.get(attempt))
    this.claim((tree?.size ?? 0) === 0, 'INV-5', `${id}/${String(attempt)} is called gone, and lives`)
  }

  // ── the machine ────────────────────────────────────────────────────────────────────────────────

  launchBegins({ runId, attempt, marks }: LaunchSpec): void {
    this.say(`launching ${runId} ${String(attempt)}`)
    const entry = this.runs.get(runId)
    this.claim(
      entry?.cookies.get(attempt) === marks.cookie,
      'INV-1',
      `${runId}/${String(attempt)} is launched before its record`,
    )
    this.claim(!this.wanted.has(runId), 'P1', `${runId} is launched behind the call that ends it`)
    this.claim(entry?.launched.has(attempt) !== true, 'R2', `${runId}/${String(attempt)} is launched twice`)
    entry?.launched.add(attempt)
    this.claim(this.aliveOf(runId) === 0, 'INV-8', `${runId}/${String(attempt)} is launched beside another`)
    const job = entry?.job ?? null
    if (job === null) return
    const others = [...this.runs.values()].filter((one) => one.job === job && one.id !== runId)
    this.claim(
      others.every(({ id }) => this.aliveOf(id) === 0),
      'O9',
      `${runId} is launched beside another run of ${job}`,
    )
  }

  launched(execution: SimulatedExecution): void {
    const { runId, attempt } = execution.spec
    this.launches += 1
    this.say(`launched ${runId} ${String(attempt)} ${String(execution.identity.pid)}`)
    this.trees.set(runId, [...(this.trees.get(runId) ?? []), execution])
    const head = this.runs.get(runId)?.head
    this.claim(head?.process !== 'confirmed', 'INV-4', `${runId} has a process behind its confirmation`)
    execution.onSignalSent = (signal, members) => {
      this.signals += 1
      this.say(`${signal} ${members.map(({ pid }) => pid).join(' ')}`)
      const seen = this.runs.get(runId)?.seen
      this.claim(
        REASONS[signal].some((state) => seen?.has(state) === true),
        'INV-1',
        `${signal} to ${runId} without a record of ${REASONS[signal].join(' or ')}`,
      )
    }
  }

  // ── the host ───────────────────────────────────────────────────────────────────────────────────

  delivering({ runId, deliveryId, outcome }: Delivery): void {
    this.say(`deliver ${deliveryId}`)
    const entry = this.runs.get(runId)
    this.claim(
      entry?.result?.deliveryId === deliveryId,
      'INV-1',
      `${deliveryId} is delivered before its record`,
    )
    this.claim(
      entry?.result?.body === JSON.stringify(outcome),
      'INV-12',
      `${deliveryId} is delivered as ${outcome.status}, recorded as ${String(entry?.result?.body)}`,
    )
    this.claim(
      entry?.isAcknowledged !== true,
      'INV-12',
      `${deliveryId} is delivered behind its acknowledgement`,
    )
  }

  taken(runId: string): void {
    const entry = this.runs.get(runId)
    if (entry !== undefined) entry.taken += 1
  }
}
