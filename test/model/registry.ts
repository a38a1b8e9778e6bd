/** The registry chart as a model: every order of recovery, stop orders with and without fences, closing and its deadline. */
import { isDeepStrictEqual } from 'node:util'
import type { AnyEventObject, SnapshotFrom } from 'xstate'
import { admits, registryMachine } from '../../src/machines/registry/registry.machine.js'
import type { RegistryEvent } from '../../src/machines/registry/registry.machine.js'
import type { Check, Edge, Model, Offer } from './explorer.js'
import { losing, onEdge } from './faults.js'
import type { Fault } from './faults.js'
import { PureMachine } from './pure-machine.js'
import type { Effect, Timer } from './pure-machine.js'

type RegistrySnapshot = SnapshotFrom<typeof registryMachine>

export interface RegistryNode {
  readonly snapshot: RegistrySnapshot
  readonly state: string
  readonly timers: ReadonlyMap<string, Timer>
  /** Fenced orders that were recorded and not settled, kept from the events alone. */
  readonly fences: readonly string[]
}

export interface RegistryOffer extends Offer {
  readonly event: RegistryEvent | AnyEventObject
}

interface RegistryEdge extends Edge<RegistryNode, RegistryOffer> {
  readonly effects: readonly Effect[]
}

const DEADLINE = 'xstate.after.closeDeadline.registry.draining'
const SESSIONS = ['s1', 's2']

const orders = (): RegistryOffer[] =>
  SESSIONS.flatMap((session) => [
    {
      label: `order.recorded ${session}`,
      event: { type: 'order.recorded', at: 1, orderId: session, fence: { session } },
    },
    {
      label: `order.recorded ${session} unfenced`,
      event: { type: 'order.recorded', at: 1, orderId: `${session}-open` },
    },
    { label: `order.settled ${session}`, event: { type: 'order.settled', at: 2, orderId: session } },
  ])

const closings = (): RegistryOffer[] =>
  (['interrupt', 'cancel', 'leave'] as const).map((runs, index) => ({
    label: `registry.close ${runs}`,
    event: { type: 'registry.close', at: 3, runs, deadlineMs: 1_000 + index },
  }))

const OFFERS: readonly RegistryOffer[] = [
  ...orders(),
  ...closings(),
  { label: 'registry.recovered', event: { type: 'registry.recovered', at: 0 } },
  { label: 'registry.emptied', event: { type: 'registry.emptied', at: 4, left: [] } },
  { label: 'registry.emptied leaving r1', event: { type: 'registry.emptied', at: 4, left: ['r1'] } },
]

const EVENTS = [...new Set(OFFERS.map(({ event }) => event.type)), DEADLINE]

const isInert = ({ before, after, effects }: RegistryEdge): boolean =>
  effects.length === 0 &&
  after.state === before.state &&
  isDeepStrictEqual(after.snapshot.context, before.snapshot.context)

/** The state that each event leads to, from the chart's description. */
const nextState = ({ state }: RegistryNode, type: string): string => {
  if (type === 'registry.recovered' && state === 'recovering') return 'open'
  if (type === 'registry.close' && (state === 'recovering' || state === 'open')) return 'draining'
  return type === 'registry.emptied' && state === 'draining' ? 'closed' : state
}

const verdictOf = ({ state, fences }: RegistryNode, session: string): string => {
  if (state === 'recovering') return 'waiting'
  if (state !== 'open') return 'engine-closing'
  return fences.includes(session) ? 'scope-stopped' : 'admitted'
}

const claim = (id: string, text: string, holds: (edge: RegistryEdge) => boolean): Check<RegistryEdge> =>
  onEdge(id, text, EVENTS, holds)

export const registryChecks: readonly Check<RegistryEdge>[] = [
  claim(
    'INV-7',
    'a launch is admitted in an open registry outside every fence, and nowhere else',
    ({ after }) => {
      const { context, value } = after.snapshot
      return SESSIONS.every((session) => {
        return admits({ value, context }, { runId: 'r1', session }) === verdictOf(after, session)
      })
    },
  ),
  claim('K16', 'a fence stands from the record of its order to its settlement', ({ after }) => {
    return isDeepStrictEqual(Object.keys(after.snapshot.context.fences).sort(), [...after.fences].sort())
  }),
  claim('O10', 'closed comes after draining, and draining after a call to close', (edge) => {
    return edge.after.state === nextState(edge.before, edge.offer.event.type)
  }),
  claim(
    'O10',
    'draining begins with what the host chose for its runs, once',
    ({ before, after, effects, offer }) => {
      const stops = effects.filter(({ type }) => type === 'runs.stop')
      if (after.state !== 'draining' || before.state === 'draining') return stops.length === 0
      const { runs, deadlineMs } = offer.event as { runs: string; deadlineMs: number }
      const isKept = isDeepStrictEqual(after.snapshot.context.closing, { runs, deadlineMs })
      return isKept && isDeepStrictEqual(stops, [{ type: 'runs.stop', params: { mode: runs } }])
    },
  ),
  claim(
    'INV-11',
    'closing has the deadline that the host gave, and no other wait has one',
    ({ before, after }) => {
      const timer = after.timers.get(DEADLINE)
      if (after.state !== 'draining') return after.timers.size === 0
      const isKept = before.state === 'draining' && timer === before.timers.get(DEADLINE)
      const isFired = timer === undefined && before.state === 'draining'
      return isKept || isFired || timer?.delayMs === after.snapshot.context.closing?.deadlineMs
    },
  ),
  claim(
    'O10',
    'at the deadline the survivors are named, and the engine is still held until nothing is left',
    (edge) => {
      if (edge.offer.event.type !== DEADLINE)
        return !edge.effects.some(({ type }) => type === 'runs.name-survivors')
      return (
        edge.after.state === 'draining' &&
        isDeepStrictEqual(edge.effects, [{ type: 'runs.name-survivors', params: {} }])
      )
    },
  ),
  claim('O10', 'what was left at the end is kept', ({ before, after, offer }) => {
    if (before.state !== 'draining' || offer.event.type !== 'registry.emptied') return true
    return isDeepStrictEqual(after.snapshot.context.left, (offer.event as AnyEventObject)['left'])
  }),
  claim(
    'INV-3',
    'a closed registry takes no event',
    (edge) => edge.before.state !== 'closed' || isInert(edge),
  ),
]

const fencesAfter = ({ fences, state }: RegistryNode, event: AnyEventObject): readonly string[] => {
  if (state === 'closed') return fences
  const { orderId } = event as { orderId?: string }
  if (event.type === 'order.recorded' && 'fence' in event && orderId !== undefined)
    return [...new Set([...fences, orderId])]
  return event.type === 'order.settled' ? fences.filter((fence) => fence !== orderId) : fences
}

const timersAfter = (
  before: RegistryNode['timers'],
  fired: string,
  set: readonly Timer[],
  cleared: readonly string[],
) => {
  const timers = new Map(before)
  for (const id of [fired, ...cleared]) timers.delete(id)
  for (const timer of set) timers.set(timer.id, timer)
  return timers
}

export const registryModel = (fault?: Fault): Model<RegistryNode, RegistryOffer, RegistryEdge> => {
  const input = { engineId: 'e1' }
  const pure = new PureMachine<RegistrySnapshot, RegistryEvent | AnyEventObject>(
    fault?.machine ?? registryMachine,
    input,
    {
      isTraced: false,
    },
  )
  const first = pure.first().snapshot
  return {
    name: 'registry',
    initial: { snapshot: first, state: first.value, timers: new Map(), fences: [] },
    checks: registryChecks,
    keyOf: ({ state, timers, fences, snapshot: { context } }) =>
      JSON.stringify([
        state,
        [...timers.keys()],
        [...fences].sort(),
        Object.keys(context.fences).sort(),
        context.closing,
        context.left,
      ]),
    offersAt: ({ timers }) => [
      ...OFFERS,
      ...[...timers.values()].map(({ event }) => ({
        label: 'after closeDeadline',
        event: { ...event, at: 5 },
      })),
    ],
    take: (before, offer) => {
      const step = pure.next(before.snapshot, offer.event)
      const { snapshot } = step
      const timers = timersAfter(before.timers, offer.event.type, step.timersSet, step.timersCleared)
      const after = { snapshot, state: snapshot.value, timers, fences: fencesAfter(before, offer.event) }
      return { before, offer, after, effects: losing(step.effects, fault?.lostEffect) }
    },
  }
}
