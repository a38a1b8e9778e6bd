/** The options of the jobs at the door. Unknown keys are refused by name; values of commands and environments are not repeated (L7). */
import { existsSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { RunwardenError } from './errors.js'
import { noNul, parseOptions } from './option-types.js'
import { hostProtocols, protocolSchema } from './job-protocol.js'
import { runSpecFields } from './run-spec.js'

const { id, command, env, labels, session, task, stop, limits, output, watchdog, onRecover } =
  runSpecFields.entries

const jobId = id.wrapped
const name = session.wrapped
const count = (most: number) =>
  v.pipe(
    v.number(),
    v.integer('must be a whole number'),
    v.minValue(1, 'must be at least 1'),
    v.maxValue(most, `must be at most ${String(most)}`),
  )
const text = v.pipe(v.string(), v.maxLength(1024, 'must be at most 1024 characters'), noNul)
const path = v.pipe(v.string(), v.nonEmpty('must not be empty'), noNul)

const PAGE_MAX = 1_000
const ATTEMPTS_MAX = 1_000
const AFTER_MAX = 100
const SPECS_MAX = 10_000
const INPUT_MAX = 1024 * 1024
/** Kept in the job's row. */
const input = v.pipe(v.string(), v.maxLength(INPUT_MAX, 'must be at most 1 MiB'))

const place = v.union([
  v.strictObject({ at: v.picklist(['first', 'last']) }),
  v.strictObject({ before: jobId }),
  v.strictObject({ after: jobId }),
])

/** Where a job stands: at an end of the queue, or beside another job. */
export type Place = v.InferInput<typeof place>
export const placeSchema = place

export const jobSpecSchema = v.pipe(
  v.strictObject({
    /** Unique among the jobs of the store. Default: a generated one that sorts by time. */
    id: v.optional(jobId),
    /** For people: lists show it, and of the command the program only. */
    title: v.optional(text),
    /** Names under which caps count; a job without one is under no such cap. */
    project: v.optional(name),
    account: v.optional(name),
    /** Program and arguments; no shell. **Stored**, and shown to nobody but the program's name. */
    command,
    /** A folder. Default: the current one. With a workspace: below the worktree, and relative. */
    cwd: v.optional(path),
    env: v.optional(
      v.strictObject({
        /** Which of the worker's own variables the run gets: all (default), none, or those named. */
        inherit: v.optional(v.union([v.boolean(), v.array(v.pipe(v.string(), v.nonEmpty()))]), true),
        /** **Stored**, and shown to nobody but the names. */
        set: v.optional(env.wrapped),
      }),
      {},
    ),
    /** Text for the run's stdin, at most 1 MiB. **Stored**. */
    stdin: v.optional(input),
    /**
     * What its output means, and how it is spoken to, by name: one of `PROTOCOL_NAMES`, or one that `openJobs` was given by the host that
     * works the queue. Default: text lines.
     */
    protocol: v.optional(protocolSchema),
    /** For a protocol that takes prompts: its one turn. At most 1 MiB. **Stored**, like `stdin`. */
    prompt: v.optional(v.pipe(input, v.nonEmpty('must not be empty'))),
    /** How long silence is borne, as in a run's spec; the times begin anew with each run. */
    watchdog,
    session,
    /** Of its runs. Default: the job's id, so that `stop({ task: jobId })` reaches them. */
    task,
    labels,
    stop,
    limits,
    output,
    /** As in a run's spec: what becomes of its run when the engine dies that works it. */
    onRecover,
    /** Runs that may be started before the job is exhausted. Default 3. */
    attempts: v.optional(count(ATTEMPTS_MAX), 3),
    /** Whether completed work waits for `accept`. Default: true for a job with a workspace. */
    review: v.optional(v.boolean()),
    /** Jobs that must be done first. */
    after: v.optional(v.pipe(v.array(jobId), v.maxLength(AFTER_MAX)), []),
    /** Default: last. */
    place: v.optional(place, { at: 'last' }),
    /** A git worktree and branch of the job's own, made before its first run and kept for the next. */
    workspace: v.optional(
      v.strictObject({
        /** Any folder of the repository. */
        repository: path,
        /** Default: a name made from the job's id. */
        branch: v.optional(name),
        /** The commit where the branch begins. Default: HEAD. */
        base: v.optional(name),
      }),
    ),
  }),
  v.forward(
    v.check(
      ({ cwd, workspace }) =>
        workspace === undefined || cwd === undefined || (!isAbsolute(cwd) && !cwd.split('/').includes('..')),
      'must be a path below the worktree where there is a workspace',
    ),
    ['cwd'],
  ),
  // Of longer circles the last job names one that is not there yet.
  v.forward(
    v.check(
      ({ id: own, after }) => own === undefined || !after.includes(own),
      'must not name the job itself: it would wait for ever',
    ),
    ['after'],
  ),
)

/** A piece of work for the queue. */
export type JobSpec = v.InferInput<typeof jobSpecSchema>
export type ParsedJobSpec = v.InferOutput<typeof jobSpecSchema>

/** A folder that is not there now is most likely a slip of the pen. */
export const assertFolders = ({ cwd, workspace }: ParsedJobSpec, what: string): void => {
  const path = workspace?.repository ?? cwd
  if (path === undefined || (existsSync(path) && statSync(path).isDirectory())) return
  const option = workspace === undefined ? 'cwd' : 'workspace.repository'
  throw new RunwardenError(
    'invalid-option',
    `${what}: option ${option} ${JSON.stringify(path)} is not a folder`,
  )
}

/** Each is checked on its own, and named by its number. */
export const specsSchema = v.pipe(v.array(v.unknown()), v.maxLength(SPECS_MAX, 'must be at most 10 000 jobs'))

export const JOB_STATES = [
  'pending',
  'active',
  'review',
  'blocked',
  'exhausted',
  'done',
  'cancelled',
] as const
/** Where a job stands in its life. */
export type JobState = (typeof JOB_STATES)[number]

export const jobQuerySchema = v.strictObject({
  /** Default: those that are not over (done, cancelled). */
  states: v.optional(v.pipe(v.array(v.picklist(JOB_STATES)), v.minLength(1))),
  project: v.optional(name),
  account: v.optional(name),
  /** The last job of the page before. */
  behind: v.optional(jobId),
  /** Default 100, at most 1 000. */
  limit: v.optional(count(PAGE_MAX), 100),
})
/** Which jobs to list, in the order of the queue. */
export type JobQuery = v.InferInput<typeof jobQuerySchema>

export const byOptionsSchema = v.strictObject({
  by: v.optional(text, 'host'),
  reason: v.optional(text, ''),
})
/** Who asks, and why; both are on record. */
export type ByOptions = v.InferInput<typeof byOptionsSchema>

export const extendOptionsSchema = v.strictObject({
  attempts: count(ATTEMPTS_MAX),
  by: v.optional(text, 'host'),
})

export const removeWorkspaceSchema = v.strictObject({
  /** Also with uncommitted files; they are lost. Default false. */
  force: v.optional(v.boolean(), false),
  /** Default false. */
  deletesBranch: v.optional(v.boolean(), false),
})
/** How a worktree is removed. */
export type RemoveWorkspaceOptions = v.InferInput<typeof removeWorkspaceSchema>

const slots = v.pipe(
  v.number(),
  v.integer('must be a whole number'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(10_000, 'must be at most 10 000'),
)
/** Under a name, 0 holds it back. */
const perName = v.optional(v.union([count(10_000), v.record(name, slots)]))

export const queueOptionsSchema = v.strictObject({
  /** How many jobs may be active at once, of all engines over the store. */
  caps: v.optional(
    v.strictObject({
      /** Default 1. */
      total: v.optional(slots, 1),
      /** One number for every project, or one for each by name. Default: none. */
      perProject: perName,
      perAccount: perName,
    }),
    {},
  ),
  /** Where worktrees are made. Default: nowhere, and a job that wants one is blocked. */
  workspaces: v.optional(v.nullable(v.strictObject({ root: path })), null),
  /** The host's own protocols by the names that jobs give, made anew for each run; before the library's of the same name. Default: none. */
  protocols: v.optional(hostProtocols, {}),
})
/** How an engine works the queue. */
export type QueueOptions = v.InferInput<typeof queueOptionsSchema>

const callback = v.custom<(...args: never[]) => unknown>(
  (value) => typeof value === 'function',
  'must be a function',
)

/** @throws `invalid-option` for what cannot be a job's id. */
export const assertJobId = (value: unknown, verb: string): void => {
  parseOptions(v.strictObject({ job: jobId }), { job: value }, verb)
}

/** @throws `invalid-option` for what cannot be called. */
export const assertListener = (listener: unknown): void => {
  parseOptions(v.strictObject({ listener: callback }), { listener }, 'subscribe')
}

export const workOptionsSchema = v.strictObject({
  /** `idle` (default): until nothing is left that may be started without a person. `stopped`: until the signal. */
  until: v.optional(v.picklist(['idle', 'stopped']), 'idle'),
  /** Aborting it starts nothing more and interrupts what runs: the jobs return to their places. */
  signal: v.optional(v.instance(AbortSignal)),
  /** Called for each run as soon as it is on record. */
  onRun: v.optional(callback),
})
