/**
 * The events of one run, as a host sees them: a typed union that ends by itself.
 *
 * Invariants: INV-11 (a listener that does not read loses output, counted, and nothing else).
 */
import type { Evidence, Outcome, RunContext, Survivor } from '../machines/run/run.context.js'
import type { Transition } from './actor-role.js'
import { EventStream } from './event-stream.js'
import type { Containment, OutputStream } from './ports.js'
import { hasConfirmed, hasSettled } from './run-milestones.js'
import type { RunEffect } from '../machines/run/run.effects.js'
import type { RunActor } from './run.actor.js'
import type { RunNews } from './run-turns.js'
import { stateOf } from './run-state.js'
import { turnEndOf } from './turn-end.js'
import type { TurnEnd } from './turn-end.js'

/** The tree of every attempt is proven gone. */
export interface Gone {
  readonly evidence: readonly Evidence[]
  readonly confirmedAt: number
  readonly survivors: readonly Survivor[]
}

export type RunEventOut =
  | { readonly type: 'accepted'; readonly runId: string }
  | {
      readonly type: 'launched'
      readonly runId: string
      readonly attempt: number
      readonly pid: number
      readonly containment: Containment
      /** Where people can see it, when it lives in a terminal pane. */
      readonly pane?: { readonly socket: string; readonly paneId: string }
    }
  | {
      readonly type: 'transition'
      readonly runId: string
      readonly rev: number
      readonly at: number
      readonly event: string
      readonly headline: string
      readonly work: string
      readonly process: string
      readonly delivery: string
    }
  | {
      readonly type: 'output'
      readonly stream: OutputStream
      readonly line: string
      readonly isTruncated: boolean
    }
  /** A frame of the agent's protocol, as it came (`output: 'frames'`). */
  | { readonly type: 'frame'; readonly runId: string; readonly frame: Readonly<Record<string, unknown>> }
  | { readonly type: 'bytes'; readonly stream: OutputStream; readonly chunk: Uint8Array }
  | { readonly type: 'output-ended'; readonly isCut: boolean }
  /** The listener was too slow: this many output events are missing here. */
  | { readonly type: 'dropped'; readonly count: number }
  /** A message for people: `advisory` while it stands, `terminal` with the outcome that it tells of (K5, K8, K9). */
  | {
      readonly type: 'notice'
      readonly runId: string
      readonly kind: 'advisory' | 'terminal'
      readonly text: string
      readonly generation: number
    }
  /** The advisory of that turn stands no longer. */
  | {
      readonly type: 'notice-withdrawn'
      readonly runId: string
      readonly kind: 'advisory'
      readonly generation: number
    }
  | ({ readonly type: 'turn-ended'; readonly runId: string } & TurnEnd)
  | RunNews
  | { readonly type: 'unconfirmed'; readonly runId: string; readonly survivors: readonly Survivor[] }
  | { readonly type: 'settled'; readonly runId: string; readonly outcome: Outcome }
  | ({ readonly type: 'confirmed'; readonly runId: string } & Gone)

/** Whole lines; raw bytes as they come; JSON objects, one a line of stdout, the other lines as they are; or nothing. */
export type OutputForm = 'lines' | 'bytes' | 'frames' | 'none'

export type RunEvents = AsyncIterableIterator<RunEventOut>

/** Null: the line is no JSON object. */
const parseFrame = (line: string): Readonly<Record<string, unknown>> | null => {
  if (!line.startsWith('{')) return null
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>
  } catch {
    return null
  }
}

const transitionEvent = ({ actor, rev, at, event, after }: Transition): RunEventOut => {
  const { headline, work, process, delivery } = stateOf(after)
  return { type: 'transition', runId: actor, rev, at, event: event.type, headline, work, process, delivery }
}

const launchedEvent = (run: RunActor): RunEventOut[] => {
  const identity = run.process?.identity
  const containment = run.process?.containment
  const pane = run.process?.pane
  if (identity == null || containment == null) return []
  return [
    {
      type: 'launched',
      runId: run.id,
      attempt: run.context.executionAttempt,
      pid: identity.pid,
      containment,
      ...(pane?.place == null ? {} : { pane: { socket: pane.socket, paneId: pane.place.paneId } }),
    },
  ]
}

/** What one transition means to a listener, in the order in which it became true. */
export const eventsOfTransition = (run: RunActor, transition: Transition): RunEventOut[] => {
  const context = transition.after.context as RunContext
  const events: RunEventOut[] = [transitionEvent(transition)]
  if (transition.event.type === 'process.launched') events.push(...launchedEvent(run))
  const end = turnEndOf(transition)
  if (end !== null) events.push({ type: 'turn-ended', runId: run.id, ...end })
  for (const effect of transition.effects as readonly RunEffect[]) {
    if (effect.type === 'notice.withdraw')
      events.push({ type: 'notice-withdrawn', runId: run.id, ...effect.params })
    if (effect.type === 'notice.raise') events.push({ type: 'notice', runId: run.id, ...effect.params })
  }
  if (transition.event.type === 'process.survived') {
    events.push({ type: 'unconfirmed', runId: run.id, survivors: context.survivors })
  }
  if (hasSettled(transition) && context.outcome !== null) {
    events.push({ type: 'settled', runId: run.id, outcome: context.outcome })
  }
  if (hasConfirmed(transition)) {
    const { evidence } = context
    events.push({ type: 'confirmed', runId: run.id, evidence, confirmedAt: transition.at, survivors: [] })
  }
  return events
}

/** What a listener who comes late has missed, told from the state. */
const past = (run: RunActor): RunEventOut[] => {
  const { outcome, isConfirmed, evidence } = run.state
  return [
    { type: 'accepted', runId: run.id },
    ...launchedEvent(run),
    ...(outcome === null ? [] : [{ type: 'settled', runId: run.id, outcome } as const]),
    ...(isConfirmed
      ? [
          {
            type: 'confirmed',
            runId: run.id,
            evidence,
            confirmedAt: evidence.at(-1)?.at ?? 0,
            survivors: [],
          } as const,
        ]
      : []),
  ]
}

/** What an agent can make as much of as it likes. */
const DROPPABLE: ReadonlySet<RunEventOut['type']> = new Set(['output', 'bytes', 'frame', 'retrying'])

export const runEventsOf = (run: RunActor, options: { readonly output: OutputForm }): RunEvents => {
  const stops: (() => void)[] = []
  const stream = new EventStream<RunEventOut>({
    isDroppable: ({ type }) => DROPPABLE.has(type),
    droppedEvent: (count) => ({ type: 'dropped', count }),
    onClosed: () => {
      for (const stop of stops) stop()
    },
  })
  const endIfOver = (): void => {
    if (run.state.isDone && run.output.hasEnded) stream.end()
  }
  for (const event of past(run)) stream.push(event)
  run.onLeave(() => {
    stream.end()
  })
  stops.push(
    run.onTransition((transition) => {
      for (const event of eventsOfTransition(run, transition)) stream.push(event)
      endIfOver()
    }),
    run.turns.onNews((news) => {
      stream.push(news)
    }),
    run.output.listen({
      ...(options.output === 'bytes'
        ? { chunk: (from, chunk) => stream.push({ type: 'bytes', stream: from, chunk }) }
        : {}),
      ...(options.output === 'lines' || options.output === 'frames'
        ? {
            line: (from, line, isTruncated) => {
              const frame = options.output === 'frames' && from === 'stdout' ? parseFrame(line) : null
              stream.push(
                frame === null
                  ? { type: 'output', stream: from, line, isTruncated }
                  : { type: 'frame', runId: run.id, frame },
              )
            },
          }
        : {}),
      drained: (isCut) => {
        stream.push({ type: 'output-ended', isCut })
        endIfOver()
      },
    }),
  )
  endIfOver()
  return stream
}
