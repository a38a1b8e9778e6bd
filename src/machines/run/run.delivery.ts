/**
 * Region `delivery`: has the host been told?
 *
 * Messages in: `work.settled`, the answers of the host's hooks.
 * Invariants: INV-12 (one delivery id; a crash may repeat it, nothing loses it).
 */
import { runSetup } from './run.setup.js'

const ofAttempt = ({ context }: { context: { attempt: number } }) => ({ attempt: context.attempt })

export const deliveryRegion = runSetup.createStateConfig({
  description: 'Has the host been told the outcome?',
  initial: 'pending',
  states: {
    pending: {
      description: 'There is no outcome to deliver yet.',
      on: {
        'work.settled': [
          { guard: 'isSuppressed', target: 'suppressed' },
          { guard: 'hasFinalize', target: 'finalizing' },
          { guard: 'hasDeliver', target: 'delivering' },
          { target: 'delivered' },
        ],
      },
    },
    finalizing: {
      description: "The host's finalize hook runs, within its deadline.",
      entry: { type: 'delivery.finalize', params: ofAttempt },
      on: {
        'run.suppress': { target: 'suppressed', actions: 'noteSuppressed' },
        'delivery.finalized': [{ guard: 'hasDeliver', target: 'delivering' }, { target: 'delivered' }],
      },
      after: {
        finalizeDeadline: [{ guard: 'hasDeliver', target: 'delivering' }, { target: 'delivered' }],
      },
    },
    delivering: {
      description: 'The result is in the outbox; the host has not acknowledged it yet.',
      entry: { type: 'delivery.deliver', params: ofAttempt },
      on: {
        'run.suppress': { target: 'suppressed', actions: 'noteSuppressed' },
        'delivery.acknowledged': { target: 'delivered' },
        'delivery.failed': { target: 'retrying' },
      },
    },
    retrying: {
      description: 'A delivery failed; it is repeated with the same delivery id.',
      entry: 'countFailedDelivery',
      on: {
        'run.suppress': { target: 'suppressed', actions: 'noteSuppressed' },
        'delivery.acknowledged': { target: 'delivered' },
      },
      after: { deliveryRetry: { target: 'delivering' } },
    },
    delivered: { type: 'final', description: 'The host has the outcome.' },
    suppressed: { type: 'final', description: 'The host was shutting down: settled without a delivery.' },
  },
})
