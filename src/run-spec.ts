/**
 * What to run: every option of `start` at the door, with its shape and its default. The schema is the public type.
 */
import { existsSync, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import * as v from 'valibot'
import type { FailedAttempt } from './actors/fallback.js'
import type { Protocol } from './actors/ports.js'
import type { WatchdogLimits } from './actors/watchdog-limits.js'
import { lines } from './adapters/protocol/lines.js'
import { RunwardenError } from './errors.js'
import { bytes, ms, name, noNul, onRecoverSchema, parseOptions, runId, unreserved } from './option-types.js'
import { ptySchema, surfaceSchema } from './terminal-options.js'

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

const stop = v.pipe(
  v.strictObject({
    /** Wait between TERM and KILL, for the whole tree. Default 5 000 ms; a value given is the run's own declaration (O3). */
    termGraceMs: v.optional(ms),
    /** Time for KILL to empty the tree before the run is called `unconfirmed`. Default 2 000 ms. */
    killGraceMs: v.optional(ms, 2_000),
    /** O3: why `termGraceMs` is what it is, for the record. Only together with it. */
    termGraceReason: v.optional(v.pipe(v.string(), v.nonEmpty('must not be empty'), noNul)),
    /** Close stdin first and wait this long before TERM. Default: not asked. */
    askGraceMs: v.optional(ms),
    /** How long a run may stay paused before it is interrupted. Default 900 000 ms. */
    pauseGraceMs: v.optional(ms, 900_000),
  }),
  v.check(
    ({ termGraceMs, termGraceReason }) => termGraceReason === undefined || termGraceMs !== undefined,
    'must give termGraceMs with its termGraceReason',
  ),
)

const limits = v.strictObject({
  /** Wall time from the first launch, over all attempts; time spent frozen is not counted (O7). */
  timeoutMs: v.optional(v.pipe(ms, v.minValue(1, 'must be at least 1'))),
  /** Of stdout and stderr together, over all attempts. */
  maxOutputBytes: v.optional(bytes),
})

/** A time that silence may take, or `false`: for ever, which is null within. */
const limit = v.pipe(
  v.union([v.pipe(ms, v.minValue(1, 'must be at least 1')), v.literal(false)]),
  v.transform((limitMs) => (limitMs === false ? null : limitMs)),
)

const watchdogSchema = v.strictObject({
  /** Nothing at all since the prompt: the run fails as never started (K5). Default 300 000 ms. */
  neverStartedMs: v.optional(limit, 300_000),
  /** Silence after progress: people are told, and nothing is ended (K8). Default 300 000 ms. */
  advisoryMs: v.optional(limit, 300_000),
  /** Silence after progress while no tool call is open: the run fails as stalled (K9). Default `false`. */
  stalledMs: v.optional(limit, false),
  /** The same while a tool call is open and its processes are idle (K9). Default `false`. */
  stalledToolMs: v.optional(limit, false),
  /** Silence after the agent said that it is done: its turn is closed (K10). Default 600 000 ms. */
  completionSignalMs: v.optional(limit, 600_000),
  /** A gap of the clock longer than this is not silence: the machine slept, or the loop was blocked (K12). Default 30 000 ms. */
  sleepGapMs: v.optional(v.pipe(ms, v.minValue(1, 'must be at least 1')), 30_000),
})

export const watchdogDefaults: WatchdogLimits = v.parse(watchdogSchema, {})

const protocolSchema = v.custom<Protocol>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Protocol).name === 'string' &&
    typeof (value as Protocol).open === 'function' &&
    typeof (value as Protocol).isInteractive === 'boolean' &&
    typeof (value as Protocol).hasWatchdog === 'boolean',
  'must be a protocol, like acp() of runwarden/protocols',
)

/** Longer prompts are handed over as files. */
const PROMPT_CHARS_MAX = 4 * 1024 * 1024

const promptText = v.pipe(
  v.string('must be text'),
  v.nonEmpty('must not be empty'),
  v.maxLength(PROMPT_CHARS_MAX, `must be at most ${String(PROMPT_CHARS_MAX)} characters`),
)

/** What is given to an open run; by its name, so that an error does not repeat it (L7). */
export const turnInputSchema = v.strictObject({ prompt: promptText })

export const chunkSchema = v.strictObject({
  stdin: v.union([v.string(), v.instance(Uint8Array)], 'must be text or bytes'),
})

const candidate = v.strictObject({
  command,
  /** Default: that of the run. Either both take prompts, or neither does. */
  protocol: v.optional(protocolSchema),
  cwd: v.optional(cwd),
  env: v.optional(environment),
  stdin: v.optional(stdin),
})

/** One by one; what they say to each other is in the schema below. */
export const runSpecFields = v.strictObject({
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
  /** How the agent's output is understood, and how it is spoken to. Default: text lines, which say nothing of turns. */
  protocol: v.optional(protocolSchema, lines),
  /** The first prompt, for a protocol that takes prompts. Without one the run is `ready` for `run.prompt()` from the start. */
  prompt: v.optional(promptText),
  /** For a protocol that takes prompts: the first turn is the only one, and its end is the end of the work. Default false. */
  oneShot: v.optional(v.boolean(), false),
  /** How long silence is borne; `false`: for ever. Default: as the protocol says, see each limit. */
  watchdog: v.optional(v.union([v.literal(false), watchdogSchema])),
  /** How long an agent may take to answer that its turn is cancelled, before the turn is freed without it (K13). Default 10 000 ms. */
  turnCancelMs: v.optional(ms, 10_000),
  session: v.optional(name),
  task: v.optional(name),
  labels: v.optional(
    v.pipe(
      unreserved<string>(),
      v.record(name, v.pipe(v.string(), v.maxLength(1024, 'must be at most 1024 characters'), noNul)),
    ),
    {},
  ),
  stop: v.optional(stop, {}),
  /** What the run may use; past it, it is interrupted with a reason that names the limit. Default: no limits. */
  limits: v.optional(limits, {}),
  /** A run that a person in front of the machine waits for: `engine.presence` does not freeze it. Default false. */
  foreground: v.optional(v.boolean(), false),
  output: v.optional(
    v.strictObject({
      /** Longer lines are truncated and marked. Default 8 MiB. */
      maxLineBytes: v.optional(bytes, 8 * 1024 * 1024),
      /** How long output is read after the tree is empty. Default 1 000 ms. */
      drainMs: v.optional(ms, 1_000),
    }),
    {},
  ),
  /**
   * What becomes of the run when its engine dies (R3, R10): the next engine ends it (`interrupt`), goes on with it (`adopt`), or leaves it
   * to a stop (`keep`). The last two need a log, no prompts, and stdin as text or none: its output goes to the log's files by itself.
   * Default: the engine's `onRecover`.
   */
  onRecover: v.optional(onRecoverSchema),
  /** Further ways to do the work, tried in order after a failure before any progress. */
  fallback: v.optional(
    v.strictObject({
      candidates: v.pipe(v.array(candidate), v.maxLength(16)),
      /** Whether the next candidate answers this failure (P9). A throw says no. Default: when the attempt had shown no progress. */
      when: v.optional(v.custom<(failure: FailedAttempt) => boolean>((value) => typeof value === 'function')),
    }),
  ),
  /**
   * A run that serves until it is told to stop. It is asked to end before it is signalled (`stop.askGraceMs`, default 10 000 ms), and a
   * `cancel` of it is refused (P16). Default false.
   */
  persistent: v.optional(v.boolean(), false),
  /** The id of the run that this one is a part of: it is ended with it. */
  parent: v.optional(runId),
  /** `keep`: it goes on when its parent is ended. Default `cancel`. */
  onParentCancel: v.optional(v.picklist(['cancel', 'keep']), 'cancel'),
  /** Aborting it cancels the run; a persistent one is stopped. */
  signal: v.optional(v.instance(AbortSignal)),
})

/** Nothing is fed into a terminal: it has no end that could be given to it. */
const isOnTerminal = (spec: v.InferOutput<typeof runSpecFields>): boolean =>
  spec.stdio === 'pty' || spec.surface !== undefined

const isFed = (source: v.InferOutput<typeof stdin> | undefined): boolean =>
  source !== undefined && source !== 'ignore' && source !== 'pipe'

const runSpecSchema = v.pipe(
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

/** What a protocol and the rest of a spec say to each other. */
const assertSpeakable = (spec: ParsedRunSpec): void => {
  const { protocol, prompt, stdin, fallback } = spec
  for (const [index, { protocol: other }] of (fallback?.candidates ?? []).entries()) {
    if (other === undefined || other.isInteractive === protocol.isInteractive) continue
    throw new RunwardenError(
      'invalid-option',
      `start: option fallback.candidates.${String(index)}.protocol "${other.name}" ${other.isInteractive ? 'takes prompts' : 'takes no prompts'}, unlike "${protocol.name}" of the run`,
    )
  }
  if (!protocol.isInteractive) {
    if (prompt === undefined) return
    throw new RunwardenError(
      'invalid-option',
      `start: option prompt has no use: protocol "${protocol.name}" takes no prompts; give the agent its prompt by its command or its stdin`,
    )
  }
  if (isOnTerminal(spec)) {
    // A terminal repeats what is typed, cuts long lines, and ends them in its own way.
    const option = spec.surface === undefined ? 'stdio "pty"' : 'surface'
    throw new RunwardenError(
      'invalid-option',
      `start: option ${option} cannot be had with protocol "${protocol.name}", which speaks to the agent through pipes`,
    )
  }
  const inputs = [stdin, ...(fallback?.candidates.map((one) => one.stdin) ?? [])]
  if (inputs.every((input) => input === undefined || input === 'ignore' || input === 'pipe')) return
  throw new RunwardenError(
    'invalid-option',
    `start: option stdin has no use: protocol "${protocol.name}" writes to it; give the prompt as option prompt`,
  )
}

/** @throws `invalid-option`, naming the option and the value. */
export const parseRunSpec = (spec: unknown): ParsedRunSpec => {
  const parsed = parseOptions(runSpecSchema, spec, 'start')
  assertSpeakable(parsed)
  return parsed
}
