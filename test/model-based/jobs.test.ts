/** The job chart on real processes and a real store: each transition is driven, and each history stepped again by the chart alone. */
import { describe, expect, test } from 'vitest'
import { openJobs } from '../../src/jobs.js'
import type { JobQueue, JobSpec } from '../../src/jobs.js'
import { pathOf } from '../../src/machines/run/run.headline.js'
import { jobMachine } from '../../src/machines/job/job.machine.js'
import type { JobEvent } from '../../src/machines/job/job.events.js'
import { transitionsOf } from '../model/chart.js'
import { PureMachine } from '../model/pure-machine.js'
import { waitFor } from '../support/wait-for.js'
import { onStage } from './stage.js'
import type { Stage } from './stage.js'

const taken = new Set<string>()
let steps = 0

const REASONS: readonly (readonly [RegExp, string])[] = [
  [
    /active\.claimed|pending: job\.block/,
    'a claim lasts as long as a worktree is made: test/jobs, test/e2e/job-worktrees',
  ],
]

/** The whole life of a job, by the chart alone. */
const replay = async (queue: JobQueue, spec: JobSpec): Promise<void> => {
  const id = spec.id ?? ''
  const input = { needsReview: spec.review ?? false, attempts: spec.attempts ?? 3 }
  const pure = new PureMachine<never, never>(jobMachine, input, { isTraced: true })
  let snapshot = pure.first().snapshot
  const { transitions } = await queue.history(id)
  for (const { event, detail, to } of transitions.slice(1)) {
    const given = { ...(detail as object), type: event } as JobEvent
    snapshot = pure.next(snapshot, given as never).snapshot
    for (const name of pure.taken) taken.add(name)
    steps += 1
    expect([id, event, pathOf((snapshot as { value: never }).value)]).toEqual([id, event, to])
  }
  expect((await queue.get(id)).state).toBe(pathOf((snapshot as { value: never }).value).split('.')[0])
}

const drive = (
  name: string,
  act: (stage: Stage, queue: JobQueue, add: (spec: JobSpec) => Promise<void>) => Promise<void>,
): void => {
  test(`O9, O11, O12, O13: on real processes: ${name}`, { timeout: 60_000 }, async () => {
    const faults = await onStage({}, async (stage) => {
      const queue = await openJobs(stage.engine)
      const specs: JobSpec[] = []
      await act(stage, queue, async (spec) => {
        specs.push(spec)
        await queue.add(spec)
      })
      for (const spec of specs) await replay(queue, spec)
    })
    expect(faults).toEqual([])
  })
}

const comesTo = (queue: JobQueue, id: string, state: string): Promise<unknown> =>
  waitFor(async () => (await queue.get(id)).state === state, {
    deadlineMs: 20_000,
    what: `${id} is ${state}`,
  })

describe('jobs', () => {
  drive('completed, reviewed, retried and accepted', async (_, queue, add) => {
    await add({ id: 'a', command: ['true'] })
    await add({ id: 'b', command: ['true'], review: true, attempts: 2 })
    await add({ id: 'c', command: ['true'], review: true })
    await queue.work()
    await queue.retry('b')
    await queue.work()
    await queue.extend('b', { attempts: 1 })
    await queue.accept('b')
    await queue.drop('c')
  })

  drive('failed until it is exhausted, extended, and dropped', async (_, queue, add) => {
    await add({ id: 'a', command: ['false'], attempts: 1 })
    await add({ id: 'b', command: ['false'], attempts: 2 })
    await add({ id: 'c', command: ['true'] })
    await queue.extend('c', { attempts: 1 })
    await queue.drop('c')
    await queue.work()
    await queue.drop('a')
    await queue.extend('b', { attempts: 1 })
    await queue.work()
  })

  drive('blocked by what cannot be launched, retried, extended and dropped', async (_, queue, add) => {
    await add({ id: 'a', command: ['/nowhere/agent'] })
    await add({ id: 'b', command: ['/nowhere/agent'] })
    await queue.work()
    await queue.extend('a', { attempts: 1 })
    await queue.retry('a')
    await queue.work()
    await queue.drop('b')
  })

  drive('cancelled, and interrupted and gone on with', async ({ engine, file, go }, queue, add) => {
    const waits = ['sh', '-c', `[ -e ${file('go')} ] || sleep 100`]
    await add({ id: 'a', command: waits })
    const worked = queue.work({ until: 'stopped', signal: AbortSignal.timeout(5_000) })
    await comesTo(queue, 'a', 'active')
    await waitFor(async () => engine.run((await queue.get('a')).runId ?? '')?.state.process === 'alive', {
      deadlineMs: 20_000,
      what: 'it runs',
    })
    go('go')
    await engine.stop({ task: 'a' }, { mode: 'interrupt', fence: false })
    await comesTo(queue, 'a', 'done')
    await worked
    await add({ id: 'b', command: ['sleep', '100'] })
    const again = queue.work({ until: 'stopped', signal: AbortSignal.timeout(5_000) })
    await comesTo(queue, 'b', 'active')
    await waitFor(async () => engine.run((await queue.get('b')).runId ?? '')?.state.process === 'alive', {
      deadlineMs: 20_000,
      what: 'it runs',
    })
    await queue.extend('b', { attempts: 1 }).catch(() => undefined)
    await engine.stop({ task: 'b' }, { mode: 'cancel', fence: false })
    await comesTo(queue, 'b', 'cancelled')
    await again
  })

  test('O11: every transition of a job was driven on real processes, or says why it is not', () => {
    const all = [...new Set(transitionsOf(jobMachine as never))]
    const missed = all.filter((transition) => !taken.has(transition))
    const reasonFor = (transition: string): string | undefined =>
      REASONS.find(([pattern]) => pattern.test(transition))?.[1]
    console.log(
      `job: ${String(all.length - missed.length)} of ${String(all.length)} edges covered, ${String(steps)} steps compared`,
    )
    for (const transition of missed)
      console.log(`  not driven: ${transition}: ${reasonFor(transition) ?? '?'}`)
    expect(missed.filter((transition) => reasonFor(transition) === undefined)).toEqual([])
  })
})
