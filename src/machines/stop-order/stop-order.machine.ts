/**
 * The stop-order chart: one request to end what a scope holds, from its record to its receipt.
 *
 * Owns: which runs the order covers and the answer of each.
 * Does not own: how a run ends (the run chart) and who may ask (the registry).
 * Invariants: INV-11 (a line that was answered never changes), K15, K18.
 */
import { assign, setup } from 'xstate'
import type { StopLine, StopOrderContext, StopOrderInput } from './stop-order.context.js'

export const STOP_ORDER_MACHINE_VERSION = 1

export type StopOrderEvent =
  | {
      readonly type: 'order.dispatched'
      readonly at: number
      readonly lines: readonly StopLine[]
      readonly lookup: 'complete' | 'incomplete'
    }
  | { readonly type: 'line.answered'; readonly at: number; readonly line: StopLine }
  | { readonly type: 'order.refused'; readonly at: number; readonly error: string }

/** A line without a final answer keeps the order open. */
const isAnswered = (line: StopLine): boolean => line.status !== 'requested'

const linesOf = (context: StopOrderContext): StopLine[] => Object.values(context.lines)

const byRun = (lines: readonly StopLine[]) => Object.fromEntries(lines.map((line) => [line.runId, line]))

const stopOrderSetup = setup({
  types: {
    context: {} as StopOrderContext,
    events: {} as StopOrderEvent,
    input: {} as StopOrderInput,
  },
  guards: {
    /** K15: a lookup that failed is never nothing to stop. */
    isEveryLineQuiet: ({ context }) =>
      context.lookup === 'complete' &&
      linesOf(context).every(({ status, isLive }) => status === 'already-terminal' && !isLive),
    isEveryLineAnswered: ({ context }) => linesOf(context).every(isAnswered),
    /** INV-5: a run that refused, or that a failed lookup may have missed, is not proven gone. */
    hasUnproven: ({ context }) =>
      linesOf(context).some(({ status }) => status === 'unconfirmed' || status === 'refused') ||
      linesOf(context).every(({ isLive }) => !isLive),
    hasOnlyRefusals: ({ context }) =>
      linesOf(context).length > 0 && linesOf(context).every(({ status }) => status === 'refused'),
    /** INV-11: the first answer of a line stands. */
    isOpenLine: ({ context, event }) =>
      event.type === 'line.answered' && context.lines[event.line.runId]?.status === 'requested',
  },
  actions: {
    takeLines: assign(({ event }) =>
      event.type === 'order.dispatched' ? { lines: byRun(event.lines), lookup: event.lookup } : {},
    ),
    takeAnswer: assign(({ context, event }) =>
      event.type === 'line.answered' ? { lines: { ...context.lines, [event.line.runId]: event.line } } : {},
    ),
    takeError: assign(({ event }) => (event.type === 'order.refused' ? { error: event.error } : {})),
  },
})

export const stopOrderMachine = stopOrderSetup.createMachine({
  id: 'stop-order',
  version: String(STOP_ORDER_MACHINE_VERSION),
  description: 'One request to end what a scope holds, from its record to its receipt.',
  context: ({ input }) => ({ ...input, lookup: 'complete', lines: {}, error: null }),
  initial: 'recorded',
  states: {
    recorded: {
      description: 'The order is on record; its scope is being resolved.',
      on: {
        'order.dispatched': { target: 'dispatched', actions: 'takeLines' },
        'order.refused': { target: 'settled.refused', actions: 'takeError' },
      },
    },
    dispatched: {
      description: 'Every run it covers has been told; answers are awaited.',
      always: [
        { guard: 'isEveryLineQuiet', target: 'settled.nothing-to-stop' },
        { guard: 'hasOnlyRefusals', target: 'settled.refused' },
        { guard: 'isEveryLineAnswered', target: 'settled' },
      ],
      on: { 'line.answered': { guard: 'isOpenLine', actions: 'takeAnswer' } },
    },
    settled: {
      description: 'Every run has its answer. Takes no event.',
      initial: 'judging',
      states: {
        judging: {
          description: 'One unconfirmed run makes the order unconfirmed.',
          always: [{ guard: 'hasUnproven', target: 'unconfirmed' }, { target: 'confirmed' }],
        },
        confirmed: { type: 'final', description: 'Every tree it covered is proven gone.' },
        unconfirmed: { type: 'final', description: 'A tree outlived its deadline; survivors are named.' },
        'nothing-to-stop': { type: 'final', description: 'The scope held nothing.' },
        refused: { type: 'final', description: 'No run it named may be stopped this way.' },
      },
    },
  },
  options: { maxIterations: 1000 },
})
