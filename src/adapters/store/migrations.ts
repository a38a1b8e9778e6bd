/**
 * The schema, as ordinary Kysely migrations: forward only, in order (S1). Exported so that a host runs them in its own migrator.
 * A released migration is never edited; a change is a new one, and `SCHEMA_VERSION` counts them.
 */
import type { Kysely, Migration } from 'kysely'
import { isPostgres } from './dialect.js'

export const SCHEMA_VERSION = 5

/** `?` marks a column that may be null. `whole` is a whole number below 2⁵³. */
type ColumnKind = 'text' | 'text?' | 'whole' | 'whole?'

/** Whole numbers come back as numbers on every dialect; a PostgreSQL bigint would arrive as text. */
const wholeNumber = (db: Kysely<unknown>): 'double precision' | 'integer' =>
  isPostgres(db) ? 'double precision' : 'integer'

const createTable = async (
  db: Kysely<unknown>,
  name: string,
  key: readonly string[],
  columns: Readonly<Record<string, ColumnKind>>,
): Promise<void> => {
  let table = db.schema.createTable(name)
  for (const [column, kind] of Object.entries(columns)) {
    table = table.addColumn(column, kind.startsWith('text') ? 'text' : wholeNumber(db), (definition) =>
      kind.endsWith('?') ? definition : definition.notNull(),
    )
  }
  await table.addPrimaryKeyConstraint(`${name}_key`, [...key] as never[]).execute()
}

const createIndex = async (db: Kysely<unknown>, table: string, columns: readonly string[]): Promise<void> => {
  await db.schema
    .createIndex(`${table}_by_${columns.join('_')}`)
    .on(table)
    .columns([...columns])
    .execute()
}

/** What older versions of the library look at before they use a store. */
const setVersion = async (db: Kysely<unknown>, version: number): Promise<void> => {
  await db
    .withTables<{ runwarden_meta: { name: string; value: string } }>()
    .updateTable('runwarden_meta')
    .set({ value: String(version) })
    .where('name', '=', 'schema-version')
    .execute()
}

const core: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createTable(db, 'runwarden_meta', ['name'], { name: 'text', value: 'text' })
    await createTable(db, 'runwarden_run', ['id'], {
      id: 'text',
      session: 'text?',
      task: 'text?',
      labels: 'text',
      program: 'text',
      protocol: 'text',
      machine_version: 'whole',
      rev: 'whole',
      owner: 'text',
      snapshot: 'text',
      work: 'text',
      process: 'text',
      delivery: 'text',
      headline: 'text',
      attempt: 'whole',
      generation: 'whole',
      outcome: 'text?',
      last_progress_at: 'whole?',
      created_at: 'whole',
      updated_at: 'whole',
      settled_at: 'whole?',
      done_at: 'whole?',
    })
    await createTable(db, 'runwarden_transition', ['kind', 'actor', 'rev'], {
      kind: 'text',
      actor: 'text',
      rev: 'whole',
      at: 'whole',
      event: 'text',
      detail: 'text',
      from_state: 'text',
      to_state: 'text',
    })
    await createTable(db, 'runwarden_effect', ['kind', 'actor', 'rev', 'idx'], {
      kind: 'text',
      actor: 'text',
      rev: 'whole',
      idx: 'whole',
      effect: 'text',
      body: 'text',
      started_at: 'whole?',
      done_at: 'whole?',
    })
    await createTable(db, 'runwarden_timer', ['kind', 'actor', 'timer'], {
      kind: 'text',
      actor: 'text',
      timer: 'text',
      token: 'text',
      due_at: 'whole',
      delay_ms: 'whole',
      event: 'text',
    })
    await createTable(db, 'runwarden_execution', ['run_id', 'attempt'], {
      run_id: 'text',
      attempt: 'whole',
      cookie: 'text',
      limit_mark: 'whole?',
      containment: 'text',
      log_path: 'text?',
      pid: 'whole?',
      start_ticks: 'whole?',
      boot_id: 'text?',
      pid_namespace: 'text?',
      requested_at: 'whole',
      launched_at: 'whole?',
      exited_at: 'whole?',
      exit_code: 'whole?',
      exit_signal: 'text?',
      confirmed_at: 'whole?',
      evidence: 'text?',
      survivors: 'text',
    })
    await createTable(db, 'runwarden_stop_order', ['id'], {
      id: 'text',
      owner: 'text',
      machine_version: 'whole',
      rev: 'whole',
      snapshot: 'text',
      scope: 'text',
      mode: 'text',
      is_forced: 'whole',
      is_fenced: 'whole',
      reason: 'text',
      requested_by: 'text',
      requested_at: 'whole',
      state: 'text',
      settled_at: 'whole?',
    })
    await createTable(db, 'runwarden_stop_order_run', ['order_id', 'run_id'], {
      order_id: 'text',
      run_id: 'text',
      owner: 'text?',
      status: 'text',
      line: 'text',
    })
    await createTable(db, 'runwarden_notice', ['run_id', 'generation', 'kind'], {
      run_id: 'text',
      generation: 'whole',
      kind: 'text',
      text: 'text',
      at: 'whole',
      withdrawn_at: 'whole?',
    })
    await createTable(db, 'runwarden_result', ['run_id'], {
      run_id: 'text',
      delivery_id: 'text',
      body: 'text',
      at: 'whole',
      acknowledged_at: 'whole?',
    })
    await createTable(db, 'runwarden_engine', ['id'], {
      id: 'text',
      pid: 'whole',
      start_ticks: 'whole',
      boot_id: 'text',
      pid_namespace: 'text',
      host_id: 'text',
      version: 'text',
      started_at: 'whole',
      heartbeat_at: 'whole',
      closed_at: 'whole?',
      machine_version: 'whole',
      rev: 'whole',
      snapshot: 'text',
      state: 'text',
    })
    await db
      .withTables<{ runwarden_meta: { name: string; value: string } }>()
      .insertInto('runwarden_meta')
      .values({ name: 'schema-version', value: '1' })
      .execute()
    const indexes: readonly (readonly [table: string, ...columns: string[]])[] = [
      ['runwarden_run', 'done_at', 'owner'],
      ['runwarden_run', 'session'],
      ['runwarden_run', 'task'],
      ['runwarden_run', 'settled_at'],
      ['runwarden_stop_order', 'settled_at', 'is_fenced'],
      ['runwarden_stop_order_run', 'owner', 'status'],
      ['runwarden_stop_order_run', 'run_id'],
    ]
    for (const [table, ...columns] of indexes) await createIndex(db, table, columns)
  },
}

const jobs: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('runwarden_run').addColumn('job_id', 'text').execute()
    await createTable(db, 'runwarden_job', ['id'], {
      id: 'text',
      token: 'text',
      title: 'text?',
      project: 'text?',
      account: 'text?',
      program: 'text',
      spec: 'text',
      place: 'whole',
      state: 'text',
      attempts_left: 'whole',
      attempts_spent: 'whole',
      run_id: 'text?',
      engine_id: 'text?',
      workspace: 'text?',
      machine_version: 'whole',
      rev: 'whole',
      snapshot: 'text',
      created_at: 'whole',
      updated_at: 'whole',
      ended_at: 'whole?',
    })
    await createTable(db, 'runwarden_job_after', ['job_id', 'after_id'], { job_id: 'text', after_id: 'text' })
    await createTable(db, 'runwarden_queue', ['name'], {
      name: 'text',
      rev: 'whole',
      held_at: 'whole?',
      held_by: 'text?',
      held_reason: 'text?',
    })
    const tables = db.withTables<{
      runwarden_queue: { name: string; rev: number }
      runwarden_meta: { name: string; value: string }
    }>()
    await tables.insertInto('runwarden_queue').values({ name: 'jobs', rev: 0 }).execute()
    await setVersion(db, 2)
    // The first finds what is next, passing over full projects and accounts in the index alone; the second lists.
    await createIndex(db, 'runwarden_job', ['state', 'place', 'id', 'project', 'account'])
    await createIndex(db, 'runwarden_job', ['ended_at', 'place', 'id'])
    await createIndex(db, 'runwarden_job_after', ['after_id'])
  },
}

/** What a run is a part of, and what the host made of an outcome. */
const delivery: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    const columns = [
      ['runwarden_run', 'parent'],
      ['runwarden_run', 'on_parent_cancel'],
      ['runwarden_result', 'finalized'],
    ] as const
    for (const [table, column] of columns) {
      await db.schema.alterTable(table).addColumn(column, 'text').execute()
    }
    await createIndex(db, 'runwarden_run', ['parent'])
    await setVersion(db, 3)
  },
}

/** Where the process of an execution shows itself. */
const surface: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('runwarden_execution').addColumn('surface', 'text').execute()
    await setVersion(db, 4)
  },
}

/** The folder of the cgroup that an execution is held by. */
const cgroup: Migration = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('runwarden_execution').addColumn('cgroup', 'text').execute()
    await setVersion(db, 5)
  },
}

/** All migrations by name, for `new Migrator({ provider: { getMigrations: async () => migrations } })`. */
export const migrations: Readonly<Record<string, Migration>> = {
  runwarden_0001_core: core,
  runwarden_0002_jobs: jobs,
  runwarden_0003_delivery: delivery,
  runwarden_0004_surface: surface,
  runwarden_0005_cgroup: cgroup,
}
