/**
 * A node of the run chart's exploration: the chart's snapshot, the world around it, and what an observer wrote down.
 *
 * The notes are kept from the events alone, apart from the chart's own context, so that the two can be held against each other.
 */
import type { AnyEventObject, SnapshotFrom } from 'xstate'
import { pathOf } from '../../../src/machines/run/run.headline.js'
import type {
  ExitStatus,
  FreezeOwner,
  IntentKind,
  RunContext,
} from '../../../src/machines/run/run.context.js'
import type { RunEvent } from '../../../src/machines/run/run.events.js'
import type { RunMachine } from '../../../src/machines/run/run.machine.js'
import type { Edge, Offer } from '../explorer.js'
import type { Effect, Timer } from '../pure-machine.js'

export type RunSnapshot = SnapshotFrom<RunMachine>

/** The execution as it really is. `members`: the leader has exited, others have not. */
export type ExecutionPhase = 'none' | 'starting' | 'up' | 'members' | 'ended'

export interface World {
  readonly execution: ExecutionPhase
  /** The registry was asked for an admission and has not answered. */
  readonly isAdmissionAsked: boolean
}

export interface Notes {
  readonly hasProgress: boolean
  readonly hasAdvised: boolean
  readonly questions: number
  /** The agent said that the turn is complete, and how; null while the turn is open. */
  readonly result: 'ok' | 'not-ok' | 'unsaid' | null
  readonly isTurnCancelling: boolean
  /** The agent has answered that the turn is to end. */
  readonly isTurnCancelHeard: boolean
  /** The host has said that no further prompt will come. */
  readonly isFinished: boolean
  /** An advisory notice was raised and not withdrawn. */
  readonly isAdvised: boolean
  /** Who wants the run frozen. */
  readonly freeze: FreezeOwner | null
  /** The last exit told of the execution that the run holds. */
  readonly exit: ExitStatus | null
  /** A forced order came while the run was being ended, or ended it. */
  readonly isForced: boolean
  readonly isSuppressed: boolean
  /** When each kind of intent was first asked for. */
  readonly askedAt: Readonly<Partial<Record<IntentKind, number>>>
}

export interface RunNode {
  readonly snapshot: RunSnapshot
  readonly context: RunContext
  /** `open.active.progressing`, `settled.failed`. */
  readonly work: string
  readonly process: string
  readonly delivery: string
  readonly timers: ReadonlyMap<string, Timer>
  readonly world: World
  readonly notes: Notes
  /** The time of the last event, ms: it grows by one with each. */
  readonly at: number
}

export interface RunOffer extends Offer {
  readonly event: RunEvent | AnyEventObject
  readonly nature: 'command' | 'fact' | 'timer'
  /** The fact speaks of another attempt, generation or epoch, or of an execution that has ended (INV-10). */
  readonly isStale: boolean
}

export interface RunEdge extends Edge<RunNode, RunOffer> {
  readonly effects: readonly Effect[]
  readonly raised: readonly string[]
  /** Transitions of the chart that were taken; empty where they are not traced. */
  readonly taken: readonly string[]
}

export const initialWorld: World = { execution: 'none', isAdmissionAsked: false }

export const initialNotes: Notes = {
  hasProgress: false,
  hasAdvised: false,
  questions: 0,
  result: null,
  isTurnCancelling: false,
  isTurnCancelHeard: false,
  isFinished: false,
  isAdvised: false,
  freeze: null,
  exit: null,
  isForced: false,
  isSuppressed: false,
  askedAt: {},
}

export const viewOf = (snapshot: RunSnapshot) => ({
  snapshot,
  context: snapshot.context,
  work: pathOf(snapshot.value.work),
  process: pathOf(snapshot.value.process),
  delivery: pathOf(snapshot.value.delivery),
})

export const isOpen = ({ work }: RunNode): boolean => work.startsWith('open.')
export const isSettled = ({ work }: RunNode): boolean => work.startsWith('settled.')
/** A turn is open: a prompt was given and its completion has not come. */
export const isTurnOpen = ({ work }: RunNode): boolean =>
  work === 'open.accepted' || work.startsWith('open.active.')
/** An agent is there for the work to speak to. */
export const isAgentUp = ({ world, context }: RunNode): boolean =>
  world.execution === 'up' && context.attempt === context.executionAttempt
export const isEnding = ({ context }: RunNode): boolean => context.intent !== null
const isDelivered = ({ delivery }: RunNode): boolean => delivery === 'delivered' || delivery === 'suppressed'
/** Settled, confirmed and delivered: nothing of the run will ever happen again. */
export const isDone = (node: RunNode): boolean =>
  isSettled(node) && node.process === 'confirmed' && isDelivered(node)
/** States of the process region with an execution behind them. */
const LADDER = ['asking', 'term-sent', 'kill-sent', 'unconfirmed'] as const
const isInLadder = ({ process }: RunNode): boolean => (LADDER as readonly string[]).includes(process)
export const holdsTree = (node: RunNode): boolean =>
  node.process === 'alive' || node.process === 'frozen' || isInLadder(node)
