/**
 * The runs of an engine that closes: what becomes of them, and when there is nothing more to wait for.
 *
 * Invariants: INV-4 (what is left is named), O10, R3 (a kept run stays), P18 (what is suppressed is so before anything ends).
 */
import type { ClosePolicy } from '../machines/registry/registry.machine.js'
import type { StopRequest } from './registry-contract.js'
import type { RunActor } from './run.actor.js'
import { isKept } from './run-survival.js'

type Runs = ReadonlyMap<string, RunActor>

/** R3: what is kept outlives its engine, however that ends. */
const staysBehind = ({ policy, state }: RunActor): boolean => isKept(policy, state)

/** Nothing of it is left on the machine, and its outcome is on record. */
const isEnded = ({ state }: RunActor): boolean => state.isSettled && state.isConfirmed

/** The host's hooks are at it; what waits to be repeated, or for a hook that is not here, is the next engine's. */
const isBeingDelivered = ({ state, environment }: RunActor): boolean =>
  (state.delivery === 'finalizing' && environment.deliveries.canFinalize) ||
  (state.delivery === 'delivering' && environment.deliveries.canDeliver)

/** What a policy asks of the runs that are held: suppresses their deliveries at once, and says whom to stop how. */
export const closingOrder = (
  runs: Runs,
  policy: ClosePolicy,
): { readonly runIds: readonly string[]; readonly request: StopRequest } => {
  const order = { force: false, reason: 'engine closing', by: 'engine' }
  if (policy === 'suppress')
    for (const run of runs.values()) if (!staysBehind(run)) void run.post({ type: 'run.suppress', ...order })
  const mode = policy === 'cancel' ? 'cancel' : 'interrupt'
  return {
    runIds: policy === 'leave' ? [] : endedAtClose(runs),
    request: { mode, ...order, isFenced: false, timeoutMs: undefined },
  }
}

const endedAtClose = (runs: Runs): readonly string[] =>
  [...runs.values()].filter((run) => !isEnded(run) && !staysBehind(run)).map(({ id }) => id)

/** Every run is over or kept, and no hook of the host's is at work. */
export const hasNothingToWaitFor = (runs: Runs): boolean =>
  [...runs.values()].every((run) => staysBehind(run) || (isEnded(run) && !isBeingDelivered(run)))

/** The runs that this engine is responsible for still. */
export const leftOf = (runs: Runs): readonly string[] =>
  [...runs.values()].filter((run) => !isEnded(run)).map(({ id }) => id)
