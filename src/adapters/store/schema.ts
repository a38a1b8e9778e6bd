/** The tables, as Kysely sees them. JSON is text, times are wall-clock ms, booleans are 0 and 1: the same on every dialect. */
import type { Insertable, Kysely, Transaction } from 'kysely'

export interface RunTable {
  id: string
  session: string | null
  task: string | null
  labels: string
  program: string
  protocol: string
  job_id: string | null
  parent: string | null
  on_parent_cancel: string | null
  machine_version: number
  rev: number
  owner: string
  snapshot: string
  work: string
  process: string
  delivery: string
  headline: string
  attempt: number
  generation: number
  outcome: string | null
  last_progress_at: number | null
  created_at: number
  updated_at: number
  settled_at: number | null
  done_at: number | null
}

export interface TransitionTable {
  kind: string
  actor: string
  rev: number
  at: number
  event: string
  detail: string
  from_state: string
  to_state: string
}

export interface EffectTable {
  kind: string
  actor: string
  rev: number
  idx: number
  effect: string
  body: string
  started_at: number | null
  done_at: number | null
}

export interface TimerTable {
  kind: string
  actor: string
  timer: string
  token: string
  due_at: number
  delay_ms: number
  event: string
}

export interface ExecutionTable {
  run_id: string
  attempt: number
  cookie: string
  limit_mark: number | null
  containment: string
  /** The pane it lives in, as JSON. */
  surface: string | null
  /** The folder of its cgroup. */
  cgroup: string | null
  log_path: string | null
  pid: number | null
  start_ticks: number | null
  boot_id: string | null
  pid_namespace: string | null
  requested_at: number
  launched_at: number | null
  exited_at: number | null
  exit_code: number | null
  exit_signal: string | null
  confirmed_at: number | null
  evidence: string | null
  survivors: string
}

export interface StopOrderTable {
  id: string
  owner: string
  machine_version: number
  rev: number
  snapshot: string
  scope: string
  mode: string
  is_forced: number
  is_fenced: number
  reason: string
  requested_by: string
  requested_at: number
  state: string
  settled_at: number | null
}

export interface StopOrderRunTable {
  order_id: string
  run_id: string
  /** The engine that must answer: null once this order's own engine has. */
  owner: string | null
  status: string
  line: string
}

export interface NoticeTable {
  run_id: string
  kind: string
  text: string
  generation: number
  at: number
  withdrawn_at: number | null
}

export interface ResultTable {
  run_id: string
  delivery_id: string
  body: string
  at: number
  finalized: string | null
  acknowledged_at: number | null
}

export interface EngineTable {
  id: string
  pid: number
  start_ticks: number
  boot_id: string
  pid_namespace: string
  host_id: string
  version: string
  started_at: number
  heartbeat_at: number
  closed_at: number | null
  machine_version: number
  rev: number
  snapshot: string
  state: string
}

export interface JobTable {
  id: string
  token: string
  title: string | null
  project: string | null
  account: string | null
  program: string
  spec: string
  /** Orders the queue; only the order means anything. */
  place: number
  state: string
  attempts_left: number
  attempts_spent: number
  /** The claim: the run it is, or will be, done by, and the engine that claimed it. */
  run_id: string | null
  engine_id: string | null
  workspace: string | null
  machine_version: number
  rev: number
  snapshot: string
  created_at: number
  updated_at: number
  ended_at: number | null
}

export interface JobAfterTable {
  job_id: string
  after_id: string
}

/** One row: what holds for the queue as a whole. Every change of the queue's order updates it first, and so waits for the others. */
export interface QueueTable {
  name: string
  rev: number
  held_at: number | null
  held_by: string | null
  held_reason: string | null
}

export interface MetaTable {
  name: string
  value: string
}

export interface Database {
  runwarden_run: RunTable
  runwarden_transition: TransitionTable
  runwarden_effect: EffectTable
  runwarden_timer: TimerTable
  runwarden_execution: ExecutionTable
  runwarden_stop_order: StopOrderTable
  runwarden_stop_order_run: StopOrderRunTable
  runwarden_notice: NoticeTable
  runwarden_result: ResultTable
  runwarden_engine: EngineTable
  runwarden_job: JobTable
  runwarden_job_after: JobAfterTable
  runwarden_queue: QueueTable
  runwarden_meta: MetaTable
}

export type Db = Kysely<Database>
export type Tx = Transaction<Database>
export type NewRow<T extends keyof Database> = Insertable<Database[T]>
