/** What comes in at the door of the jobs: what cannot be used is refused there, named, and reaches no store. */
import { describe, expect, it } from 'vitest'
import { openJobList, openJobs } from '../../src/jobs.js'
import type { JobList, JobQueue, JobSpec } from '../../src/jobs.js'
import { openTestEngine } from '../support/engine.js'
import { openTestList, openTestQueue } from './queue.js'

const job = (id: string, extra: Partial<JobSpec> = {}): JobSpec => ({ id, command: ['true'], ...extra })

/** Every call that takes the id of a job. */
const byId: Readonly<Record<string, (list: JobList, id: string) => Promise<unknown>>> = {
  get: (list, id) => list.get(id),
  history: (list, id) => list.history(id),
  remove: (list, id) => list.remove(id),
  drop: (list, id) => list.drop(id),
  accept: (list, id) => list.accept(id),
  retry: (list, id) => list.retry(id),
  extend: (list, id) => list.extend(id, { attempts: 1 }),
  reorder: (list, id) => list.reorder(id, { at: 'first' }),
  inspectWorkspace: (list, id) => list.inspectWorkspace(id),
  removeWorkspace: (list, id) => list.removeWorkspace(id),
}

describe('ids', () => {
  it.each(Object.keys(byId))('O11: %s refuses what cannot be the id of a job, and shows it', async (verb) => {
    const { queue } = await openTestQueue()
    const cases: readonly (readonly [unknown, string])[] = [
      [{ a: 1 }, 'got an object with a'],
      [Object.create(null), 'got an object without options'],
      [['a'], 'got a list of 1'],
      [null, 'got null'],
      [undefined, 'got undefined'],
      [5, 'got 5'],
      [5n, 'got 5'],
      [Symbol('q'), 'got Symbol(q)'],
      ['', 'got ""'],
      ['a\0b', 'got "a\\u0000b"'],
    ]
    for (const [id, shown] of cases) {
      await expect(byId[verb]?.(queue, id as string)).rejects.toMatchObject({
        code: 'invalid-option',
        message: expect.stringMatching(new RegExp(`^${verb}: option job must `)) as string,
      })
      await expect(byId[verb]?.(queue, id as string)).rejects.toThrow(shown)
    }
    await expect(byId[verb]?.(queue, 'nobody')).rejects.toMatchObject({ code: 'unknown-job' })
  })
})

describe('circles', () => {
  it('O11: a job that comes after itself is refused, also among several', async () => {
    const { queue, database } = await openTestQueue()
    const list = await openTestList(database)
    const refused = {
      code: 'invalid-option',
      message: expect.stringMatching(/option after must not name the job itself/) as string,
    }
    await expect(queue.add(job('a', { after: ['a'] }))).rejects.toMatchObject(refused)
    await expect(list.add(job('a', { after: ['a'] }))).rejects.toMatchObject(refused)
    await expect(queue.addAll([job('b'), job('c', { after: ['b', 'c'] })])).rejects.toMatchObject(refused)
    expect(await queue.list()).toEqual([])
  })

  it('O11: a longer circle is refused, because one of it is not there yet', async () => {
    const { queue } = await openTestQueue()
    const circle = [job('a', { after: ['c'] }), job('b', { after: ['a'] }), job('c', { after: ['b'] })]
    await expect(queue.addAll(circle)).rejects.toMatchObject({ code: 'unknown-job' })
    expect(await queue.list()).toEqual([])
  })
})

describe('options', () => {
  it.each<[string, (queue: JobQueue) => Promise<unknown>, RegExp]>([
    ['title', (queue) => queue.add(job('a', { title: 'a\0b' })), /option title must not hold a NUL byte/],
    ['a label', (queue) => queue.add(job('a', { labels: { x: 'a\0b' } })), /labels\.x must not hold a NUL/],
    ['hold.reason', (queue) => queue.hold({ reason: 'a\0b' }), /hold: option reason must not hold a NUL/],
    ['hold.by', (queue) => queue.hold({ by: 'a\0b' }), /hold: option by must not hold a NUL/],
    ['drop.reason', (queue) => queue.drop('j', { reason: 'a\0b' }), /drop: option reason must not hold/],
    ['accept.by', (queue) => queue.accept('j', { by: 'a\0b' }), /accept: option by must not hold a NUL/],
    ['retry.by', (queue) => queue.retry('j', { by: 'a\0b' }), /retry: option by must not hold a NUL/],
    ['extend.by', (queue) => queue.extend('j', { attempts: 1, by: 'a\0b' }), /extend: option by must not/],
  ])(
    'O11: a NUL byte in %s is refused, because not every store can keep it',
    async (_what, call, message) => {
      const { queue } = await openTestQueue()
      await queue.add(job('j'))
      await expect(call(queue)).rejects.toMatchObject({
        code: 'invalid-option',
        message: expect.stringMatching(message) as string,
      })
      expect(await queue.held()).toBeNull()
    },
  )

  it.each<[unknown, string]>([
    [{ before: 5 }, 'reorder: place: option before must be string, got 5'],
    [{ after: '' }, 'reorder: place: option after must be 1 to 128 letters'],
    [{ at: 'middle' }, 'reorder: place: option at must be'],
  ])('O11: reorder to %j names the option that is wrong', async (place, message) => {
    const { queue } = await openTestQueue()
    await queue.add(job('j'))
    await expect(queue.reorder('j', place as { at: 'first' })).rejects.toThrow(message)
  })

  it('O11: a folder outside the worktree is named with its value', async () => {
    const { queue } = await openTestQueue()
    await expect(queue.add(job('a', { cwd: '..', workspace: { repository: '.' } }))).rejects.toThrow(
      'add: option cwd must be a path below the worktree where there is a workspace, got ".."',
    )
  })

  it('O11: what cannot be called is refused as a listener', async () => {
    const { queue } = await openTestQueue()
    expect(() => queue.subscribe(5 as never)).toThrow('subscribe: option listener must be a function, got 5')
  })
})

const calls: Readonly<Record<string, (list: JobList) => unknown>> = {
  add: (list) => list.add(job('late')),
  addAll: (list) => list.addAll([job('late')]),
  list: (list) => list.list(),
  count: (list) => list.count(),
  hold: (list) => list.hold(),
  release: (list) => list.release(),
  held: (list) => list.held(),
  subscribe: (list) => Promise.resolve().then(() => list.subscribe(() => undefined)),
}

describe('after the end', () => {
  const expectClosed = async (list: JobList): Promise<void> => {
    const all = {
      ...calls,
      ...Object.fromEntries(
        Object.entries(byId).map(([verb, call]) => [verb, (one: JobList) => call(one, 'j')]),
      ),
    }
    for (const [verb, call] of Object.entries(all))
      await expect(call(list), verb).rejects.toMatchObject({
        code: 'engine-closing',
        message: `${verb}: the engine or the list is closing or closed`,
      })
  }

  it('O10: a queue of a closed engine says so to every call, and asks the store no more', async () => {
    const warnings: string[] = []
    const log = { debug: () => undefined, info: () => undefined, error: () => undefined }
    const engine = await openTestEngine({
      logger: { ...log, warn: (_detail: unknown, message: string) => warnings.push(message) },
    })
    const queue = await openJobs(engine)
    await queue.add(job('j'))
    queue.subscribe(() => undefined)
    await queue.caughtUp()
    await engine.close()
    await expectClosed(queue)
    await expect(queue.work()).rejects.toMatchObject({ code: 'engine-closing' })
    // One more look, of which nothing comes.
    await queue.caughtUp()
    expect(warnings).toEqual([])
  })

  it('O10: a list that is closed says so to every call, and may be closed again', async () => {
    const { database, queue } = await openTestQueue()
    await queue.add(job('j'))
    const list = await openJobList({ database })
    expect((await list.get('j')).state).toBe('pending')
    await list[Symbol.asyncDispose]()
    await expectClosed(list)
    await list[Symbol.asyncDispose]()
    expect((await queue.get('j')).state).toBe('pending')
  })
})
