/** Every option at the door but those of a run: its shape, its default. The schemas are the public types. */
import * as v from 'valibot'
import type { InspectionObserver } from './actors/inspection.js'
import { isPostgresUrl } from './adapters/store/postgres-url.js'
import type { PresenceSource } from './presence-source.js'
import { bytes, ms, name, noNul, onRecoverSchema, runId, unreserved } from './option-types.js'

const containmentSchema = v.strictObject({
  /** The best tier to use. Default: the best there is. */
  prefer: v.optional(v.picklist(['cgroup', 'group+marks', 'group'])),
  /** Refuse to open the engine where this cannot be had. */
  atLeast: v.optional(v.picklist(['cgroup', 'group+marks', 'group'])),
  cgroup: v.optional(
    v.strictObject({
      /** The cgroup (v2) below which each execution gets its own: an absolute path. Default: the cgroup of this process. */
      parent: v.optional(v.pipe(v.string(), noNul, v.startsWith('/', 'must be an absolute path'))),
    }),
    {},
  ),
})

/** `mysql://…` would otherwise be taken for a file in a folder `mysql:`. */
const knownServer = v.check(
  (database: string) => isPostgresUrl(database) || !/^[a-z][a-z0-9+.-]*:\/\//i.test(database),
  'must be a path or begin with postgres://',
)

const hook = v.custom<(argument: never, context: never) => unknown>((value) => typeof value === 'function')
const anything = v.custom<object>((value) => typeof value === 'object' && value !== null)

const observer = v.custom<InspectionObserver>(
  (value) =>
    typeof value === 'function' ||
    (typeof value === 'object' && value !== null && typeof (value as { next?: unknown }).next === 'function'),
  'must be a function, or an object with a function `next`',
)

export const engineOptionsSchema = v.strictObject({
  /** A path, `:memory:`, or `postgres://…`. Exactly one of `database`, `dialect` and `kysely`. */
  database: v.optional(v.pipe(v.string(), v.nonEmpty('must not be empty'), noNul, knownServer)),
  /** A Kysely dialect; the schema is migrated. */
  dialect: v.optional(anything),
  /** The host's own Kysely instance, in which it has run the migrations; it is not closed. */
  kysely: v.optional(anything),
  containment: v.optional(containmentSchema, { cgroup: {} }),
  /** What becomes of runs whose engine died: `interrupt` them, or leave them to `stop`. Default `interrupt`. */
  recover: v.optional(v.union([v.literal('interrupt'), v.literal(false)]), 'interrupt'),
  /** R3: what becomes of runs that give no `onRecover` of their own, when this engine dies. Default `interrupt`. */
  onRecover: v.optional(onRecoverSchema, 'interrupt'),
  /** Where output is kept. Default: a folder beside a database file, else nowhere. */
  logs: v.optional(
    v.union([
      v.literal(false),
      v.strictObject({
        directory: v.optional(v.pipe(v.string(), noNul)),
        /** Per execution; past it the oldest output is dropped. Default 64 MiB. */
        maxBytes: v.optional(bytes, 64 * 1024 * 1024),
      }),
    ]),
    {},
  ),
  /**
   * Where transitions of runs that are being ended are kept while the store does not answer. Default: beside a database file; for a
   * PostgreSQL server below the user's state folder; nowhere for `dialect` and `kysely`.
   */
  spool: v.optional(
    v.union([v.literal(false), v.strictObject({ directory: v.pipe(v.string(), v.nonEmpty(), noNul) })]),
  ),
  /** The host's hooks for outcomes. They belong to the engine, so that another process can deliver what this one could not. */
  delivery: v.optional(
    v.strictObject({
      finalize: v.optional(hook),
      deliver: v.optional(hook),
      finalizeDeadlineMs: v.optional(ms, 30_000),
      deliverDeadlineMs: v.optional(ms, 30_000),
    }),
    {},
  ),
  /** How long a stop waits for a store that does not answer before it goes ahead. Default 2 000 ms. */
  commitDeadlineMs: v.optional(ms, 2_000),
  /**
   * R7: a small process of its own ends this engine's runs when this process dies without `close`. Started with the first run. Needs a
   * store that it can open: a path or `postgres://…`. Default false.
   */
  guardian: v.optional(v.boolean(), false),
  /** Any pino-shaped logger. Silent by default. */
  logger: v.optional(anything),
  /** Sees the charts of the engine move, from the first transition on: see `engine.inspect`. */
  inspect: v.optional(observer),
})

export type ParsedEngineOptions = v.InferOutput<typeof engineOptionsSchema>

export const scopeSchema = v.pipe(
  v.strictObject({
    run: v.optional(v.union([runId, v.pipe(v.array(runId), v.minLength(1, 'must name a run'))])),
    session: v.optional(name),
    task: v.optional(name),
    labels: v.optional(
      v.pipe(
        unreserved<string>(),
        v.record(name, v.string()),
        v.check((labels) => Object.keys(labels).length > 0, 'must name a label'),
      ),
    ),
    all: v.optional(v.literal(true)),
  }),
  v.check(
    (scope) => Object.values(scope).some((value) => value !== undefined),
    'must name a run, a session, a task, labels, or all',
  ),
)

/** What a stop covers: every field given must match. */
export type Scope = v.InferInput<typeof scopeSchema>

export const stopOptionsSchema = v.strictObject({
  /** Default `cancel`. */
  mode: v.optional(v.picklist(['cancel', 'interrupt', 'terminate']), 'cancel'),
  /** KILL at once. Default false. */
  force: v.optional(v.boolean(), false),
  reason: v.optional(v.pipe(v.string(), noNul), ''),
  by: v.optional(v.pipe(v.string(), noNul), 'host'),
  /** Refuse launches in the scope until the order settles. Default: true unless the scope names runs. */
  fence: v.optional(v.boolean()),
  /** When the receipt is given at the latest. Default: the longest ladder and 5 000 ms. */
  timeoutMs: v.optional(ms),
  /** Aborting it ends the wait, not the stop. */
  signal: v.optional(v.instance(AbortSignal)),
})

export type StopOptions = v.InferInput<typeof stopOptionsSchema>

export const inspectOptionsSchema = v.strictObject({ observer })

export const closeOptionsSchema = v.strictObject({
  /**
   * Default `interrupt`. `suppress`: interrupt them and deliver no outcome, for a host that shuts down (P18). `leave` lets the processes
   * run on without an engine.
   */
  runs: v.optional(v.picklist(['interrupt', 'cancel', 'suppress', 'leave']), 'interrupt'),
  /** Past it, what is left is named. Default 15 000 ms. */
  deadlineMs: v.optional(ms, 15_000),
})

export type CloseOptions = v.InferInput<typeof closeOptionsSchema>

export const eventOptionsSchema = v.strictObject({
  output: v.optional(v.picklist(['lines', 'bytes', 'frames', 'none']), 'lines'),
})

export const pauseOptionsSchema = v.strictObject({
  /** When the answer is given at the latest; the pause or resumption goes on. Default 5 000 ms. */
  timeoutMs: v.optional(ms, 5_000),
})

export const freezeOrderOptionsSchema = v.strictObject({
  reason: v.optional(v.string(), ''),
  by: v.optional(v.string(), 'host'),
  /** When the receipt is given at the latest. Default: the longest ladder and 5 000 ms. */
  timeoutMs: v.optional(ms),
})

export type FreezeOrderOptions = v.InferInput<typeof freezeOrderOptionsSchema>

export type PauseOptions = v.InferInput<typeof pauseOptionsSchema>

export const presenceSourceOptionsSchema = v.strictObject({
  /** How long nobody must be there before runs go on. Default 30 000 ms. */
  idleAfterMs: v.optional(ms, 30_000),
})

const isPresenceSource = (value: unknown): boolean =>
  typeof value === 'function' ||
  (typeof value === 'object' && value !== null && Symbol.asyncIterator in value)

export const presenceSourceSchema = v.strictObject({
  source: v.custom<PresenceSource>(isPresenceSource, 'must be a function or an async iterable'),
})

export type PresenceSourceOptions = v.InferInput<typeof presenceSourceOptionsSchema>
