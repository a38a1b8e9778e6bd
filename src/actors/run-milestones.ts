/** Which transitions of a run are its milestones. Pure. */
import { isConfirmed, isSettled } from '../machines/run/run.headline.js'
import type { RunStateValue } from '../machines/run/run.headline.js'
import type { Transition } from './actor-role.js'

const settledIn = (snapshot: { readonly value: unknown } | null): boolean =>
  snapshot !== null && isSettled(snapshot.value as RunStateValue)

export const hasSettled = ({ before, after }: Transition): boolean => settledIn(after) && !settledIn(before)

export const hasConfirmed = ({ before, after }: Transition): boolean =>
  isConfirmed(after.value as RunStateValue) &&
  (before === null || !isConfirmed(before.value as RunStateValue))
