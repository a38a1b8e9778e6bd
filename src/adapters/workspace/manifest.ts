/**
 * What a worktree says of itself (P21), in a file that other tools may read.
 *
 * It lies in the worktree's own folder inside the repository (`git rev-parse --git-dir`), so that no status shows it and it goes with
 * the worktree. That of a removed one is kept in the repository's common folder, the newest `REMOVED_MAX` of them.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { codeOf } from '../../errors.js'
import { refuse } from './obstacle.js'

const MANIFEST_FILE = 'runwarden.json'
const MANIFEST_VERSION = 1
/** The newest are kept. */
export const RUN_IDS_MAX = 1_000
const REMOVED_MAX = 1_000

const time = v.number()

const manifestSchema = v.object({
  format: v.literal('runwarden-worktree'),
  version: v.literal(MANIFEST_VERSION),
  jobId: v.string(),
  jobToken: v.string(),
  /** Where it is, or was when it was removed. */
  path: v.string(),
  /** The branch that was made for the job. */
  branch: v.string(),
  /** The commit at which that branch began. */
  baseCommit: v.string(),
  state: v.picklist(['provisioned', 'running', 'ready-for-review', 'failed', 'cancelled', 'removed']),
  /** The runs that worked here, oldest first. */
  runIds: v.array(v.string()),
  /** With `cancelled`: how the run's tree was proven gone. */
  confirmation: v.nullable(v.object({ evidence: v.string(), confirmedAt: time })),
  /** When the files were all checked out; null before. */
  populatedAt: v.nullable(time),
  /** With `removed`: the commit it was at, whether with uncommitted files, and when the last file was gone. */
  removal: v.nullable(
    v.object({ head: v.nullable(v.string()), isForced: v.boolean(), finishedAt: v.nullable(time) }),
  ),
  createdAt: time,
  changedAt: time,
})

export type Manifest = Readonly<v.InferOutput<typeof manifestSchema>>

/** A manifest that is there and cannot be understood. */
export interface UnreadableManifest {
  readonly problem: string
}

export const newManifest = (
  names: Pick<Manifest, 'jobId' | 'jobToken' | 'path' | 'branch' | 'baseCommit'>,
  at: number,
): Manifest => ({
  format: 'runwarden-worktree',
  version: MANIFEST_VERSION,
  ...names,
  state: 'provisioned',
  runIds: [],
  confirmation: null,
  populatedAt: null,
  removal: null,
  createdAt: at,
  changedAt: at,
})

const parse = (text: string): Manifest | UnreadableManifest => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'it is torn: no whole JSON' }
  }
  const { success, output, issues } = v.safeParse(manifestSchema, value)
  if (success) return output
  const version = v.safeParse(v.object({ version: v.number() }), value)
  if (version.success && version.output.version !== MANIFEST_VERSION) {
    return {
      problem: `it is of version ${version.output.version}, and this program knows ${MANIFEST_VERSION}`,
    }
  }
  return { problem: `it is not as expected at ${v.getDotPath(issues[0]) ?? 'its root'}` }
}

const readText = async (path: string): Promise<string | null> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

export const isReadable = (manifest: Manifest | UnreadableManifest): manifest is Manifest =>
  !('problem' in manifest)

/** Null where there is none. */
export const readManifest = async (adminDir: string): Promise<Manifest | UnreadableManifest | null> => {
  const text = await readText(join(adminDir, MANIFEST_FILE))
  return text === null ? null : parse(text)
}

const sync = async (path: string, flags: string): Promise<void> => {
  const handle = await open(path, flags)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Whole or not at all, and on disk when it returns. */
const writeWhole = async (path: string, text: string): Promise<void> => {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const handle = await open(draft, 'wx', 0o644)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  // Windows opens no folders, and keeps a rename by itself.
  if (process.platform !== 'win32') await sync(dirname(path), 'r')
}

const textOf = (manifest: Manifest): string => `${JSON.stringify(manifest, null, 2)}\n`

export const writeManifest = (adminDir: string, manifest: Manifest): Promise<void> =>
  writeWhole(join(adminDir, MANIFEST_FILE), textOf(manifest))

// ── of removed worktrees ───────────────────────────────────────────────────────────────────────

const removedFolder = (commonDir: string): string => join(commonDir, 'runwarden', 'removed')
const removedFile = (commonDir: string, key: string): string => join(removedFolder(commonDir), `${key}.json`)

/** The manifest that a job's removed worktree left; null where none was removed, or so long ago that it is forgotten. */
export const readRemoved = async (commonDir: string, key: string): Promise<Manifest | null> => {
  const path = removedFile(commonDir, key)
  const text = await readText(path)
  if (text === null) return null
  const manifest = parse(text)
  if (!isReadable(manifest)) refuse('manifest-unreadable', `${path} cannot be used: ${manifest.problem}`)
  return manifest
}

/** Null when another process forgot it meanwhile. */
const ageOf = async (path: string): Promise<{ readonly path: string; readonly at: number } | null> => {
  try {
    return { path, at: (await stat(path)).mtimeMs }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

const forgetOldest = async (folder: string): Promise<void> => {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'))
  if (names.length <= REMOVED_MAX) return
  const aged = (await Promise.all(names.map((name) => ageOf(join(folder, name))))).filter(
    (file) => file !== null,
  )
  const oldest = aged.sort((a, b) => a.at - b.at).slice(0, names.length - REMOVED_MAX)
  await Promise.all(oldest.map(({ path }) => rm(path, { force: true })))
}

export const writeRemoved = async (commonDir: string, key: string, manifest: Manifest): Promise<void> => {
  const folder = removedFolder(commonDir)
  await mkdir(folder, { recursive: true })
  await writeWhole(removedFile(commonDir, key), textOf(manifest))
  await forgetOldest(folder)
}

/** The job has a worktree again. */
export const forgetRemoved = (commonDir: string, key: string): Promise<void> =>
  rm(removedFile(commonDir, key), { force: true })
