/**
 * Follows what an engine commits to a real store, step by step, and asks four witnesses whether they say the same: the chart, stepped
 * again by itself; the row, read over another connection; the kernel; and what the engine shows to its host.
 */
import { readFileSync, readdirSync } from 'node:fs'
import type { AnyEventObject, AnyStateMachine } from 'xstate'
import { hydrate } from '../../src/actors/step.js'
import type { ActorWrite, StorePort } from '../../src/actors/store.ports.js'
import type { RunEventOut } from '../../src/index.js'
import { registryMachine } from '../../src/machines/registry/registry.machine.js'
import { pathOf } from '../../src/machines/run/run.headline.js'
import { runMachine } from '../../src/machines/run/run.machine.js'
import { stopOrderMachine } from '../../src/machines/stop-order/stop-order.machine.js'
import { PureMachine } from '../model/pure-machine.js'
import type { Backdoor } from '../support/database.js'
import { plainPolicy } from '../support/policy.js'
import { statOf } from '../support/proc-reader.js'

const MACHINES = { run: runMachine, 'stop-order': stopOrderMachine, registry: registryMachine } as const

/** Names of the transitions that were taken, of all charts. */
export const taken = new Set<string>()
/** How many steps were compared. */
export const steps = { run: 0, 'stop-order': 0, registry: 0 }

const input = { policy: plainPolicy, attempt: 1, at: 0, engineId: '', orderId: '' }

const pures = new Map<AnyStateMachine, PureMachine<never, never>>()
const pureOf = (machine: AnyStateMachine): PureMachine<never, never> => {
  const pure = pures.get(machine) ?? new PureMachine<never, never>(machine, input, { isTraced: true })
  pures.set(machine, pure)
  return pure
}

/** One step of a chart by itself; the value that it comes to. */
const stepAlone = (
  machine: AnyStateMachine,
  before: string,
  event: AnyEventObject,
): { readonly value: unknown; readonly snapshot: string } => {
  const pure = pureOf(machine)
  const { snapshot } = pure.next(hydrate(machine, before) as never, event as never)
  const { value, context } = snapshot as { value: unknown; context: unknown }
  for (const name of pure.taken) taken.add(name)
  return { value, snapshot: JSON.stringify({ value, context }) }
}

/** Processes that bear a cookie, by the kernel; a zombie has no environment. */
const bearersOf = (cookie: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(cookie)
      } catch {
        return false
      }
    })
    .map(Number)
    .filter((pid) => !['Z', 'X'].includes(statOf(pid)?.state ?? 'Z'))

const valueIn = (snapshot: string): unknown => (JSON.parse(snapshot) as { value: unknown }).value

export class Recorder {
  readonly faults: string[] = []
  readonly #backdoor: Backdoor
  readonly #snapshots = new Map<string, string>()
  readonly #heads = new Map<string, string>()
  readonly #cookies = new Map<string, string[]>()

  constructor(backdoor: Backdoor) {
    this.#backdoor = backdoor
  }

  /** The same store; what it has committed is compared before the engine hears of it. */
  over(store: StorePort): StorePort {
    return new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name)
        if (typeof member !== 'function') return member
        if (name !== 'commit') return member.bind(target) as unknown
        return async (...[batch, marks]: Parameters<StorePort['commit']>) => {
          const verdicts = await target.commit(batch, marks)
          for (const [index, write] of batch.entries())
            if (verdicts[index] === 'committed') await this.#compare(write, batch)
          return verdicts
        }
      },
    })
  }

  /** What the engine shows, after the commit. */
  heard(event: RunEventOut): void {
    if (event.type !== 'transition') return
    const { runId, work, process, delivery } = event
    this.#claim(
      this.#heads.get(`${runId} ${String(event.rev)}`) === `${work} ${process} ${delivery}`,
      `${runId}: shows ${work} ${process} ${delivery}`,
    )
  }

  #claim(holds: boolean, what: string): void {
    if (!holds) this.faults.push(what)
  }

  async #compare(write: ActorWrite, batch: readonly ActorWrite[]): Promise<void> {
    const { kind, actor, rev, journal, snapshot } = write
    steps[kind] += 1
    const before = this.#snapshots.get(actor)
    this.#snapshots.set(actor, snapshot)
    const place = `${actor} ${journal.event}`
    if (before !== undefined) {
      const alone = stepAlone(MACHINES[kind], before, JSON.parse(journal.detail) as AnyEventObject)
      this.#claim(
        JSON.stringify(alone.value) === JSON.stringify(valueIn(snapshot)),
        `${place}: the chart alone comes to ${JSON.stringify(alone.value)}`,
      )
    }
    const isLast = batch.findLast((one) => one.actor === actor) === write
    if (write.rows.kind !== 'run' || !isLast) return
    const { head, executions } = write.rows
    this.#heads.set(`${actor} ${String(rev)}`, `${head.work} ${head.process} ${head.delivery}`)
    const [row] = await this.#backdoor.rows(
      `select rev, snapshot, work, process, delivery, headline from runwarden_run where id = '${actor}'`,
    )
    const shown = {
      rev,
      snapshot,
      work: head.work,
      process: head.process,
      delivery: head.delivery,
      headline: head.headline,
    }
    this.#claim(JSON.stringify(row) === JSON.stringify(shown), `${place}: the row is ${JSON.stringify(row)}`)
    const { work } = valueIn(snapshot) as { work: unknown }
    this.#claim(pathOf(work) === head.work, `${place}: the headline columns say ${head.work}`)
    for (const { marks } of executions)
      if (marks !== undefined) this.#cookies.set(actor, [...(this.#cookies.get(actor) ?? []), marks.cookie])
    this.#askKernel(write, place)
  }

  #askKernel({ actor, journal, rows }: ActorWrite, place: string): void {
    if (rows.kind !== 'run') return
    const { process } = rows.head
    const cookies = this.#cookies.get(actor) ?? []
    if (process === 'confirmed' || process === 'waiting') {
      const left = cookies.flatMap(bearersOf)
      this.#claim(left.length === 0, `${place}: ${process}, and ${left.join(' ')} live`)
    }
    if (journal.event === 'process.frozen') {
      const states = bearersOf(cookies.at(-1) ?? '').map((pid) => statOf(pid)?.state)
      this.#claim(
        states.every((state) => state === 'T' || state === undefined),
        `${place}: ${states.join(' ')}`,
      )
    }
    if (journal.event === 'process.exited') {
      const { isTreeEmpty } = JSON.parse(journal.detail) as { readonly isTreeEmpty: boolean }
      if (isTreeEmpty)
        this.#claim(bearersOf(cookies.at(-1) ?? '').length === 0, `${place}: the tree is not empty`)
    }
  }
}
