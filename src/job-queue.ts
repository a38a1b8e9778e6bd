/** The queue in the hands of an engine that works it. */
import { existsSync, realpathSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { recoverJobs } from './actors/job-recovery.js'
import { JobWorker } from './actors/job-worker.js'
import type { WorkPorts, WorkReport } from './actors/job-worker.js'
import { markWorkspace, prepareWorkspace, withoutGitPlaces } from './actors/job-workspace.js'
import type { WorkspaceParts, WorkspaceWish } from './actors/job-workspace.js'
import type { StoredJob } from './actors/job.ports.js'
import type { Protocol } from './actors/ports.js'
import type { StoredRun } from './actors/store.ports.js'
import type { Workspace, WorkspacePort } from './actors/workspace.ports.js'
import type { Engine, EngineSeam } from './engine.js'
import { RunwardenError, messageOf } from './errors.js'
import { JobList } from './job-list.js'
import { workOptionsSchema } from './job-options.js'
import type { queueOptionsSchema } from './job-options.js'
import { protocolFor } from './job-protocol.js'
import { keptOf, toRecord } from './job-record.js'
import type { JobRecord, KeptSpec } from './job-record.js'
import type { Evidence, RunContext } from './machines/run/run.context.js'
import { parseOptions } from './option-types.js'
import type { RunSpec } from './run-spec.js'
import type { Run } from './run.js'
import type { InferOutput } from 'valibot'

export interface WorkOptions {
  /** `idle` (default): until nothing is left that may be started without a person. `stopped`: until the signal. */
  readonly until?: 'idle' | 'stopped'
  /** Aborting it starts nothing more, and interrupts what runs: the jobs return to their places. */
  readonly signal?: AbortSignal
  /** Called with each run as soon as it is on record, to listen to it. What it throws is logged (F). */
  readonly onRun?: (run: Run, job: JobRecord) => unknown
}

const environmentOf = ({ env, workspace }: KeptSpec): Record<string, string | undefined> => {
  const { inherit, set } = env
  const own = process.env
  const inherited: Record<string, string | undefined> =
    typeof inherit === 'boolean'
      ? inherit
        ? { ...own }
        : {}
      : Object.fromEntries(inherit.map((name) => [name, own[name]]))
  const clean = workspace === undefined ? inherited : withoutGitPlaces(inherited)
  return { ...clean, ...set }
}

/** Never outside the worktree: what lies in it may be a link to anywhere, made by an agent or checked out (O14). */
const folderIn = (place: Workspace, cwd: string): string => {
  const asked = join(place.path, cwd)
  // Of what is not there the run itself says so.
  if (!existsSync(asked)) return asked
  const [root, folder] = [realpathSync(place.path), realpathSync(asked)]
  if (folder === root || folder.startsWith(`${root}${sep}`)) return folder
  throw new RunwardenError(
    'invalid-option',
    `option cwd ${JSON.stringify(cwd)} leads out of the worktree ${place.path}, to ${folder}`,
  )
}

const folderOf = ({ cwd }: KeptSpec, place: Workspace | null): string => {
  if (place === null) return resolve(cwd ?? '.')
  return cwd === undefined ? place.path : folderIn(place, cwd)
}

/** As it is given to a run: parsed, "for ever" is null. */
const watchdogOf = (watchdog: NonNullable<KeptSpec['watchdog']>): NonNullable<RunSpec['watchdog']> => {
  if (watchdog === false) return false
  const { sleepGapMs, ...limits } = watchdog
  const given = Object.entries(limits).map(([name, limit]) => [name, limit ?? false] as const)
  return { ...Object.fromEntries(given), sleepGapMs }
}

/** What a job's run is started with. A job has one turn. */
const runSpecOf = (
  job: StoredJob,
  runId: string,
  place: Workspace | null,
  protocol: Protocol | undefined,
): RunSpec => {
  const kept = keptOf(job.row)
  const { command, stdin, prompt, watchdog, session, task, labels, stop, limits, output, onRecover } = kept
  return {
    id: runId,
    command,
    cwd: folderOf(kept, place),
    env: environmentOf(kept),
    oneShot: true,
    ...(protocol === undefined ? {} : { protocol }),
    ...(stdin === undefined ? {} : { stdin: { text: stdin } }),
    ...(prompt === undefined ? {} : { prompt }),
    ...(watchdog === undefined ? {} : { watchdog: watchdogOf(watchdog) }),
    ...(session === undefined ? {} : { session }),
    task: task ?? job.row.id,
    labels,
    stop,
    limits,
    output,
    ...(onRecover === undefined ? {} : { onRecover }),
  }
}

const wishOf = ({ workspace }: KeptSpec): WorkspaceWish | null => {
  if (workspace === undefined) return null
  const { repository, branch, base } = workspace
  return {
    repository,
    ...(branch === undefined ? {} : { branch }),
    ...(base === undefined ? {} : { base }),
  }
}

const lastEvidenceOf = ({ snapshot }: StoredRun): Evidence | null =>
  (JSON.parse(snapshot) as { readonly context: RunContext }).context.evidence.at(-1) ?? null

export class JobQueue extends JobList {
  readonly #engine: Engine
  readonly #seam: EngineSeam
  readonly #options: InferOutput<typeof queueOptionsSchema>
  readonly #workspace: WorkspaceParts
  #worker: JobWorker | null = null

  /** @internal Use `openJobs`. */
  constructor(engine: Engine, port: WorkspacePort, options: InferOutput<typeof queueOptionsSchema>) {
    const { seam } = engine
    super({
      store: seam.store,
      clock: seam.clock,
      logger: seam.logger,
      newId: seam.newId,
      workspaces: port,
      isClosed: () => seam.isClosing(),
    })
    this.#engine = engine
    this.#seam = seam
    this.#options = options
    // The store tells of what others write; of what this engine's own runs do, the engine does.
    engine.subscribe(() => {
      super.nudge()
    })
    this.#workspace = {
      jobs: seam.store.jobs,
      logger: seam.logger,
      workspaces: options.workspaces === null ? null : { port, root: resolve(options.workspaces.root) },
      wishOf: ({ row }) => wishOf(keptOf(row)),
    }
  }

  /**
   * Works the queue: claims what may be started, in its order and under the caps, and sees each run to its end.
   *
   * @returns why it ended, how many runs it started, and those that were not proven gone in time. Never rejects for what a job does.
   * @throws `invalid-option`; `engine-closing`; `refused` when this queue is being worked already.
   */
  async work(options: WorkOptions = {}): Promise<WorkReport> {
    const { until, signal } = parseOptions(workOptionsSchema, options, 'work')
    if (this.#worker !== null) throw new RunwardenError('refused', 'work: this queue is being worked already')
    const worker = new JobWorker(this.#portsOf(options))
    this.#worker = worker
    const onAbort = (): void => {
      worker.stop()
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted === true) onAbort()
    try {
      return await worker.work(until)
    } finally {
      signal?.removeEventListener('abort', onAbort)
      this.#worker = null
      this.nudge()
    }
  }

  /** @internal */
  protected override nudge(): void {
    super.nudge()
    this.#worker?.nudge()
  }

  #portsOf({ onRun }: WorkOptions): WorkPorts {
    const { engineId, store, clock, logger, newId, claims, isGone, isClosing } = this.#engine.seam
    const { caps } = this.#options
    return {
      engineId,
      jobs: store.jobs,
      clock,
      logger,
      caps: { total: caps.total, perProject: caps.perProject, perAccount: caps.perAccount },
      claims,
      newId,
      prepare: (job) => prepareWorkspace(this.#workspace, job),
      start: async (job, runId, place) => {
        const protocol = await protocolFor(keptOf(job.row), this.#options.protocols)
        const run = await this.#seam.start(runSpecOf(job, runId, place, protocol), job.row.id)
        if (onRun !== undefined) this.#introduce(run, { ...job, workspace: place }, onRun)
        return { ended: Promise.all([run.outcome, run.gone]) }
      },
      interrupt: (runIds, reason) => this.#interrupt(runIds, reason),
      noteEnd: async (jobId, runId) => {
        const run = await store.loadRun(runId)
        const evidence = run === null ? null : lastEvidenceOf(run)
        await markWorkspace(this.#workspace, jobId, { runId, evidence })
      },
      recover: () =>
        recoverJobs({
          engineId,
          jobs: store.jobs,
          clock,
          claims,
          isGone,
          ownerOf: async (runId) => {
            const run = await store.loadRun(runId)
            return run === null || run.head.doneAt !== null ? null : run.owner
          },
          recoverRun: (runId) => {
            this.#seam.recover(runId).catch((error: unknown) => {
              logger.warn(
                { run: runId, error: messageOf(error) },
                "a dead engine's run could not be taken up",
              )
            })
          },
        }),
      changeToken: () => store.changeToken(),
      isClosing,
      changed: () => {
        super.nudge()
      },
    }
  }

  async #interrupt(runIds: readonly string[], reason: string): Promise<readonly string[]> {
    const { isClosing, closed } = this.#seam
    // Closing ends them, or leaves them: it says which.
    if (isClosing()) return (await closed()).left.filter((runId) => runIds.includes(runId))
    const receipt = await this.#engine.stop(
      { run: [...runIds] },
      { mode: 'interrupt', by: 'jobs', reason, fence: false },
    )
    return receipt.runs
      .filter(({ status }) => status !== 'confirmed' && status !== 'already-terminal')
      .map(({ runId }) => runId)
  }

  #introduce(run: Run, job: StoredJob, onRun: NonNullable<WorkOptions['onRun']>): void {
    const failed = (error: unknown): void => {
      this.#seam.logger.error({ run: run.id, error: messageOf(error) }, 'onRun failed')
    }
    try {
      Promise.resolve(onRun(run, { ...toRecord(job), runId: run.id })).catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}
