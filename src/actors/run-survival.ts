/** What of a run outlives its engine (R3, R10). Pure. */
import type { RunPolicy } from '../machines/run/run.context.js'
import type { RunState } from './run-state.js'

/** R10: its processes write its log themselves, so that no pipe breaks when the engine dies. */
export const isOnFiles = ({ onRecover }: RunPolicy): boolean => onRecover === 'adopt' || onRecover === 'keep'

/** Nobody has decided to end it. */
const isUnended = ({ intent, outcome }: Pick<RunState, 'intent' | 'outcome'>): boolean =>
  intent === null && outcome === null

/** R3: left alone by who closes, recovers or guards; only a stop reaches it. */
export const isKept = ({ onRecover }: RunPolicy, state: Pick<RunState, 'intent' | 'outcome'>): boolean =>
  onRecover === 'keep' && isUnended(state)

/** There is a process to go on with: the next engine watches it as its own. */
export const isAdoptable = ({ onRecover }: RunPolicy, state: RunState): boolean =>
  onRecover === 'adopt' && isUnended(state) && state.process !== 'waiting'
