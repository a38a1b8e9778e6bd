/** Removing the worktree of a job, and what it records of itself until then. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { WorkspaceMark } from '../../../src/actors/workspace.ports.js'
import {
  adminDirOf,
  branchesOf,
  commitFile,
  git,
  gitTry,
  hasGit,
  makeRepository,
  manifestOf,
  namesIn,
  openPlace,
  openPort,
  provisioned,
  refusal,
  worked,
  worktreesOf,
} from './place.js'

beforeEach(({ skip }) => {
  if (!hasGit) skip('no git')
})

describe('the manifest', () => {
  it('P21: a worktree records what becomes of it, where no status shows it and other tools find it', async () => {
    const place = openPlace()
    const made = await provisioned(place.port, place.job)
    const marks: WorkspaceMark[] = [
      { state: 'running', runId: 'run-1' },
      { state: 'provisioned', runId: 'run-1' },
      { state: 'running', runId: 'run-2' },
      { state: 'failed', runId: 'run-2' },
      { state: 'running', runId: 'run-3' },
      { state: 'ready-for-review', runId: 'run-3' },
      { state: 'running', runId: 'run-4' },
      { state: 'cancelled', runId: 'run-4', evidence: 'tree-reaped', confirmedAt: 1_000 },
    ]
    for (const mark of marks) {
      expect(await place.port.record(made, mark)).toEqual({ isOk: true })
      expect(manifestOf(made.path)).toMatchObject({ state: mark.state })
      expect(await place.port.inspect(made)).toMatchObject({ state: mark.state })
    }
    expect(manifestOf(made.path)).toMatchObject({
      format: 'runwarden-worktree',
      version: 1,
      jobId: 'job-1',
      branch: made.branch,
      baseCommit: made.baseCommit,
      runIds: ['run-1', 'run-2', 'run-3', 'run-4'],
      confirmation: { evidence: 'tree-reaped', confirmedAt: 1_000 },
    })
    expect(git(made.path, 'status', '--porcelain', '--ignored')).toBe('')
    expect(namesIn(adminDirOf(made.path)).filter((name) => name.startsWith('runwarden'))).toEqual([
      'runwarden.json',
    ])
  })

  it('P21: cancelled without the evidence of a confirmed end is a broken invariant, and is not written', async () => {
    const place = openPlace()
    const made = await worked(place)
    for (const lie of [
      { evidence: '', confirmedAt: 1 },
      { evidence: 'tree-reaped', confirmedAt: Number.NaN },
      {},
    ]) {
      const mark = { state: 'cancelled', runId: 'run-1', ...lie } as WorkspaceMark
      await expect(place.port.record(made, mark)).rejects.toMatchObject({ code: 'invariant-broken' })
    }
    expect(manifestOf(made.path)).toMatchObject({ state: 'provisioned', confirmation: null })
  })

  it('P21: a late word about an earlier run says nothing of the one at work', async () => {
    const place = openPlace()
    const made = await worked(place)
    await place.port.record(made, { state: 'running', runId: 'run-2' })
    expect(await place.port.record(made, { state: 'failed', runId: 'run-1' })).toMatchObject(
      refusal('running', /run-2 is at work/),
    )
    expect(manifestOf(made.path)).toMatchObject({ state: 'running' })
  })

  it('P21: a removed worktree is removed for whoever asks, and for who records', async () => {
    const place = openPlace()
    const made = await worked(place)
    const tip = commitFile(made.path, 'done.txt', 'done\n')
    expect(await place.port.remove(made)).toMatchObject({ isOk: true })
    expect(await place.port.inspect(made)).toMatchObject({
      isOk: true,
      state: 'removed',
      head: tip,
      branch: null,
      aheadCount: 1,
      uncommittedCount: 0,
      runIds: ['run-1'],
    })
    expect(await place.port.record(made, { state: 'running', runId: 'run-2' })).toMatchObject(
      refusal('missing'),
    )
  })

  it('P21: on a full disk the old record stays whole, and the refusal says why', async ({ skip }) => {
    const place = openPlace()
    const disk = join(place.folder, 'disk')
    mkdirSync(disk)
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', disk]).status !== 0)
      skip('no right to mount')
    onTestFinished(() => void spawnSync('umount', [disk]))
    const repository = makeRepository(join(disk, 'repository'))
    const made = await provisioned(place.port, { ...place.job, repository })
    const before = manifestOf(made.path)
    spawnSync('sh', ['-c', `cat /dev/zero > '${join(disk, 'filler')}'`])
    const reply = await place.port.record(made, { state: 'running', runId: 'run-1' })
    expect(reply).toEqual({ ...refusal('disk-full'), mayPass: true })
    expect(manifestOf(made.path)).toEqual(before)
    expect(await place.port.remove(made)).toMatchObject(refusal('disk-full'))
    expect(existsSync(join(made.path, 'readme.txt'))).toBe(true)
    rmSync(join(disk, 'filler'))
    expect(await place.port.remove(made)).toMatchObject({ isOk: true })
  })
})

describe('removing', () => {
  it('O14: the branch and its commits stay unless they are asked away, and twice is once', async () => {
    const place = openPlace()
    const made = await worked(place)
    const tip = commitFile(made.path, 'done.txt', 'done\n')
    expect(await place.port.remove(made)).toEqual({
      isOk: true,
      wasRemovedBefore: false,
      keptBranch: made.branch,
      keptRefs: [],
    })
    expect(await place.port.remove(made)).toMatchObject({
      isOk: true,
      wasRemovedBefore: true,
      keptBranch: made.branch,
    })
    expect(existsSync(made.path)).toBe(false)
    expect(worktreesOf(place.repository)).toEqual([place.repository])
    expect(git(place.repository, 'rev-parse', made.branch)).toBe(tip)

    expect(await place.port.provision({ ...place.job, previous: made })).toMatchObject({
      isOk: true,
      isTakenUp: false,
      branch: made.branch,
      baseCommit: made.baseCommit,
    })
    expect(existsSync(join(made.path, 'done.txt'))).toBe(true)
  })

  it('O14: uncommitted work is never removed unless forced, however it is hidden', async () => {
    const place = openPlace()
    const made = await worked(place)
    git(place.repository, 'config', 'status.showUntrackedFiles', 'no')
    const file = join(made.path, 'readme.txt')
    const cases: Record<string, () => void> = {
      'an untracked file': () => writeFileSync(join(made.path, 'new.txt'), 'new\n'),
      'an untracked folder': () => {
        rmSync(join(made.path, 'new.txt'))
        mkdirSync(join(made.path, 'new'))
        writeFileSync(join(made.path, 'new', 'x'), '')
      },
      'a changed file': () => {
        rmSync(join(made.path, 'new'), { recursive: true })
        writeFileSync(file, 'changed\n')
      },
      'a staged file': () => void git(made.path, 'add', '.'),
      'a deleted file': () => {
        git(made.path, 'reset', '-q', '--hard')
        rmSync(file)
      },
      'a change assumed away': () => {
        git(made.path, 'reset', '-q', '--hard')
        git(made.path, 'update-index', '--assume-unchanged', 'readme.txt')
        writeFileSync(file, 'changed\n')
      },
      'a change outside a sparse checkout': () => {
        git(made.path, 'update-index', '--no-assume-unchanged', '--skip-worktree', 'readme.txt')
      },
    }
    for (const [what, put] of Object.entries(cases)) {
      put()
      expect(await place.port.remove(made), what).toMatchObject(refusal('dirty'))
      expect(existsSync(made.path), what).toBe(true)
    }
    expect(manifestOf(made.path)).toMatchObject({ state: 'provisioned' })
    expect(await place.port.remove(made, { force: true })).toMatchObject({ isOk: true })
    expect(existsSync(made.path)).toBe(false)
  })

  it('O14: a file that is written in the last moment keeps the worktree, and the decision is taken back', async () => {
    const place = openPlace()
    const made = await worked(place)
    const late = join(made.path, 'late.txt')
    const program = join(place.folder, 'git-with-a-writer')
    const isRemoval = 'case "$*" in *"worktree remove"*)'
    writeFileSync(program, `#!/bin/sh\n${isRemoval} echo late > '${late}' ;; esac\nexec git "$@"\n`)
    chmodSync(program, 0o755)
    git(place.repository, 'config', 'status.showUntrackedFiles', 'no')
    expect(await openPort({ program }).remove(made)).toMatchObject(refusal('dirty', /a moment ago/))
    expect(readFileSync(late, 'utf8')).toBe('late\n')
    expect(manifestOf(made.path)).toMatchObject({ state: 'provisioned', removal: null })
    expect(await place.port.inspect(made)).toMatchObject({ state: 'provisioned', uncommittedCount: 1 })
  })

  it('O14: ignored files go with the worktree', async () => {
    const place = openPlace()
    commitFile(place.repository, '.gitignore', 'node_modules\n')
    const made = await worked(place)
    mkdirSync(join(made.path, 'node_modules'))
    writeFileSync(join(made.path, 'node_modules', 'x'), '')
    expect(await place.port.remove(made)).toMatchObject({ isOk: true })
    expect(existsSync(made.path)).toBe(false)
  })

  it('O14: a worktree in which a run is at work is not removed, whatever is forced', async () => {
    const place = openPlace()
    const made = await worked(place)
    await place.port.record(made, { state: 'running', runId: 'run-2' })
    expect(await place.port.remove(made, { force: true })).toMatchObject(refusal('running', /run-2/))
    expect(existsSync(made.path)).toBe(true)
    // Whoever was to record its end died first, and the caller knows that it is gone.
    expect(await place.port.remove(made, { isConfirmed: true })).toMatchObject({ isOk: true })
  })

  it('O14: commits on no branch get a ref before the worktree goes', async () => {
    const place = openPlace()
    const made = await worked(place)
    git(made.path, 'checkout', '-q', '--detach')
    const loose = commitFile(made.path, 'loose.txt', 'on no branch\n')
    const reply = await place.port.remove(made)
    const kept = [expect.stringMatching(/^refs\/runwarden\/kept\/job-1-[0-9a-f]{8}\/[0-9a-f]{12}$/)]
    expect(reply).toMatchObject({ isOk: true, keptRefs: kept })
    expect(git(place.repository, 'for-each-ref', '--format=%(objectname)', 'refs/runwarden')).toBe(loose)
  })

  it('O14: a branch that alone holds its commits is deleted only by force, and then a ref holds them', async () => {
    const place = openPlace()
    const made = await worked(place)
    const tip = commitFile(made.path, 'done.txt', 'done\n')
    expect(await place.port.remove(made, { deletesBranch: true })).toMatchObject(refusal('unmerged-commits'))
    expect(existsSync(made.path)).toBe(true)
    const reply = await place.port.remove(made, { deletesBranch: true, force: true })
    expect(reply).toMatchObject({ isOk: true, keptBranch: null, keptRefs: [expect.any(String)] })
    expect(branchesOf(place.repository)).toEqual(['main'])
    expect(git(place.repository, 'for-each-ref', '--format=%(objectname)', 'refs/runwarden')).toBe(tip)
    expect(await place.port.remove(made, { deletesBranch: true })).toMatchObject({ wasRemovedBefore: true })
  })

  it('O14: a merged branch goes when asked; one of somebody else, or in use, does not', async () => {
    const place = openPlace()
    const made = await worked(place)
    commitFile(made.path, 'done.txt', 'done\n')
    git(place.repository, 'merge', '-q', made.branch)
    git(made.path, 'checkout', '-q', '--detach')
    const elsewhere = join(place.folder, 'elsewhere')
    git(place.repository, 'worktree', 'add', '-q', elsewhere, made.branch)
    expect(await place.port.remove(made, { deletesBranch: true })).toMatchObject(
      refusal('branch-checked-out-elsewhere', /elsewhere/),
    )
    git(place.repository, 'worktree', 'remove', elsewhere)
    expect(await place.port.remove(made)).toMatchObject({ isOk: true })
    git(place.repository, 'branch', 'theirs')
    const asTheirs = { ...made, branch: 'theirs' }
    expect(await place.port.remove(asTheirs, { deletesBranch: true, force: true })).toMatchObject(
      refusal('not-ours'),
    )
    expect(await place.port.remove(made, { deletesBranch: true })).toMatchObject({ keptBranch: null })
    expect(branchesOf(place.repository)).toEqual(['main', 'theirs'])
  })

  it('O14: a submodule with commits of its own holds the worktree, one that is not checked out does not', async () => {
    const place = openPlace()
    const library = makeRepository(join(place.folder, 'library'))
    git(place.repository, 'submodule', 'add', '-q', library, 'library')
    git(place.repository, 'commit', '-q', '-m', 'a submodule')
    const made = await worked(place)
    git(made.path, 'submodule', 'update', '-q', '--init')
    expect(await place.port.remove(made)).toMatchObject(refusal('submodules'))
    expect(await place.port.remove(made, { force: true })).toMatchObject({ isOk: true })
  })

  it('O14: what somebody put where a removed worktree was is left alone', async () => {
    const place = openPlace()
    const made = await worked(place)
    await place.port.remove(made)
    mkdirSync(made.path)
    writeFileSync(join(made.path, 'mine'), 'mine')
    expect(await place.port.remove(made, { force: true })).toMatchObject({
      isOk: true,
      wasRemovedBefore: true,
    })
    expect(readFileSync(join(made.path, 'mine'), 'utf8')).toBe('mine')
    const never = { ...made, jobToken: 'another' }
    expect(await place.port.remove(never, { force: true })).toMatchObject(refusal('not-ours'))
    expect(await place.port.remove({ ...never, path: join(place.root, 'nothing') })).toMatchObject({
      isOk: true,
      wasRemovedBefore: true,
    })
  })

  it('O14: a removal that was broken off is finished, and only what git had begun to remove goes', async () => {
    const place = openPlace()
    for (const name of 'abc') commitFile(place.repository, name, name)
    const made = await worked(place)
    const adminDir = adminDirOf(made.path)
    const file = join(adminDir, 'runwarden.json')
    const decided = {
      ...manifestOf(made.path),
      state: 'removed',
      removal: { head: made.baseCommit, isForced: false, finishedAt: null },
    }
    const breakOff = (): void => {
      writeFileSync(file, JSON.stringify(decided))
      for (const name of ['a', 'b', '.git']) rmSync(join(made.path, name))
    }
    breakOff()
    writeFileSync(join(made.path, 'written-since'), '')
    expect(await place.port.remove(made)).toMatchObject(refusal('dirty', /broken off, and 1 uncommitted/))
    expect(await place.port.provision(place.job)).toMatchObject(refusal('dirty'))
    rmSync(join(made.path, 'written-since'))
    expect(await place.port.inspect(made)).toMatchObject({ state: 'removed' })
    expect(await place.port.remove(made)).toMatchObject({ isOk: true, keptBranch: made.branch })
    expect(readdirSync(place.root)).toEqual([])
    expect(gitTry(place.repository, 'worktree', 'list').stdout.trim().split('\n')).toHaveLength(1)

    expect(await place.port.provision(place.job)).toMatchObject({ isOk: true })
  })

  it('O14: a removal that the git of a dead process ends in the meantime is ended, and the worktree made anew', async () => {
    const place = openPlace()
    const made = await worked(place)
    const removal = { head: made.baseCommit, isForced: true, finishedAt: null }
    const file = join(adminDirOf(made.path), 'runwarden.json')
    writeFileSync(file, JSON.stringify({ ...manifestOf(made.path), state: 'removed', removal }))
    // As if the other one came first by a moment, and left the pointer that was put back.
    const late = join(place.folder, 'late-git')
    writeFileSync(
      late,
      `#!/bin/sh\ncase "$*" in *'worktree remove'*) git "$@"; mkdir '${made.path}'; echo gone > '${made.path}/.git';; esac\nexec git "$@"\n`,
    )
    chmodSync(late, 0o755)
    expect(await openPort({ program: late }).provision(place.job)).toMatchObject({
      isOk: true,
      isTakenUp: false,
      path: made.path,
    })
    expect(git(made.path, 'status', '--porcelain')).toBe('')
    expect(worktreesOf(place.repository)).toEqual([place.repository, made.path])
  })

  it('O14: a worktree that was half removed is made anew when the job runs again', async () => {
    const place = openPlace()
    const made = await worked(place)
    const removal = { head: made.baseCommit, isForced: true, finishedAt: null }
    const file = join(adminDirOf(made.path), 'runwarden.json')
    writeFileSync(file, JSON.stringify({ ...manifestOf(made.path), state: 'removed', removal }))
    rmSync(join(made.path, '.git'))
    expect(await place.port.provision(place.job)).toMatchObject({
      isOk: true,
      isTakenUp: false,
      path: made.path,
    })
    expect(git(made.path, 'status', '--porcelain')).toBe('')
    expect(manifestOf(made.path)).toMatchObject({ state: 'provisioned', runIds: [] })
  })
})
