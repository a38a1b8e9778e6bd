/**
 * Every option at the door: its shape, its default, and the error that names it when it cannot be used.
 *
 * The schemas are the public types. Unknown keys are refused by name; values of the environment and arguments are never repeated (L7).
 */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import * as v from 'valibot'
import { RunwardenError } from './errors.js'
import { ptySchema, surfaceSchema } from './terminal-options.js'
import { name, noNul } from './text-options.js'

/** About 24.8 days fit into a Node timer; ours take longer waits, up to this. */
const MAX_MS = 10 * 365 * 24 * 3_600_000

const ms = v.pipe(
  v.number(),
  v.integer('must be a whole number of milliseconds'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(MAX_MS, 'must be at most ten years'),
)
const bytes = v.pipe(
  v.number(),
  v.integer('must be a whole number of bytes'),
  v.minValue(1, 'must be at least 1'),
)
/** Ids name folders and appear in URLs. */
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/
const runId = v.pipe(
  v.string(),
  v.regex(RUN_ID, 'must be 1 to 128 letters, digits or . _ : @ - and begin with a letter or digit'),
)

/** Names that a record of JavaScript has by itself: dropped in silence by whoever guards against them, so refused by name here. */
const RESERVED = ['__proto__', 'constructor', 'prototype']

const unreserved = <T>() =>
  v.custom<Readonly<Record<string, T>>>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !Object.keys(value).some((key) => RESERVED.includes(key)),
    `must be a record without the names ${RESERVED.join(', ')}`,
  )

const command = v.pipe(
  v.array(v.pipe(v.string(), noNul)),
  v.minLength(1, 'must name a program'),
  v.check((argv) => argv[0] !== '', 'must name a program'),
)

const cwd = v.pipe(
  v.string(),
  noNul,
  v.check((path) => existsSync(path), 'does not exist'),
  v.check((path) => !existsSync(path) || statSync(path).isDirectory(), 'is not a folder'),
)

const environment = v.pipe(
  unreserved<string | undefined>(),
  v.record(
    v.pipe(v.string(), v.nonEmpty('must not have an empty name'), noNul),
    v.optional(v.pipe(v.string(), noNul)),
  ),
)

const stdin = v.union([v.string(), v.strictObject({ text: v.string() }), v.instance(Readable)])

const stop = v.strictObject({
  /** Wait between TERM and KILL, for the whole tree. Default 5 000 ms. */
  termGraceMs: v.optional(ms, 5_000),
  /** Time for KILL to empty the tree before the run is called `unconfirmed`. Default 2 000 ms. */
  killGraceMs: v.optional(ms, 2_000),
  /** Close stdin first and wait this long before TERM. Default: not asked. */
  askGraceMs: v.optional(ms),
})

const candidate = v.strictObject({
  command,
  cwd: v.optional(cwd),
  env: v.optional(environment),
  stdin: v.optional(stdin),
})

const runSpecFields = v.strictObject({
  /** Unique in the store for ever. Default: a generated one that sorts by time. */
  id: v.optional(runId),
  /** Program and arguments; no shell. */
  command,
  /** Default: the current folder. */
  cwd: v.optional(cwd),
  /** The whole environment of the agent; `undefined` values are left out. Default: this process's own. */
  env: v.optional(environment),
  /** `'ignore'` (default), `'pipe'` to write later, text, or a stream. Any other string is text. */
  stdin: v.optional(stdin, 'ignore'),
  /** `'pipe'` (default), or `'pty'`: a terminal of its own, whose output is one stream, and to which `write` types (L9). */
  stdio: v.optional(v.picklist(['pipe', 'pty']), 'pipe'),
  /** For `stdio: 'pty'`. */
  pty: v.optional(ptySchema),
  /** A terminal pane in which the command runs, where people can see it and type to it (P12). */
  surface: v.optional(surfaceSchema),
  session: v.optional(name),
  task: v.optional(name),
  labels: v.optional(
    v.pipe(
      unreserved<string>(),
      v.record(name, v.pipe(v.string(), v.maxLength(1024, 'must be at most 1024 characters'))),
    ),
    {},
  ),
  stop: v.optional(stop, {}),
  output: v.optional(
    v.strictObject({
      /** Longer lines are truncated and marked. Default 8 MiB. */
      maxLineBytes: v.optional(bytes, 8 * 1024 * 1024),
      /** How long output is read after the tree is empty. Default 1 000 ms. */
      drainMs: v.optional(ms, 1_000),
    }),
    {},
  ),
  /** Further ways to do the work, tried in order after a failure before any progress. */
  fallback: v.optional(v.strictObject({ candidates: v.pipe(v.array(candidate), v.maxLength(16)) })),
  /** Aborting it cancels the run. */
  signal: v.optional(v.instance(AbortSignal)),
})

/** Nothing is fed into a terminal: it has no end that could be given to it. */
const isOnTerminal = (spec: v.InferOutput<typeof runSpecFields>): boolean =>
  spec.stdio === 'pty' || spec.surface !== undefined

const isFed = (source: v.InferOutput<typeof stdin> | undefined): boolean =>
  source !== undefined && source !== 'ignore' && source !== 'pipe'

export const runSpecSchema = v.pipe(
  runSpecFields,
  v.forward(
    v.check(({ stdio, pty: size }) => size === undefined || stdio === 'pty', 'needs stdio "pty"'),
    ['pty'],
  ),
  v.forward(
    v.check((spec) => !isOnTerminal(spec) || !isFed(spec.stdin), 'must be "pipe" or "ignore" on a terminal'),
    ['stdin'],
  ),
  v.forward(
    v.check(
      (spec) => !isOnTerminal(spec) || spec.fallback?.candidates.some((one) => isFed(one.stdin)) !== true,
      'must have no stdin on a terminal',
    ),
    ['fallback'],
  ),
  v.forward(
    v.check((spec) => spec.surface === undefined || spec.stdio === 'pipe', 'excludes stdio "pty"'),
    ['surface'],
  ),
)

/** What to run, and how it is to be ended. Times in milliseconds, sizes in bytes. */
export type RunSpec = v.InferInput<typeof runSpecSchema>
export type ParsedRunSpec = v.InferOutput<typeof runSpecSchema>

const containmentSchema = v.strictObject({
  /** Default `group+marks`. */
  prefer: v.optional(v.picklist(['cgroup', 'group+marks', 'group'])),
  /** Refuse to open the engine where this cannot be had. */
  atLeast: v.optional(v.picklist(['cgroup', 'group+marks', 'group'])),
})

const anything = v.custom<object>((value) => typeof value === 'object' && value !== null)

export const engineOptionsSchema = v.strictObject({
  /** A path, or `:memory:`. Exactly one of `database`, `dialect` and `kysely`. */
  database: v.optional(v.pipe(v.string(), v.nonEmpty('must not be empty'), noNul)),
  /** A Kysely dialect; the schema is migrated. */
  dialect: v.optional(anything),
  /** The host's own Kysely instance, in which it has run the migrations; it is not closed. */
  kysely: v.optional(anything),
  containment: v.optional(containmentSchema, {}),
  /** What becomes of runs whose engine died: `interrupt` them, or leave them to `stop`. Default `interrupt`. */
  recover: v.optional(v.union([v.literal('interrupt'), v.literal(false)]), 'interrupt'),
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
  /** How long a stop waits for a store that does not answer before it goes ahead. Default 2 000 ms. */
  commitDeadlineMs: v.optional(ms, 2_000),
  /** Any pino-shaped logger. Silent by default. */
  logger: v.optional(anything),
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
  reason: v.optional(v.string(), ''),
  by: v.optional(v.string(), 'host'),
  /** Refuse launches in the scope until the order settles. Default: true unless the scope names runs. */
  fence: v.optional(v.boolean()),
  /** When the receipt is given at the latest. Default: the longest ladder and 5 000 ms. */
  timeoutMs: v.optional(ms),
  /** Aborting it ends the wait, not the stop. */
  signal: v.optional(v.instance(AbortSignal)),
})

export type StopOptions = v.InferInput<typeof stopOptionsSchema>

export const closeOptionsSchema = v.strictObject({
  /** Default `interrupt`. `leave` lets the processes run on without an engine. */
  runs: v.optional(v.picklist(['interrupt', 'cancel', 'leave']), 'interrupt'),
  /** Past it, what is left is named. Default 15 000 ms. */
  deadlineMs: v.optional(ms, 15_000),
})

export type CloseOptions = v.InferInput<typeof closeOptionsSchema>

/** L7: these are never repeated in an error. */
const SECRET = new Set(['env', 'command', 'stdin'])

const show = (path: string, value: unknown): string => {
  const [top] = path.split('.')
  if (top !== undefined && SECRET.has(top)) return ''
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return `, got ${text.length > 80 ? `${text.slice(0, 77)}…` : text}`
}

const explain = (what: string, issue: v.BaseIssue<unknown>): string => {
  const path = v.getDotPath(issue) ?? ''
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${what}: unknown option ${path}`
  const message = issue.message.startsWith('Invalid')
    ? `must be ${(issue.expected ?? 'something else').replaceAll('"', '')}`
    : issue.message
  return `${what}: option ${path === '' ? '' : `${path} `}${message}${show(path, issue.input)}`
}

/** Throws `invalid-option`, naming the option and the value. */
export const parseOptions = <S extends v.GenericSchema>(
  schema: S,
  input: unknown,
  what: string,
): v.InferOutput<S> => {
  const result = v.safeParse(schema, input, { abortEarly: true })
  if (result.success) return result.output
  throw new RunwardenError('invalid-option', explain(what, result.issues[0]))
}

export const absolute = (path: string): string => resolve(path)
