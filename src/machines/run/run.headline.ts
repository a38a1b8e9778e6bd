/** One word for people, computed from the three regions. */
import type { FreezeReport } from './run.context.js'

export interface RunStateValue {
  readonly work: WorkState
  readonly process: string
  readonly delivery: string
}
type WorkState = { readonly open: string | { readonly active: string } } | { readonly settled: string }

const LADDER = ['asking', 'term-sent', 'kill-sent', 'unconfirmed']

/** `open.active.progressing`, `settled.cancelled`: the state of a region as one path. */
export const pathOf = (value: unknown): string => {
  if (typeof value === 'string') return value
  const [entry] = Object.entries(value as Record<string, unknown>)
  return entry === undefined ? '' : `${entry[0]}.${pathOf(entry[1])}`
}

export const isSettled = (value: RunStateValue): boolean => 'settled' in value.work
export const isConfirmed = (value: RunStateValue): boolean => value.process === 'confirmed'
const isDelivered = (value: RunStateValue): boolean =>
  value.delivery === 'delivered' || value.delivery === 'suppressed'
/** Settled, confirmed and delivered: nothing of the run will ever happen again. */
export const isDone = (value: RunStateValue): boolean =>
  isSettled(value) && isConfirmed(value) && isDelivered(value)
const isInLadder = (value: RunStateValue): boolean => LADDER.includes(value.process)

export const headlineOf = (value: RunStateValue, freezeReport?: FreezeReport | null): string => {
  if ('settled' in value.work) {
    if (isConfirmed(value)) return value.work.settled
    return `${value.work.settled} (${value.process === 'unconfirmed' ? 'unconfirmed' : 'stopping'})`
  }
  if (isInLadder(value)) return value.process
  // O1: a tree of which something runs is not called frozen without a word.
  if (value.process === 'frozen') return freezeReport?.isComplete === false ? 'paused (incomplete)' : 'paused'
  const open = value.work.open
  if (typeof open === 'string') return open
  return open.active === 'progressing' ? 'active' : open.active
}
