/** Jobs in worktrees of their own: the real queue, the real git, real agents that leave work behind. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { JobQueue, JobSpec } from '../../src/jobs.js'
import { commitFile, git, gitTry, hasGit, makeRepository, manifestOf } from '../adapters/workspace/place.js'
import { openTestQueue, quick } from '../jobs/queue.js'
import { tempDir, waitFor } from '../support/wait-for.js'
import { root as projectRoot } from '../tidy/source-tree.js'

beforeEach(({ skip }) => {
  if (!hasGit) skip('no git')
})

const IDENTITY = '-c user.name=agent -c user.email=agent@example.org'

/** Commits a file and leaves another uncommitted; hangs at its first run, and tells at the second what it found. */
const LEAVES_WORK = `
  if [ -e half.txt ]; then cat half.txt > "$SEEN"; exit 0; fi
  echo done > done.txt && git add done.txt && git ${IDENTITY} commit -q -m done
  echo half > half.txt
  sleep 600 & wait`

const openPlace = async () => {
  const folder = tempDir()
  const repository = makeRepository(join(folder, 'repository'))
  const root = join(folder, 'worktrees')
  const seen = join(folder, 'seen')
  const opened = await openTestQueue({ workspaces: { root } })
  const job = (id: string, script: string, extra: Partial<JobSpec> = {}): JobSpec => ({
    id,
    command: ['sh', '-c', script],
    env: { inherit: true, set: { SEEN: seen } },
    stop: quick,
    workspace: { repository },
    ...extra,
  })
  return { folder, repository, root, seen, job, ...opened }
}

type Place = Awaited<ReturnType<typeof openPlace>>

/** The worktree of the job `one`, once a file is there that its agent writes. */
const leftBy = (queue: JobQueue, name: string): Promise<string> =>
  waitFor(
    async () => {
      const path = (await queue.get('one')).workspace?.path
      return path !== undefined && existsSync(join(path, name)) && path
    },
    { deadlineMs: 20_000, what: `the agent has written ${name}` },
  )

/** A job whose agent has left work, and whose engine, in another process, was killed then. */
const killedAtWork = async ({ queue, database, job, root, folder }: Place): Promise<string> => {
  await queue.add(job('one', LEAVES_WORK))
  const entry = (path: string): string => pathToFileURL(join(projectRoot, 'dist', path)).href
  const script = join(folder, 'worker.mjs')
  writeFileSync(
    script,
    `import { createEngine } from '${entry('index.js')}'
     import { openJobs } from '${entry('jobs.js')}'
     const engine = await createEngine({ database: process.argv[2] })
     const jobs = await openJobs(engine, { workspaces: { root: process.argv[3] } })
     await jobs.work()`,
  )
  const worker = spawn(process.execPath, [script, database, root], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  onTestFinished(() => void worker.kill('SIGKILL'))
  const exited = once(worker, 'exit')
  const path = await leftBy(queue, 'half.txt')
  worker.kill('SIGKILL')
  await exited
  return path
}

describe('a job in a worktree', () => {
  it('O9, P21: interrupted, it goes on in the same worktree with its commits and uncommitted files', async () => {
    const { queue, job, seen, repository } = await openPlace()
    await queue.add(job('one', LEAVES_WORK))
    const stopping = new AbortController()
    const working = queue.work({ until: 'stopped', signal: stopping.signal })
    const path = await leftBy(queue, 'half.txt')
    expect(manifestOf(path)).toMatchObject({ state: 'running', jobId: 'one' })
    stopping.abort()
    await working

    const between = await queue.get('one')
    expect(between).toMatchObject({ state: 'pending', attemptsSpent: 1, workspace: { path } })
    expect(manifestOf(path)).toMatchObject({ state: 'provisioned' })
    expect(await queue.inspectWorkspace('one')).toMatchObject({
      aheadCount: 1,
      uncommittedCount: 1,
      obstacle: null,
    })

    await queue.work()
    expect(await queue.get('one')).toMatchObject({ state: 'review', workspace: { path } })
    expect(readFileSync(seen, 'utf8')).toBe('half\n')
    expect(manifestOf(path)).toMatchObject({ state: 'ready-for-review' })
    expect((manifestOf(path)['runIds'] as string[]).length).toBe(2)

    await queue.accept('one')
    expect(await queue.removeWorkspace('one')).toMatchObject({ isOk: false, code: 'dirty' })
    const branch = between.workspace?.branch ?? ''
    expect(await queue.removeWorkspace('one', { force: true })).toMatchObject({
      isOk: true,
      keptBranch: branch,
    })
    expect(existsSync(path)).toBe(false)
    expect(git(repository, 'show', `${branch}:done.txt`)).toBe('done')
  })

  it('O14: a worktree that a person must look at blocks its job with the reason, and the next job runs', async () => {
    const { queue, job, repository, seen } = await openPlace()
    await queue.add(job('stuck', 'exit 1', { attempts: 1 }))
    await queue.work()
    const { workspace } = await queue.get('stuck')
    const path = workspace?.path ?? ''
    expect(manifestOf(path)).toMatchObject({ state: 'failed' })
    commitFile(path, 'readme.txt', 'ours\n')
    commitFile(repository, 'readme.txt', 'theirs\n')
    gitTry(path, 'rebase', 'main')
    await queue.extend('stuck', { attempts: 1 })
    await queue.add(job('next', 'echo next > "$SEEN"'))
    await queue.work()
    expect(await queue.get('stuck')).toMatchObject({
      state: 'blocked',
      reason: expect.stringMatching(/rebase-in-progress: a rebase is under way in the worktree/) as unknown,
    })
    expect(await queue.get('next')).toMatchObject({ state: 'review' })
    expect(readFileSync(seen, 'utf8')).toBe('next\n')
  })

  it('O14: a branch that another job has blocks the second job, and a repository that is none blocks the third', async () => {
    const { queue, job, repository, folder } = await openPlace()
    const gone = makeRepository(join(folder, 'gone'), { isEmpty: true })
    await queue.add(job('first', 'true', { workspace: { repository, branch: 'wanted' } }))
    await queue.add(job('second', 'true', { workspace: { repository, branch: 'wanted' } }))
    await queue.add(job('third', 'true', { workspace: { repository: gone } }))
    await queue.add(job('last', 'true'))
    await queue.work()
    expect(await queue.get('first')).toMatchObject({ state: 'review', workspace: { branch: 'wanted' } })
    expect(await queue.get('second')).toMatchObject({
      state: 'blocked',
      reason: expect.stringContaining('branch-checked-out-elsewhere') as unknown,
      attemptsSpent: 0,
    })
    expect((await queue.get('third')).reason).toContain('no-commits')
    expect(await queue.get('last')).toMatchObject({ state: 'review' })
  })

  it('O14: where the host stands in another repository, the agent works in its worktree all the same', async () => {
    const { queue, job, folder, repository } = await openPlace()
    const stranger = makeRepository(join(folder, 'stranger'))
    vi.stubEnv('GIT_DIR', join(stranger, '.git'))
    vi.stubEnv('GIT_WORK_TREE', stranger)
    vi.stubEnv('GIT_INDEX_FILE', join(stranger, '.git', 'index'))
    onTestFinished(() => void vi.unstubAllEnvs())
    await queue.add(job('one', `echo x > x.txt && git add x.txt && git ${IDENTITY} commit -q -m x`))
    await queue.work()
    vi.unstubAllEnvs()
    const { workspace, state } = await queue.get('one')
    expect(state).toBe('review')
    expect(git(repository, 'rev-list', '--count', `main..${workspace?.branch ?? ''}`)).toBe('1')
    expect(git(stranger, 'rev-list', '--count', '--all')).toBe('1')
  })

  it('P21: dropped for good, the worktree says cancelled with the evidence, and goes', async () => {
    const { queue, engine, job } = await openPlace()
    await queue.add(job('one', 'echo here > here.txt; sleep 600'))
    const working = queue.work()
    const path = await leftBy(queue, 'here.txt')
    await engine.stop({ task: 'one' }, { mode: 'cancel', by: 'ada', reason: 'not wanted', fence: false })
    await working
    expect(manifestOf(path)).toMatchObject({
      state: 'cancelled',
      confirmation: {
        evidence: expect.stringMatching(/^(tree-reaped|cgroup-empty)$/) as string,
        confirmedAt: expect.any(Number) as unknown,
      },
    })
    expect(await queue.removeWorkspace('one')).toMatchObject({ isOk: false, code: 'dirty' })
    expect(await queue.removeWorkspace('one', { force: true })).toMatchObject({ isOk: true })
    expect(existsSync(path)).toBe(false)
  })

  it('INV-13, O9: an engine that is killed leaves a worktree that the next engine goes on in, and that can be removed', async () => {
    const place = await openPlace()
    const { queue, seen } = place
    const path = await killedAtWork(place)
    await waitFor(
      async () => {
        await queue.work()
        return (await queue.get('one')).state === 'review'
      },
      { deadlineMs: 60_000, what: 'the next engine finishes the job' },
    )
    expect(await queue.get('one')).toMatchObject({ workspace: { path } })
    expect(readFileSync(seen, 'utf8')).toBe('half\n')
    expect(manifestOf(path)).toMatchObject({ state: 'ready-for-review' })
    await queue.accept('one')
    expect(await queue.removeWorkspace('one', { force: true })).toMatchObject({ isOk: true })
  }, 90_000)

  it('INV-13, P21: the worktree of a job that is dropped after its engine was killed can be removed', async () => {
    const place = await openPlace()
    const { queue } = place
    const path = await killedAtWork(place)
    await queue.hold()
    await waitFor(
      async () => {
        await queue.work()
        return (await queue.get('one')).state === 'pending'
      },
      { deadlineMs: 60_000, what: 'the next engine gives the job back' },
    )
    await queue.drop('one')
    expect(await queue.removeWorkspace('one', { force: true })).toMatchObject({ isOk: true })
    expect(existsSync(path)).toBe(false)
  }, 90_000)
})
