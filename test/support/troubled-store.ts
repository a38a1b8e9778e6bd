/** A real store whose commits can be held, or refused with the error that a database would give. */
import type { StorePort } from '../../src/actors/store.ports.js'
import { CommitInDoubt } from '../../src/adapters/store/errors.js'
import { engineOptionsSchema, openStore, parseOptions } from '../../src/internal.js'

export interface TroubledStore extends StorePort {
  /** Commits and reads fail with this from now on; null: they work. */
  trouble: (Error & { code?: string }) | null
  /** The next write of this event is refused, as a database refuses data that it can never take; null: none is. */
  refused: string | null
  /** Of so many commits from now on the answer is lost: they are in, and fail. */
  answersToLose: number
  /** It closes, and says that it did not. */
  failsToClose: boolean
  /** Commits wait for the returned function to be called. */
  hold(): () => void
  /** Every committed batch, in order: `event` of each write. */
  readonly committed: string[][]
}

const unacceptable = (): Error & { code: string } =>
  Object.assign(new Error('CHECK constraint failed'), { code: 'SQLITE_CONSTRAINT_CHECK' })

export const busy = (): Error & { code: string } =>
  Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })

export const openMemoryStore = (database = ':memory:'): Promise<StorePort> =>
  openStore(parseOptions(engineOptionsSchema, { database }, 'test'))

/** `database`: a place, or a store that another engine has, or had, as well. */
export async function openTroubledStore(database: string | StorePort = ':memory:'): Promise<TroubledStore> {
  const store = typeof database === 'string' ? await openMemoryStore(database) : database
  let gate: Promise<void> = Promise.resolve()
  const committed: string[][] = []
  const own = {
    trouble: null as (Error & { code?: string }) | null,
    refused: null as string | null,
    answersToLose: 0,
    failsToClose: false,
    committed,
    hold: () => {
      let release = (): void => undefined
      gate = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
  }
  return new Proxy(store as TroubledStore, {
    get(target, name) {
      if (name in own) return Reflect.get(own, name) as unknown
      const member = Reflect.get(target, name) as unknown
      if (typeof member !== 'function') return member
      // Answered without the database.
      if (['isPassing', 'isInDoubt', 'hintFiled'].includes(String(name)))
        return member.bind(target) as unknown
      return async (...args: unknown[]) => {
        if (own.trouble !== null && name !== 'close') throw own.trouble
        if (name === 'commit') {
          await gate
          if (own.trouble !== null) throw own.trouble
        }
        const events =
          name === 'commit'
            ? (args[0] as { journal: { event: string } }[]).map(({ journal }) => journal.event)
            : []
        if (own.refused !== null && events.includes(own.refused)) {
          // A batch is taken apart until the culprit stands alone.
          if (events.length === 1) own.refused = null
          throw unacceptable()
        }
        const result = await (member as (...args: unknown[]) => Promise<unknown>).apply(target, args)
        if (name === 'close' && own.failsToClose) throw new Error('the disk is gone')
        if (name === 'commit' && own.answersToLose > 0) {
          own.answersToLose -= 1
          throw new CommitInDoubt(new Error('Connection terminated unexpectedly'))
        }
        if (name === 'commit') committed.push(events)
        return result
      }
    },
    set(_target, name, value) {
      return Reflect.set(own, name, value)
    },
  })
}
