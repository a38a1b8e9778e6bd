/**
 * The XState inspection protocol over committed transitions: what `@statelyai/inspect` and its like take.
 *
 * Owns: the observers, and what each of them may cost. Does not own: any decision; nothing here comes back into a run.
 * Invariants: INV-11 (a bounded queue an observer, the oldest dropped and counted), F (an observer that throws, blocks or floods hurts
 *   nobody: it is called from a turn of its own, and one that blocks rests nine times as long), L7 (events as the journal shows them).
 */
import type { AnyStateMachine, InspectionEvent } from 'xstate'
import { messageOf } from '../errors.js'
import type { ActorRole, Transition } from './actor-role.js'
import type { Clock, Logger } from './ports.js'

/** What `inspect` takes: a function, or an object with `next`, as XState's own `inspect` option does. */
export type InspectionObserver =
  ((event: InspectionEvent) => unknown) | { readonly next?: (event: InspectionEvent) => unknown }

/** An actor as it stands when an observer comes. */
export interface InspectedActor {
  readonly id: string
  readonly machine: AnyStateMachine
  readonly snapshot: { readonly value: unknown; readonly context: unknown }
}

const QUEUE_MAX = 1_000
/** How long one turn of the loop may go to an observer. */
const TURN_BUDGET_MS = 5
/** After a turn that took longer, it rests so many times as long. */
const REST_FACTOR = 9

/** What an observer finds of an actor: enough for the tools that draw it, and no way to send it anything. */
interface ActorView {
  readonly id: string
  readonly sessionId: string
  readonly logic: { readonly config?: unknown }
  readonly _parent: ActorView | undefined
  readonly getSnapshot: () => unknown
}

/** L7: what the agent said belongs in its log. */
const redacted = (key: string, value: unknown): unknown =>
  key === 'result' && typeof value === 'object' && value !== null
    ? { isOk: (value as { isOk?: unknown }).isOk }
    : value

const plain = ({ value, context }: InspectedActor['snapshot'], isDone = false): unknown => ({
  status: isDone ? 'done' : 'active',
  output: undefined,
  error: undefined,
  value,
  context: JSON.parse(JSON.stringify(context, redacted)) as unknown,
  children: {},
  historyValue: {},
})

class Watcher {
  readonly #next: (event: InspectionEvent) => unknown
  readonly #clock: Clock
  readonly #logger: Logger
  /** The actors that it was told of. */
  readonly #announced = new Set<string>()
  #queue: InspectionEvent[] = []
  #dropped = 0
  #isScheduled = false
  #isEnded = false
  #hasFailed = false

  constructor(next: (event: InspectionEvent) => unknown, clock: Clock, logger: Logger) {
    this.#next = next
    this.#clock = clock
    this.#logger = logger
  }

  isNew(actor: string): boolean {
    if (this.#announced.has(actor)) return false
    this.#announced.add(actor)
    return true
  }

  forget(actor: string): void {
    this.#announced.delete(actor)
  }

  push(event: InspectionEvent): void {
    if (this.#isEnded) return
    if (this.#queue.length >= QUEUE_MAX) {
      this.#queue.shift()
      this.#dropped += 1
    }
    this.#queue.push(event)
    this.#schedule(0)
  }

  end(): void {
    this.#isEnded = true
    this.#queue = []
  }

  #schedule(delayMs: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const drain = (): void => {
      this.#isScheduled = false
      this.#drain()
    }
    this.#clock.after(delayMs, drain, { isBackground: true })
  }

  #drain(): void {
    const begunMs = this.#clock.monotonicMs()
    let tookMs = 0
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      this.#call(event)
      tookMs = this.#clock.monotonicMs() - begunMs
      if (tookMs >= TURN_BUDGET_MS) break
    }
    if (this.#dropped > 0) {
      this.#logger.warn({ dropped: this.#dropped }, 'an inspection observer is too slow: events were dropped')
      this.#dropped = 0
    }
    if (this.#queue.length > 0) this.#schedule(tookMs > 2 * TURN_BUDGET_MS ? tookMs * REST_FACTOR : 0)
  }

  #call(event: InspectionEvent): void {
    try {
      Promise.resolve(this.#next(event)).catch((error: unknown) => {
        this.#failed(error)
      })
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Told once: an observer that always throws would flood the log. */
  #failed(error: unknown): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    this.#logger.error({ error: messageOf(error) }, 'an inspection observer failed')
  }
}

export class Inspection {
  readonly #rootId: string
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #watchers = new Set<Watcher>()

  constructor(rootId: string, clock: Clock, logger: Logger) {
    this.#rootId = rootId
    this.#clock = clock
    this.#logger = logger
  }

  /** Tells the observer of the actors that are there, and then of what is committed. Returns the way to stop. */
  observe(observer: InspectionObserver, present: Iterable<InspectedActor>): () => void {
    const next =
      typeof observer === 'function' ? observer : (event: InspectionEvent) => observer.next?.(event)
    const watcher = new Watcher(next, this.#clock, this.#logger)
    for (const { id, machine, snapshot } of present) {
      watcher.isNew(id)
      watcher.push(this.#actorEvent(this.#view(id, machine, plain(snapshot))))
    }
    this.#watchers.add(watcher)
    return () => {
      watcher.end()
      this.#watchers.delete(watcher)
    }
  }

  /** After a commit. Without an observer it does nothing. */
  committed(role: ActorRole, transition: Transition): void {
    if (this.#watchers.size === 0) return
    try {
      this.#tell(role, transition)
    } catch (error) {
      this.#logger.error({ error: messageOf(error) }, 'a transition could not be shown to observers')
    }
  }

  #tell(role: ActorRole, { actor, event, after }: Transition): void {
    const snapshot = plain(after, after.status === 'done')
    const view = this.#view(actor, role.machine, snapshot)
    const shown = role.redact(event) as { readonly type: string; readonly attempt?: number }
    const isFact = role.kind === 'run' && shown.type.startsWith('process.')
    const sourceRef = isFact ? this.#process(view, shown.attempt) : undefined
    for (const watcher of this.#watchers) {
      if (watcher.isNew(actor)) watcher.push(this.#actorEvent(view))
      if (sourceRef !== undefined && watcher.isNew(sourceRef.sessionId))
        watcher.push(this.#actorEvent(sourceRef))
      watcher.push(this.#event('@xstate.event', view, { event: shown, sourceRef }))
      watcher.push(this.#event('@xstate.snapshot', view, { event: shown, snapshot }))
      // INV-11: what is over is told of no more.
      if (after.status === 'done') {
        watcher.forget(actor)
        if (sourceRef !== undefined) watcher.forget(sourceRef.sessionId)
      }
    }
  }

  #view(id: string, { config }: AnyStateMachine, snapshot: unknown): ActorView {
    const isRoot = id === this.#rootId
    return {
      id,
      sessionId: id,
      logic: { config },
      _parent: isRoot ? undefined : this.#root(),
      getSnapshot: () => snapshot,
    }
  }

  /** Of the parent an observer reads its id alone. */
  #root(): ActorView {
    const id = this.#rootId
    return { id, sessionId: id, logic: {}, _parent: undefined, getSnapshot: () => ({ status: 'active' }) }
  }

  /** The actor of one attempt's process. It has no chart. */
  #process(run: ActorView, attempt = 1): ActorView {
    const id = `${run.id}/process-${String(attempt)}`
    return { id, sessionId: id, logic: {}, _parent: run, getSnapshot: () => ({ status: 'active' }) }
  }

  #actorEvent(view: ActorView): InspectionEvent {
    return this.#event('@xstate.actor', view, {})
  }

  #event(type: InspectionEvent['type'], actorRef: ActorView, rest: object): InspectionEvent {
    return { type, rootId: this.#rootId, actorRef, ...rest } as unknown as InspectionEvent
  }
}
