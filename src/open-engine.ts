/** From public options to an engine: opens the store, chooses the containment, recovers. */
import { Kysely } from 'kysely'
import type { Dialect } from 'kysely'
import type { DeliveryHooks } from './actors/deliveries.js'
import { GroupCommit } from './actors/group-commit.js'
import { Inspection } from './actors/inspection.js'
import type { InspectionObserver } from './actors/inspection.js'
import { jobChart } from './actors/job-step.js'
import type { Clock, Logger, ProcessPort } from './actors/ports.js'
import type { SpoolPort } from './actors/spool.ports.js'
import type { StorePort } from './actors/store.ports.js'
import { systemClock } from './adapters/clock/system-clock.js'
import { createLogFiles } from './adapters/process/log-files.js'
import { inOurTerms } from './adapters/store/in-our-terms.js'
import { KyselyStore } from './adapters/store/kysely-store.js'
import { migrate, readSchemaVersion } from './adapters/store/migrate.js'
import { SCHEMA_VERSION } from './adapters/store/migrations.js'
import type { Database, Db } from './adapters/store/schema.js'
import { toStoreError } from './adapters/store/errors.js'
import { openPostgres } from './adapters/store/postgres.js'
import { isPostgresUrl, withoutCredentials } from './adapters/store/postgres-url.js'
import { openSqlite } from './adapters/store/sqlite.js'
import { chooseProcesses } from './containment.js'
import type { Tier } from './containment.js'
import { Engine } from './engine.js'
import { RunwardenError } from './errors.js'
import { chooseGuardian } from './guardian-task.js'
import { isInScope } from './machines/registry/registry.machine.js'
import type { OnRecover } from './machines/run/run.context.js'
import { absolute, parseOptions } from './option-types.js'
import { engineOptionsSchema } from './options.js'
import type { ParsedEngineOptions } from './options.js'
import { placesOf } from './places.js'
import { Records } from './records.js'
import { VERSION } from './version.js'
import { isPath, worldOf } from './world.js'
import type { World } from './world.js'

/** How to open an engine. Exactly one of `database`, `dialect` and `kysely` names the store. */
export interface EngineOptions {
  /**
   * A path, or `:memory:`: a new file is made with mode 0600, its folder must exist. Or `postgres://…`, with the parameters that the
   * package `pg` knows; the database must exist, its schema is migrated.
   */
  readonly database?: string
  /** A Kysely dialect of the host's; the schema is migrated, and the connection closed with the engine. */
  readonly dialect?: Dialect
  /** The host's own Kysely instance, in which it has run `migrations`; it is left open. */
  // A host's instance is typed by its own tables: which those are means nothing here.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly kysely?: Kysely<any>
  readonly containment?: {
    /** The best tier to use; where `cgroup` cannot be had, `group+marks` is taken. Default `cgroup`. */
    readonly prefer?: Tier
    /** Refuse to open the engine where this cannot be had (`invalid-option`, saying why). */
    readonly atLeast?: Tier
    readonly cgroup?: {
      /** The cgroup (v2) below which each execution gets its own: an absolute path. Default: the cgroup of this process. */
      readonly parent?: string
    }
  }
  readonly recover?: 'interrupt' | false
  /**
   * R3: what becomes of this engine's runs when it dies, unless a run says otherwise: the next engine interrupts them (default), adopts
   * them, or keeps its hands off.
   */
  readonly onRecover?: OnRecover
  readonly logs?: false | { readonly directory?: string; readonly maxBytes?: number }
  /** Default: beside a database file; for a server, below the user's state folder; for `dialect` and `kysely` nowhere. */
  readonly spool?: false | { readonly directory: string }
  readonly commitDeadlineMs?: number
  readonly delivery?: Partial<DeliveryHooks>
  /**
   * When this process dies without `close`, a small process beside it ends and confirms its runs, as the next engine would (R7). It is
   * started with the first run, and goes when the engine closes. Only with `database`, and not `:memory:`. Default false.
   */
  readonly guardian?: boolean
  readonly logger?: Logger
  /** Sees the charts of the engine move, in XState's inspection protocol: see `Engine.inspect`. */
  readonly inspect?: InspectionObserver
}

const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/** A logger that throws is the host's fault and no run's (F). */
const guarded = (logger: Logger): Logger => {
  const guard =
    (level: keyof Logger): Logger[typeof level] =>
    (detail, message) => {
      try {
        logger[level](detail, message)
      } catch {
        // There is nobody left to tell.
      }
    }
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') }
}

const storeOver = (
  db: Db,
  options: Pick<ConstructorParameters<typeof KyselyStore>[1], 'hasDataVersion' | 'openHints' | 'close'>,
): StorePort =>
  inOurTerms(
    new KyselyStore(db, {
      isInScope: (scope, run) =>
        isInScope(scope, { ...run, session: run.session ?? undefined, task: run.task ?? undefined }),
      jobChart,
      ...options,
    }),
  )

const assertMigrated = async (db: Db): Promise<void> => {
  const version = await readSchemaVersion(db)
  if (version === SCHEMA_VERSION) return
  throw new RunwardenError(
    version > SCHEMA_VERSION ? 'store-too-new' : 'store-unavailable',
    `option kysely: its schema is version ${String(version)}, this library needs ${String(SCHEMA_VERSION)}; run the exported migrations`,
  )
}

/** Opens the store that the options name, and no other. With `mayMake: false` an empty database on a server stays empty. */
export const openStore = async (
  options: ParsedEngineOptions,
  { mayMake } = { mayMake: true },
): Promise<StorePort> => {
  const { database, dialect, kysely } = options
  const given = Object.entries({ database, dialect, kysely }).filter(([, value]) => value !== undefined)
  if (given.length !== 1) {
    throw new RunwardenError(
      'invalid-option',
      `createEngine: exactly one of the options database, dialect and kysely must be given, got ${given.length === 0 ? 'none' : given.map(([name]) => name).join(' and ')}`,
    )
  }
  if (database !== undefined && isPostgresUrl(database)) {
    const { db, ...rest } = await openPostgres(database, { mayMake })
    return storeOver(db, { hasDataVersion: false, ...rest })
  }
  if (database !== undefined) {
    const { db, close } = await openSqlite(database)
    return storeOver(db, { hasDataVersion: true, close })
  }
  if (dialect !== undefined) {
    const db: Db = new Kysely<Database>({ dialect: dialect as Dialect })
    if ((await readSchemaVersion(db)) < SCHEMA_VERSION) await migrate(db, { isInTransaction: false })
    await assertMigrated(db)
    return storeOver(db, { hasDataVersion: false, close: () => db.destroy() })
  }
  const db = kysely as Db
  await assertMigrated(db)
  return storeOver(db, { hasDataVersion: false, close: () => Promise.resolve() })
}

/** What is recorded of places must mean the same from another folder. */
const withAbsolutePath = (options: ParsedEngineOptions): ParsedEngineOptions =>
  isPath(options.database) ? { ...options, database: absolute(options.database) } : options

/** The store as an error may name it (L7). */
const nameOf = (database: string | undefined): string =>
  database === undefined
    ? 'database of the host'
    : `database ${isPostgresUrl(database) ? withoutCredentials(database) : database}`

/** The folder may be shared by machines, too. */
const replaySpools = async (
  store: StorePort,
  spool: SpoolPort,
  processes: ProcessPort,
  hostId: string,
): Promise<void> => {
  const engines = new Map((await store.listEngines()).map((engine) => [engine.id, engine]))
  await spool.drain(
    async (engineId) => {
      const engine = engines.get(engineId)
      if (engine?.hostId !== hostId) return false
      return (await processes.lookUp(engine.identity)) === 'gone'
    },
    async (write) => {
      await store.commit([write], [])
    },
  )
}

/** @internal The seam for tests and simulations: an engine over any clock, store, processes and world. */
export const openEngineOver = async (
  store: StorePort,
  options: ParsedEngineOptions,
  clock: Clock = systemClock,
  processes: ProcessPort = chooseProcesses(options),
  { newId, hostId, spoolOf }: World = worldOf(options),
): Promise<Engine> => {
  const logger = options.logger === undefined ? silent : guarded(options.logger as Logger)
  const id = newId()
  const spool = spoolOf(id)
  const { logs: logOptions, commitDeadlineMs } = options
  const now = clock.wallMs()
  const engine = new Engine({
    host: {
      engineId: id,
      clock,
      commits: new GroupCommit(store, clock, logger),
      store,
      spool,
      logger,
      commitDeadlineMs,
      inspection: new Inspection(id, clock, logger),
    },
    processes,
    newId,
    delivery: options.delivery as DeliveryHooks,
    logs: createLogFiles(placesOf(options).logs, logOptions === false ? 1 : logOptions.maxBytes, logger),
    row: {
      id,
      identity: processes.self,
      hostId,
      version: VERSION,
      startedAt: now,
      heartbeatAt: now,
      closedAt: null,
    },
    onRecover: options.onRecover,
    guardian: chooseGuardian(id, processes.self, options, logger),
  })
  if (options.inspect !== undefined) engine.inspectFromStart(options.inspect)
  if (spool !== null) await replaySpools(store, spool, processes, hostId)
  try {
    await engine.open(options.recover)
    return engine
  } catch (error) {
    await engine.close({ runs: 'leave', deadlineMs: 0 }).catch(() => undefined)
    throw error
  }
}

/**
 * Opens an engine over a store, after bringing the runs of dead engines to their guarantees.
 *
 * @throws `invalid-option`; `store-unavailable` and `store-too-new`, naming the store and the cause.
 */
export const createEngine = async (options: EngineOptions): Promise<Engine> => {
  const parsed = withAbsolutePath(parseOptions(engineOptionsSchema, options, 'createEngine'))
  const store = await openStore(parsed)
  try {
    return await openEngineOver(store, parsed)
  } catch (error) {
    await store.close()
    throw toStoreError(error, nameOf(parsed.database))
  }
}

/** A store to read from, without an engine: for `ps`, `show`, `logs`, and for reports. */
export const openRecords = async (
  options: Pick<EngineOptions, 'database' | 'dialect' | 'kysely'>,
): Promise<Records & AsyncDisposable> => {
  const parsed = parseOptions(engineOptionsSchema, options, 'openRecords')
  const store = await openStore(parsed, { mayMake: false })
  let processes: ProcessPort | null = null
  const records = new Records(store, () => (processes ??= chooseProcesses(parsed)))
  return Object.assign(records, { [Symbol.asyncDispose]: () => store.close() })
}
