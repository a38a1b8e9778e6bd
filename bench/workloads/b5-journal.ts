/** B5: durable transitions a second, of one run and of many at once; against the same rows in prepared statements, batch by batch. */
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { OURS } from '../contract.js'
import type { Params, Sample, Workload } from '../contract.js'
import { inFolder, nowMs } from '../machine.js'
import { GroupCommit, engineOptionsSchema, openStore, parseOptions, systemClock } from '../../src/internal.js'
import { runWrite } from '../../test/support/writes.js'

/** As large as the snapshot of a run in its middle. */
const SNAPSHOT = JSON.stringify({ value: 'x'.repeat(150), context: 'x'.repeat(850) })

const writeOf = (run: number, rev: number) => runWrite(`run-${run}`, rev, { write: { snapshot: SNAPSHOT } })

const ignore = (): void => undefined
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore }

const openMigrated = (folder: string) =>
  openStore(parseOptions(engineOptionsSchema, { database: join(folder, 'runs.db') }, 'bench'))

const sampleOf = (startedMs: number, folder: string, transitions: number): Sample => {
  const value = (nowMs() - startedMs) * (1_000 / transitions)
  const file = new BetterSqlite3(join(folder, 'runs.db'), { readonly: true })
  const recorded = file.prepare("select count(*) as rows from runwarden_transition where kind = 'run'").get()
  const heads = file.prepare('select min(rev) as low, max(rev) as high from runwarden_run').get()
  file.close()
  return { value, more: { perSecond: 1e6 / value }, result: { recorded, heads } }
}

const ours = ({ runs = 1, transitions = 1 }: Params): Promise<Sample> =>
  inFolder(async (folder) => {
    const store = await openMigrated(folder)
    const commits = new GroupCommit(store, systemClock, silent)
    const startedMs = nowMs()
    const live = async (run: number): Promise<void> => {
      for (let rev = 0; rev < transitions / runs; rev += 1) await commits.submit(writeOf(run, rev))
    }
    await Promise.all(Array.from({ length: runs }, (_, run) => live(run)))
    const sample = sampleOf(startedMs, folder, transitions)
    await commits.close(10_000, () => store.close())
    return sample
  })

const CREATE = `insert into runwarden_run (id, session, task, labels, program, protocol, job_id, parent, on_parent_cancel, created_at,
  machine_version, rev, owner, snapshot, work, process, delivery, headline, attempt, generation, outcome, last_progress_at, settled_at,
  done_at, updated_at) values (?, null, null, '{}', 'true', 'lines', null, null, 'cancel', 1, 1, ?, 'e1', ?, 'open.accepted', 'waiting',
  'pending', 'accepted', 1, 1, null, null, null, null, 1)`
const UPDATE = `update runwarden_run set machine_version = 1, rev = ?, snapshot = ?, work = 'open.accepted', process = 'waiting',
  delivery = 'pending', headline = 'accepted', attempt = 1, generation = 1, outcome = null, last_progress_at = null, settled_at = null,
  done_at = null, updated_at = 1 where id = ? and rev = ? and owner = 'e1'`
const JOURNAL = `insert into runwarden_transition (kind, actor, rev, at, event, detail, from_state, to_state)
  values ('run', ?, ?, 1, 'event', '{}', '{}', '{}')`

const raw = ({ runs = 1, transitions = 1 }: Params): Promise<Sample> =>
  inFolder(async (folder) => {
    await (await openMigrated(folder)).close()
    const file = new BetterSqlite3(join(folder, 'runs.db'))
    file.pragma('synchronous = FULL')
    const [create, update, journal] = [file.prepare(CREATE), file.prepare(UPDATE), file.prepare(JOURNAL)]
    const commit = file.transaction((rev: number) => {
      for (let run = 0; run < runs; run += 1) {
        const id = `run-${run}`
        if (rev === 0) create.run(id, rev, SNAPSHOT)
        else update.run(rev, SNAPSHOT, id, rev - 1)
        journal.run(id, rev)
      }
    })
    const startedMs = nowMs()
    for (let rev = 0; rev < transitions / runs; rev += 1) {
      commit(rev)
      // Whoever waits for the verdict goes on in a later turn, as with us.
      await new Promise((resolve) => setImmediate(resolve))
    }
    const sample = sampleOf(startedMs, folder, transitions)
    file.close()
    return sample
  })

export const journal: Workload = {
  id: 'B5',
  title: 'durable transitions, many runs sharing a commit',
  unit: 'µs a transition',
  floor: 'better-sqlite3',
  reach: '≤ 2 × better-sqlite3 at 256 runs at once',
  isReached: (of) => of(OURS).ratio <= 2,
  sizes: [
    { runs: 1, transitions: 2_000 },
    { runs: 16, transitions: 16_000 },
    { runs: 256, transitions: 51_200 },
  ],
  tiny: { runs: 4, transitions: 40 },
  contenders: [
    { name: 'better-sqlite3', run: raw },
    { name: OURS, run: ours },
  ],
}
