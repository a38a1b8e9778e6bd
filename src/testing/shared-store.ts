/**
 * One store that several engines of a simulation have open, each over a connection of its own.
 *
 * Owns: that each connection sees when another one has written, and hears of orders that were filed for its engine, as with a server.
 */
import type { ActorWrite, FiledHints, StorePort } from '../actors/store.ports.js'

/** What changes something for the others. */
const WRITES: readonly (string | symbol)[] = [
  'commit',
  'takeOver',
  'answerLine',
  'abandonOrder',
  'prune',
  'add',
  'tell',
  'move',
  'remove',
  'keepWorkspace',
  'claim',
  'hold',
  'release',
]

type Counted = <T extends object>(port: T, others?: Readonly<Record<string | symbol, unknown>>) => T

export class SharedStore {
  /** Filed orders are told at once; else looks find them. */
  areHintsLost = false
  /** Called with each write that the store has taken, and says so. One that was given again comes again. */
  onCommitted: (write: ActorWrite) => void = () => undefined
  readonly #base: StorePort
  readonly #listeners = new Map<string, () => void>()
  #writes = 0

  constructor(base: StorePort) {
    this.#base = base
  }

  connect(): StorePort {
    let own = 0
    const counted: Counted = (port, others = {}) =>
      new Proxy(port, {
        get: (target, name) => {
          if (name in others) return others[name]
          const member: unknown = Reflect.get(target, name)
          if (typeof member !== 'function') return member
          const method = member.bind(target) as (...args: unknown[]) => unknown
          if (!WRITES.includes(name)) return method
          return (...args: unknown[]) => {
            own += 1
            this.#writes += 1
            return method(...args)
          }
        },
      })
    const base = this.#base
    const jobs = counted(base.jobs)
    const store = counted(base)
    const commit: StorePort['commit'] = async (batch, marks) => {
      const verdicts = await store.commit(batch, marks)
      for (const [index, write] of batch.entries()) {
        if (verdicts[index] === 'committed') this.onCommitted(write)
        const { rows } = write
        if (rows.kind !== 'stop-order') continue
        for (const { owner, status } of rows.lines) if (status === 'requested') this.#hint(owner)
      }
      return verdicts
    }
    return counted(store, {
      jobs,
      commit,
      changeToken: () => Promise.resolve(this.#writes - own),
      hintFiled: (engineId: string, onHint: () => void) => this.#listen(engineId, onHint),
      // Others have it open.
      close: () => Promise.resolve(),
    })
  }

  close(): Promise<void> {
    return this.#base.close()
  }

  #listen(engineId: string, onHint: () => void): FiledHints {
    this.#listeners.set(engineId, onHint)
    return { isLive: true, close: () => void this.#listeners.delete(engineId) }
  }

  #hint(owner: string | null): void {
    if (owner !== null && !this.areHintsLost) this.#listeners.get(owner)?.()
  }
}
