/** When a turn is open, and how it ended: read from the run's transitions. Pure. */
import type { RunContext } from '../machines/run/run.context.js'
import type { RunEvent } from '../machines/run/run.events.js'
import { pathOf } from '../machines/run/run.headline.js'
import type { Transition } from './actor-role.js'

/** How one turn ended. */
export interface TurnEnd {
  /** The number of the turn in its run (K11). */
  readonly generation: number
  /** `failed`: the agent said so. `abandoned`: the run ended, or is being ended, before its agent said anything. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'abandoned'
  /** The agent's answer, where its protocol tells one. */
  readonly text?: string
  /** Why a turn was abandoned. */
  readonly message?: string
}

interface Snapshot {
  readonly value: unknown
  readonly context: unknown
}

const workOf = ({ value }: Snapshot): string => pathOf((value as { readonly work: unknown }).work)

/** A prompt was given, or is about to be, and the turn has not ended. */
export const isTurnOpenAt = (work: string): boolean =>
  work === 'open.accepted' || work.startsWith('open.active.')

export const isTurnOpenIn = (snapshot: Snapshot): boolean => isTurnOpenAt(workOf(snapshot))

/** No turn is open, and the agent takes the next prompt. */
export const isReadyIn = (snapshot: Snapshot): boolean => workOf(snapshot) === 'open.ready'

/** Null: this transition ended no turn. */
export const turnEndOf = ({ before, after, event }: Transition): TurnEnd | null => {
  if (before === null || !isTurnOpenIn(before) || isTurnOpenIn(after)) return null
  const { generation } = before.context as RunContext
  const { intent, outcome } = after.context as RunContext
  const fact = event as unknown as RunEvent
  switch (fact.type) {
    case 'turn.completed': {
      const { isOk, text } = fact.result
      return { generation, status: isOk ? 'completed' : 'failed', ...(text === undefined ? {} : { text }) }
    }
    // K13: asked for, it ends a turn by itself only when no agent had it yet.
    case 'turn.cancel':
    case 'turn.cancelled':
      return { generation, status: 'cancelled' }
    case 'watchdog.completion-silent':
      // K10: the agent had said that it is done.
      return { generation, status: 'completed' }
    default:
      // K13: the agent died of what it was to end, and the next one does not get it.
      if (isReadyIn(after)) return { generation, status: 'cancelled' }
      return {
        generation,
        status: 'abandoned',
        message: outcome?.message ?? intent?.reason ?? 'the run ended',
      }
  }
}
