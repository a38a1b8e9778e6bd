/** From the tables' rows to what the actors read. Pure. */
import type { Containment, PaneRecord } from '../../actors/ports.js'
import type { EvidenceKind, ExecutionRow, StoredRun, Survivor } from '../../actors/store.ports.js'
import type { ExecutionTable, RunTable } from './schema.js'

/** Stored JSON, as the type that was stored. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- it names the cast at each use
export const parse = <T>(text: string): T => JSON.parse(text) as T

/** A key only where there is a value. */
export const optional = <K extends string, V>(name: K, value: V | null): Partial<Record<K, V>> =>
  (value === null ? {} : { [name]: value }) as Partial<Record<K, V>>

export const toRun = (row: RunTable): StoredRun => ({
  owner: row.owner,
  rev: row.rev,
  machineVersion: row.machine_version,
  snapshot: row.snapshot,
  row: {
    id: row.id,
    session: row.session,
    task: row.task,
    labels: parse(row.labels),
    program: row.program,
    protocol: row.protocol,
    job: row.job_id,
    parent: row.parent,
    onParentCancel: row.on_parent_cancel === 'keep' ? 'keep' : 'cancel',
    createdAt: row.created_at,
  },
  head: {
    work: row.work,
    process: row.process,
    delivery: row.delivery,
    headline: row.headline,
    attempt: row.attempt,
    generation: row.generation,
    outcome: row.outcome,
    lastProgressAt: row.last_progress_at,
    settledAt: row.settled_at,
    doneAt: row.done_at,
  },
})

export const toExecution = (row: ExecutionTable): ExecutionRow & { readonly runId: string } => ({
  runId: row.run_id,
  attempt: row.attempt,
  marks: { cookie: row.cookie, limit: row.limit_mark, ...optional('cgroup', row.cgroup) },
  containment: row.containment as Containment,
  ...(row.surface === null ? {} : { pane: parse<PaneRecord>(row.surface) }),
  logPath: row.log_path,
  requestedAt: row.requested_at,
  ...(row.pid === null || row.start_ticks === null || row.boot_id === null || row.pid_namespace === null
    ? {}
    : {
        identity: {
          pid: row.pid,
          startTicks: row.start_ticks,
          bootId: row.boot_id,
          pidNamespace: row.pid_namespace,
        },
      }),
  ...optional('launchedAt', row.launched_at),
  ...optional('exitedAt', row.exited_at),
  ...(row.exited_at === null ? {} : { exit: { exitCode: row.exit_code, signal: row.exit_signal } }),
  ...optional('confirmedAt', row.confirmed_at),
  ...optional('evidence', row.evidence as EvidenceKind | null),
  survivors: parse<Survivor[]>(row.survivors),
})
