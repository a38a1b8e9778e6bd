/**
 * The process table of this machine, read once for everyone who asks in the same tick.
 *
 * Owns: one complete look at `/proc`, and the marks that each process bears.
 * A look begins after it was asked for. It is complete when the last listing names no process that it has not examined: then nothing
 * that lived at that listing was missed, however fast it forks (C3). A listing alone proves nothing: by the time a short-lived process
 * is examined, it may have been replaced by a child that the listing does not name.
 */
import { COOKIE_VARIABLE } from '../../actors/ports.js'
import { RunwardenError, messageOf } from '../../errors.js'
import { isAlive, isStillThere, listPids, readEnvironment, readLimitMark, readStat } from './proc-fs.js'
import type { ProcStat } from './proc-fs.js'

/** A process younger than this may not have reached its `exec` yet: what it shows of its environment can change. */
const SETTLED_AFTER_TICKS = 100
/** On a machine that forks faster than it can be listed a look is given up, and does not count as one. */
const LISTINGS_MAX = 32

interface Marks {
  readonly limit: number | null
  readonly cookies: readonly string[]
  readonly isSettled: boolean
  /** In the middle of its `exec` a process shows no environment: its cookies are not known yet. */
  readonly isUnknown: boolean
}

const keyOf = ({ pid, startTicks }: { readonly pid: number; readonly startTicks: number }): string =>
  `${String(pid)}:${String(startTicks)}`

/** Living processes by something that each has one of. */
class Index<K> {
  readonly #found = new Map<K, ProcStat[]>()

  add(key: K, stat: ProcStat): void {
    const beside = this.#found.get(key)
    if (beside === undefined) this.#found.set(key, [stat])
    else beside.push(stat)
  }

  get(key: K): readonly ProcStat[] {
    return this.#found.get(key) ?? []
  }
}

/** Sorted once for everyone who asks: a thousand trees are found among a thousand processes without a million looks (R8). */
export class ProcSnapshot {
  readonly alive: readonly ProcStat[]
  readonly byParent = new Index<number>()
  readonly byGroup = new Index<number>()
  readonly bySession = new Index<number>()
  readonly #byPid: ReadonlyMap<number, ProcStat>
  readonly #marks: ReadonlyMap<string, Marks>
  readonly #byCookie = new Index<string>()
  readonly #byLimit = new Index<number>()
  readonly #unknown: ProcStat[] = []

  constructor(byPid: ReadonlyMap<number, ProcStat>, marks: ReadonlyMap<string, Marks>) {
    this.#byPid = byPid
    this.#marks = marks
    this.alive = [...byPid.values()].filter(isAlive)
    for (const stat of this.alive) this.#sort(stat)
  }

  #sort(stat: ProcStat): void {
    this.byParent.add(stat.parent, stat)
    this.byGroup.add(stat.group, stat)
    this.bySession.add(stat.session, stat)
    const marks = this.#marks.get(keyOf(stat))
    for (const cookie of marks?.cookies ?? []) this.#byCookie.add(cookie, stat)
    if (typeof marks?.limit === 'number') this.#byLimit.add(marks.limit, stat)
    if (marks?.isUnknown === true) this.#unknown.push(stat)
  }

  /** Those of whom `bearsMark` may say anything but no. */
  mayBear({
    cookie,
    limit,
  }: {
    readonly cookie: string
    readonly limit: number | null
  }): readonly ProcStat[] {
    return [
      ...this.#byCookie.get(cookie),
      ...(limit === null ? [] : this.#byLimit.get(limit)),
      ...this.#unknown,
    ]
  }

  /** Zombies included: a reaped leader is one that is not here. */
  find(pid: number): ProcStat | undefined {
    return this.#byPid.get(pid)
  }

  bearsMark(stat: ProcStat, marks: { readonly cookie: string; readonly limit: number | null }): boolean {
    const known = this.#marks.get(keyOf(stat))
    if (known === undefined) return false
    if (known.cookies.includes(marks.cookie)) return true
    if (marks.limit !== null && known.limit === marks.limit) return true
    // With a limit of our own, only a process under another engine's limit could still hide our cookie.
    if (marks.limit !== null && known.limit === null) return false
    // INV-5: without the limit mark the cookie is all there is, and what cannot be read is not "unmarked".
    if (known.isUnknown)
      throw new RunwardenError('unreadable', `process ${String(stat.pid)} cannot be judged yet`)
    return false
  }
}

export class ProcTable {
  #marks = new Map<string, Marks>()
  #next: Promise<ProcSnapshot> | null = null

  /** Rejects when `/proc` cannot be read, or not completely: unknown is not empty (INV-5). */
  look(): Promise<ProcSnapshot> {
    this.#next ??= new Promise((resolve, reject) => {
      setImmediate(() => {
        this.#next = null
        try {
          resolve(this.#read())
        } catch (error) {
          reject(new RunwardenError('unreadable', messageOf(error), { cause: error }))
        }
      })
    })
    return this.#next
  }

  #read(): ProcSnapshot {
    const examined = new Set<number>()
    const byPid = new Map<number, ProcStat>()
    const marks = new Map<string, Marks>()
    for (let listing = 0; listing < LISTINGS_MAX; listing += 1) {
      const fresh = listPids().filter((pid) => !examined.has(pid))
      if (fresh.length === 0) {
        this.#marks = marks
        return new ProcSnapshot(byPid, marks)
      }
      for (const pid of fresh) {
        examined.add(pid)
        this.#examine(pid, byPid, marks)
      }
    }
    throw new RunwardenError('unreadable', 'processes come faster than they can be listed')
  }

  /** A process that vanishes meanwhile is left out: what it has forked is in the next listing. */
  #examine(pid: number, byPid: Map<number, ProcStat>, marks: Map<string, Marks>): void {
    const stat = readStat(pid)
    if (stat === null) return
    if (isAlive(stat)) {
      const learned = this.#learn(stat)
      if (learned === null) return
      marks.set(keyOf(stat), learned)
    }
    byPid.set(pid, stat)
  }

  #learn(stat: ProcStat): Marks | null {
    const known = this.#marks.get(keyOf(stat))
    if (known?.isSettled === true) return known
    const limit = readLimitMark(stat.pid)
    if (limit === 'gone' && !isStillThere(stat)) return null
    // Both: an engine inside a run of another engine replaces the limit, and passes the cookies on.
    const cookies = readEnvironment(stat, COOKIE_VARIABLE)
    if (cookies === 'gone') return null
    const isSettled = isOld(stat)
    const found = cookies === 'empty' ? undefined : cookies.value?.split(':')
    return {
      limit: limit === 'gone' ? null : limit,
      cookies: found ?? known?.cookies ?? [],
      isSettled,
      isUnknown: cookies === 'empty' && !isSettled,
    }
  }
}

const isOld = ({ startTicks }: ProcStat): boolean => startTicks + SETTLED_AFTER_TICKS < bootTicks()

/** Clock ticks since boot: the monotonic clock counts from there, less the time that the machine was suspended. */
const bootTicks = (): number => Number(process.hrtime.bigint() / 10_000_000n)
