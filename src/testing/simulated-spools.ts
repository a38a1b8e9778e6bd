/** Where the engines of a simulation keep what their store does not take. */
import type { SpoolPort } from '../actors/spool.ports.js'
import type { ActorWrite } from '../actors/store.ports.js'
import { RunwardenError } from '../errors.js'

export class SimulatedSpools {
  /** The disk is full: nothing can be appended. */
  isFull = false
  /** Called with each write that an engine wants to keep. */
  onAppend: (write: ActorWrite) => void = () => undefined
  readonly #spools = new Map<string, ActorWrite[]>()

  of(engineId: string): SpoolPort {
    return {
      append: (write) => {
        this.onAppend(write)
        if (this.isFull) return Promise.reject(new RunwardenError('store-unavailable', 'the disk is full'))
        // As a file has it: what happens to the objects later changes nothing.
        const kept = structuredClone(write)
        this.#spools.set(engineId, [...(this.#spools.get(engineId) ?? []), kept])
        return Promise.resolve()
      },
      drain: async (isAbandoned, replay) => {
        let count = 0
        for (const [id, writes] of [...this.#spools]) {
          if (!(await isAbandoned(id))) continue
          for (const write of writes) await replay(write)
          count += writes.length
          this.#spools.delete(id)
        }
        return count
      },
      discard: () => void this.#spools.delete(engineId),
    }
  }
}
