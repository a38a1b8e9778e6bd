/** What a stop order remembers: its scope, and one line for each run it covers. Plain JSON; times in wall-clock ms. */
import type { Evidence, Survivor } from '../run/run.context.js'

/** What an order covers: every field given must match; `all` matches everything. */
export interface StopScope {
  readonly runIds?: readonly string[]
  readonly session?: string
  readonly task?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly all?: true
}

/** `cancel` ends for good, `interrupt` so that the work may be continued, `terminate` ends what settled work still holds. */
export type EndMode = 'cancel' | 'interrupt' | 'terminate'

/** `pause` and `resume` go the same way, in the user's name: confirmed means that the tree was seen frozen, or goes on. */
export type FreezeMode = 'pause' | 'resume'

export type StopMode = EndMode | FreezeMode

export const isFreezeMode = (mode: StopMode): mode is FreezeMode => mode === 'pause' || mode === 'resume'

export type LineStatus = 'requested' | 'confirmed' | 'unconfirmed' | 'already-terminal' | 'refused'

export interface StopLine {
  readonly runId: string
  readonly status: LineStatus
  /** What became of the run's work, as far as it is known: `cancelled`, `failed-never-started`, `open`. */
  readonly work: string
  readonly evidence?: readonly Evidence[]
  readonly survivors?: readonly Survivor[]
  readonly error?: string
  /** When the run's end was first asked for. */
  readonly requestedAt: number
  readonly confirmedAt?: number
  /** The run was already being ended when this order came. */
  readonly repeated: boolean
  /** The order found something to end: open work, or processes of settled work. */
  readonly isLive: boolean
}

export interface StopOrderInput {
  readonly orderId: string
  readonly scope: StopScope
  readonly mode: StopMode
  readonly force: boolean
  readonly reason: string
  readonly by: string
  readonly isFenced: boolean
  readonly requestedAt: number
}

export interface StopOrderContext extends StopOrderInput {
  readonly lookup: 'complete' | 'incomplete'
  readonly lines: Readonly<Record<string, StopLine>>
  readonly error: string | null
}
