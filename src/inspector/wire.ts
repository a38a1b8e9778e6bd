/**
 * What goes over the wire between the server and the page, as types alone. Times are wall-clock ms of the server.
 */
import type { RunHistory, RunProcess, RunSummary, RunTimer, StopReceipt, TransitionRecord } from '../index.js'

/** One row of the fleet. `pulse`: pieces of progress in each of the last intervals, the oldest first. */
export interface FleetRow extends RunSummary {
  readonly pulse: readonly number[]
}

export interface Hello {
  readonly version: string
  readonly isReadOnly: boolean
  /** How long one interval of a pulse is. */
  readonly pulseMs: number
  readonly runsMax: number
}

export interface FleetUpdate {
  readonly now: number
  /** Everything there is, instead of what changed. */
  readonly isWhole: boolean
  readonly rows: readonly FleetRow[]
  readonly gone: readonly string[]
}

export type Execution = Omit<RunHistory['executions'][number], 'marks'>

export interface RunUpdate {
  readonly now: number
  readonly run: RunHistory['run']
  readonly executions: readonly Execution[]
  /** New rows of the journal, and those whose effects were done since. */
  readonly transitions: readonly TransitionRecord[]
  readonly orders: RunHistory['orders']
  readonly notices: RunHistory['notices']
  readonly timers: readonly RunTimer[]
  readonly policy: RunHistory['policy']
}

export interface ProcessesUpdate {
  readonly now: number
  readonly processes: readonly RunProcess[]
  /** Why they cannot be seen, if so: unknown is not empty. */
  readonly problem: string | null
}

export type LogUpdate =
  | {
      readonly kind: 'text'
      readonly pieces: readonly { readonly stream: 'stdout' | 'stderr'; readonly text: string }[]
    }
  | { readonly kind: 'gap' }
  | { readonly kind: 'end' }
  | { readonly kind: 'none'; readonly reason: string }

export const ACTS = ['pause', 'resume', 'interrupt', 'cancel', 'force'] as const
export type Act = (typeof ACTS)[number]

export interface ActRequest {
  readonly run: string
  readonly act: Act
  readonly reason?: string
}

export type ActAnswer =
  { readonly receipt: StopReceipt } | { readonly error: { readonly code: string; readonly message: string } }
