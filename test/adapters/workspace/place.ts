/** A real repository, the port over the real git, and the two jobs' worth of names that most tests need. */
import { execFileSync, spawnSync } from 'node:child_process'
import type { SpawnSyncReturns } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type {
  ProvisionReply,
  ProvisionRequest,
  WorkspaceCode,
  WorkspacePort,
} from '../../../src/actors/workspace.ports.js'
import { systemClock } from '../../../src/adapters/clock/system-clock.js'
import { createGitWorkspaces } from '../../../src/adapters/workspace/git-workspaces.js'
import type { GitOptions } from '../../../src/adapters/workspace/git.js'
import { expect } from 'vitest'
import { tempDir } from '../../support/wait-for.js'

export const hasGit = spawnSync('git', ['version']).status === 0

const identity = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.org',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.org',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_EDITOR: 'true',
}

/** A git of a person or an agent: apart from the one under test. */
export const gitTry = (cwd: string, ...args: readonly string[]): SpawnSyncReturns<string> =>
  spawnSync('git', ['-c', 'protocol.file.allow=always', ...args], {
    cwd,
    env: { ...process.env, ...identity },
    encoding: 'utf8',
  })

export const git = (cwd: string, ...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], {
    cwd,
    env: { ...process.env, ...identity },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trimEnd()

export const commitFile = (cwd: string, name: string, text: string): string => {
  writeFileSync(join(cwd, name), text)
  git(cwd, 'add', '--', name)
  git(cwd, 'commit', '-q', '-m', `change ${name}`)
  return git(cwd, 'rev-parse', 'HEAD')
}

/** A repository on the branch `main` with one commit. */
export const makeRepository = (path: string, { isEmpty = false } = {}): string => {
  mkdirSync(path, { recursive: true })
  git(path, 'init', '-q', '-b', 'main')
  if (!isEmpty) commitFile(path, 'readme.txt', 'one\n')
  return realpathSync(path)
}

export interface Place {
  readonly folder: string
  readonly repository: string
  readonly root: string
  readonly port: WorkspacePort
  readonly job: ProvisionRequest
}

export const openPort = (options: Partial<GitOptions> = {}): WorkspacePort =>
  createGitWorkspaces({ clock: systemClock, lockWaitMs: 300, ...options })

export const openPlace = (options: Partial<GitOptions> = {}): Place => {
  const folder = realpathSync(tempDir())
  const repository = makeRepository(join(folder, 'repository'))
  const root = join(folder, 'worktrees')
  const job = { jobId: 'job-1', jobToken: 'token-1', repository, worktreesRoot: root }
  return { folder, repository, root, port: openPort(options), job }
}

export type Provisioned = Extract<ProvisionReply, { isOk: true }>

export const provisioned = async (port: WorkspacePort, job: ProvisionRequest): Promise<Provisioned> => {
  const reply = await port.provision(job)
  if (!reply.isOk) throw new Error(`${reply.code}: ${reply.reason}`)
  return reply
}

/** A worktree in which a run has been at work and was interrupted. */
export const worked = async (place: Place): Promise<Provisioned> => {
  const workspace = await provisioned(place.port, place.job)
  await place.port.record(workspace, { state: 'running', runId: 'run-1' })
  await place.port.record(workspace, { state: 'provisioned', runId: 'run-1' })
  return workspace
}

export const refusal = (code: WorkspaceCode, reason: RegExp = /./): object => ({
  isOk: false,
  code,
  reason: expect.stringMatching(reason) as unknown,
})

/** The worktree's folder inside the repository. */
export const adminDirOf = (path: string): string => git(path, 'rev-parse', '--absolute-git-dir')

export const manifestOf = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(adminDirOf(path), 'runwarden.json'), 'utf8')) as Record<string, unknown>

export const branchesOf = (repository: string): string[] =>
  git(repository, 'for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')

export const worktreesOf = (repository: string): string[] => {
  const text = git(repository, 'worktree', 'list', '--porcelain', '-z')
  return text
    .split('\0')
    .filter((line) => line.startsWith('worktree '))
    .map((line) => line.slice(9))
}

export const namesIn = (folder: string): string[] => readdirSync(folder).sort()
