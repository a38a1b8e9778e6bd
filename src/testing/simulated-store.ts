/** A real store, SQLite in memory, whose commits can be held, or refused with the error that a database would give. */
import BetterSqlite3 from 'better-sqlite3'
import { SqliteDialect } from 'kysely'
import type { StorePort } from '../actors/store.ports.js'
import { CommitInDoubt, toStoreError } from '../adapters/store/errors.js'
import { withPreparedStatements } from '../adapters/store/sqlite.js'
import { openStore } from '../open-engine.js'
import { parseOptions } from '../option-types.js'
import { engineOptionsSchema } from '../options.js'

const { SqliteError } = BetterSqlite3

/** What can be wrong with it. */
export interface StoreTroubles {
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

export interface SimulatedStore extends StorePort, StoreTroubles {}

/** What SQLite says while another process has the database locked. */
export const busy = (): Error & { code: string } => new SqliteError('database is locked', 'SQLITE_BUSY')

const unacceptable = (): Error & { code: string } =>
  new SqliteError('CHECK constraint failed', 'SQLITE_CONSTRAINT_CHECK')

const openOver = (
  options: { readonly database: string } | { readonly dialect: object },
): Promise<StorePort> => openStore(parseOptions(engineOptionsSchema, options, 'simulation'))

/** An empty database, migrated: to migrate one costs more than a whole simulated run. */
let template: Buffer | null = null

/** Empty, in memory. */
export const openMemoryStore = async (): Promise<StorePort> => {
  const file = template === null ? new BetterSqlite3(':memory:') : new BetterSqlite3(template)
  const store = await openOver({ dialect: new SqliteDialect({ database: withPreparedStatements(file) }) })
  template ??= file.serialize()
  return store
}

/** `database`: a path, or a store that another engine has, or had, as well. Default: an empty one in memory. */
export async function openSimulatedStore(database?: string | StorePort): Promise<SimulatedStore> {
  if (typeof database === 'string') return withTroubles(await openOver({ database }))
  return withTroubles(database ?? (await openMemoryStore()))
}

/** Answered without the database. */
const WITHOUT_DATABASE: readonly (string | symbol)[] = ['isPassing', 'isInDoubt', 'hintFiled']

const eventsIn = (batch: unknown): string[] =>
  (batch as readonly { readonly journal: { readonly event: string } }[]).map(({ journal }) => journal.event)

/** The same store, with troubles of its own. */
const withTroubles = (store: StorePort): SimulatedStore => {
  let gate: Promise<void> = Promise.resolve()
  const own: StoreTroubles = {
    trouble: null,
    refused: null,
    answersToLose: 0,
    failsToClose: false,
    committed: [],
    hold: () => {
      let release = (): void => undefined
      gate = new Promise((resolve) => {
        release = resolve
      })
      return release
    },
  }
  const assertWorks = (): void => {
    if (own.trouble !== null) throw own.trouble
  }
  const commit: StorePort['commit'] = async (batch, marks) => {
    assertWorks()
    await gate
    assertWorks()
    const events = eventsIn(batch)
    if (own.refused !== null && events.includes(own.refused)) {
      // A batch is taken apart until the culprit stands alone.
      if (events.length === 1) own.refused = null
      throw unacceptable()
    }
    const verdicts = await store.commit(batch, marks)
    if (own.answersToLose > 0) {
      own.answersToLose -= 1
      throw new CommitInDoubt(new SqliteError('disk I/O error', 'SQLITE_IOERR'))
    }
    own.committed.push(events)
    return verdicts
  }
  const close: StorePort['close'] = async () => {
    await store.close()
    if (own.failsToClose) throw new SqliteError('disk I/O error', 'SQLITE_IOERR_CLOSE')
  }
  const guarded = <T extends object>(port: T, others: object): T =>
    new Proxy(port, {
      get(target, name) {
        if (name in others) return Reflect.get(others, name) as unknown
        const member = Reflect.get(target, name) as unknown
        if (typeof member !== 'function') return member
        if (WITHOUT_DATABASE.includes(name)) return member.bind(target) as unknown
        return async (...args: unknown[]) => {
          // In the library's terms; a commit's error is judged as the database gave it.
          if (own.trouble !== null) throw toStoreError(own.trouble)
          return (member as (...args: unknown[]) => Promise<unknown>).apply(target, args)
        }
      },
      set: (_target, name, value) => Reflect.set(others, name, value),
    })
  return guarded(
    store as SimulatedStore,
    Object.assign(own, { commit, close, jobs: guarded(store.jobs, {}) }),
  )
}
