/**
 * The worktrees that a repository knows, and the one among them that is a job's.
 *
 * A worktree is a job's by the token in its manifest, or by the reason of the lock it is made under: never by its path, which somebody
 * may have reused, and wherever it was moved.
 */
import { lstat, readFile, readdir, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { codeOf } from '../../errors.js'
import { isReadable, readManifest } from './manifest.js'
import type { Manifest, UnreadableManifest } from './manifest.js'
import { makingLockOf } from './names.js'
import { refuse } from './obstacle.js'
import type { Repository } from './repository.js'

interface Registration {
  /** The worktree's folder inside the repository. */
  readonly adminDir: string
  /** Where its files are; null when a crash kept git from writing it down. */
  readonly path: string | null
  /** The reason of git's lock, '' without one; null when it is not locked. */
  readonly lock: string | null
  readonly manifest: Manifest | UnreadableManifest | null
}

export interface OwnWorktree {
  readonly adminDir: string
  readonly path: string
  /** Someone else's lock on it. */
  readonly foreignLock: string | null
  /** Whether the lock under which it was made is still there. */
  readonly hasMakingLock: boolean
  readonly manifest: Manifest
}

export type Found =
  | { readonly kind: 'none' }
  /** A crash came before its manifest was written: there is no work in it. */
  | { readonly kind: 'half-made'; readonly adminDir: string; readonly path: string | null }
  | ({ readonly kind: 'made' } & OwnWorktree)

const GONE = new Set(['ENOENT', 'ENOTDIR'])

export const isThere = async (path: string): Promise<boolean> => {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (GONE.has(codeOf(error) ?? '')) return false
    throw error
  }
}

const textOrNull = async (path: string): Promise<string | null> => {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    if (GONE.has(codeOf(error) ?? '')) return null
    throw error
  }
}

const registrationAt = async (adminDir: string): Promise<Registration> => {
  const [gitFile, lock, manifest] = await Promise.all([
    textOrNull(join(adminDir, 'gitdir')),
    textOrNull(join(adminDir, 'locked')),
    readManifest(adminDir),
  ])
  // Newer gits may write the path relative to the folder it stands in.
  const path = gitFile === null || gitFile === '' ? null : dirname(resolve(adminDir, gitFile))
  return { adminDir, path, lock, manifest }
}

const registrationsOf = async ({ commonDir }: Repository): Promise<readonly Registration[]> => {
  const folder = join(commonDir, 'worktrees')
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    const folders = entries.filter((entry) => entry.isDirectory())
    return await Promise.all(folders.map((entry) => registrationAt(join(folder, entry.name))))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** The worktree of a job. `path` is where it should be: a manifest there that cannot be read may be its own. */
export const findOwn = async (repository: Repository, jobToken: string, path: string): Promise<Found> => {
  const makingLock = makingLockOf(jobToken)
  const all = await registrationsOf(repository)
  for (const { adminDir, path: at, lock, manifest } of all) {
    if (manifest === null || !isReadable(manifest) || manifest.jobToken !== jobToken || at === null) continue
    const hasMakingLock = lock === makingLock
    return {
      kind: 'made',
      adminDir,
      path: at,
      foreignLock: hasMakingLock ? null : lock,
      hasMakingLock,
      manifest,
    }
  }
  for (const { adminDir, path: at, manifest } of all) {
    if (manifest === null || isReadable(manifest) || at !== path) continue
    refuse('manifest-unreadable', `the manifest in ${adminDir} cannot be used: ${manifest.problem}`)
  }
  const halfMade = all.find(({ lock, manifest }) => manifest === null && lock === makingLock)
  if (halfMade === undefined) return { kind: 'none' }
  return { kind: 'half-made', adminDir: halfMade.adminDir, path: halfMade.path }
}

/** The registration of whatever worktree is at a path; null where none is registered. */
export const registeredAt = async (repository: Repository, path: string): Promise<string | null> =>
  (await registrationsOf(repository)).find((one) => one.path === path)?.adminDir ?? null

/** Whether the folder is the worktree it is registered as, and nothing that was put in its place. */
export const pointsTo = async (path: string, adminDir: string): Promise<boolean> => {
  const text = await pointerAt(path)
  if (text === null) return false
  const target = resolve(path, text)
  try {
    return (await realpath(target)) === (await realpath(adminDir))
  } catch (error) {
    if (GONE.has(codeOf(error) ?? '')) return false
    throw error
  }
}

/** Where the `.git` file of a folder leads; null where there is no such file. */
const pointerAt = async (path: string): Promise<string | null> => {
  try {
    const text = await readFile(join(path, '.git'), 'utf8')
    return /^gitdir: (.+?)\r?\n?$/s.exec(text)?.[1] ?? null
  } catch (error) {
    if (GONE.has(codeOf(error) ?? '') || codeOf(error) === 'EISDIR') return null
    throw error
  }
}
