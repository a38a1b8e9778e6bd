/** Taking a worktree up again after an interruption, a crash, or a person's visit. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ProvisionRequest } from '../../../src/actors/workspace.ports.js'
import { branchOriginOf, makingLockOf } from '../../../src/adapters/workspace/names.js'
import { seededRandom } from '../../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../../support/wait-for.js'
import { root as projectRoot } from '../../tidy/source-tree.js'
import {
  adminDirOf,
  branchesOf,
  commitFile,
  git,
  gitTry,
  hasGit,
  makeRepository,
  manifestOf,
  openPlace,
  openPort,
  provisioned,
  refusal,
  worked,
  worktreesOf,
} from './place.js'
import type { Place } from './place.js'

const KILL_ROUNDS = Number(process.env['RUNWARDEN_REPEATS'] ?? 10)

beforeEach(({ skip }) => {
  if (!hasGit) skip('no git')
})

/** Two branches that change one line differently, and the worktree on the first of them. */
const conflicting = async (place: Place): Promise<string> => {
  const { path } = await worked(place)
  git(place.repository, 'checkout', '-q', '-b', 'other')
  commitFile(place.repository, 'readme.txt', 'theirs\n')
  git(place.repository, 'checkout', '-q', 'main')
  commitFile(path, 'readme.txt', 'ours\n')
  return path
}

describe('after an interruption', () => {
  it('O9: commits, changes, staged and untracked files are there as they were left', async () => {
    const place = openPlace()
    const made = await worked(place)
    const tip = commitFile(made.path, 'done.txt', 'done\n')
    writeFileSync(join(made.path, 'readme.txt'), 'half\n')
    writeFileSync(join(made.path, 'new.txt'), 'new\n')
    writeFileSync(join(made.path, 'staged.txt'), 'staged\n')
    git(made.path, 'add', 'staged.txt')
    const status = git(made.path, 'status', '--porcelain')

    const again = await provisioned(openPort(), { ...place.job, base: 'no-longer-there', previous: made })
    expect(again).toMatchObject({ ...made, isTakenUp: true, notes: [] })
    expect(git(made.path, 'status', '--porcelain')).toBe(status)
    expect(await place.port.inspect(made)).toMatchObject({
      branch: made.branch,
      head: tip,
      aheadCount: 1,
      uncommittedCount: 3,
      obstacle: null,
      runIds: ['run-1'],
    })
  })

  it('O9: another branch or no branch is taken up as it is, and said', async () => {
    const place = openPlace()
    const made = await worked(place)
    git(made.path, 'checkout', '-q', '-b', 'agents-own')
    expect(await provisioned(place.port, place.job)).toMatchObject({
      branch: made.branch,
      notes: [expect.stringContaining(`on the branch agents-own, not on ${made.branch}`)],
    })
    git(made.path, 'checkout', '-q', '--detach')
    expect((await provisioned(place.port, place.job)).notes).toEqual([
      expect.stringContaining('on no branch'),
    ])
    git(made.path, 'checkout', '-q', '--orphan', 'fresh')
    git(made.path, 'rm', '-rfq', '.')
    expect((await provisioned(place.port, place.job)).notes).toEqual([
      expect.stringContaining('no commit yet'),
    ])
    expect(await place.port.inspect(made)).toMatchObject({ branch: 'fresh', head: null, aheadCount: null })
  })

  it('O9: a worktree that was moved by git is taken up where it is now', async () => {
    const place = openPlace()
    const made = await worked(place)
    const moved = join(place.folder, 'moved')
    git(place.repository, 'worktree', 'move', made.path, moved)
    expect(await provisioned(place.port, { ...place.job, previous: made })).toMatchObject({ path: moved })
    expect(await place.port.remove(made)).toMatchObject({ isOk: true, wasRemovedBefore: false })
    expect(existsSync(moved)).toBe(false)
  })

  it('O9: what the agent nested in it is its own', async () => {
    const place = openPlace()
    const made = await worked(place)
    makeRepository(join(made.path, 'nested'))
    expect(await provisioned(place.port, place.job)).toMatchObject({ isTakenUp: true })
    expect(await place.port.remove(made)).toMatchObject(refusal('dirty', /1 uncommitted/))
  })
})

describe('what blocks the next run', () => {
  it.each<[string, string, (path: string, place: Place) => void]>([
    ['rebase', 'rebase-in-progress', (path) => void gitTry(path, 'rebase', 'other')],
    ['rebase by patches', 'rebase-in-progress', (path) => void gitTry(path, 'rebase', '--apply', 'other')],
    ['merge', 'merge-in-progress', (path) => void gitTry(path, 'merge', 'other')],
    ['cherry-pick', 'cherry-pick-in-progress', (path) => void gitTry(path, 'cherry-pick', 'other')],
    [
      'revert',
      'revert-in-progress',
      (path) => {
        commitFile(path, 'readme.txt', 'later\n')
        gitTry(path, 'revert', '--no-edit', 'HEAD~1')
      },
    ],
    [
      'am',
      'am-in-progress',
      (path, place) => {
        const patch = join(place.folder, 'patch')
        writeFileSync(patch, git(place.repository, 'format-patch', '-1', '--stdout', 'other'))
        gitTry(path, 'am', patch)
      },
    ],
    [
      'bisect',
      'bisect-in-progress',
      (path) => {
        git(path, 'bisect', 'start', '-q')
      },
    ],
  ])('O14: a %s that was begun and not ended is named, with the way out of it', async (name, code, begin) => {
    const place = openPlace()
    const path = await conflicting(place)
    begin(path, place)
    const before = gitTry(path, 'status').stdout
    const wayOut = name === 'bisect' ? /bisect reset/ : /--continue` or `--abort/
    expect(await place.port.provision(place.job)).toEqual({
      ...refusal(code as 'rebase-in-progress', wayOut),
      mayPass: false,
    })
    expect(gitTry(path, 'status').stdout).toBe(before)
    expect(await place.port.remove({ ...place.job, path, branch: 'x' })).toMatchObject({ isOk: false, code })
  })

  it('O14: files in conflict without an operation are counted', async () => {
    const place = openPlace()
    const path = await conflicting(place)
    writeFileSync(join(path, 'readme.txt'), 'stashed\n')
    git(path, 'stash', '-q')
    commitFile(path, 'readme.txt', 'committed\n')
    gitTry(path, 'stash', 'pop')
    expect(await place.port.provision(place.job)).toMatchObject(refusal('conflicts', /1 files/))
    git(path, 'checkout', '-q', '--theirs', 'readme.txt')
    git(path, 'add', 'readme.txt')
    expect(await place.port.provision(place.job)).toMatchObject({ isOk: true })
  })

  it('O14: a worktree locked by a person is left to the person', async () => {
    const place = openPlace()
    const made = await worked(place)
    git(place.repository, 'worktree', 'lock', '--reason', 'on a stick', made.path)
    const locked = refusal('locked', /git worktree lock.*on a stick/)
    expect(await place.port.provision(place.job)).toMatchObject(locked)
    expect(await place.port.inspect(made)).toMatchObject({ isOk: true, obstacle: { code: 'locked' } })
    expect(await place.port.remove(made, { force: true })).toMatchObject(locked)
    // Locked because its disk is not always there.
    const stick = join(place.folder, 'stick')
    renameSync(made.path, stick)
    expect(await place.port.provision({ ...place.job, recreatesMissing: true })).toMatchObject(locked)
    expect(await place.port.remove(made, { force: true })).toMatchObject(locked)
    renameSync(stick, made.path)
    git(place.repository, 'worktree', 'unlock', made.path)
    expect(await place.port.provision(place.job)).toMatchObject({ isOk: true })
  })

  it('O14: a lock file left by a killed git is named, one of a git at work is waited for', async () => {
    const place = openPlace()
    const made = await worked(place)
    const lock = join(adminDirOf(made.path), 'index.lock')
    writeFileSync(lock, '')
    expect(await place.port.provision(place.job)).toMatchObject(refusal('locked', /index\.lock is there/))
    expect(await place.port.remove(made)).toMatchObject(refusal('locked', /index\.lock/))
    expect(existsSync(lock)).toBe(true)

    const waiting = openPort({ lockWaitMs: 20_000 }).provision(place.job)
    unlinkSync(lock)
    expect(await waiting).toMatchObject({ isOk: true })
  })

  it('O14: a folder that is gone is missing until it is asked for anew; its commits are there again', async () => {
    const place = openPlace()
    const made = await worked(place)
    commitFile(made.path, 'done.txt', 'done\n')
    git(made.path, 'checkout', '-q', '--detach')
    const loose = commitFile(made.path, 'loose.txt', 'on no branch\n')
    rmSync(made.path, { recursive: true })

    expect(await place.port.provision(place.job)).toMatchObject(refusal('missing', /is gone/))
    expect(await place.port.inspect(made)).toMatchObject(refusal('missing'))
    const anew = await provisioned(place.port, { ...place.job, recreatesMissing: true })
    expect(anew).toMatchObject({
      path: made.path,
      branch: made.branch,
      baseCommit: made.baseCommit,
      isTakenUp: false,
    })
    expect(existsSync(join(anew.path, 'done.txt'))).toBe(true)
    // Commits on no branch would have gone with the worktree's own HEAD.
    expect(git(place.repository, 'for-each-ref', '--format=%(objectname)', 'refs/runwarden/kept')).toBe(loose)
  })

  it('O14: a registration that was pruned is missing, whether the folder is there or not', async () => {
    const place = openPlace()
    const made = await worked(place)
    commitFile(made.path, 'done.txt', 'done\n')
    writeFileSync(join(made.path, 'half.txt'), 'half\n')
    const aside = join(place.folder, 'aside')
    renameSync(made.path, aside)
    git(place.repository, 'worktree', 'prune', '--expire=now')
    const job = { ...place.job, previous: made }
    expect(await place.port.provision(job)).toMatchObject(refusal('missing', /so is the folder/))

    renameSync(aside, made.path)
    expect(await place.port.provision(job)).toMatchObject(refusal('missing', /no worktree any more/))
    expect(await place.port.provision({ ...job, recreatesMissing: true })).toMatchObject(
      refusal('path-occupied'),
    )
    expect(await place.port.remove(made, { force: true })).toMatchObject(refusal('not-ours'))
    expect(readFileSync(join(made.path, 'half.txt'), 'utf8')).toBe('half\n')

    renameSync(made.path, aside)
    const anew = await provisioned(place.port, { ...job, recreatesMissing: true })
    expect(anew).toMatchObject({ branch: made.branch, baseCommit: made.baseCommit })
    expect(existsSync(join(anew.path, 'done.txt'))).toBe(true)
  })

  it('O14: what was put in the place of the worktree is not taken for it', async () => {
    const place = openPlace()
    const made = await worked(place)
    rmSync(made.path, { recursive: true })
    git(place.folder, 'clone', '-q', place.repository, made.path)
    expect(await place.port.provision(place.job)).toMatchObject(
      refusal('path-occupied', /is not the worktree/),
    )
    expect(await place.port.inspect(made)).toMatchObject(refusal('path-occupied'))
    expect(await place.port.remove(made, { force: true })).toMatchObject(refusal('not-ours'))
    expect(existsSync(join(made.path, '.git', 'HEAD'))).toBe(true)
  })

  it('O14: uncommitted files from before the first run are not the job’s', async () => {
    const place = openPlace()
    const made = await provisioned(place.port, place.job)
    writeFileSync(join(made.path, 'somebody.txt'), 'somebody\n')
    expect(await place.port.provision(place.job)).toMatchObject(refusal('dirty', /1 uncommitted.*no run/))
    await place.port.record(made, { state: 'running', runId: 'run-1' })
    expect(await place.port.provision(place.job)).toMatchObject({ isOk: true, state: 'running' })
  })

  it('O14, P21: a manifest that is torn, newer or foreign is a reason, and the worktree stays', async () => {
    const place = openPlace()
    const made = await worked(place)
    const file = join(adminDirOf(made.path), 'runwarden.json')
    const text = readFileSync(file, 'utf8')
    const cases = [
      [text.slice(0, 40), /torn/],
      ['', /torn/],
      [text.replace('"version": 1', '"version": 2'), /version 2, and this program knows 1/],
      [text.replace('"provisioned"', '"lost"'), /not as expected at state/],
      ['[]', /not as expected/],
    ] as const
    for (const [content, reason] of cases) {
      writeFileSync(file, content)
      const unreadable = refusal('manifest-unreadable', reason)
      expect(await place.port.provision(place.job)).toMatchObject(unreadable)
      expect(await place.port.inspect(made)).toMatchObject(unreadable)
      expect(await place.port.record(made, { state: 'running', runId: 'x' })).toMatchObject(unreadable)
      expect(await place.port.remove(made, { force: true })).toMatchObject(unreadable)
    }
    writeFileSync(file, text.replace('token-1', 'token-of-another-job'))
    expect(await place.port.provision(place.job)).toMatchObject(refusal('path-occupied'))
    expect(await place.port.remove(made, { force: true })).toMatchObject(refusal('not-ours'))
    expect(existsSync(made.path)).toBe(true)
  })
})

describe('after a crash of the one who made it', () => {
  it('O14: a branch that was made for the job and nothing more is the job’s', async () => {
    const place = openPlace()
    git(
      place.repository,
      'update-ref',
      '--create-reflog',
      '-m',
      branchOriginOf('token-1'),
      'refs/heads/mine',
      'HEAD',
    )
    expect(await place.port.provision({ ...place.job, branch: 'mine' })).toMatchObject({
      isOk: true,
      branch: 'mine',
    })
    const other = { ...place.job, jobToken: 'token-2', branch: 'mine' }
    expect(await place.port.provision(other)).toMatchObject(refusal('branch-checked-out-elsewhere'))
  })

  it('O14: a worktree without its manifest yet is cleaned and made anew', async () => {
    const place = openPlace()
    const { path, branch } = await provisioned(place.port, place.job)
    await place.port.remove({ ...place.job, path, branch })
    const lock = ['--lock', '--reason', makingLockOf('token-1')]
    git(place.repository, 'worktree', 'add', '-q', '--no-checkout', ...lock, path, branch)
    expect(await provisioned(place.port, place.job)).toMatchObject({ path, branch, isTakenUp: false })
    expect(worktreesOf(place.repository)).toEqual([place.repository, path])
    expect(git(path, 'status', '--porcelain')).toBe('')
  })

  it('O14: a registration that git itself had only begun is cleaned too', async () => {
    const place = openPlace()
    const begun = join(place.repository, '.git', 'worktrees', 'begun')
    mkdirSync(begun, { recursive: true })
    writeFileSync(join(begun, 'locked'), `${makingLockOf('token-1')}\n`)
    expect(await place.port.provision(place.job)).toMatchObject({ isOk: true, isTakenUp: false })
    expect(existsSync(begun)).toBe(false)
  })

  it('O14: files that were not all checked out are; a checkout that may go on is waited for', async () => {
    const place = openPlace()
    const made = await provisioned(place.port, place.job)
    const file = join(adminDirOf(made.path), 'runwarden.json')
    const unpopulated = JSON.stringify({ ...manifestOf(made.path), populatedAt: null })
    writeFileSync(file, unpopulated)
    git(place.repository, 'worktree', 'lock', '--reason', makingLockOf('token-1'), made.path)
    rmSync(join(made.path, 'readme.txt'))
    const lock = join(adminDirOf(made.path), 'index.lock')
    writeFileSync(lock, '')
    expect(await place.port.provision(place.job)).toEqual({ ...refusal('busy', /too young/), mayPass: true })

    utimesSync(lock, new Date(0), new Date(0))
    expect(await provisioned(place.port, place.job)).toMatchObject({ isTakenUp: true, path: made.path })
    expect(git(made.path, 'status', '--porcelain')).toBe('')
    expect(git(place.repository, 'worktree', 'list', '--porcelain')).not.toContain('locked')
  })

  it(`O14: killed at ${KILL_ROUNDS} random moments of making and removing, the next call ends with a whole worktree, or none`, async () => {
    const place = openPlace()
    for (const name of 'abcdefgh') writeFileSync(join(place.repository, name), Buffer.alloc(200_000, name))
    git(place.repository, 'add', '.')
    git(place.repository, 'commit', '-q', '-m', 'some files')
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const script = join(tempDir(), 'provision.mjs')
    const adapter = (path: string): string => pathToFileURL(join(projectRoot, 'dist/adapters', path)).href
    writeFileSync(
      script,
      `import { createGitWorkspaces } from '${adapter('workspace/git-workspaces.js')}'
       import { systemClock } from '${adapter('clock/system-clock.js')}'
       const port = createGitWorkspaces({ clock: systemClock })
       const job = JSON.parse(process.argv[2])
       console.log('begun')
       const made = await port.provision(job)
       console.log('made')
       if (made.isOk) await port.remove(made)`,
    )
    const killed = async (job: ProvisionRequest, line: string, afterMs: number): Promise<void> => {
      const child = spawn(process.execPath, [script, JSON.stringify(job)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const exited = once(child, 'exit')
      let output = ''
      child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
      await waitFor(() => output.includes(line), { deadlineMs: 20_000, what: `the line ${line}` })
      const killing = setTimeout(() => child.kill('SIGKILL'), afterMs)
      await exited
      clearTimeout(killing)
    }
    for (let round = 0; round < KILL_ROUNDS; round += 1) {
      const line = round % 3 === 0 ? 'made' : 'begun'
      const afterMs = random() * 250
      const what = `seed ${seed}, round ${round}, killed ${Math.round(afterMs)} ms after ${line}`
      const job = { ...place.job, jobToken: `token-${round}`, branch: `mine-${round}` }
      await killed(job, line, afterMs)
      // The git of the dead process may go on to its end: then the call finds it busy, or done.
      const made = await waitFor(
        async () => {
          const reply = await openPort({ lockWaitMs: 2_000 }).provision(job)
          if (!reply.isOk && reply.code !== 'busy') throw new Error(`${what}: ${reply.code}: ${reply.reason}`)
          return reply.isOk && reply
        },
        { deadlineMs: 20_000, what },
      )
      expect(git(made.path, 'status', '--porcelain'), what).toBe('')
      expect(await place.port.remove(made, { deletesBranch: true }), what).toMatchObject({ isOk: true })
    }
    expect(worktreesOf(place.repository)).toEqual([place.repository])
    expect(branchesOf(place.repository)).toEqual(['main'])
  }, 120_000)
})
