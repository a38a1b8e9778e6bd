/**
 * The run chart's timers by their ids, and which of them stand still.
 *
 * Whoever hosts the chart asks this after every transition: a timer that stands still keeps what is left of it until it goes on (O7).
 */
import type { RunStateValue } from './run.headline.js'

export const TURN_CANCEL_TIMER = 'turn-cancel'
export const TURN_RETURN_TIMER = 'turn-return'
export const TIME_LIMIT_TIMER = 'time-limit'
const EXIT_GRACE_PREFIX = 'xstate.after.exitGrace.'

/** They measure what the agent does with its time; a stopped agent has none. */
const isTimeOfAgent = (timerId: string): boolean =>
  [TURN_CANCEL_TIMER, TURN_RETURN_TIMER, TIME_LIMIT_TIMER].includes(timerId) ||
  timerId.startsWith(EXIT_GRACE_PREFIX)

/** O7: the agent's time stands still while its tree is frozen; the grace window of the freeze itself goes on. */
export const standsStill = ({ value }: { readonly value: unknown }, timerId: string): boolean =>
  (value as RunStateValue).process === 'frozen' && isTimeOfAgent(timerId)
