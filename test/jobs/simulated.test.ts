/** The rules of the queue in which time plays a part, on the simulated clock: a whole engine that works jobs, over processes that obey. */
import { expect, it } from 'vitest'
import type { ProvisionReply, WorkspacePort } from '../../src/actors/workspace.ports.js'
import type { Run } from '../../src/index.js'
import { openJobs } from '../../src/jobs.js'
import type { JobQueue, JobSpec, QueueOptions } from '../../src/jobs.js'
import { JobQueue as Queue } from '../../src/job-queue.js'
import { single } from '../../src/testing/simulated-agent.js'
import { openSimulatedEngine } from '../support/simulated-engine.js'
import type { SimulatedEngine } from '../support/simulated-engine.js'
import { busy } from '../../src/testing/simulated-store.js'
import { idsOf } from './queue.js'

const STEP_MS = 50
const WINDOW_MS = 120_000
const TERM_GRACE_MS = 5_000
/** How often the queue is looked at, and that often the clock moves: what is due is done a little later. */
const SLACK_MS = 1_000

interface SimulatedQueue extends SimulatedEngine {
  readonly queue: JobQueue
  /** Moves the clock until that holds. */
  readonly until: (holds: () => boolean | Promise<boolean>, atMostMs?: number) => Promise<void>
  /** The run of a job, as soon as its process is there. */
  readonly runOf: (jobId: string) => Promise<Run>
  readonly work: (queue?: JobQueue) => void
}

const openQueue = async (options: QueueOptions = {}): Promise<SimulatedQueue> => {
  const simulated = await openSimulatedEngine()
  const { engine, clock } = simulated
  const queue = await openJobs(engine, options)
  const until: SimulatedQueue['until'] = async (holds, atMostMs = 60_000) => {
    const endMs = clock.monotonicMs() + atMostMs
    while (!(await holds())) {
      if (clock.monotonicMs() >= endMs) throw new Error(`not within ${String(atMostMs)} simulated ms`)
      await clock.advance(STEP_MS)
    }
  }
  return {
    ...simulated,
    queue,
    until,
    runOf: async (jobId) => {
      let run: Run | undefined
      await until(async () => {
        run = engine.run((await queue.get(jobId)).runId ?? '')
        return run?.state.process === 'alive'
      })
      if (run === undefined) throw new Error('it was there')
      return run
    },
    // Closing the engine, after the test, ends the work.
    work: (one = queue) => void one.work({ until: 'stopped' }).catch(() => undefined),
  }
}

const job = (id: string, extra: Partial<JobSpec> = {}): JobSpec => ({
  id,
  command: ['agent'],
  stop: { pauseGraceMs: WINDOW_MS },
  ...extra,
})

it('O9, O2: on the simulated clock: a job whose pause outlives its window is back in its place, and runs again when its tree is gone', async () => {
  const { queue, clock, processes, until, runOf, work, drive } = await openQueue({
    caps: { total: 2, perProject: { closed: 0 } },
  })
  await queue.addAll([job('before', { project: 'closed' }), job('a'), job('behind', { project: 'closed' })])
  processes.next.push({ diesOf: ['SIGKILL'] })
  work()
  const run = await runOf('a')
  processes.last.spawn('child')
  await drive(run.pause())
  const pausedAt = clock.monotonicMs()
  await clock.advance(WINDOW_MS - SLACK_MS)
  expect(await queue.get('a')).toMatchObject({ state: 'active', attemptsSpent: 0 })
  expect(processes.last.isFrozen).toBe(true)
  await clock.advance(2 * SLACK_MS)
  const [first] = processes.executions
  expect(first?.signals.map(({ signal }) => signal)).toContain('SIGTERM')
  // The agent leaves, its child ignores TERM.
  first?.exit(3)
  await clock.advance(STEP_MS)
  expect(await queue.get('a')).toMatchObject({ state: 'active' })
  expect(idsOf(await queue.list())).toEqual(['before', 'a', 'behind'])
  await until(() => {
    // O9: nothing of the next run before the last tree is gone.
    expect(processes.executions.length === 1 || first?.size === 0).toBe(true)
    return processes.executions.length === 2
  })
  const tookMs = clock.monotonicMs() - pausedAt
  expect(tookMs).toBeGreaterThanOrEqual(WINDOW_MS + TERM_GRACE_MS - STEP_MS)
  expect(tookMs).toBeLessThan(WINDOW_MS + TERM_GRACE_MS + 2 * SLACK_MS)
  await runOf('a')
  expect(await queue.get('a')).toMatchObject({ attemptsSpent: 1, lastOutcome: { status: 'interrupted' } })
  expect(idsOf(await queue.list())).toEqual(['before', 'a', 'behind'])
})

it('O9, O11: on the simulated clock: a job whose agent has ended fills its slot until the child that it left is gone', async () => {
  const { queue, clock, processes, until, runOf, work } = await openQueue()
  await queue.addAll([job('a', { review: true }), job('b')])
  processes.next.push({ diesOf: ['SIGKILL'] })
  work()
  await runOf('a')
  const [first] = processes.executions
  first?.spawn('child')
  first?.exit(0)
  await clock.advance(TERM_GRACE_MS - SLACK_MS)
  // The outcome came long before.
  expect(await queue.get('a')).toMatchObject({
    state: 'active',
    phase: 'leaving',
    attemptsSpent: 1,
    lastOutcome: { status: 'completed' },
  })
  expect(processes.executions).toHaveLength(1)
  await until(() => processes.executions.length === 2)
  expect(first?.size).toBe(0)
  expect(await queue.get('a')).toMatchObject({ state: 'review' })
})

it('O11: on the simulated clock: a run that is frozen or being stopped holds its slot for as long as it takes', async () => {
  const { queue, clock, processes, until, runOf, work, drive } = await openQueue({ caps: { total: 1 } })
  await queue.addAll([job('a'), job('b')])
  processes.next.push({ diesOf: ['SIGKILL'] })
  work()
  const run = await runOf('a')
  await drive(run.pause())
  await clock.advance(WINDOW_MS - 10 * SLACK_MS)
  expect([processes.executions.length, (await queue.get('b')).state]).toEqual([1, 'pending'])
  await drive(run.resume())
  void run.cancel({ by: 'test' })
  await clock.advance(TERM_GRACE_MS - SLACK_MS)
  expect([processes.executions.length, (await queue.get('b')).state]).toEqual([1, 'pending'])
  expect(await queue.get('a')).toMatchObject({ state: 'active' })
  await until(() => processes.executions.length === 2, 3 * SLACK_MS)
  expect(await queue.get('a')).toMatchObject({ state: 'cancelled' })
})

it('O11: on the simulated clock: what was added past this queue and what a lost claim holds are found within a recovery', async () => {
  const { engine, queue, clock, processes, work } = await openQueue()
  const { store } = engine.seam
  work()
  await clock.advance(10_000)
  expect(processes.executions).toHaveLength(0)
  // Not through the queue that is worked, which would know at once.
  const other = await openJobs(engine)
  await other.add(job('a'))
  await clock.advance(2_000 + SLACK_MS)
  expect(processes.executions).toHaveLength(1)
  await other.add(job('b', { account: 'mine' }))
  const caps = { total: 2, perProject: undefined, perAccount: undefined }
  await store.jobs.claim({ runId: 'lost', engineId: engine.id, at: 1, caps, except: [] })
  await clock.advance(1_000)
  processes.last.exit(0)
  await clock.advance(2_000 + SLACK_MS)
  expect(processes.executions).toHaveLength(2)
  expect(await queue.get('b')).toMatchObject({ state: 'active', attemptsSpent: 0 })
})

it('O12, O15: on the simulated clock: each run that its limit ends spends one attempt, and the last one leaves the job exhausted', async () => {
  const { queue, processes, until, work } = await openQueue()
  const timeoutMs = 60_000
  await queue.addAll([job('a', { attempts: 3, limits: { timeoutMs } }), job('behind', { review: true })])
  work()
  for (const spent of [1, 2, 3]) {
    await until(async () => (await queue.get('a')).attemptsSpent === spent, timeoutMs + 3 * SLACK_MS)
    expect(await queue.get('a')).toMatchObject({ attemptsLeft: 3 - spent })
  }
  await until(async () => (await queue.get('a')).state === 'exhausted')
  await until(() => processes.executions.length === 4)
  const { transitions } = await queue.history('a')
  const settled = transitions.filter(({ event }) => event === 'run.settled').map(({ at }) => at)
  const recorded = transitions.filter(({ event }) => event === 'run.recorded').map(({ at }) => at)
  expect(settled).toHaveLength(3)
  for (const [index, at] of settled.entries()) {
    const ranMs = at - (recorded[index] ?? NaN)
    expect(ranMs).toBeGreaterThanOrEqual(timeoutMs)
    expect(ranMs).toBeLessThan(timeoutMs + 2 * SLACK_MS)
  }
  expect(idsOf(await queue.list())).toEqual(['a', 'behind'])
})

it('O13: on the simulated clock: while the store refuses the end of a run its job stands where it stood, and both move together', async () => {
  const { simulation, engine, queue, clock, store, processes, until, runOf, work } = await openQueue()
  // Whose way to the store works.
  const elsewhere = await openJobs((await simulation.openEngine()).engine)
  await queue.add(job('a', { review: true }))
  work()
  const { id } = await runOf('a')
  await clock.advance(1_000)
  store.trouble = busy()
  processes.last.exit(0)
  await clock.advance(30_000)
  expect(await elsewhere.get('a')).toMatchObject({ state: 'active', phase: 'running', attemptsSpent: 0 })
  store.trouble = null
  await until(async () => (await queue.get('a')).state === 'review')
  const { transitions } = await queue.history('a')
  const run = await engine.history(id)
  const settledAt = run.transitions.find(({ to }) => to.work.startsWith('settled'))?.at
  expect(transitions.filter(({ event }) => event === 'run.settled').map(({ at }) => at)).toEqual([settledAt])
  expect(await queue.get('a')).toMatchObject({ attemptsSpent: 1 })
})

it('O14: on the simulated clock: a worktree that is busy is tried again every 2 s while others run, and blocks its job when that does not pass', async () => {
  const simulated = await openQueue()
  const { engine, clock, processes, until, work } = simulated
  const asked: { readonly jobId: string; readonly at: number }[] = []
  const refusals = new Map([
    ['passes', 2],
    ['stays', Infinity],
  ])
  const port: Pick<WorkspacePort, 'provision' | 'record'> = {
    provision: ({ jobId, jobToken, repository }) => {
      const times = asked.filter((one) => one.jobId === jobId).length
      asked.push({ jobId, at: clock.monotonicMs() })
      const reply: ProvisionReply =
        times < (refusals.get(jobId) ?? 0)
          ? { isOk: false, code: 'busy', reason: 'another git is at work', mayPass: true }
          : {
              ...{ isOk: true, jobId, jobToken, repository, path: process.cwd(), branch: 'b' },
              ...{ baseCommit: 'c', isTakenUp: false, state: 'provisioned', notes: [] },
            }
      return Promise.resolve(reply)
    },
    record: () => Promise.resolve({ isOk: true }),
  }
  const options = {
    caps: { total: 3, perProject: undefined, perAccount: undefined },
    workspaces: { root: '.' },
  }
  const queue = new Queue(engine, port as WorkspacePort, { ...options, protocols: {} })
  const workspace = { repository: '.' }
  await queue.addAll([job('passes', { workspace }), job('stays', { workspace }), job('next')])
  const startedAt = clock.monotonicMs()
  work(queue)
  await until(() => processes.executions.length === 1)
  expect(await queue.get('next')).toMatchObject({ state: 'active' })
  expect(clock.monotonicMs() - startedAt).toBeLessThan(SLACK_MS)
  await until(() => processes.executions.length === 2)
  expect(await queue.get('passes')).toMatchObject({ state: 'active', attemptsSpent: 0 })
  await until(async () => (await queue.get('stays')).state === 'blocked')
  expect(await queue.get('stays')).toMatchObject({ reason: 'busy: another git is at work', attemptsSpent: 0 })
  for (const jobId of refusals.keys()) {
    const times = asked.filter((one) => one.jobId === jobId).map(({ at }) => at)
    expect(times).toHaveLength(jobId === 'passes' ? 3 : 6)
    for (const [index, at] of times.slice(1).entries()) {
      const waitedMs = at - (times[index] ?? NaN)
      expect(waitedMs).toBeGreaterThanOrEqual(2_000)
      expect(waitedMs).toBeLessThan(2_000 + SLACK_MS)
    }
  }
})

it('K5, O12: on the simulated clock: the limits of silence end the run of a job that never starts, not before their time', async () => {
  const { queue, clock, processes, until, runOf, work } = await openQueue({
    protocols: { mine: () => single() },
  })
  await queue.add(job('a', { protocol: 'mine', watchdog: { neverStartedMs: 120_000 }, attempts: 1 }))
  work()
  await runOf('a')
  await clock.advance(120_000 - SLACK_MS)
  expect(await queue.get('a')).toMatchObject({ state: 'active' })
  expect(processes.last.isAlive).toBe(true)
  await until(async () => (await queue.get('a')).state === 'exhausted', 3 * SLACK_MS)
  expect(await queue.get('a')).toMatchObject({
    attemptsSpent: 1,
    lastOutcome: { status: 'failed-never-started' },
  })
})

it.each([
  ['while it is paused, before the window ends', WINDOW_MS / 2, 'completed', null],
  ['between TERM and KILL', WINDOW_MS + TERM_GRACE_MS / 2, 'interrupted', 0],
] as const)(
  'O6: on the simulated clock: an exit %s is that outcome, once',
  async (_when, exitAfterMs, status, exitCode) => {
    const { clock, processes, start, drive, until, heard } = await openQueue()
    processes.next.push({ diesOf: ['SIGKILL'] })
    const run = await start({ stop: { pauseGraceMs: WINDOW_MS } })
    await drive(run.pause())
    const pausedAt = clock.monotonicMs()
    await clock.advance(exitAfterMs - (clock.monotonicMs() - pausedAt))
    processes.last.exit(0)
    await until(() => run.state.isConfirmed)
    const outcome = await run.outcome
    expect(outcome).toMatchObject({ status, ...(exitCode === null ? {} : { exitCode }) })
    // What the window or the ladder had still to do means nothing any more.
    await clock.advance(2 * WINDOW_MS)
    expect(run.state.outcome).toEqual(outcome)
    expect(heard.filter(({ type }) => type === 'settled')).toHaveLength(1)
  },
)
