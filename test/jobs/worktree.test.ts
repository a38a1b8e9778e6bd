/** Jobs in worktrees of their own, through the real git. */
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { openJobs } from '../../src/jobs.js'
import type { JobQueue, JobSpec } from '../../src/jobs.js'
import type { Engine } from '../../src/index.js'
import { commitFile, git, hasGit, makeRepository, manifestOf } from '../adapters/workspace/place.js'
import { openTestEngine } from '../support/engine.js'
import { tempDir, waitFor } from '../support/wait-for.js'
import { quick } from './queue.js'

beforeEach(({ skip }) => {
  if (!hasGit) skip('no git')
})

interface Place {
  readonly repository: string
  readonly root: string
  readonly engine: Engine
  readonly queue: JobQueue
}

const openPlace = async (): Promise<Place> => {
  const folder = tempDir()
  const repository = makeRepository(join(folder, 'repository'))
  const engine = await openTestEngine({ database: join(folder, 'runs.db') })
  const root = join(folder, 'worktrees')
  return { repository, root, engine, queue: await openJobs(engine, { workspaces: { root } }) }
}

const inTree = (repository: string, id: string, script: string, extra: Partial<JobSpec> = {}): JobSpec => ({
  id,
  command: ['sh', '-c', script],
  workspace: { repository },
  stop: quick,
  ...extra,
})

const AS = 'git -c user.name=a -c user.email=a@b'

it('O14: a job works in its worktree, on its branch, and completed work waits there for review', async () => {
  const { repository, queue } = await openPlace()
  process.env['GIT_DIR'] = '/nowhere'
  try {
    await queue.add(inTree(repository, 'a', `echo new > made && git add made && ${AS} commit -qm made`))
    expect(await queue.work()).toMatchObject({ reason: 'idle', started: 1 })
  } finally {
    delete process.env['GIT_DIR']
  }
  const { workspace, ...job } = await queue.get('a')
  expect(job, job.reason).toMatchObject({ state: 'review' })
  const path = workspace?.path ?? ''
  expect(git(path, 'rev-parse', '--abbrev-ref', 'HEAD')).toBe(workspace?.branch)
  expect(git(path, 'log', '-1', '--format=%s')).toBe('made')
  expect(existsSync(join(repository, 'made'))).toBe(false)
  expect(manifestOf(path)).toMatchObject({ state: 'ready-for-review' })
  await expect(queue.removeWorkspace('a')).rejects.toMatchObject({ code: 'refused' })
  await queue.accept('a')
  writeFileSync(join(path, 'late'), 'not committed')
  expect(await queue.removeWorkspace('a')).toMatchObject({ isOk: false, code: 'dirty' })
  expect(existsSync(path)).toBe(true)
  expect(await queue.removeWorkspace('a', { force: true })).toMatchObject({
    isOk: true,
    keptBranch: workspace?.branch,
  })
  expect(existsSync(path)).toBe(false)
  expect((await queue.get('a')).workspace).toBeNull()
})

it('O9, O14: an interrupted job goes on in the same worktree, with its commits and what was not committed', async () => {
  const { repository, queue, engine } = await openPlace()
  const script = `if [ -e half ]; then cat half > whole; else echo one > half; git add half; ${AS} commit -qm half; echo two >> half; sleep 600; fi`
  await queue.add(inTree(repository, 'a', script))
  const leave = new AbortController()
  const work = queue.work({ signal: leave.signal })
  const isHalf = async (): Promise<boolean> => {
    const { workspace } = await queue.get('a')
    return (
      workspace !== null &&
      engine.live().length > 0 &&
      existsSync(join(workspace.path, 'half')) &&
      // Committed, and changed since.
      git(workspace.path, 'status', '--porcelain').startsWith(' M half')
    )
  }
  await waitFor(isHalf, { deadlineMs: 30_000, what: 'half of the work' })
  const before = (await queue.get('a')).workspace
  leave.abort()
  expect(await work).toMatchObject({ reason: 'stopped', left: [] })
  expect(await queue.get('a')).toMatchObject({ state: 'pending', attemptsSpent: 1, workspace: before })
  expect(manifestOf(before?.path ?? '')).toMatchObject({ state: 'provisioned' })
  await expect(queue.remove('a')).rejects.toThrow('has worked in')
  await queue.work()
  expect(await queue.get('a')).toMatchObject({ state: 'review', attemptsSpent: 2, workspace: before })
  expect(git(before?.path ?? '', 'show', 'HEAD:half')).toBe('one')
  expect(git(before?.path ?? '', 'status', '--porcelain')).toContain('whole')
})

it('O14: a worktree that cannot be had blocks its job with the reason, and the next one runs', async () => {
  const { repository, queue } = await openPlace()
  commitFile(repository, 'more', 'more')
  await queue.add(inTree(repository, 'taken', 'true', { workspace: { repository, branch: 'taken' } }))
  git(repository, 'branch', 'taken')
  await queue.add(
    inTree(repository, 'unknown', 'true', { workspace: { repository, base: 'no-such-commit' } }),
  )
  await queue.add(inTree(repository, 'next', 'true'))
  const places: unknown[] = []
  await queue.work({ onRun: (_run, { workspace }) => places.push(workspace?.path) })
  expect(places).toEqual([(await queue.get('next')).workspace?.path])
  expect(await queue.get('taken')).toMatchObject({
    state: 'blocked',
    reason: expect.stringContaining('branch-taken') as string,
    attemptsSpent: 0,
  })
  expect(await queue.get('unknown')).toMatchObject({
    state: 'blocked',
    reason: expect.stringContaining('unknown-base') as string,
  })
  expect(await queue.get('next')).toMatchObject({ state: 'review' })
  git(repository, 'branch', '-D', 'taken')
  await queue.retry('taken')
  await queue.work()
  expect(await queue.get('taken')).toMatchObject({ state: 'review', workspace: { branch: 'taken' } })
})

it('O14: a queue without a place for worktrees blocks the job that wants one, and says so', async () => {
  const { repository, engine } = await openPlace()
  const queue = await openJobs(engine)
  await queue.add(inTree(repository, 'a', 'true'))
  await queue.work()
  expect(await queue.get('a')).toMatchObject({
    state: 'blocked',
    reason: expect.stringContaining('without a place for worktrees') as string,
  })
})

it('O14: a folder of the worktree that is a link out of it blocks the job with the reason, and the next one runs', async () => {
  const { repository, queue } = await openPlace()
  const outside = tempDir()
  symlinkSync(outside, join(repository, 'out'))
  symlinkSync('.', join(repository, 'self'))
  mkdirSync(join(repository, 'inner'))
  writeFileSync(join(repository, 'inner', 'file'), 'kept')
  git(repository, 'add', '.')
  git(repository, 'commit', '-qm', 'links')
  const where = 'pwd -P > place'
  await queue.add(inTree(repository, 'leads-out', where, { cwd: 'out' }))
  await queue.add(inTree(repository, 'stays', where, { cwd: 'self/inner' }))
  // What an agent makes of its folder counts, not what was checked out.
  const swap = `if [ -e ../swapped ]; then ${where}; else cd ..; touch swapped; rm -r inner; ln -s '${outside}' inner; exit 1; fi`
  await queue.add(inTree(repository, 'swaps', swap, { cwd: 'inner' }))
  expect(await queue.work()).toMatchObject({ reason: 'idle', started: 2 })
  for (const [id, attemptsSpent] of [
    ['leads-out', 0],
    ['swaps', 1],
  ] as const)
    expect(await queue.get(id)).toMatchObject({
      state: 'blocked',
      reason: expect.stringMatching(/^option cwd "\w+" leads out of the worktree .*, to /) as string,
      attemptsSpent,
    })
  expect(readdirSync(outside)).toEqual([])
  const { workspace } = await queue.get('stays')
  expect(readFileSync(join(workspace?.path ?? '', 'inner', 'place'), 'utf8')).toBe(
    `${workspace?.path ?? ''}/inner\n`,
  )
})
