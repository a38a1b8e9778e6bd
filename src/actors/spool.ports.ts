/** What the actors need of a spool: a place of its own for transitions that the store does not take. */
import type { ActorWrite } from './store.ports.js'

/** Where transitions are kept while the store does not answer. */
export interface SpoolPort {
  /** Appends and syncs; rejects when even that cannot be done. */
  append(write: ActorWrite): Promise<void>
  /** Hands the spooled writes of abandoned engines to `replay`, oldest first, and removes each spool when all of it was taken. */
  drain(
    isAbandoned: (engineId: string) => Promise<boolean>,
    replay: (write: ActorWrite) => Promise<void>,
  ): Promise<number>
  /** The store has everything: this engine's own spool is not needed any more. */
  discard(): void
}
