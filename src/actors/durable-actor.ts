/**
 * The write-ahead host of one statechart.
 *
 * Owns: the snapshot, its revision, the mailbox, the durable timers. One event at a time: the mailbox is held from the pure transition
 *   until its commit has returned.
 * Does not own: what the effects do (the role), nor how a commit reaches the disk (group-commit.ts).
 * Messages in: `post`. Messages out: `role.committed`, after the commit.
 * Invariants: INV-1 (no effect before its commit), INV-10 (a timer's token makes a late one stale), INV-11.
 */
import type { AnyEventObject, AnyMachineSnapshot } from 'xstate'
import { RunwardenError, messageOf } from '../errors.js'
import type { ActorRole, HostServices, Posted, Transition } from './actor-role.js'
import { Mailbox } from './mailbox.js'
import { dehydrate, firstStep, hydrate, isIdle, nextStep } from './step.js'
import type { Step } from './step.js'
import type { ActorWrite, CommitVerdict, TimerRow } from './store.ports.js'
import { commitFirst, loadActor } from './store-waits.js'
import { Timers, stillnessIn } from './timers.js'

interface Letter {
  readonly event: AnyEventObject
  readonly timer?: { readonly id: string; readonly token: string }
  readonly isStill?: (() => boolean) | undefined
  readonly resolve: (result: Posted) => void
}

export class DurableActor {
  readonly id: string
  readonly #role: ActorRole
  readonly #host: HostServices
  readonly #mailbox = new Mailbox<Letter>()
  readonly #timers: Timers
  #snapshot: AnyMachineSnapshot | null = null
  #rev = -1
  #isWorking = false
  #isStopped = false
  #intentArrived: () => void = () => undefined
  #recordedLate: () => void = () => undefined

  constructor(id: string, role: ActorRole, host: HostServices) {
    this.id = id
    this.#role = role
    this.#host = host
    this.#timers = new Timers(host.clock, (timer) => {
      void this.#put({ event: timer.event, timer }, false)
    })
  }

  get snapshot(): AnyMachineSnapshot {
    if (this.#snapshot === null)
      throw new RunwardenError('invariant-broken', `actor ${this.id} has not begun`)
    return this.#snapshot
  }

  /** Null until the actor is on record. */
  get current(): AnyMachineSnapshot | null {
    return this.#snapshot
  }

  get rev(): number {
    return this.#rev
  }

  /** Timers that are armed now, for people: when each is due by the wall clock. */
  get timers(): readonly TimerRow[] {
    return this.#timers.rows()
  }

  /**
   * Creates the actor in the store. Rejects when the store does not answer in time; `recordedLate` is called if the actor turns out to
   * be on record after that, where nothing acts for it. With any other result than `applied`, and without that call, nothing is recorded.
   */
  async begin(input: unknown, recordedLate: () => void = () => undefined): Promise<Posted> {
    this.#recordedLate = recordedLate
    const step = firstStep(this.#role.machine, input)
    const event = { type: `${this.#role.kind}.accepted`, at: this.#host.clock.wallMs() }
    const result = await this.#apply(event, null, step)
    if (result === 'applied') this.#pump()
    return result === 'reloaded' ? 'exists' : result
  }

  /** Takes up an actor from the store where it stood. */
  resume(stored: { readonly snapshot: string; readonly rev: number }, timers: readonly TimerRow[]): void {
    this.#snapshot = hydrate(this.#role.machine, stored.snapshot)
    this.#rev = stored.rev
    this.#timers.resume(timers, stillnessIn(this.#role, this.#snapshot))
    this.#pump()
  }

  /**
   * Puts an event into the mailbox; resolves when it was taken, and recorded if it meant anything. One that the engine made up by itself
   * (K7) says with `isStill` whether it is so at this moment: asked when it is taken, and once more when it goes to the store (K4).
   */
  post(event: AnyEventObject, isStill?: () => boolean): Promise<Posted> {
    if (event.type.startsWith('xstate.')) {
      throw new RunwardenError('invariant-broken', `event ${event.type} may not come from outside`)
    }
    return this.#put({ event, isStill }, this.#role.isIntent(event))
  }

  /** Ends the actor's life in this process; its record stays as it is. */
  stop(): void {
    this.#isStopped = true
    this.#timers.clear()
    for (const letter of this.#mailbox.clear()) letter.resolve('disowned')
  }

  #put(letter: Omit<Letter, 'resolve'>, isUrgent: boolean): Promise<Posted> {
    if (this.#isStopped) return Promise.resolve('disowned')
    return new Promise((resolve) => {
      this.#mailbox.put({ ...letter, resolve }, isUrgent)
      if (isUrgent) this.#intentArrived()
      this.#pump()
    })
  }

  #pump(): void {
    if (this.#isWorking || this.#snapshot === null) return
    this.#isWorking = true
    void this.#work()
  }

  async #work(): Promise<void> {
    for (let letter = this.#mailbox.take(); letter !== undefined; letter = this.#mailbox.take()) {
      letter.resolve(await this.#handle(letter))
    }
    this.#isWorking = false
  }

  async #handle(letter: Letter): Promise<Posted> {
    if (this.#isStopped) return 'disowned'
    // INV-10: a timer that was replaced or cancelled while its event waited means nothing any more.
    if (letter.timer !== undefined && !this.#timers.isCurrent(letter.timer)) return 'ignored'
    if (letter.isStill?.() === false) return 'ignored'
    const at = this.#host.clock.wallMs()
    const before = this.snapshot
    try {
      const event = this.#role.stamp({ ...letter.event, at })
      const step = nextStep(this.#role.machine, before, event)
      if (letter.timer === undefined && isIdle(before, step)) return 'ignored'
      if (letter.timer !== undefined) this.#timers.forget(letter.timer.id)
      const clearing = letter.timer === undefined ? [] : [letter.timer.id]
      const timersCleared = [...step.timersCleared, ...clearing]
      const result = await this.#apply(event, before, { ...step, timersCleared }, letter.isStill)
      return result === 'reloaded' ? await this.#handle(letter) : result
    } catch (error) {
      this.#host.logger.error(
        { actor: this.id, event: letter.event.type, error: messageOf(error) },
        'a chart failed',
      )
      this.#role.faulted(error, letter.event)
      return 'unrecorded'
    }
  }

  /** Commits a step and makes it the present. The only place where the snapshot changes. */
  async #apply(
    event: AnyEventObject,
    before: AnyMachineSnapshot | null,
    step: Step,
    isStill?: () => boolean,
  ): Promise<Posted | 'reloaded'> {
    const rev = this.#rev + 1
    const at = event['at'] as number
    const transition: Transition = {
      actor: this.id,
      kind: this.#role.kind,
      rev,
      at,
      event,
      before,
      after: step.snapshot,
      effects: step.effects,
    }
    const standsStill = stillnessIn(this.#role, step.snapshot)
    const isReplaced = new Set([...step.timersCleared, ...step.timersSet.map(({ id }) => id)])
    const timersSet = [
      ...step.timersSet.map((timer) => this.#timers.prepare(timer, String(rev), at)),
      ...this.#timers.turned(standsStill, String(rev), at).filter(({ id }) => !isReplaced.has(id)),
    ]
    const write: ActorWrite = {
      kind: this.#role.kind,
      actor: this.id,
      owner: this.#host.engineId,
      expectedRev: before === null ? null : this.#rev,
      rev,
      machineVersion: this.#role.machineVersion,
      snapshot: dehydrate(step.snapshot),
      journal: {
        at,
        event: event.type,
        detail: JSON.stringify(this.#role.redact(event)),
        from: before === null ? '' : this.#role.describe(before),
        to: this.#role.describe(step.snapshot),
        effects: step.effects.map(({ type, params }, index) => ({
          index,
          kind: type,
          body: JSON.stringify(params ?? null),
        })),
      },
      timersSet,
      timersCleared: step.timersCleared,
      rows: this.#role.rows(transition),
    }
    const verdict = await this.#commit(write, event, isStill)
    if (verdict !== 'committed') return verdict === 'stale' ? this.#reload() : verdict
    this.#snapshot = step.snapshot
    this.#rev = rev
    for (const id of step.timersCleared) this.#timers.forget(id)
    for (const timer of timersSet) this.#timers.arm(timer, standsStill)
    // INV-1: the effects start here, after the commit has returned, and nowhere else.
    this.#role.committed(transition)
    this.#host.inspection?.committed(this.#role, transition)
    return 'applied'
  }

  async #commit(
    write: ActorWrite,
    event: AnyEventObject,
    isStill?: () => boolean,
  ): Promise<CommitVerdict | 'unrecorded'> {
    const { commits, commitDeadlineMs, logger } = this.#host
    if (write.expectedRev === null) return commitFirst(this.#host, write, this.#recordedLate)
    // K7: what cannot be recorded does not act; the watchdog asks again. A pause is tried for as long as a stop would wait.
    const patienceMs = this.#role.isAutomatic(event) ? 0 : commitDeadlineMs
    const durable = this.#mayGiveUp(event)
      ? commits.submit(write, patienceMs, isStill).catch(() => 'unrecorded' as const)
      : commits.submit(write)
    const ahead = this.#runAhead(write, event)
    const verdict = await Promise.race([durable, ahead.taken])
    ahead.cancel()
    if (verdict === 'spooled') {
      durable.then(
        (late) => {
          if (late === 'stale') void this.#reload()
        },
        (error: unknown) => {
          logger.error({ actor: this.id, error: messageOf(error) }, 'a spooled transition was refused')
        },
      )
      return 'committed'
    }
    return verdict
  }

  /**
   * An operator must be able to stop a process while the store does not answer: past the deadline the write goes to the spool, the order
   * of events kept. Facts wait for the store, unless an intent is behind them, for which is given up what may be and is not on record.
   */
  #runAhead(write: ActorWrite, event: AnyEventObject): { taken: Promise<'spooled'>; cancel: () => void } {
    const { clock, commits, commitDeadlineMs, spool, logger } = this.#host
    let cancel = (): void => undefined
    const taken = new Promise<'spooled'>((resolve) => {
      const start = (): void => {
        // One wait, however many intents arrive: the others would outlive the commit.
        this.#intentArrived = () => undefined
        if (this.#mayGiveUp(event)) commits.withdraw(write)
        cancel = clock.after(commits.isDegraded ? 0 : commitDeadlineMs, () => {
          commits.keep(write)
          void (spool?.append(write) ?? Promise.resolve())
            .catch((error: unknown) => {
              logger.error({ actor: this.id, error: messageOf(error) }, 'the spool did not take a transition')
            })
            .then(() => {
              resolve('spooled')
            })
        })
      }
      const isOwed =
        this.#role.isIntent(event) || this.#role.mayRunAhead(this.snapshot) || this.#mailbox.hasUrgent
      if (isOwed) start()
      else this.#intentArrived = start
    })
    return {
      taken,
      cancel: () => {
        cancel()
        this.#intentArrived = () => undefined
      },
    }
  }

  #mayGiveUp(event: AnyEventObject): boolean {
    return this.#role.isAutomatic(event) || this.#role.isDeclinable(event)
  }

  /** S3: another revision or owner stands. Take what is there, or let go. */
  async #reload(): Promise<'reloaded' | 'disowned'> {
    const stored = await loadActor(this.#host, this.#role.kind, this.id)
    if (stored?.owner !== this.#host.engineId) {
      this.#host.logger.warn({ actor: this.id, owner: stored?.owner }, 'another engine owns this actor now')
      this.stop()
      this.#role.disowned()
      return 'disowned'
    }
    this.#snapshot = hydrate(this.#role.machine, stored.snapshot)
    this.#rev = stored.rev
    return 'reloaded'
  }
}
