/**
 * The run actor: one run, whose state is the run chart's snapshot.
 *
 * Owns: the run's durable actor, its progress clock, the listeners, and at most one process actor at a time (INV-8).
 * Does not own: any OS resource (the process actor), the decision to stop (the registry), the decisions of the chart.
 * Messages in: commands from the registry, facts of the process actor and the progress clock.
 * Messages out: events to listeners; `outcome` and `gone`, which settle once.
 * Invariants: INV-1 (effects are done from `committed` only), INV-7 (the intent is in force from the call on), INV-10.
 */
import type { AnyEventObject } from 'xstate'
import { messageOf } from '../errors.js'
import type { RunEffect } from '../machines/run/run.effects.js'
import { isAutomaticEvent, isDeclinableEvent, isIntentEvent } from '../machines/run/run.events.js'
import type { RunCommand, RunFact } from '../machines/run/run.events.js'
import { RUN_MACHINE_VERSION, runMachine } from '../machines/run/run.machine.js'
import type { Outcome, RunContext, RunPolicy } from '../machines/run/run.context.js'
import { standsStill } from '../machines/run/run.timers.js'
import { DurableActor } from './durable-actor.js'
import { firstStep } from './step.js'
import type { ActorRole, HostServices, Posted, Transition } from './actor-role.js'
import { isFallbackEligible } from './fallback.js'
import { doEffect, plannedExecution } from './run-effects.js'
import type { RunEnvironment } from './run-effects.js'
import { runEventsOf } from './run-events.js'
import type { Gone, OutputForm, RunEvents } from './run-events.js'
import { RunOutput } from './run-output.js'
import { newProcessActor } from './run-process.js'
import type { KindRows, RunHead, RunRow, StoredRun, TimerRow } from './store.ports.js'
import type { ProcessActor } from './process.actor.js'
import type { ProgressClock } from './progress-clock.js'
import { hasConfirmed, hasSettled } from './run-milestones.js'
import { rowsOf } from './run-rows.js'
import type { ExecutionFacts } from './run-rows.js'
import { describeRun, headOf, stateOf } from './run-state.js'
import type { RunState, WantedEnd } from './run-state.js'
import { RunTurns } from './run-turns.js'

type Untimed<E> = E extends { at: number } ? Omit<E, 'at'> : never
export type RunMessage = Untimed<RunCommand | RunFact>

export class RunActor implements ActorRole {
  readonly kind = 'run'
  readonly machine = runMachine
  readonly machineVersion = RUN_MACHINE_VERSION
  readonly standsStill = standsStill
  readonly row: RunRow
  readonly environment: RunEnvironment
  readonly output: RunOutput
  readonly turns: RunTurns
  /** Settles once, and never rejects. */
  readonly outcome: Promise<Outcome>
  /** Settles when every attempt's tree is proven gone. */
  readonly gone: Promise<Gone>
  process: ProcessActor | null = null
  readonly #durable: DurableActor
  readonly #host: HostServices
  #head: RunHead | null = null
  #execution: ExecutionFacts | null = null
  /** The strongest end that was asked for, recorded or not yet, and what was said with it. */
  #wanted: WantedEnd = { kind: 'none', reason: '' }
  #settle: (outcome: Outcome) => void = () => undefined
  #confirm: (gone: Gone) => void = () => undefined
  #leaveListeners = new Set<() => void>()
  #listeners = new Set<(transition: Transition) => void>()
  #retold = new Set<string>()

  constructor(row: RunRow, environment: RunEnvironment, host: HostServices) {
    this.row = row
    this.environment = environment
    this.#host = host
    this.#durable = new DurableActor(row.id, this, host)
    this.output = new RunOutput()
    this.turns = new RunTurns(this, host.clock)
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.gone = new Promise((resolve) => {
      this.#confirm = resolve
    })
  }

  get id(): string {
    return this.row.id
  }

  get state(): RunState {
    return stateOf(this.snapshot)
  }

  get context(): RunContext {
    return this.snapshot.context as RunContext
  }

  get progress(): ProgressClock {
    return this.turns.progress
  }

  /** A run that is not on record yet stands where it will begin. */
  get snapshot() {
    return this.#durable.current ?? firstStep(runMachine, { policy: this.policy }).snapshot
  }

  get timers(): readonly TimerRow[] {
    return this.#durable.timers
  }

  /** An end was asked for: in force for every decision from the call on, recorded or not yet (P1). */
  get isEndWanted(): boolean {
    return this.#wanted.kind !== 'none'
  }

  get wantedEnd(): WantedEnd {
    return this.#wanted
  }

  get policy(): RunPolicy {
    return this.environment.policy
  }

  /** `recordedLate`: see `DurableActor.begin`. */
  begin(recordedLate: () => void): Promise<Posted> {
    return this.#durable.begin({ policy: this.policy }, recordedLate)
  }

  /** Takes the run up from the store, in another engine than the one that began it. */
  resume(stored: StoredRun, timers: readonly TimerRow[], execution: ExecutionFacts | null): void {
    this.#head = stored.head
    this.#execution = execution
    this.#durable.resume(stored, timers)
    const { outcome, evidence, intent } = this.context
    if (intent !== null) this.#wantEnd(intent.kind === 'cancel', intent.reason)
    if (outcome !== null) this.#settle(outcome)
    if (this.state.isConfirmed)
      this.#confirm({ evidence, confirmedAt: evidence.at(-1)?.at ?? 0, survivors: [] })
  }

  /** When the current execution was launched, by the wall clock. */
  get launchedAt(): number | null {
    return this.#execution?.launchedAt ?? null
  }

  /** This engine lets go of the run: its record and its processes stay as they are. */
  leave(): void {
    this.turns.leave()
    this.#durable.stop()
    this.process?.leave()
    for (const listener of [...this.#leaveListeners]) listener()
  }

  /** The run was not taken into the store: whoever waits for it is told so. */
  abandon(): void {
    this.#durable.stop()
    // Whoever found it by its id before may have asked for something.
    this.turns.leave()
  }

  post(message: RunMessage, isStill?: () => boolean): Promise<Posted> {
    if (isIntentEvent(message.type))
      this.#wantEnd(message.type === 'run.cancel', 'reason' in message ? message.reason : '')
    return this.#durable.post(message, isStill)
  }

  /** Resolves when what was posted until now has been taken, and what it meant is on record. */
  async caughtUp(): Promise<void> {
    await this.#durable.post({ type: 'run.caught-up' }, () => false)
  }

  /** This engine lets go of the run: nothing more will be heard of it here. */
  onLeave(listener: () => void): () => void {
    this.#leaveListeners.add(listener)
    return () => {
      this.#leaveListeners.delete(listener)
    }
  }

  onTransition(listener: (transition: Transition) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** The marks and places of the execution that is about to be, or is; minted before its row is committed (R2). */
  get execution(): ExecutionFacts | null {
    return this.#execution
  }

  /** A process actor for the current attempt (INV-8: the one before it is gone). */
  newProcess(attempt: number, options: { readonly isAdopted: boolean }): ProcessActor {
    this.process = newProcessActor(this, attempt, this.#host, options)
    return this.process
  }

  events(options: { readonly output: OutputForm }): RunEvents {
    return runEventsOf(this, options)
  }

  // ── the role (called by the durable actor) ───────────────────────────────────────────────────

  isIntent(event: AnyEventObject): boolean {
    return isIntentEvent(event.type)
  }

  isAutomatic(event: AnyEventObject): boolean {
    return isAutomaticEvent(event.type)
  }

  isDeclinable(event: AnyEventObject): boolean {
    return isDeclinableEvent(event.type)
  }

  mayRunAhead(snapshot: { readonly context: unknown }): boolean {
    return (snapshot.context as RunContext).intent !== null
  }

  stamp(event: AnyEventObject): AnyEventObject {
    // K4: what is true at this moment, next to what the watchdog saw.
    if (isAutomaticEvent(event.type)) return { ...event, current: this.progress.stamp }
    if (['process.exited', 'process.launch-failed', 'session.failed'].includes(event.type)) {
      return { ...event, isFallbackEligible: isFallbackEligible(this, event as unknown as RunFact) }
    }
    return event
  }

  describe(snapshot: { readonly value: unknown; readonly context: unknown }): string {
    return describeRun(snapshot)
  }

  redact(event: AnyEventObject): unknown {
    // L7: what the agent said belongs in its log, not in the journal.
    if (event.type === 'turn.completed') {
      const { isOk } = event['result'] as { isOk: boolean }
      return { ...event, result: { isOk } }
    }
    // What the host makes of an outcome is its own.
    return event.type === 'delivery.finalized' ? { type: event.type, at: event['at'] as number } : event
  }

  rows(transition: Transition): KindRows {
    if (transition.effects.some(({ type }) => type === 'process.launch')) {
      const attempt = (transition.after.context as RunContext).executionAttempt
      this.#execution = plannedExecution(this, attempt)
    }
    if (this.#execution !== null && this.process !== null) {
      const { identity, containment, pane } = this.process
      this.#execution = {
        ...this.#execution,
        identity,
        containment: containment ?? this.#execution.containment,
        pane: pane ?? this.#execution.pane,
      }
    }
    this.#head = headOf(transition.after, transition.at, this.#head, this.progress.lastProgressAt)
    return rowsOf(transition, { row: this.row, head: this.#head, execution: this.#execution })
  }

  committed(transition: Transition): void {
    const { intent, outcome, evidence } = transition.after.context as RunContext
    if (intent !== null) this.#wantEnd(intent.kind === 'cancel', intent.reason)
    this.turns.follow(transition)
    if (this.#execution !== null && transition.event.type === 'process.launched') {
      this.#execution = { ...this.#execution, launchedAt: transition.at }
    }
    transition.effects.forEach((effect, index) => {
      doEffect(this, this.#host, { effect: effect as RunEffect, rev: transition.rev, index })
    })
    if (hasSettled(transition) && outcome !== null) this.#settle(outcome)
    if (hasConfirmed(transition)) {
      this.#confirm({ evidence, confirmedAt: transition.at, survivors: [] })
    }
    for (const listener of [...this.#listeners]) {
      try {
        listener(transition)
      } catch (error) {
        // F: a listener's fault is its own.
        this.#host.logger.error({ run: this.id, error: messageOf(error) }, 'a listener failed')
      }
    }
  }

  faulted(error: unknown, event: AnyEventObject): void {
    // A fault that cannot be recorded either is not told again: nothing acts without its record (INV-1).
    if (event.type === 'run.faulted') return
    void this.post({ type: 'run.faulted', message: messageOf(error) })
    // INV-4: what was seen of the process stays true, and a run that is being ended may take it; told again once, or it would be for ever.
    if (!event.type.startsWith('process.') || this.#retold.has(event.type)) return
    this.#retold.add(event.type)
    void this.post(event as RunMessage)
  }

  disowned(): void {
    this.turns.leave()
    this.environment.onDisowned(this)
  }

  #wantEnd(isForGood: boolean, reason: string): void {
    const isStronger = this.#wanted.kind === 'none' || (isForGood && this.#wanted.kind === 'interrupt')
    if (isStronger) this.#wanted = { kind: isForGood ? 'cancel' : 'interrupt', reason }
  }
}
