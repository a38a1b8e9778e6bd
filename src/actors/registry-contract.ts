/** What the registry is asked, and what it needs of the engine around it. */
import type { StopLine, StopMode } from '../machines/stop-order/stop-order.context.js'
import type { RunActor } from './run.actor.js'
import type { OwnedElsewhere, StopCall } from './stop-call.js'
import type { EngineRow, StorePort } from './store.ports.js'

export interface StopRequest {
  readonly mode: StopMode
  readonly force: boolean
  readonly reason: string
  readonly by: string
  /** Refuse launches in the scope until the order settles. */
  readonly isFenced: boolean
  /** Undefined: the length of the longest ladder, and `LADDER_SLACK_MS`. */
  readonly timeoutMs: number | undefined
}

/** What a scope holds besides the runs that this engine holds. */
export interface Elsewhere {
  /** Taken over from dead engines, and held here now. */
  readonly takenOver: readonly RunActor[]
  readonly owned: readonly OwnedElsewhere[]
  /** Lines that need no waiting: of runs that are done, and of those that cannot be taken. */
  readonly answered: readonly StopLine[]
}

export interface RegistryOptions {
  readonly engine: EngineRow
  readonly newId: () => string
  /** Rejects when the store cannot be read. */
  readonly findElsewhere: (call: StopCall) => Promise<Elsewhere>
  /** The same for parts of its runs, which the call's own scope does not name. */
  readonly findPartsElsewhere: (runIds: readonly string[], call: StopCall) => Promise<Elsewhere>
  /** Parts of these runs that are to end with them, wherever they are; the youngest first. Rejects when the store cannot be read. */
  readonly childrenOf: StorePort['childrenOf']
  /** Feeds the answers of other engines to a call, until it is over. */
  readonly followElsewhere: (call: StopCall) => () => void
}

export interface RunIdentity {
  readonly runId: string
  readonly session: string | undefined
  readonly task: string | undefined
  readonly labels: Readonly<Record<string, string>>
}
