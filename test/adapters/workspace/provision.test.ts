/** Making the worktree of a job: real git, real folders, and everything that can stand in the way. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { tempDir, waitFor } from '../../support/wait-for.js'
import {
  branchesOf,
  commitFile,
  git,
  hasGit,
  makeRepository,
  manifestOf,
  namesIn,
  openPlace,
  openPort,
  provisioned,
  refusal,
  worktreesOf,
} from './place.js'
import type { Place } from './place.js'

beforeEach(({ skip }) => {
  if (!hasGit) skip('no git')
})

const expectNothingMade = ({ repository, root }: Place): void => {
  expect(worktreesOf(repository)).toEqual([repository])
  expect(branchesOf(repository)).toEqual(['main'])
  expect(existsSync(root) ? namesIn(root) : []).toEqual([])
}

/** A small file system of its own, for as long as the test. */
const mountTmpfs = (options: string, skip: (note: string) => void): string => {
  const folder = mkdtempSync(join(tempDir(), 'mount-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder])
  if (mounted.status !== 0) skip('no right to mount a file system')
  onTestFinished(() => {
    spawnSync('umount', [folder])
  })
  return folder
}

describe('a new worktree', () => {
  it('O14: a job gets a worktree and a branch of its own, and the checkout of the repository stays as it is', async () => {
    const place = openPlace()
    writeFileSync(join(place.repository, 'readme.txt'), 'changed by its owner\n')
    const reply = await provisioned(place.port, place.job)

    expect(reply).toMatchObject({ isTakenUp: false, state: 'provisioned', notes: [] })
    expect(reply.branch).toMatch(/^runwarden\/job-1-[0-9a-f]{8}$/)
    expect(reply.path.startsWith(`${place.root}/job-1-`)).toBe(true)
    expect(git(reply.path, 'branch', '--show-current')).toBe(reply.branch)
    expect(git(reply.path, 'rev-parse', 'HEAD')).toBe(git(place.repository, 'rev-parse', 'main'))
    expect(reply.baseCommit).toBe(git(place.repository, 'rev-parse', 'main'))
    expect(readFileSync(join(reply.path, 'readme.txt'), 'utf8')).toBe('one\n')
    expect(git(reply.path, 'status', '--porcelain', '--ignored')).toBe('')
    expect(git(place.repository, 'status', '--porcelain')).toBe(' M readme.txt')
    expect(git(place.repository, 'worktree', 'list', '--porcelain')).not.toContain('locked')
  })

  it('O14: the branch and the base are what was asked for', async () => {
    const place = openPlace()
    const base = git(place.repository, 'rev-parse', 'HEAD')
    commitFile(place.repository, 'later.txt', 'later\n')
    const reply = await provisioned(place.port, { ...place.job, branch: 'fix/häßlich', base: 'main~1' })
    expect(reply).toMatchObject({ branch: 'fix/häßlich', baseCommit: base })
    expect(existsSync(join(reply.path, 'later.txt'))).toBe(false)
  })

  it('O14: jobs of the same id from two stores do not meet', async () => {
    const place = openPlace()
    const one = await provisioned(place.port, place.job)
    const other = await provisioned(place.port, { ...place.job, jobToken: 'token-2' })
    expect(other.path).not.toBe(one.path)
    expect(other.branch).not.toBe(one.branch)
    expect(other.isTakenUp).toBe(false)
  })

  it.each(['with space', 'line\nbreak', 'ünïcode 漢字', '-dash', 'quo\'te"s', '$(echo x)`x`'])(
    'O14: folders called %j are no trouble',
    async (name) => {
      const folder = tempDir()
      const repository = makeRepository(join(folder, name, 'repository'))
      const place = { ...openPlace(), repository, root: join(folder, name, '-root') }
      const job = { ...place.job, repository, worktreesRoot: place.root, jobId: name }
      const made = await provisioned(place.port, job)
      expect(git(made.path, 'status', '--porcelain')).toBe('')
      writeFileSync(join(made.path, name), '')
      await place.port.record(made, { state: 'running', runId: 'run-1' })
      await place.port.record(made, { state: 'failed', runId: 'run-1' })
      expect(await provisioned(place.port, job)).toMatchObject({ path: made.path, isTakenUp: true })
      expect(await place.port.inspect(made)).toMatchObject({ uncommittedCount: 1 })
      expect(await place.port.remove(made)).toMatchObject(refusal('dirty'))
      expect(await place.port.remove(made, { force: true })).toMatchObject({ isOk: true })
    },
  )

  it('O14: a bare repository, a folder within one and another worktree of one will do', async () => {
    const place = openPlace()
    git(place.folder, 'clone', '-q', '--bare', place.repository, 'bare.git')
    mkdirSync(join(place.repository, 'sub', 'folder'), { recursive: true })
    const linked = join(place.folder, 'linked')
    git(place.repository, 'worktree', 'add', '-q', '-b', 'linked', linked)
    const tip = commitFile(linked, 'linked.txt', 'linked\n')

    for (const [index, repository] of ['bare.git', 'repository/sub/folder', 'linked'].entries()) {
      const job = { ...place.job, jobToken: `token-${index}`, repository: join(place.folder, repository) }
      const made = await provisioned(place.port, job)
      expect(git(made.path, 'status', '--porcelain')).toBe('')
      expect(await provisioned(place.port, job)).toMatchObject({ isTakenUp: true, path: made.path })
      // The base is what stands where the caller pointed.
      if (repository === 'linked') expect(made.baseCommit).toBe(tip)
      expect(await place.port.remove(made)).toMatchObject({ isOk: true })
    }
  })

  it('O14: a root inside the repository stays out of its status', async () => {
    const place = openPlace()
    const job = { ...place.job, worktreesRoot: join(place.repository, '.jobs', 'trees') }
    const { path } = await provisioned(place.port, job)
    expect(existsSync(join(path, 'readme.txt'))).toBe(true)
    expect(git(place.repository, 'status', '--porcelain')).toBe('')
  })

  it('O14: the worktrees may be on another device than the repository', async ({ skip }) => {
    const place = openPlace()
    if (!existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync(place.folder).dev) {
      skip('no second device')
    }
    const root = mkdtempSync('/dev/shm/runwarden-test-')
    onTestFinished(() => rmSync(root, { recursive: true, force: true }))
    const made = await provisioned(place.port, { ...place.job, worktreesRoot: root })
    expect(existsSync(join(made.path, 'readme.txt'))).toBe(true)
    expect(await place.port.remove(made)).toMatchObject({ isOk: true })
    expect(existsSync(made.path)).toBe(false)
  })

  it('O14: a repository with settings per worktree, a sparse checkout and submodules gives whole worktrees', async () => {
    const place = openPlace()
    const library = makeRepository(join(place.folder, 'library'))
    git(place.repository, 'submodule', 'add', '-q', library, 'library')
    git(place.repository, 'commit', '-q', '-m', 'a submodule')
    git(place.repository, 'config', 'extensions.worktreeConfig', 'true')
    git(place.repository, 'config', '--worktree', 'core.sparseCheckout', 'false')
    git(place.repository, 'config', 'submodule.recurse', 'true')
    const made = await provisioned(place.port, place.job)
    expect(git(made.path, 'status', '--porcelain')).toBe('')
    expect(git(place.repository, 'status', '--porcelain')).toBe('')
    // Submodules are the agent's to check out: git's own worktrees come without them too.
    expect(namesIn(join(made.path, 'library'))).toEqual([])
    expect(await place.port.remove(made)).toMatchObject({ isOk: true })
  })
})

describe('what blocks a new worktree', () => {
  it('O14: a folder that is no repository, or not there, is named', async () => {
    const place = openPlace()
    for (const repository of [
      tempDir(),
      join(place.folder, 'nowhere'),
      join(place.repository, 'readme.txt'),
    ]) {
      expect(await place.port.provision({ ...place.job, repository })).toEqual({
        ...refusal('not-a-repository'),
        mayPass: false,
      })
    }
    expectNothingMade(place)
  })

  it('O14: a repository without a commit, and a base that names none, are told apart', async () => {
    const place = openPlace()
    const empty = makeRepository(join(place.folder, 'empty'), { isEmpty: true })
    expect(await place.port.provision({ ...place.job, repository: empty })).toMatchObject(
      refusal('no-commits'),
    )
    for (const base of ['no-such', '--all', '-x', 'main^{tree}', '']) {
      expect(await place.port.provision({ ...place.job, base })).toMatchObject(refusal('unknown-base'))
    }
    expectNothingMade(place)
  })

  it('O14: a branch of somebody else is never taken', async () => {
    const place = openPlace()
    git(place.repository, 'branch', 'theirs')
    git(place.repository, 'branch', 'folder')
    const cases = [
      ['theirs', 'branch-taken', /theirs exists already/],
      ['folder/below', 'branch-taken', /folder' exists/],
      ['main', 'branch-checked-out-elsewhere', /main is checked out at .*repository/],
    ] as const
    for (const [branch, code, reason] of cases) {
      expect(await place.port.provision({ ...place.job, branch })).toMatchObject(refusal(code, reason))
    }
    expect(worktreesOf(place.repository)).toEqual([place.repository])
    expect(branchesOf(place.repository)).toEqual(['folder', 'main', 'theirs'])
  })

  it('O14: a name that git allows for no branch is refused before anything is made', async () => {
    const place = openPlace()
    for (const branch of ['-b', 'a..b', 'a b', 'a~1', 'x.lock', 'HEAD', '', '@{-1}', 'a\nb', '/a', 'a//b']) {
      expect(await place.port.provision({ ...place.job, branch }), branch).toMatchObject(
        refusal('branch-invalid'),
      )
    }
    expectNothingMade(place)
  })

  it('O14: what is at the path and is not the job’s is never touched', async () => {
    const place = openPlace()
    const { path } = await provisioned(place.port, place.job)
    await place.port.remove({ ...place.job, path, branch: 'x' })
    const put: Record<string, () => void> = {
      'a file': () => writeFileSync(path, 'mine'),
      'a folder with a file': () => {
        mkdirSync(path)
        writeFileSync(join(path, 'mine'), 'mine')
      },
      'a link to a folder': () => {
        mkdirSync(join(place.folder, 'target'), { recursive: true })
        writeFileSync(join(place.folder, 'target', 'mine'), '')
        symlinkSync(join(place.folder, 'target'), path)
      },
      'a worktree of a person': () => void git(place.repository, 'worktree', 'add', '-q', '-b', 'mine', path),
    }
    for (const [what, make] of Object.entries(put)) {
      make()
      const reply = await place.port.provision(place.job)
      expect(reply, what).toMatchObject(refusal('path-occupied'))
      expect(existsSync(path), what).toBe(true)
      if (what !== 'a worktree of a person') rmSync(path, { recursive: true })
    }
    writeFileSync(join(path, 'more'), 'uncommitted')
    expect(await place.port.provision(place.job)).toMatchObject(refusal('dirty', /did not make/))
    expect(readFileSync(join(path, 'more'), 'utf8')).toBe('uncommitted')
  })

  it('O14: an empty folder at the path is no obstacle', async () => {
    const place = openPlace()
    const { path, ...ref } = await provisioned(place.port, place.job)
    await place.port.remove({ path, ...ref })
    mkdirSync(path)
    expect(await provisioned(place.port, place.job)).toMatchObject({ path, isTakenUp: false })
  })

  it('O14: a git that is missing or too old is said, and what it would do is not tried', async () => {
    const place = openPlace()
    const old = join(place.folder, 'old-git')
    writeFileSync(old, '#!/bin/sh\necho git version 2.20.1\n')
    chmodSync(old, 0o755)
    expect(await openPort({ program: old }).provision(place.job)).toMatchObject(
      refusal('git-too-old', /2\.20\.1/),
    )
    expect(await openPort({ program: '/no/git' }).provision(place.job)).toMatchObject(
      refusal('git-missing', /\/no\/git/),
    )
    expectNothingMade(place)
  })

  it('O14: a repository that git refuses because of its owner is refused in git’s words', async ({
    skip,
  }) => {
    if (process.getuid?.() !== 0) skip('not root: no folder can be given to another user')
    const place = openPlace()
    chownSync(place.repository, 65_534, 65_534)
    chownSync(join(place.repository, '.git'), 65_534, 65_534)
    expect(await place.port.provision(place.job)).toMatchObject(
      refusal('unsafe-repository', /dubious ownership in repository at .*repository/),
    )
  })

  it('O14: a disk that fills up leaves no half of a worktree, and the job may try again', async ({
    skip,
  }) => {
    const place = openPlace()
    for (const name of ['a', 'b', 'c'])
      writeFileSync(join(place.repository, name), Buffer.alloc(1 << 20, name))
    git(place.repository, 'add', '.')
    git(place.repository, 'commit', '-q', '-m', 'three megabytes')
    const root = mountTmpfs('size=2m', skip)
    const reply = await place.port.provision({ ...place.job, worktreesRoot: root })
    expect(reply).toEqual({ ...refusal('disk-full', /unable to write file/), mayPass: true })
    expectNothingMade({ ...place, root })
    spawnSync('mount', ['-o', 'remount,size=20m', root])
    expect(await place.port.provision({ ...place.job, worktreesRoot: root })).toMatchObject({ isOk: true })
  })

  it('O14: a read-only disk is said, for the worktrees and for the repository', async ({ skip }) => {
    const place = openPlace()
    const root = mountTmpfs('ro', skip)
    expect(await place.port.provision({ ...place.job, worktreesRoot: root })).toMatchObject(
      refusal('read-only'),
    )
    expectNothingMade({ ...place, root })
    const disk = mountTmpfs('size=20m', skip)
    const repository = makeRepository(join(disk, 'repository'))
    spawnSync('mount', ['-o', 'remount,ro', disk])
    expect(await place.port.provision({ ...place.job, repository })).toMatchObject(refusal('read-only'))
  })

  it('O14: a filter that fails is quoted, and nothing is left', async () => {
    const place = openPlace()
    git(place.repository, 'config', 'filter.broken.smudge', 'echo no key for this >&2; false')
    git(place.repository, 'config', 'filter.broken.required', 'true')
    commitFile(place.repository, '.gitattributes', '*.secret filter=broken\n')
    writeFileSync(join(place.repository, 'x.secret'), 'x')
    git(place.repository, '-c', 'filter.broken.clean=cat', 'add', 'x.secret')
    git(place.repository, '-c', 'filter.broken.clean=cat', 'commit', '-q', '-m', 'a secret')
    expect(await place.port.provision(place.job)).toMatchObject(
      refusal('git-failed', /smudge filter broken failed/),
    )
    expectNothingMade(place)
  })

  it('O14, INV-11: a checkout that never ends is ended at its deadline', async () => {
    const place = openPlace({ checkoutDeadlineMs: 500 })
    const pidFile = join(place.folder, 'pid')
    git(place.repository, 'config', 'filter.slow.smudge', `echo $$ > '${pidFile}'; exec sleep 600`)
    commitFile(place.repository, '.gitattributes', '*.slow filter=slow\n')
    commitFile(place.repository, 'x.slow', 'x')
    onTestFinished(() => {
      if (existsSync(pidFile)) spawnSync('kill', ['-KILL', readFileSync(pidFile, 'utf8').trim()])
    })
    expect(await place.port.provision(place.job)).toEqual({
      ...refusal('timeout', /within 500 ms/),
      mayPass: true,
    })
    expectNothingMade(place)
  })
})

describe('at once', () => {
  it('O14: of two jobs that ask for one branch at once, one gets it and the other is told', async () => {
    const place = openPlace({ lockWaitMs: 5_000 })
    for (let round = 0; round < 6; round += 1) {
      const asked = ['a', 'b'].map((name) =>
        // Two ports: two engines.
        openPort({ lockWaitMs: 5_000 }).provision({
          ...place.job,
          jobId: name,
          jobToken: `${name}-${round}`,
          branch: `wanted-${round}`,
        }),
      )
      const replies = await Promise.all(asked)
      expect(replies.map(({ isOk }) => isOk).sort()).toEqual([false, true])
      const loser = replies.find(({ isOk }) => !isOk)
      expect(['branch-taken', 'branch-checked-out-elsewhere']).toContain(loser?.isOk === false && loser.code)
    }
    expect(worktreesOf(place.repository)).toHaveLength(7)
  })

  it('O14: many jobs are provisioned in one repository at once', async () => {
    const place = openPlace({ lockWaitMs: 10_000 })
    const jobs = Array.from({ length: 8 }, (_, index) => ({ ...place.job, jobToken: `token-${index}` }))
    const made = await Promise.all(jobs.map((job) => provisioned(place.port, job)))
    expect(new Set(made.map(({ path }) => path)).size).toBe(8)
    for (const { path } of made) expect(git(path, 'status', '--porcelain')).toBe('')
    const removed = await Promise.all(made.map((one) => place.port.remove(one, { deletesBranch: true })))
    expect(removed.every(({ isOk }) => isOk)).toBe(true)
    expect(worktreesOf(place.repository)).toEqual([place.repository])
    expect(branchesOf(place.repository)).toEqual(['main'])
  })

  it('O14: calls for one job follow each other: the second takes up what the first made', async () => {
    const place = openPlace()
    const [first, second] = await Promise.all([
      provisioned(place.port, place.job),
      provisioned(place.port, place.job),
    ])
    expect([first.isTakenUp, second.isTakenUp]).toEqual([false, true])
    expect(second.path).toBe(first.path)
  })

  it('O14: a lock of another git is waited for, and named when it stays', async () => {
    const place = openPlace({ lockWaitMs: 400 })
    const lock = join(place.repository, '.git', 'refs', 'heads', 'wanted.lock')
    writeFileSync(lock, '')
    const job = { ...place.job, branch: 'wanted' }
    expect(await place.port.provision(job)).toEqual({ ...refusal('busy', /wanted\.lock/), mayPass: true })

    const patient = openPort({ lockWaitMs: 20_000 })
    const waiting = patient.provision(job)
    await waitFor(() => existsSync(place.root), { deadlineMs: 10_000, what: 'the call is under way' })
    unlinkSync(lock)
    expect(await waiting).toMatchObject({ isOk: true, branch: 'wanted' })
  })
})

describe('on our account', () => {
  it('O14: no hook, no file monitor and no variable of the host’s git has a say', async () => {
    const place = openPlace()
    const stranger = makeRepository(join(place.folder, 'stranger'))
    const seen = join(place.folder, 'seen')
    for (const name of ['post-checkout', 'post-index-change', 'reference-transaction', 'fsmonitor']) {
      const hook = join(place.repository, '.git', 'hooks', name)
      writeFileSync(hook, `#!/bin/sh\necho ${name} >> '${seen}.hooks'\n`)
      chmodSync(hook, 0o755)
    }
    git(place.repository, 'config', 'core.fsmonitor', join(place.repository, '.git', 'hooks', 'fsmonitor'))
    git(place.repository, 'config', 'filter.spy.smudge', `env > '${seen}.env'; cat`)
    commitFile(place.repository, '.gitattributes', '*.spied filter=spy\n')
    commitFile(place.repository, 'x.spied', 'x')
    rmSync(`${seen}.hooks`, { force: true })
    rmSync(`${seen}.env`, { force: true })

    const leaks = {
      GIT_DIR: join(stranger, '.git'),
      GIT_WORK_TREE: stranger,
      GIT_INDEX_FILE: join(stranger, '.git', 'index'),
      GIT_OBJECT_DIRECTORY: join(stranger, '.git', 'objects'),
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.bare',
      GIT_CONFIG_VALUE_0: 'true',
      GIT_CEILING_DIRECTORIES: place.folder,
      GIT_NAMESPACE: 'stranger',
      GIT_TRACE: '1',
      LC_ALL: 'de_DE.UTF-8',
    }
    for (const [name, value] of Object.entries(leaks)) vi.stubEnv(name, value)
    onTestFinished(() => void vi.unstubAllEnvs())
    const made = await provisioned(place.port, place.job)
    const view = await place.port.inspect(made)
    const again = await place.port.provision(place.job)
    vi.unstubAllEnvs()

    expect(made.baseCommit).toBe(git(place.repository, 'rev-parse', 'main'))
    expect(view).toMatchObject({ isOk: true, uncommittedCount: 0, branch: made.branch })
    expect(again).toMatchObject({ isOk: true, isTakenUp: true })
    expect(branchesOf(stranger)).toEqual(['main'])
    expect(existsSync(`${seen}.hooks`)).toBe(false)
    const env = readFileSync(`${seen}.env`, 'utf8')
    expect(env).toContain('GIT_TERMINAL_PROMPT=0')
    expect(env).toContain('LC_ALL=C\n')
    for (const name of ['GIT_NAMESPACE', 'GIT_TRACE', 'GIT_OBJECT_DIRECTORY', 'GIT_CEILING_DIRECTORIES']) {
      expect(env).not.toContain(`${name}=`)
    }
    expect(manifestOf(made.path)).toMatchObject({ jobToken: 'token-1' })
  })
})
