/**
 * The life of an engine in a simulation: every call that it makes to the world goes through here, so that it can die at any of them.
 *
 * Owns: whether the engine lives, and at which call it dies: before the call has any effect, or after it, unheard.
 * A dead engine's code may run on, as far as it has what it awaits: nothing that it calls does anything, or answers, any more.
 */
import type { Execution, ProcessPort } from '../actors/ports.js'
import type { SpoolPort } from '../actors/spool.ports.js'
import type { StorePort } from '../actors/store.ports.js'

const NEVER = new Promise<never>(() => undefined)

export class Life {
  #calls = 0
  #isOver = false
  #deathAt = Infinity
  #isHeard = false
  readonly #died: () => void

  constructor(died: () => void) {
    this.#died = died
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** How many calls were made so far. */
  get calls(): number {
    return this.#calls
  }

  /** It dies at that many calls from now: 1 is the next. `isDone`: the call has its effect, and its answer is not heard. */
  endAt(calls: number, { isDone }: { readonly isDone: boolean }): void {
    this.#deathAt = this.#calls + calls
    this.#isHeard = isDone
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#died()
  }

  /** A call that is answered later. */
  ask<T>(act: () => Promise<T>): Promise<T> {
    if (this.#mayNotAct()) return NEVER
    const answer = act()
    this.#endIfDue()
    const heard = <U>(use: () => U): U | Promise<never> => (this.#isOver ? NEVER : use())
    return answer.then(
      (value) => heard(() => value),
      (error: unknown) =>
        heard(() => {
          throw error
        }),
    )
  }

  /** A call that is answered at once; `idle` is what a dead engine is told. */
  do<T>(act: () => T, idle: T): T {
    if (this.#mayNotAct()) return idle
    const answer = act()
    this.#endIfDue()
    return answer
  }

  #mayNotAct(): boolean {
    if (this.#isOver) return true
    this.#calls += 1
    if (this.#calls >= this.#deathAt && !this.#isHeard) this.end()
    return this.#isOver
  }

  #endIfDue(): void {
    if (this.#calls >= this.#deathAt) this.end()
  }
}

type Idle = Readonly<Record<string, unknown>>

/** Every method of a port through a life. `idle`: the answers of those that are not asynchronous; `free`: those that call nobody. */
const through = <T extends object>(port: T, life: Life, idle: Idle, free: readonly string[] = []): T =>
  new Proxy(port, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      const method = member.bind(target) as (...args: unknown[]) => unknown
      if (free.includes(String(name))) return method
      return (...args: unknown[]) =>
        name in idle
          ? life.do(() => method(...args), idle[String(name)])
          : life.ask(async () => method(...args))
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  })

const NO_HINTS = { isLive: false, close: () => undefined }
const NO_SIGNALS: ReturnType<Execution['signal']> = []

const EXECUTION_IDLE: Idle = {
  onOutput: undefined,
  cutOutput: false,
  letGo: undefined,
  writeInput: false,
  endInput: undefined,
  resize: false,
  signal: NO_SIGNALS,
}

export const mortalStore = <T extends StorePort>(store: T, life: Life): T => {
  const jobs = through(store.jobs, life, {})
  const port = through(store, life, { hintFiled: NO_HINTS }, ['isPassing', 'isInDoubt', 'hold'])
  return new Proxy(port, {
    get: (target, name) => (name === 'jobs' ? jobs : (Reflect.get(target, name) as unknown)),
    set: (target, name, value) => Reflect.set(target, name, value),
  })
}

export const mortalSpool = (spool: SpoolPort, life: Life): SpoolPort =>
  through(spool, life, { discard: undefined })

export const mortalProcesses = <T extends ProcessPort>(processes: T, life: Life): T => {
  const owned = async (execution: Promise<Execution>): Promise<Execution> =>
    through(await execution, life, EXECUTION_IDLE)
  const whole: Partial<ProcessPort> = {
    launch: (spec) => owned(processes.launch(spec)),
    adopt: (record) => owned(processes.adopt(record)),
  }
  const port = new Proxy(processes, {
    get: (target, name) => {
      const member: unknown = Reflect.get(whole, name) ?? Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
  return through(port, life, {}, ['mintMarks', 'usage'])
}
