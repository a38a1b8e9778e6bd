/**
 * The parts of a run: what is ended with it, on the same order, in the same receipt.
 *
 * Owns: who belongs to whom, and the order: a parent first, so that it starts no more, then its parts, the youngest first.
 * Does not own: how each is ended. A part that was started with `onParentCancel: 'keep'` is not one for this purpose.
 * Invariants: INV-11 (generations have a maximum).
 */
import type { Elsewhere, RegistryOptions } from './registry-contract.js'
import type { RunActor } from './run.actor.js'
import type { StopCall } from './stop-call.js'

const GENERATIONS_MAX = 64

export const isPartOf = ({ row }: RunActor, call: StopCall): boolean =>
  call.reachesParts && row.parent !== null && row.onParentCancel === 'cancel' && call.covers(row.parent)

const youngestFirst = (one: RunActor, other: RunActor): number =>
  other.row.createdAt - one.row.createdAt || (other.id < one.id ? -1 : 1)

/** Tells the parts, held here, of whatever the call covers. */
export const tellParts = (call: StopCall, runs: ReadonlyMap<string, RunActor>): void => {
  for (let generation = 0; generation < GENERATIONS_MAX; generation += 1) {
    const parts = [...runs.values()].filter((run) => isPartOf(run, call) && !call.covers(run.id))
    if (parts.length === 0) return
    for (const run of parts.sort(youngestFirst)) call.tell(run)
  }
}

/** The parts that are not held here, or whose parents are not; those held here are told. Rejects when the store cannot be read. */
export const findParts = async (
  call: StopCall,
  first: Elsewhere,
  runs: ReadonlyMap<string, RunActor>,
  { childrenOf, findPartsElsewhere }: RegistryOptions,
): Promise<Elsewhere> => {
  const found = { takenOver: [...first.takenOver], owned: [...first.owned], answered: [...first.answered] }
  if (!call.reachesParts) return found
  const idsOf = ({ takenOver, owned, answered }: Elsewhere): string[] => [
    ...takenOver.map(({ id }) => id),
    ...[...owned, ...answered].map(({ runId }) => runId),
  ]
  const known = new Set([...call.covered, ...idsOf(first)])
  let parents = [...known]
  for (let generation = 0; parents.length > 0 && generation < GENERATIONS_MAX; generation += 1) {
    const parts = (await childrenOf(parents)).filter(({ runId }) => !known.has(runId))
    for (const { runId } of parts) known.add(runId)
    // One that is done has nothing to end, and may have parts that go on.
    const open = parts.filter(({ isDone }) => !isDone).map(({ runId }) => runId)
    const held = new Map(open.flatMap((runId) => runs.get(runId) ?? []).map((run) => [run.id, run]))
    for (const run of held.values()) call.tell(run)
    const away = open.filter((runId) => !held.has(runId))
    if (away.length > 0) {
      const next = await findPartsElsewhere(away, call)
      found.takenOver.push(...next.takenOver)
      found.owned.push(...next.owned)
      found.answered.push(...next.answered)
    }
    parents = parts.map(({ runId }) => runId)
  }
  return found
}
