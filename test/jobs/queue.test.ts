/** The queue: its order, what may be changed when, and what a run does to its job. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openJobs } from '../../src/jobs.js'
import type { JobEventOut, JobSpec } from '../../src/jobs.js'
import { openTestEngine } from '../support/engine.js'
import { tempDir, waitFor } from '../support/wait-for.js'
import { idsOf, noting, openTestList, openTestQueue, quick } from './queue.js'

const job = (id: string, extra: Partial<JobSpec> = {}): JobSpec => ({ id, command: ['true'], ...extra })
const stuck = (id: string, extra: Partial<JobSpec> = {}): JobSpec =>
  job(id, { command: ['sleep', '600'], stop: quick, ...extra })

const linesIn = (file: string): string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')

describe('order', () => {
  it('O11: jobs stand in the order in which they were added, or at the place that was asked for', async () => {
    const { queue } = await openTestQueue()
    for (const id of ['b', 'd']) await queue.add(job(id))
    await queue.add(job('a', { place: { at: 'first' } }))
    await queue.add(job('c', { place: { before: 'd' } }))
    await queue.add(job('e', { place: { after: 'd' } }))
    expect(idsOf(await queue.list())).toEqual(['a', 'b', 'c', 'd', 'e'])
    await queue.reorder('a', { at: 'last' })
    await queue.reorder('e', { before: 'b' })
    await queue.reorder('d', { after: 'e' })
    expect(idsOf(await queue.list())).toEqual(['e', 'd', 'b', 'c', 'a'])
    await queue.reorder('e', { at: 'first' })
    await queue.reorder('a', { at: 'last' })
    expect(idsOf(await queue.list())).toEqual(['e', 'd', 'b', 'c', 'a'])
  })

  it('O11: any order can be asked for, also where the room between two places is used up', async () => {
    const { queue } = await openTestQueue()
    const expected = Array.from({ length: 12 }, (_, index) => `j${String(index).padStart(2, '0')}`)
    for (const id of expected) await queue.add(job(id))
    // Always into the same gap: halved until nothing is left, several times over.
    for (let round = 0; round < 150; round += 1) {
      const [id = ''] = expected.splice(round % 2 === 0 ? expected.length - 1 : 2, 1)
      expected.splice(1, 0, id)
      await queue.reorder(id, { after: expected[0] ?? '' })
    }
    expect(idsOf(await queue.list())).toEqual(expected)
  })

  it('O11: a page begins behind the job that it is told', async () => {
    const { queue } = await openTestQueue()
    const ids = Array.from({ length: 7 }, (_, index) => `j${index}`)
    for (const id of ids) await queue.add(job(id))
    const first = idsOf(await queue.list({ limit: 3 }))
    expect(first).toEqual(ids.slice(0, 3))
    expect(idsOf(await queue.list({ limit: 10, behind: 'j2' }))).toEqual(ids.slice(3))
    await expect(queue.list({ behind: 'nobody' })).rejects.toMatchObject({ code: 'unknown-job' })
  })
})

describe('the door', () => {
  it.each<[string, unknown, RegExp]>([
    ['an unknown key', { command: ['true'], prio: 1 }, /unknown option prio/],
    ['no command', { command: [] }, /option command must name a program/],
    ['no attempt', { command: ['true'], attempts: 0 }, /option attempts must be at least 1, got 0/],
    [
      'a folder that is not there',
      { command: ['true'], cwd: 'no/such' },
      /option cwd "no\/such" is not a folder/,
    ],
    [
      'a repository that is not there',
      { command: ['true'], workspace: { repository: 'no' } },
      /workspace\.repository "no"/,
    ],
    [
      'a way out of the worktree',
      { command: ['true'], cwd: '../x', workspace: { repository: '.' } },
      /below the worktree/,
    ],
  ])('O11: add refuses %s and names it', async (_what, spec, message) => {
    const { queue } = await openTestQueue()
    await expect(queue.add(spec as JobSpec)).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(message) as string,
    })
    expect(await queue.list()).toEqual([])
  })

  it('L8: an id is used by one job, also when two adds race', async () => {
    const { queue, database } = await openTestQueue()
    const other = await openTestList(database)
    const added = await Promise.allSettled([queue.add(job('a')), other.add(job('a')), queue.add(job('a'))])
    expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const refused = added.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    for (const reason of refused) expect(reason).toMatchObject({ code: 'job-exists' })
    expect(idsOf(await queue.list())).toEqual(['a'])
  })

  it('L7: arguments, the values of the environment and input are in no list, no journal and no event', async () => {
    const { queue } = await openTestQueue()
    const events: JobEventOut[] = []
    queue.subscribe((event) => events.push(event))
    const secret = 'hunter2'
    await queue.add({
      id: 'a',
      command: ['sh', '-c', `test "$TOKEN" = ${secret} && test "$(cat)" = ${secret}`],
      env: { set: { TOKEN: secret } },
      stdin: secret,
    })
    expect(await queue.work()).toMatchObject({ reason: 'idle', started: 1 })
    expect(await queue.get('a')).toMatchObject({ state: 'done', program: 'sh' })
    await waitFor(() => events.some(({ job: seen }) => seen?.state === 'done'), {
      deadlineMs: 10_000,
      what: 'the event',
    })
    const history = await queue.history('a')
    expect(history.spec).toMatchObject({
      program: 'sh',
      argumentCount: 2,
      env: { set: ['TOKEN'] },
      stdinBytes: 7,
    })
    const shown = JSON.stringify([history, events, await queue.list({ states: ['done'] })])
    expect(shown).not.toContain(secret)
    await expect(
      queue.add({ command: ['true', secret], env: { set: { A: `${secret}\0` } } }),
    ).rejects.not.toThrow(secret)
  })
})

describe('what is allowed when', () => {
  it('O11: remove is for pending jobs, drop for all that have no run going, and both say why not', async () => {
    const { queue, engine } = await openTestQueue({ caps: { total: 1 } })
    for (const spec of [stuck('going'), job('waiting'), job('then', { after: ['waiting'] })])
      await queue.add(spec)
    const leave = new AbortController()
    const work = queue.work({ signal: leave.signal, until: 'stopped' })
    const { runId } = await waitFor(
      async () => {
        const found = await queue.get('going')
        return found.phase === 'running' && found.runHeadline === 'accepted' && engine.live().length > 0
          ? found
          : null
      },
      { deadlineMs: 20_000, what: 'it runs' },
    )
    await expect(queue.drop('going')).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining(`run ${String(runId)}`) as string,
    })
    await expect(queue.remove('going')).rejects.toMatchObject({ code: 'refused' })
    await expect(queue.remove('waiting')).rejects.toThrow('is waited for by then')
    await expect(queue.accept('waiting')).rejects.toThrow('job waiting is pending')
    await queue.remove('then')
    await queue.remove('waiting')
    await expect(queue.get('waiting')).rejects.toMatchObject({ code: 'unknown-job' })
    leave.abort()
    expect(await work).toMatchObject({ reason: 'stopped', left: [] })
    expect(await queue.drop('going', { by: 'me', reason: 'not wanted' })).toMatchObject({
      state: 'cancelled',
      reason: 'not wanted',
    })
    await expect(queue.drop('going')).rejects.toThrow('job going is cancelled')
  })

  it('O11: what comes after a job waits until it is done, and is blocked when it is dropped', async () => {
    const { queue } = await openTestQueue({ caps: { total: 4 } })
    const file = join(tempDir(), 'notes')
    writeFileSync(file, '')
    await queue.add({ ...noting(file, 'second'), id: 'first', command: ['true'], review: true })
    await queue.add({ ...noting(file, 'second'), after: ['first'] })
    await queue.add({ ...noting(file, 'third'), after: ['second'] })
    await queue.add({ ...noting(file, 'free') })
    expect(await queue.work()).toMatchObject({ reason: 'idle', started: 2 })
    expect(linesIn(file)).toEqual(['free'])
    await queue.accept('first', { by: 'me' })
    await queue.work()
    expect(linesIn(file)).toEqual(['free', 'second', 'third'])
    await queue.add(job('x', { review: true }))
    await queue.add({ ...noting(file, 'y'), after: ['x'] })
    await queue.drop('x')
    expect(await queue.get('y')).toMatchObject({
      state: 'blocked',
      reason: 'job x, which it comes after, was dropped',
    })
    await expect(queue.add(job('z', { after: ['x'] }))).rejects.toMatchObject({ code: 'refused' })
    await queue.retry('y')
    await queue.work()
    expect(await queue.get('y')).toMatchObject({ state: 'done', after: [] })
  })

  it('O11: a held queue starts nothing, for every engine, until it is released', async () => {
    const { queue, database } = await openTestQueue()
    const other = await openTestList(database)
    await queue.add(job('a'))
    await other.hold({ by: 'me', reason: 'lunch' })
    expect(await queue.held()).toMatchObject({ by: 'me', reason: 'lunch' })
    expect(await queue.work()).toMatchObject({ reason: 'held', started: 0 })
    const leave = new AbortController()
    const work = queue.work({ until: 'stopped', signal: leave.signal })
    await other.release()
    await waitFor(async () => (await other.get('a')).state === 'done', {
      deadlineMs: 10_000,
      what: 'it was started',
    })
    leave.abort()
    expect(await work).toMatchObject({ reason: 'stopped', started: 1 })
  })
})

describe('caps', () => {
  it('O11: caps hold for all engines together; who may not run is passed over and keeps its place', async () => {
    const { queue, database } = await openTestQueue({
      caps: { total: 3, perProject: 1, perAccount: { lent: 0 } },
    })
    const second = await openJobs(await openTestEngine({ database }), { caps: { total: 3, perProject: 1 } })
    await queue.add(stuck('p1', { project: 'p' }))
    await queue.add(stuck('p2', { project: 'p' }))
    await queue.add(stuck('l', { account: 'lent' }))
    await queue.add(stuck('q', { project: 'q' }))
    await queue.add(stuck('free'))
    await queue.add(stuck('late'))
    const leave = new AbortController()
    const works = [queue.work({ until: 'stopped', signal: leave.signal })]
    const active = async (): Promise<string[]> => idsOf(await queue.list({ states: ['active'] }))
    await waitFor(async () => (await active()).length === 3, { deadlineMs: 20_000, what: 'three run' })
    works.push(second.work({ until: 'stopped', signal: leave.signal }))
    expect(await active()).toEqual(['p1', 'q', 'free'])
    expect(idsOf(await queue.list())).toEqual(['p1', 'p2', 'l', 'q', 'free', 'late'])
    leave.abort()
    await Promise.all(works)
    expect(idsOf(await queue.list({ states: ['pending'] }))).toEqual(['p1', 'p2', 'l', 'q', 'free', 'late'])
    expect((await queue.list()).map(({ attemptsSpent }) => attemptsSpent)).toEqual([1, 0, 0, 1, 1, 0])
  })

  it('O11: a run that is stopping holds its slot until it is proven gone', async () => {
    const { queue, engine } = await openTestQueue({ caps: { total: 1 } })
    const ignores = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.05; done']
    await queue.add(job('a', { command: ignores, stop: { termGraceMs: 1_500, killGraceMs: 5_000 } }))
    await queue.add(job('b'))
    const work = queue.work()
    const { runId } = await waitFor(
      async () => {
        const found = await queue.get('a')
        return found.phase === 'running' && engine.live().length > 0 ? found : null
      },
      { deadlineMs: 20_000, what: 'it runs' },
    )
    const stopping = engine.run(runId ?? '')?.cancel({ by: 'me' })
    const seen: string[] = []
    await waitFor(
      async () => {
        const [a, b] = [await queue.get('a'), await queue.get('b')]
        if (a.state === 'active') seen.push(b.state)
        return b.state === 'done'
      },
      { deadlineMs: 20_000, what: 'the other had its turn' },
    )
    expect(new Set(seen)).toEqual(new Set(['pending']))
    expect((await stopping)?.status).toBe('confirmed')
    expect(await queue.get('a')).toMatchObject({ state: 'cancelled', attemptsSpent: 1 })
    await work
  })
})

describe('what becomes of a job', () => {
  it.each<[string, Partial<JobSpec>, object]>([
    ['completed: done', {}, { state: 'done', attemptsLeft: 2, attemptsSpent: 1 }],
    ['completed, to be reviewed: review', { review: true }, { state: 'review', attemptsSpent: 1 }],
    [
      'failed until no attempt is left: exhausted',
      { command: ['false'], attempts: 2 },
      { state: 'exhausted', attemptsLeft: 0, attemptsSpent: 2, reason: 'exited with code 1' },
    ],
    [
      'a command that is not there: blocked, with the attempt of its run spent',
      { command: ['no-such-program-here'] },
      {
        state: 'blocked',
        attemptsLeft: 2,
        attemptsSpent: 1,
        reason: expect.stringContaining('no-such-program-here') as string,
      },
    ],
  ])('O12: %s', async (_what, extra, expected) => {
    const { queue } = await openTestQueue()
    await queue.add(job('before', { review: true }))
    await queue.add(job('a', extra))
    await queue.add(job('after', { review: true }))
    expect(await queue.work()).toMatchObject({ reason: 'idle', left: [] })
    expect(await queue.get('a')).toMatchObject(expected)
    const all = await queue.list({ states: ['review', 'done', 'exhausted', 'blocked'] })
    expect(idsOf(all)).toEqual(['before', 'a', 'after'])
  })

  it('O12: extend gives an exhausted job its place back, and retry sends reviewed work round again', async () => {
    const { queue } = await openTestQueue()
    await queue.add(job('a', { command: ['false'], attempts: 1 }))
    await queue.add(job('b', { review: true, attempts: 1 }))
    await queue.work()
    expect(idsOf(await queue.list())).toEqual(['a', 'b'])
    await expect(queue.retry('b')).rejects.toThrow('no attempt is left: extend it')
    expect(await queue.extend('a', { attempts: 2 })).toMatchObject({ state: 'pending', attemptsLeft: 2 })
    await queue.extend('b', { attempts: 1 })
    await queue.retry('b', { by: 'me' })
    await queue.work()
    expect(await queue.get('a')).toMatchObject({ state: 'exhausted', attemptsSpent: 3 })
    expect(await queue.get('b')).toMatchObject({ state: 'review', attemptsSpent: 2 })
    expect(await queue.accept('b')).toMatchObject({ state: 'done' })
  })

  it('O9: an interrupted job is pending in the place it held, and its next run comes after the last one is gone', async () => {
    const { queue, engine } = await openTestQueue({ caps: { total: 1 } })
    const file = join(tempDir(), 'notes')
    writeFileSync(file, '')
    // A second run that found the first one alive would say so.
    const script = `trap "sleep 0.3; rmdir '${file}.held'; exit 0" TERM; mkdir '${file}.held' || echo twice >> '${file}'; echo go >> '${file}'; while :; do sleep 0.05; done`
    await queue.add(job('a', { command: ['sh', '-c', script], stop: { termGraceMs: 5_000 }, attempts: 3 }))
    await queue.add(job('b'))
    const work = queue.work()
    for (const round of [1, 2, 3]) {
      await waitFor(() => linesIn(file).length === round, { deadlineMs: 20_000, what: `run ${round}` })
      const { runId, state } = await queue.get('a')
      expect(state).toBe('active')
      expect((await engine.run(runId ?? '')?.interrupt({ reason: 'test' }))?.status).toBe('confirmed')
    }
    expect(await work).toMatchObject({ reason: 'idle', started: 4 })
    expect(linesIn(file)).toEqual(['go', 'go', 'go'])
    expect(await queue.get('a')).toMatchObject({
      state: 'exhausted',
      attemptsSpent: 3,
      reason: 'interrupted',
    })
    expect(idsOf(await queue.list())).toEqual(['a'])
    expect(await queue.get('b')).toMatchObject({ state: 'done' })
  })

  it('O13: the job moves in the transaction that settles and confirms its run, and the journal of both agrees', async () => {
    const { queue, engine } = await openTestQueue()
    await queue.add(job('a'))
    let runId = ''
    await queue.work({
      onRun: (run) => {
        runId = run.id
      },
    })
    const { job: seen, transitions } = await queue.history('a')
    expect(transitions.map(({ event, to }) => `${event} ${to}`)).toEqual([
      'job.added pending',
      'job.claim active.claimed',
      'run.recorded active.running',
      'run.settled active.leaving',
      'run.confirmed done',
    ])
    const run = await engine.history(runId)
    const at = (state: string): number | undefined =>
      run.transitions.find(({ to }) => to.work.startsWith(state))?.at
    expect(transitions.at(2)?.at).toBe(run.transitions[0]?.at)
    expect(transitions.at(3)?.at).toBe(at('settled'))
    expect(seen.lastOutcome).toMatchObject({ runId, status: 'completed' })
  })
})

it('O11: changes made in one process are told in another, each job with where it stands', async () => {
  const { queue, database } = await openTestQueue()
  const list = await openTestList(database)
  const told: string[] = []
  list.subscribe(({ jobId, change, job: seen }) => told.push(`${jobId} ${change} ${seen?.state ?? ''}`))
  list.subscribe(() => {
    throw new Error('a listener of the test')
  })
  await list.add(job('early'))
  await waitFor(() => told.includes('early added pending'), {
    deadlineMs: 10_000,
    what: 'the list tells of itself',
  })
  await queue.add(job('a'))
  await waitFor(() => told.includes('a added pending'), { deadlineMs: 10_000, what: 'it tells of others' })
  await queue.remove('early')
  await queue.work()
  await waitFor(() => told.includes('a ended done') && told.includes('early removed '), {
    deadlineMs: 10_000,
    what: 'both are told',
  })
})

it('O10: an engine that closes ends the work, and its jobs return to their places', async () => {
  const { queue, engine, database } = await openTestQueue()
  await queue.add(stuck('a'))
  const work = queue.work({ until: 'stopped' })
  await waitFor(() => engine.live().length > 0, { deadlineMs: 20_000, what: 'it runs' })
  await expect(queue.work()).rejects.toThrow('being worked already')
  await engine.close()
  expect(await work).toEqual({ reason: 'engine-closing', started: 1, left: [] })
  await expect(queue.work()).rejects.toMatchObject({ code: 'engine-closing' })
  const list = await openTestList(database)
  expect(await list.get('a')).toMatchObject({ state: 'pending', attemptsSpent: 1 })
})

it('O10: an engine that leaves its runs ends the work too, and names them; the next engine moves their jobs', async () => {
  const { queue, engine, database } = await openTestQueue()
  await queue.add(stuck('a'))
  const work = queue.work({ until: 'stopped' })
  await waitFor(() => engine.live().length > 0, { deadlineMs: 20_000, what: 'it runs' })
  const { left } = await engine.close({ runs: 'leave' })
  expect(await work).toEqual({ reason: 'engine-closing', started: 1, left })
  const list = await openTestList(database)
  expect(await list.get('a')).toMatchObject({ state: 'active', phase: 'running', runId: left[0] })
  await openTestEngine({ database })
  await waitFor(async () => (await list.get('a')).state === 'pending', {
    deadlineMs: 30_000,
    what: 'it came back',
  })
  expect(await list.get('a')).toMatchObject({ attemptsSpent: 1 })
})

it('K16, O11: a job in the scope of a fence is passed over, others run, and it runs when the fence is lifted', async () => {
  const { queue, engine } = await openTestQueue()
  // A run that ignores TERM keeps the order, and with it the fence, in force for a while.
  const script = 'trap "" TERM; echo up; while :; do sleep 0.05; done'
  const run = await engine.start({
    task: 'fenced',
    command: ['sh', '-c', script],
    stop: { termGraceMs: 1_500, killGraceMs: 5_000 },
  })
  for await (const event of run.events()) if (event.type === 'output') break
  const stopping = engine.stop({ task: 'fenced' })
  await queue.add(job('a', { task: 'fenced' }))
  await queue.add(job('b'))
  const order: string[] = []
  await queue.work({ onRun: (_run, { jobId }) => order.push(jobId) })
  expect(order).toEqual(['b', 'a'])
  expect((await stopping).status).toBe('confirmed')
  expect(await queue.get('a')).toMatchObject({ state: 'done', attemptsSpent: 1 })
})
