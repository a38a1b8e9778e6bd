/**
 * Taking over the runs of engines that died.
 *
 * Owns: the judgement whether an engine is dead, the fenced change of owners, and bringing a run's chart and its processes together again.
 * Does not own: what happens to a run once it is held here (the registry).
 * Invariants: INV-13, R2, R3, R5 (only a provably dead engine's runs are taken, and once), R8 (many at a time: in a few statements, and
 *   with looks at the process table that all of them share), R9 (an unknown chart version is not touched).
 */
import type { RunContext } from '../machines/run/run.context.js'
import type { RunEffect } from '../machines/run/run.effects.js'
import { RUN_MACHINE_VERSION } from '../machines/run/run.machine.js'
import type { HostServices } from './actor-role.js'
import type { ExecutionRecord, ProcessPort } from './ports.js'
import type { EngineRow, PendingEffect, ExecutionRow, StoredRun, TimerRow } from './store.ports.js'
import type { ExecutionFacts } from './run-rows.js'
import { doEffect } from './run-effects.js'
import type { RunActor } from './run.actor.js'
import { isKept, isOnFiles } from './run-survival.js'
import { isSeenEmpty } from './tree-reach.js'

const RUNS_AT_ONCE = 256

export interface TakeOverOptions {
  readonly host: HostServices
  readonly processes: ProcessPort
  readonly hostId: string
  readonly isHeld: (runId: string) => boolean
  /** A run actor for a record, with no command to launch: it can be ended, watched and asked. */
  readonly makeRun: (stored: StoredRun) => RunActor
  readonly hold: (run: RunActor) => void
}

/** Of one engine alone, or one run alone; null: of all. */
export interface Wanted {
  readonly of: string | null
  readonly runId: string | null
}

export type Engines = ReadonlyMap<string, EngineRow>

export type Judgement = 'alive' | 'gone' | 'unknown'

const recordOf = (execution: ExecutionRow & { readonly runId: string }): ExecutionRecord | null =>
  execution.marks === undefined
    ? null
    : {
        runId: execution.runId,
        attempt: execution.attempt,
        marks: execution.marks,
        containment: execution.containment ?? 'group',
        identity: execution.identity ?? null,
        launchedAt: execution.launchedAt ?? null,
        pane: execution.pane ?? null,
      }

const factsOf = (record: ExecutionRecord | null, logPath: string | null): ExecutionFacts | null =>
  record === null
    ? null
    : {
        marks: record.marks,
        containment: record.containment,
        logPath,
        identity: record.identity,
        launchedAt: record.launchedAt,
        pane: record.pane ?? null,
      }

/** R9: another version's snapshot is another language; it is named, and touched by nothing. */
export const unknownVersion = ({ row, machineVersion }: StoredRun): string =>
  `run ${row.id} was recorded with version ${String(machineVersion)} of the run chart; this library knows ${String(RUN_MACHINE_VERSION)}`

/** The ladder's steps and a freeze are done again whether they were done or not. */
const REPEATED_STEPS: ReadonlySet<string> = new Set([
  'process.terminate',
  'process.kill',
  'process.freeze',
  'process.release',
])

/** R4: a tree that was to go on stands still for ever if nobody continues it; an agent that was to be asked waits for it. */
const isDueAgain = ({ type }: RunEffect, { state }: RunActor): boolean =>
  (type === 'process.thaw' && (state.process === 'alive' || state.process === 'asking')) ||
  (type === 'process.ask' && state.process === 'asking')

/** What the store holds of a run besides its chart. */
interface Recorded {
  readonly last: (ExecutionRow & { readonly runId: string }) | undefined
  readonly timers: readonly TimerRow[]
  readonly effects: readonly PendingEffect[]
}

const grouped = <T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> => {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

export class TakeOver {
  readonly #options: TakeOverOptions

  constructor(options: TakeOverOptions) {
    this.#options = options
  }

  async engines(): Promise<Engines> {
    const rows = await this.#options.host.store.listEngines()
    return new Map(rows.map((row) => [row.id, row]))
  }

  /** R5: an engine that closed has given its runs up; one that cannot be judged keeps them. */
  async judge(engine: EngineRow | undefined): Promise<Judgement> {
    if (engine === undefined) return 'unknown'
    if (engine.closedAt !== null) return 'gone'
    if (engine.hostId !== this.#options.hostId) return 'unknown'
    return this.#options.processes.lookUp(engine.identity)
  }

  /** R3: takes every run whose engine is provably dead, as far as they are wanted. */
  async takeAll({ of, runId }: Wanted): Promise<readonly RunActor[]> {
    const { host } = this.#options
    const open = await host.store.openRunsOfOthers(host.engineId)
    const owners = grouped(
      open.filter((run) => (of ?? run.owner) === run.owner && (runId ?? run.runId) === run.runId),
      ({ owner }) => owner,
    )
    if (owners.size === 0) return []
    const engines = await this.engines()
    const taken: RunActor[] = []
    for (const [owner, runs] of owners) {
      if ((await this.judge(engines.get(owner))) !== 'gone') continue
      for (let from = 0; from < runs.length; from += RUNS_AT_ONCE) {
        const ids = runs.slice(from, from + RUNS_AT_ONCE).map(({ runId }) => runId)
        const stored = await host.store.loadRuns(ids)
        const isLeft = await Promise.all(stored.map((run) => this.#isLeftAlone(run)))
        taken.push(...(await this.#take(stored.filter((_, at) => isLeft[at] !== true))))
      }
    }
    return taken
  }

  /** Null: its engine is not provably dead, or another one was first. */
  async take(stored: StoredRun, engines: Engines): Promise<RunActor | null> {
    const isOurs = stored.owner === this.#options.host.engineId
    if (!isOurs && (await this.judge(engines.get(stored.owner))) !== 'gone') return null
    return (await this.#take([stored]))[0] ?? null
  }

  /** R3: a kept run that lives is for a stop alone. One that is gone is taken, or its record would stay open for ever. */
  async #isLeftAlone(stored: StoredRun): Promise<boolean> {
    if (stored.machineVersion !== RUN_MACHINE_VERSION) return false
    const { context } = JSON.parse(stored.snapshot) as { context: RunContext }
    if (!isKept(context.policy, context)) return false
    const { host, processes } = this.#options
    const record = (await host.store.executionsOf([stored.row.id])).map(recordOf).at(-1) ?? null
    if (record === null) return false
    const execution = await processes.adopt(record)
    return !(await isSeenEmpty(() => execution.scan().catch(() => null)))
  }

  async #take(stored: readonly StoredRun[]): Promise<readonly RunActor[]> {
    const { host, isHeld } = this.#options
    const known = stored.filter((run) => this.#isKnown(run))
    const ids: string[] = []
    for (const [owner, runs] of grouped(known, (run) => run.owner)) {
      const ofOwner = runs.map(({ row }) => row.id)
      ids.push(
        ...(owner === host.engineId ? ofOwner : await host.store.takeOver(ofOwner, owner, host.engineId)),
      )
    }
    // Read again: the dead engine's last write may have come between the first look and the take-over.
    const current = (await host.store.loadRuns(ids)).filter(({ row }) => !isHeld(row.id))
    if (current.length === 0) return []
    const [executions, timers, effects] = await Promise.all([
      host.store.executionsOf(ids),
      host.store.timersOf('run', ids),
      host.store.pendingEffectsOf('run', ids),
    ])
    const executionsByRun = grouped(executions, ({ runId }) => runId)
    const timersByRun = grouped(timers, ({ actor }) => actor)
    const effectsByRun = grouped(effects, ({ actor }) => actor)
    return Promise.all(
      current.map((run) =>
        this.#resume(run, {
          last: executionsByRun.get(run.row.id)?.at(-1),
          timers: timersByRun.get(run.row.id) ?? [],
          effects: effectsByRun.get(run.row.id) ?? [],
        }),
      ),
    )
  }

  #isKnown(stored: StoredRun): boolean {
    if (stored.machineVersion === RUN_MACHINE_VERSION) return true
    const { logger } = this.#options.host
    logger.error({ run: stored.row.id }, `a run is left alone: ${unknownVersion(stored)}`)
    return false
  }

  async #resume(stored: StoredRun, { last, timers, effects }: Recorded): Promise<RunActor> {
    const { makeRun, hold } = this.#options
    const record = last === undefined ? null : recordOf(last)
    const run = makeRun(stored)
    run.resume(
      stored,
      timers.map((timer) => this.#afresh(timer)),
      factsOf(record, last?.logPath ?? null),
    )
    hold(run)
    run.environment.deliveries.resume(run)
    const outputFolder = isOnFiles(run.policy) ? (last?.logPath ?? null) : null
    if (record !== null && !run.state.isConfirmed)
      await this.#reconcile(run, { ...record, outputFolder }, effects)
    return run
  }

  /** The kill is done again from here, and so is the hook: its deadline counts from now, not from the dead engine's. */
  #afresh(timer: TimerRow): TimerRow {
    const isAfresh = /^xstate\.after\.(killGrace|finalizeDeadline)/.test(timer.id)
    return isAfresh ? { ...timer, dueAt: this.#options.host.clock.wallMs() + timer.delayMs } : timer
  }

  /** Brings the chart and the machine together again: what is left of the tree is watched, and the ladder's step is done again (R4). */
  async #reconcile(run: RunActor, record: ExecutionRecord, effects: Recorded['effects']): Promise<void> {
    const processActor = run.newProcess(record.attempt, { isAdopted: true })
    run.turns.launching(record.attempt)
    await processActor.adopt(record)
    switch (run.state.process) {
      case 'launching':
        // R2: found by its marks, it is launched; not found, its tree is gone and the actor says so.
        if (processActor.identity !== null)
          await run.post({ type: 'process.launched', attempt: record.attempt })
        break
      case 'term-sent':
        processActor.terminate()
        break
      case 'kill-sent':
        processActor.kill(run.policy.killGraceMs)
        break
      case 'frozen':
        // Not waited for: others are to be taken up, and what ends this one ends the freeze.
        processActor.takeUpFrozen()
        void processActor.freeze()
        break
      default:
        break
    }
    this.#redo(run, effects)
    processActor.follow()
  }

  /** R4: what was committed and is not known to be done, under its own key. What the step above has done again is noted as done. */
  #redo(run: RunActor, effects: Recorded['effects']): void {
    const { host } = this.#options
    for (const { rev, index, kind, body } of effects) {
      const effect = { type: kind, params: JSON.parse(body) as unknown } as RunEffect
      if (kind === 'process.thaw') run.process?.takeUpFrozen()
      if (isDueAgain(effect, run)) doEffect(run, host, { effect, rev, index })
      else if (REPEATED_STEPS.has(kind)) {
        const at = host.clock.wallMs()
        host.commits.mark({ kind: 'run', actor: run.id, rev, index, startedAt: at, doneAt: at })
      }
    }
  }
}
