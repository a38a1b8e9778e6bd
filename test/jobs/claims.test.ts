/** Two engines over one store never have one job twice; and what each operation costs as the queue grows. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openJobs } from '../../src/jobs.js'
import type { JobSpec } from '../../src/jobs.js'
import { openTestEngine } from '../support/engine.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'
import { openTestList, openTestQueue } from './queue.js'
import { cli, start } from '../cli/cli.js'

const CLAIMS = Number(process.env['RUNWARDEN_CLAIMS'] ?? 1_000)
const JOBS_MAX = Number(process.env['RUNWARDEN_JOBS'] ?? 10_000)

const median = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? NaN

describe('claims', () => {
  it(`INV-8: ${CLAIMS} jobs claimed by two engines at once, each by one of them, in the order of the queue`, async () => {
    const { queue, engine, database } = await openTestQueue()
    await queue.addAll(Array.from({ length: CLAIMS }, (_, index) => ({ id: `j${index}`, command: ['true'] })))
    const other = await openTestEngine({ database })
    const caps = { total: CLAIMS + 1, perProject: undefined, perAccount: undefined }
    const claimAll = async ({ seam }: typeof engine): Promise<string[]> => {
      const claimed: string[] = []
      for (;;) {
        const runId = `${seam.engineId}-${claimed.length}`
        const reply = await seam.store.jobs.claim({ runId, engineId: seam.engineId, at: 1, caps, except: [] })
        if (reply.kind !== 'claimed') return claimed
        claimed.push(reply.job.row.id)
        if (claimed.length % 97 !== 0) continue
        // An answer that was lost: asked again, the same claim stands.
        const again = await seam.store.jobs.claim({ runId, engineId: seam.engineId, at: 1, caps, except: [] })
        if (again.kind === 'claimed') expect(again.job.row.id).toBe(claimed.at(-1))
      }
    }
    const [first, second] = await Promise.all([claimAll(engine), claimAll(other)])
    expect(new Set([...first, ...second]).size).toBe(CLAIMS)
    expect(first.length + second.length).toBe(CLAIMS)
    const placeOf = (id: string): number => Number(id.slice(1))
    for (const claimed of [first, second]) {
      const places = claimed.map(placeOf)
      expect(places).toEqual([...places].sort((a, b) => a - b))
    }
  }, 120_000)

  it('INV-8: two processes work one queue, and every job is run once', async () => {
    const folder = tempDir()
    const [database, notes] = [join(folder, 'runs.db'), join(folder, 'notes')]
    writeFileSync(notes, '')
    const list = await openTestList(database)
    const ids = Array.from({ length: 30 }, (_, index) => `j${index}`)
    for (const id of ids) await list.add({ id, command: ['sh', '-c', `echo ${id} >> '${notes}'`] })
    const args = ['jobs', 'work', '--db', database, '--total', '6']
    const works = await Promise.all([cli(args), cli(args)])
    for (const { code, stderr } of works) expect(code, stderr).toBe(0)
    const ran = readFileSync(notes, 'utf8').trim().split('\n')
    expect(ran.sort()).toEqual([...ids].sort())
    expect((await list.count()).done).toBe(30)
  }, 120_000)

  it('INV-8: case 27: of a drop and a launch of one claimed job one wins, and nothing runs behind a dropped job', async () => {
    const { queue, engine } = await openTestQueue()
    const random = seededRandom(Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000))
    for (let round = 0; round < 20; round += 1) {
      const id = `j${round}`
      await queue.add({ id, command: ['sleep', '60'], stop: { termGraceMs: 100 } })
      const runId = `run-${round}`
      const { seam } = engine
      const caps = { total: 1, perProject: undefined, perAccount: undefined }
      await seam.store.jobs.claim({ runId, engineId: seam.engineId, at: 1, caps, except: [] })
      const launching = seam.start({ id: runId, command: ['sleep', '60'], stop: { termGraceMs: 100 } }, id)
      for (let turns = Math.floor(random() * 4); turns > 0; turns -= 1) await Promise.resolve()
      const [launched, dropped] = await Promise.allSettled([launching, queue.drop(id)])
      expect([launched.status, dropped.status].filter((status) => status === 'fulfilled')).toHaveLength(1)
      if (launched.status === 'fulfilled') {
        await launched.value.cancel({ force: true })
        await launched.value.gone
      } else {
        expect(launched.reason).toMatchObject({ code: 'refused' })
        await expect(engine.history(runId)).rejects.toMatchObject({ code: 'unknown-run' })
      }
      expect(await queue.get(id)).toMatchObject({ state: 'cancelled' })
    }
    expect(engine.live()).toEqual([])
  }, 120_000)
})

describe('recovery', () => {
  it('R5, O13: a claim of a dead engine goes back to its place, that of a living one stays', async () => {
    const folder = tempDir()
    const database = join(folder, 'runs.db')
    const { queue, engine } = await openTestQueue({ caps: { total: 9 } }, database)
    for (const id of ['a', 'b']) await queue.add({ id, command: ['sleep', '60'], review: true })
    const caps = { total: 9, perProject: undefined, perAccount: undefined }
    const dead = await openTestEngine({ database })
    await dead.seam.store.jobs.claim({ runId: 'lost', engineId: dead.id, at: 1, caps, except: [] })
    await engine.seam.store.jobs.claim({ runId: 'kept', engineId: engine.id, at: 1, caps, except: [] })
    engine.seam.claims.add('kept')
    await dead.close()
    const next = await openTestEngine({ database })
    const other = await openJobs(next, { caps: { total: 1 } })
    const leave = new AbortController()
    const work = other.work({ until: 'stopped', signal: leave.signal })
    await waitFor(async () => (await queue.get('a')).state === 'pending', {
      deadlineMs: 20_000,
      what: 'the lost claim is given back',
    })
    leave.abort()
    await work
    expect(await queue.get('a')).toMatchObject({ state: 'pending', attemptsSpent: 0 })
    expect(await queue.get('b')).toMatchObject({ state: 'active', phase: 'claimed' })
  })
})

describe('growth', () => {
  it('O11: add, list, reorder and claim cost the same with ten and a hundred times the jobs', async () => {
    const { queue, engine } = await openTestQueue()
    const { seam } = engine
    const random = seededRandom(7)
    const rows: string[] = []
    const costs = new Map<number, Readonly<Record<string, number>>>()
    let added = 0
    const timed = async (act: () => Promise<unknown>): Promise<number> => {
      const startedAt = performance.now()
      await act()
      return performance.now() - startedAt
    }
    const several = async (act: () => Promise<unknown>): Promise<number> => {
      const times: number[] = []
      for (let index = 0; index < 25; index += 1) times.push(await timed(act))
      return median(times)
    }
    const anyJob = (): string => `j${Math.floor(random() * added)}`
    for (const size of [100, 1_000, JOBS_MAX]) {
      const next = (): JobSpec => {
        added += 1
        return { id: `j${added - 1}`, command: ['true'], project: `p${added % 7}` }
      }
      await queue.addAll(Array.from({ length: size - added }, next))
      const add = await several(() => queue.add(next()))
      const page = await several(() => queue.list({ limit: 100 }))
      const later = await several(() => queue.list({ limit: 100, behind: anyJob() }))
      const reorder = await several(async () => {
        const [one, other] = [anyJob(), anyJob()]
        if (one !== other) await queue.reorder(one, { before: other })
      })
      const caps = { total: JOBS_MAX, perProject: { p0: 0, p1: 0 }, perAccount: undefined }
      let number = 0
      const claim = await several(async () => {
        number += 1
        const runId = `r${size}-${number}`
        const reply = await seam.store.jobs.claim({ runId, engineId: seam.engineId, at: 1, caps, except: [] })
        if (reply.kind !== 'claimed') throw new Error('nothing was claimed')
        await seam.store.jobs.tell(reply.job.row.id, { type: 'job.unclaim', at: 1, runId, reason: '' })
      })
      const figures = { add, page, 'a page in the middle': later, reorder, 'claim and unclaim': claim }
      costs.set(size, figures)
      rows.push(
        `${String(size).padStart(6)} jobs: ${Object.entries(figures)
          .map(([what, ms]) => `${what} ${ms.toFixed(2)} ms`)
          .join(', ')}`,
      )
    }
    console.log(rows.join('\n'))
    const [few, many] = [costs.get(100) ?? {}, costs.get(JOBS_MAX) ?? {}]
    // What read or moved the whole queue would be a hundred times as long. In milliseconds, with room for a machine that is busy.
    const grown = Object.keys(few).filter((what) => !((many[what] ?? NaN) < 5 * (few[what] ?? NaN) + 15))
    expect(grown, rows.join('\n')).toEqual([])
  }, 300_000)
})

it('O9: SIGTERM of a worker is clean: its jobs are in their places, nothing is left, exit code 0', async () => {
  const database = join(tempDir(), 'runs.db')
  const list = await openTestList(database)
  for (const id of ['a', 'b', 'c'])
    await list.add({ id, command: ['sleep', '600'], stop: { termGraceMs: 200 } })
  const worker = start(['jobs', 'work', '--db', database, '--total', '2', '--json'])
  await waitFor(
    async () => {
      const jobs = await list.list({ states: ['active'] })
      return jobs.length === 2 && jobs.every(({ runHeadline }) => runHeadline !== null)
    },
    { deadlineMs: 60_000, what: 'two run' },
  )
  worker.kill('SIGTERM')
  const ended = await worker.ended
  expect(ended.code, ended.stderr).toBe(0)
  expect(ended.stdout.toString()).toContain('"type":"work-ended","reason":"stopped"')
  const jobs = await list.list()
  expect(jobs.map(({ jobId, state, attemptsSpent }) => [jobId, state, attemptsSpent])).toEqual([
    ['a', 'pending', 1],
    ['b', 'pending', 1],
    ['c', 'pending', 0],
  ])
}, 120_000)
