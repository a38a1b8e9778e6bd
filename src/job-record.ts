/** What a job looks like from outside, and how its spec is kept. Plain data. */
import { resolve } from 'node:path'
import { RunwardenError } from './errors.js'
import type { JobContext, JobOutcome } from './machines/job/job.context.js'
import type { JobChange, JobRow, NewJob, StoredJob, StoredJobTransition } from './actors/job.ports.js'
import type { JobState, ParsedJobSpec } from './job-options.js'

/** One job, as lists and events show it: nothing of its arguments, its environment's values or its input (L7). Times in wall-clock ms. */
export interface JobRecord {
  readonly jobId: string
  readonly title: string | null
  readonly project: string | null
  readonly account: string | null
  readonly program: string
  readonly state: JobState
  /** Of an active job: `claimed` (no run yet), `running`, `leaving` (settled, not proven gone). Null otherwise. */
  readonly phase: string | null
  /** Why it is where it is, where the state does not say it all. */
  readonly reason: string
  readonly attemptsLeft: number
  readonly attemptsSpent: number
  readonly needsReview: boolean
  /** Of an active job: its run, which engine claimed it, and the run's headline once it is on record. */
  readonly runId: string | null
  readonly engineId: string | null
  readonly runHeadline: string | null
  /** How the last run that ended did. */
  readonly lastOutcome: JobOutcome | null
  readonly after: readonly string[]
  readonly workspace: { readonly repository: string; readonly path: string; readonly branch: string } | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly endedAt: number | null
}

/** A job with what it is started with, as far as it may be shown, and its journal. */
export interface JobHistory {
  readonly job: JobRecord
  readonly spec: {
    readonly program: string
    readonly argumentCount: number
    readonly cwd: string | null
    readonly env: { readonly inherit: boolean | readonly string[]; readonly set: readonly string[] }
    readonly stdinBytes: number
    /** Its name. */
    readonly protocol: string | null
    readonly promptBytes: number
    readonly watchdog: ParsedJobSpec['watchdog'] | null
    readonly workspace: ParsedJobSpec['workspace'] | null
  }
  readonly transitions: readonly StoredJobTransition[]
}

/** What is kept of a spec to start its runs with: what the queue itself needs is in columns. */
export type KeptSpec = Omit<
  ParsedJobSpec,
  'id' | 'title' | 'project' | 'account' | 'attempts' | 'review' | 'after' | 'place'
>

/** Places are kept absolute: a worker may stand in another folder. */
const toKept = (spec: ParsedJobSpec): KeptSpec => {
  const { id: _id, title: _title, project: _project, account: _account, ...rest } = spec
  const { attempts: _attempts, review: _review, after: _after, place: _place, ...kept } = rest
  if (kept.workspace === undefined) return { ...kept, cwd: resolve(kept.cwd ?? '.') }
  return { ...kept, workspace: { ...kept.workspace, repository: resolve(kept.workspace.repository) } }
}

/** A new job's row, and what the queue needs beside it. */
export const toNewJob = (spec: ParsedJobSpec, newId: () => string, createdAt: number): NewJob => {
  const { id = newId(), title = null, project = null, account = null, attempts, after, place } = spec
  const row = {
    id,
    token: newId(),
    title,
    project,
    account,
    program: spec.command[0] ?? '',
    spec: JSON.stringify(toKept(spec)),
    createdAt,
  }
  return { row, input: { needsReview: spec.review ?? spec.workspace !== undefined, attempts }, place, after }
}

export const keptOf = ({ spec }: JobRow): KeptSpec => JSON.parse(spec) as KeptSpec

const contextOf = ({ snapshot }: StoredJob): JobContext =>
  (JSON.parse(snapshot) as { readonly context: JobContext }).context

export const toRecord = (job: StoredJob): JobRecord => {
  const { row, state, workspace, after, runHeadline, updatedAt, endedAt } = job
  const { reason, attemptsLeft, attemptsSpent, needsReview, claim, lastOutcome } = contextOf(job)
  const [word = '', phase] = state.split('.')
  return {
    jobId: row.id,
    title: row.title,
    project: row.project,
    account: row.account,
    program: row.program,
    state: word as JobState,
    phase: phase ?? null,
    reason,
    attemptsLeft,
    attemptsSpent,
    needsReview,
    runId: claim?.runId ?? null,
    engineId: claim?.engineId ?? null,
    runHeadline,
    lastOutcome,
    after,
    workspace:
      workspace === null
        ? null
        : { repository: workspace.repository, path: workspace.path, branch: workspace.branch },
    createdAt: row.createdAt,
    updatedAt,
    endedAt,
  }
}

export const toHistory = (job: StoredJob, transitions: readonly StoredJobTransition[]): JobHistory => {
  const { command, cwd, env, stdin, protocol, prompt, watchdog, workspace } = keptOf(job.row)
  return {
    job: toRecord(job),
    spec: {
      program: job.row.program,
      argumentCount: command.length - 1,
      cwd: cwd ?? null,
      env: { inherit: env.inherit, set: Object.keys(env.set ?? {}) },
      stdinBytes: Buffer.byteLength(stdin ?? ''),
      protocol: (typeof protocol === 'string' ? protocol : protocol?.name) ?? null,
      promptBytes: Buffer.byteLength(prompt ?? ''),
      watchdog: watchdog ?? null,
      workspace: workspace ?? null,
    },
    transitions,
  }
}

/** A job was added, moved to another state or place, or is not in the queue any more. */
export interface JobEventOut {
  readonly type: 'job'
  readonly jobId: string
  readonly change: JobChange
  /** Null for a job that was removed. */
  readonly job: JobRecord | null
}

/** Why an event meant nothing, in the words of the job's state. */
export const refusalOf = (verb: string, { row, state }: StoredJob, record: JobRecord): RunwardenError => {
  const isGoing = state === 'active.running' || state === 'active.leaving'
  const where = isGoing
    ? `has a run going: run ${String(record.runId)} (${record.runHeadline ?? state})`
    : `is ${record.state}`
  const hint =
    verb === 'retry' && record.attemptsLeft === 0 && !isGoing ? ', and no attempt is left: extend it' : ''
  return new RunwardenError('refused', `${verb}: job ${row.id} ${where}${hint}`)
}
