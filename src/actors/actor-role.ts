/**
 * What makes one kind of chart a durable actor, and what its host gives it.
 *
 * The host (durable-actor.ts) owns the order of things; a role owns what they mean for its kind.
 */
import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import type { GroupCommit } from './group-commit.js'
import type { Clock, Logger } from './ports.js'
import type { Inspection } from './inspection.js'
import type { EffectData } from './step.js'
import type { SpoolPort } from './spool.ports.js'
import type { ActorKind, KindRows, StorePort } from './store.ports.js'

/** A committed transition, as the role and the observers see it. */
export interface Transition {
  readonly actor: string
  readonly kind: ActorKind
  readonly rev: number
  readonly at: number
  readonly event: AnyEventObject
  readonly before: AnyMachineSnapshot | null
  readonly after: AnyMachineSnapshot
  readonly effects: readonly EffectData[]
}

/** What makes one kind of chart an actor. */
export interface ActorRole {
  readonly kind: ActorKind
  readonly machine: AnyStateMachine
  readonly machineVersion: number
  /** Overtakes facts in the mailbox, and may go ahead of a store that does not answer. */
  isIntent(event: AnyEventObject): boolean
  /** Must not act when it cannot be recorded (K7). */
  isAutomatic(event: AnyEventObject): boolean
  /** Is given up when the store does not take it within the commit deadline: its caller is told so. */
  isDeclinable(event: AnyEventObject): boolean
  /** Whether transitions of this snapshot may go ahead of a store that does not answer: the actor is being ended. */
  mayRunAhead(snapshot: AnyMachineSnapshot): boolean
  /** O7: whether a timer's time stands still in this snapshot. Pure. Without it none does. */
  standsStill?(snapshot: AnyMachineSnapshot, timerId: string): boolean
  /** Adds what only the moment of taking can know (K4). Pure otherwise. */
  stamp(event: AnyEventObject): AnyEventObject
  /** One word for the journal's from and to. */
  describe(snapshot: AnyMachineSnapshot): string
  /** The event as the journal may show it (L7). */
  redact(event: AnyEventObject): unknown
  /** The rows that change with this transition. */
  rows(transition: Transition): KindRows
  /** After the commit: do the effects, tell the observers. Must not throw. */
  committed(transition: Transition): void
  /** The chart itself failed on an event (F). */
  faulted(error: unknown, event: AnyEventObject): void
  /** Another engine owns the actor now (S3). */
  disowned(): void
}

export interface HostServices {
  readonly engineId: string
  readonly clock: Clock
  readonly commits: GroupCommit
  readonly store: StorePort
  readonly spool: SpoolPort | null
  readonly logger: Logger
  /** Who looks at the charts from outside. */
  readonly inspection?: Inspection
  /** How long an intent waits for a store that does not answer, in ms. */
  readonly commitDeadlineMs: number
}

export type Posted = 'applied' | 'ignored' | 'unrecorded' | 'disowned' | 'exists' | 'fenced' | 'unclaimed'
