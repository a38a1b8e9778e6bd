/** The stop-order chart as a model: every resolution of a scope of two runs, and every answer to every line, in every order. */
import { isDeepStrictEqual } from 'node:util'
import type { SnapshotFrom } from 'xstate'
import { pathOf } from '../../src/machines/run/run.headline.js'
import type {
  LineStatus,
  StopLine,
  StopOrderInput,
} from '../../src/machines/stop-order/stop-order.context.js'
import { stopOrderMachine } from '../../src/machines/stop-order/stop-order.machine.js'
import type { StopOrderEvent } from '../../src/machines/stop-order/stop-order.machine.js'
import type { Check, Edge, Model, Offer } from './explorer.js'
import { onEdge } from './faults.js'
import type { Fault } from './faults.js'
import { PureMachine } from './pure-machine.js'

export type StopOrderSnapshot = SnapshotFrom<typeof stopOrderMachine>

export interface StopOrderNode {
  readonly snapshot: StopOrderSnapshot
  readonly state: string
  readonly lines: readonly StopLine[]
}

export interface StopOrderOffer extends Offer {
  readonly event: StopOrderEvent
}

type StopOrderEdge = Edge<StopOrderNode, StopOrderOffer>

const INPUT: StopOrderInput = {
  orderId: 'o1',
  scope: { session: 's1' },
  mode: 'cancel',
  force: false,
  reason: 'because',
  by: 'tester',
  isFenced: true,
  requestedAt: 1,
}

interface Kind {
  readonly name: string
  readonly status: LineStatus
  readonly isLive: boolean
}

const KINDS: readonly Kind[] = [
  { name: 'requested', status: 'requested', isLive: true },
  { name: 'confirmed', status: 'confirmed', isLive: true },
  { name: 'unconfirmed', status: 'unconfirmed', isLive: true },
  { name: 'ended by itself', status: 'already-terminal', isLive: true },
  { name: 'long done', status: 'already-terminal', isLive: false },
  { name: 'refused', status: 'refused', isLive: true },
]

const lineOf = (runId: string, { status, isLive }: Kind): StopLine => ({
  runId,
  status,
  work: 'open',
  requestedAt: 1,
  repeated: false,
  isLive,
})

const dispatches = (): StopOrderOffer[] => {
  const first = [null, ...KINDS]
  const scopes = first.flatMap((one) => first.map((two) => ({ one, two })))
  return (['complete', 'incomplete'] as const).flatMap((lookup) =>
    scopes.map(({ one, two }) => ({
      label: `order.dispatched [${one?.name ?? '-'}, ${two?.name ?? '-'}] ${lookup}`,
      event: {
        type: 'order.dispatched' as const,
        at: 2,
        lookup,
        lines: [...(one === null ? [] : [lineOf('r1', one)]), ...(two === null ? [] : [lineOf('r2', two)])],
      },
    })),
  )
}

const answers = (): StopOrderOffer[] =>
  ['r1', 'r2', 'r3'].flatMap((runId) =>
    KINDS.map((kind) => ({
      label: `line.answered ${runId} ${kind.name}`,
      event: { type: 'line.answered' as const, at: 3, line: lineOf(runId, kind) },
    })),
  )

const OFFERS: readonly StopOrderOffer[] = [
  ...dispatches(),
  ...answers(),
  { label: 'order.refused', event: { type: 'order.refused', at: 2, error: 'unknown run' } },
]

const EVENTS = ['order.dispatched', 'line.answered', 'order.refused']

export const isSettled = ({ state }: StopOrderNode): boolean => state.startsWith('settled.')
const isAnswered = ({ status }: StopLine): boolean => status !== 'requested'
const isQuiet = ({ status, isLive }: StopLine): boolean => status === 'already-terminal' && !isLive
const isProven = ({ status }: StopLine): boolean => status === 'confirmed' || status === 'already-terminal'

const isInert = ({ before, after }: StopOrderEdge): boolean =>
  after.state === before.state && isDeepStrictEqual(after.snapshot.context, before.snapshot.context)

/** An order that was not refused as a whole, and has its verdict. */
const isJudged = (node: StopOrderNode): boolean => isSettled(node) && node.snapshot.context.error === null

/** The verdict on lines that have all been answered. */
const verdictOf = ({ lines, snapshot }: StopOrderNode): string => {
  if (lines.every(isQuiet) && snapshot.context.lookup === 'complete') return 'settled.nothing-to-stop'
  if (lines.length > 0 && lines.every(({ status }) => status === 'refused')) return 'settled.refused'
  const isSure = lines.every(isProven) && !lines.every(isQuiet)
  return isSure ? 'settled.confirmed' : 'settled.unconfirmed'
}

const claim = (id: string, text: string, holds: (edge: StopOrderEdge) => boolean): Check<StopOrderEdge> =>
  onEdge(id, text, EVENTS, holds)

export const stopOrderChecks: readonly Check<StopOrderEdge>[] = [
  claim('INV-11', 'a line that was answered never changes, and no line is lost', ({ before, after }) => {
    const now = after.snapshot.context.lines
    return (
      before.lines.every((line) => isDeepStrictEqual(now[line.runId], line) || !isAnswered(line)) &&
      before.lines.every(({ runId }) => now[runId] !== undefined)
    )
  }),
  claim(
    'INV-11',
    'the first answer of an open line is taken, an answer for no line of the order is not',
    (edge) => {
      const { before, after, offer } = edge
      if (offer.event.type !== 'line.answered') return true
      const { line } = offer.event
      const known = before.snapshot.context.lines[line.runId]
      if (before.state !== 'dispatched' || known === undefined || isAnswered(known)) return isInert(edge)
      return isDeepStrictEqual(after.snapshot.context.lines[line.runId], line)
    },
  ),
  claim('INV-3', 'a settled order takes no event', (edge) => !isSettled(edge.before) || isInert(edge)),
  claim('K15', 'an order settles when every line is answered, and not before', ({ after }) => {
    const isDue = after.state !== 'recorded' && after.lines.every(isAnswered)
    return isDue === isSettled(after) || after.snapshot.context.error !== null
  }),
  claim('K15', 'a lookup that failed is never nothing to stop', ({ after }) => {
    return after.state !== 'settled.nothing-to-stop' || after.snapshot.context.lookup === 'complete'
  }),
  claim('K15', 'the scope is resolved once, as it was found', (edge) => {
    const { before, after, offer } = edge
    if (offer.event.type !== 'order.dispatched') return true
    if (before.state !== 'recorded') return isInert(edge)
    const { lines, lookup } = offer.event
    return after.snapshot.context.lookup === lookup && isDeepStrictEqual(after.lines, lines)
  }),
  claim(
    'P16',
    'an order that is refused as a whole says why, and only before its scope is resolved',
    (edge) => {
      const { before, after, offer } = edge
      if (offer.event.type !== 'order.refused') return true
      if (before.state !== 'recorded') return isInert(edge)
      return after.state === 'settled.refused' && after.snapshot.context.error === 'unknown run'
    },
  ),
  claim('INV-5', 'confirmed is said only where each run it covered is proven gone', ({ after }) => {
    return after.state !== 'settled.confirmed' || after.lines.every(isProven)
  }),
  claim('K14', 'the verdict tells nothing to stop, confirmed, unconfirmed and refused apart', ({ after }) => {
    return !isJudged(after) || after.state === verdictOf(after)
  }),
]

export const stopOrderModel = (fault?: Fault): Model<StopOrderNode, StopOrderOffer, StopOrderEdge> => {
  const pure = new PureMachine<StopOrderSnapshot, StopOrderEvent>(fault?.machine ?? stopOrderMachine, INPUT, {
    isTraced: false,
  })
  const nodeOf = (snapshot: StopOrderSnapshot): StopOrderNode => ({
    snapshot,
    state: pathOf(snapshot.value),
    lines: Object.values(snapshot.context.lines),
  })
  return {
    name: 'stop-order',
    initial: nodeOf(pure.first().snapshot),
    checks: stopOrderChecks,
    keyOf: ({ state, lines, snapshot: { context } }) =>
      [
        state,
        context.lookup,
        context.error,
        ...lines.map((line) => `${line.runId} ${line.status} ${line.isLive}`),
      ].join(' | '),
    offersAt: () => OFFERS,
    take: (before, offer) => {
      const { snapshot } = pure.next(before.snapshot, offer.event)
      return { before, offer, after: snapshot === before.snapshot ? before : nodeOf(snapshot) }
    },
  }
}
