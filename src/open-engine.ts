/** From public options to an engine: opens the store, chooses the containment, recovers. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { Kysely } from 'kysely'
import type { Dialect } from 'kysely'
import { uuidv7 } from 'uuidv7'
import type { DeliveryHooks } from './actors/deliveries.js'
import { GroupCommit } from './actors/group-commit.js'
import type { Clock, Logger, ProcessPort } from './actors/ports.js'
import type { SpoolPort, StorePort } from './actors/store.ports.js'
import { systemClock } from './adapters/clock/system-clock.js'
import { createLogFiles } from './adapters/process/log-files.js'
import { createProcessPort } from './adapters/process/process-port.js'
import { KyselyStore } from './adapters/store/kysely-store.js'
import { migrate, readSchemaVersion } from './adapters/store/migrate.js'
import { SCHEMA_VERSION } from './adapters/store/migrations.js'
import type { Database, Db } from './adapters/store/schema.js'
import { toStoreError } from './adapters/store/errors.js'
import { createSpool } from './adapters/store/spool.js'
import { openSqlite } from './adapters/store/sqlite.js'
import { Engine } from './engine.js'
import { RunwardenError } from './errors.js'
import { isInScope } from './machines/registry/registry.machine.js'
import { absolute, parseOptions } from './option-types.js'
import { engineOptionsSchema } from './options.js'
import type { ParsedEngineOptions } from './options.js'
import { Records } from './records.js'
import { VERSION } from './version.js'

/** How to open an engine. Exactly one of `database`, `dialect` and `kysely` names the store. */
export interface EngineOptions {
  /** A path, or `:memory:`. A new file is made with mode 0600; its folder must exist. */
  readonly database?: string
  /** A Kysely dialect of the host's; the schema is migrated, and the connection closed with the engine. */
  readonly dialect?: Dialect
  /** The host's own Kysely instance, in which it has run `migrations`; it is left open. */
  // A host's instance is typed by its own tables: which those are means nothing here.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly kysely?: Kysely<any>
  readonly containment?: { readonly prefer?: Tier; readonly atLeast?: Tier }
  readonly recover?: 'interrupt' | false
  readonly logs?: false | { readonly directory?: string; readonly maxBytes?: number }
  readonly commitDeadlineMs?: number
  readonly delivery?: Partial<DeliveryHooks>
  readonly logger?: Logger
}

type Tier = 'cgroup' | 'group+marks' | 'group'

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

const storeOver = (db: Db, isSqlite: boolean, close: () => Promise<void>): StorePort =>
  new KyselyStore(db, {
    isInScope: (scope, run) =>
      isInScope(scope, { ...run, session: run.session ?? undefined, task: run.task ?? undefined }),
    hasDataVersion: isSqlite,
    close,
  })

const assertMigrated = async (db: Db): Promise<void> => {
  const version = await readSchemaVersion(db)
  if (version === SCHEMA_VERSION) return
  throw new RunwardenError(
    version > SCHEMA_VERSION ? 'store-too-new' : 'store-unavailable',
    `option kysely: its schema is version ${String(version)}, this library needs ${String(SCHEMA_VERSION)}; run the exported migrations`,
  )
}

/** Opens the store that the options name, and no other. */
export const openStore = async (options: ParsedEngineOptions): Promise<StorePort> => {
  const { database, dialect, kysely } = options
  const given = Object.entries({ database, dialect, kysely }).filter(([, value]) => value !== undefined)
  if (given.length !== 1) {
    throw new RunwardenError(
      'invalid-option',
      `createEngine: exactly one of the options database, dialect and kysely must be given, got ${given.length === 0 ? 'none' : given.map(([name]) => name).join(' and ')}`,
    )
  }
  if (database !== undefined) {
    const { db, close } = await openSqlite(database)
    return storeOver(db, true, close)
  }
  if (dialect !== undefined) {
    const db: Db = new Kysely<Database>({ dialect: dialect as Dialect })
    if ((await readSchemaVersion(db)) < SCHEMA_VERSION) await migrate(db, { isInTransaction: false })
    await assertMigrated(db)
    return storeOver(db, false, () => db.destroy())
  }
  const db = kysely as Db
  await assertMigrated(db)
  return storeOver(db, false, () => Promise.resolve())
}

/** What is recorded of places must mean the same from another folder. */
const withAbsolutePath = (options: ParsedEngineOptions): ParsedEngineOptions =>
  options.database === undefined || options.database === ':memory:'
    ? options
    : { ...options, database: absolute(options.database) }

/** Beside a database file; a store without a path has no place of its own. */
const besides = (database: string | undefined, suffix: string): string | null =>
  database === undefined || database === ':memory:' ? null : `${database}-${suffix}`

const TIERS: readonly Tier[] = ['group', 'group+marks', 'cgroup']

const chooseProcesses = ({ containment }: ParsedEngineOptions): ProcessPort => {
  const { prefer = 'group+marks', atLeast } = containment
  if (prefer === 'cgroup' || atLeast === 'cgroup') {
    const option = prefer === 'cgroup' ? 'prefer' : 'atLeast'
    throw new RunwardenError(
      'invalid-option',
      `createEngine: option containment.${option} "cgroup" cannot be had: this version offers group+marks and group`,
    )
  }
  if (atLeast !== undefined && TIERS.indexOf(prefer) < TIERS.indexOf(atLeast)) {
    throw new RunwardenError(
      'invalid-option',
      `createEngine: option containment.prefer "${prefer}" is less than containment.atLeast "${atLeast}"`,
    )
  }
  return createProcessPort(prefer)
}

/** Which machine this is: process ids of another one mean nothing here. */
const hostId = (): string => {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim() || hostname()
  } catch {
    return hostname()
  }
}

const replaySpools = async (store: StorePort, spool: SpoolPort, processes: ProcessPort): Promise<void> => {
  const engines = new Map((await store.listEngines()).map((engine) => [engine.id, engine]))
  await spool.drain(
    async (engineId) => {
      const engine = engines.get(engineId)
      return engine !== undefined && (await processes.lookUp(engine.identity)) === 'gone'
    },
    async (write) => {
      await store.commit([write], [])
    },
  )
}

/** @internal The seam for tests: an engine over any clock and store. */
export const openEngineOver = async (
  store: StorePort,
  options: ParsedEngineOptions,
  clock: Clock = systemClock,
): Promise<Engine> => {
  const processes = chooseProcesses(options)
  const logger = options.logger === undefined ? silent : guarded(options.logger as Logger)
  const id = uuidv7()
  const spoolFolder = besides(options.database, 'spool')
  const spool = spoolFolder === null ? null : createSpool(spoolFolder, id)
  const { logs: logOptions, database, commitDeadlineMs } = options
  const logRoot = logOptions === false ? null : (logOptions.directory ?? besides(database, 'logs'))
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
    },
    processes,
    delivery: options.delivery as DeliveryHooks,
    logs: createLogFiles(logRoot, logOptions === false ? 1 : logOptions.maxBytes, logger),
    row: {
      id,
      identity: processes.self,
      hostId: hostId(),
      version: VERSION,
      startedAt: now,
      heartbeatAt: now,
      closedAt: null,
    },
  })
  if (spool !== null) await replaySpools(store, spool, processes)
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
    throw toStoreError(error, `database ${parsed.database ?? 'of the host'}`)
  }
}

/** A store to read from, without an engine: for `ps`, `show`, `logs`, and for reports. */
export const openRecords = async (
  options: Pick<EngineOptions, 'database' | 'dialect' | 'kysely'>,
): Promise<Records & AsyncDisposable> => {
  const store = await openStore(parseOptions(engineOptionsSchema, options, 'openRecords'))
  return Object.assign(new Records(store), { [Symbol.asyncDispose]: () => store.close() })
}
