/**
 * The process table of this machine, read once for everyone who asks in the same tick.
 *
 * Owns: one complete look at `/proc`, and what was learned of each process's marks.
 * A look begins after it was asked for, so that what it does not show was not there when the asker decided to look.
 */
import { isAlive, readAllStats, readEnvironment, readLimitMark } from './proc-fs.js'
import type { ProcStat } from './proc-fs.js'

/** Holds the cookies of all executions a process descends from, `:` between them. */
export const COOKIE_VARIABLE = 'RUNWARDEN_COOKIE'

/** A process younger than this may not have reached its `exec` yet: what it shows of its environment can change. */
const SETTLED_AFTER_TICKS = 100

interface Learned {
  readonly limitMark: number | null
  cookies: string | null
  isSettled: boolean
}

export class ProcSnapshot {
  readonly alive: readonly ProcStat[]
  readonly #byPid: ReadonlyMap<number, ProcStat>
  readonly #learned: Map<string, Learned>
  readonly #newestTicks: number

  constructor(stats: readonly ProcStat[], learned: Map<string, Learned>) {
    this.#byPid = new Map(stats.map((stat) => [stat.pid, stat]))
    this.#learned = learned
    this.#newestTicks = stats.reduce((newest, { startTicks }) => Math.max(newest, startTicks), 0)
    this.alive = stats.filter(isAlive)
  }

  /** Zombies included: a reaped leader is one that is not here. */
  find(pid: number): ProcStat | undefined {
    return this.#byPid.get(pid)
  }

  bearsMark(stat: ProcStat, marks: { readonly cookie: string; readonly limit: number | null }): boolean {
    const learned = this.#learn(stat)
    return (
      (marks.limit !== null && learned.limitMark === marks.limit) ||
      (learned.cookies?.split(':').includes(marks.cookie) ?? false)
    )
  }

  #learn(stat: ProcStat): Learned {
    const key = keyOf(stat)
    const known = this.#learned.get(key)
    if (known?.isSettled === true) return known
    // The limit is inherited at the fork; the environment is settled only after the exec.
    const learned: Learned = {
      limitMark: known?.limitMark ?? readLimitMark(stat.pid),
      cookies: readEnvironment(stat.pid, COOKIE_VARIABLE) ?? known?.cookies ?? null,
      isSettled: stat.startTicks + SETTLED_AFTER_TICKS < this.#newestTicks,
    }
    this.#learned.set(key, learned)
    return learned
  }
}

export const keyOf = ({ pid, startTicks }: { readonly pid: number; readonly startTicks: number }): string =>
  `${String(pid)}:${String(startTicks)}`

export class ProcTable {
  #learned = new Map<string, Learned>()
  #next: Promise<ProcSnapshot> | null = null

  look(): Promise<ProcSnapshot> {
    this.#next ??= new Promise((resolve, reject) => {
      setImmediate(() => {
        this.#next = null
        try {
          resolve(this.#read())
        } catch (error) {
          reject(error as Error)
        }
      })
    })
    return this.#next
  }

  #read(): ProcSnapshot {
    const stats = readAllStats()
    const learned = new Map<string, Learned>()
    for (const stat of stats) {
      const known = this.#learned.get(keyOf(stat))
      if (known !== undefined) learned.set(keyOf(stat), known)
    }
    this.#learned = learned
    return new ProcSnapshot(stats, learned)
  }
}
