/** Taking back what was begun for a job, and never handed out (O14). */
import { readdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Git } from './git.js'
import { pointsTo } from './registration.js'
import type { Found } from './registration.js'
import type { Repository } from './repository.js'

export const unlock = async (git: Git, { folder }: Repository, path: string): Promise<void> => {
  await git.run({
    doing: `unlock the worktree ${path}`,
    cwd: folder,
    args: ['worktree', 'unlock', '--', path],
  })
}

/**
 * Takes away a worktree that was never handed out. One without a manifest has no files yet: what else is in its folder
 * is somebody's, and stays.
 */
export const discardWorktree = async (git: Git, { folder }: Repository, found: Found): Promise<void> => {
  if (found.kind === 'none') return
  if (found.kind === 'made') {
    if (found.manifest.populatedAt !== null) return
    await git.run({
      doing: `take back the worktree ${found.path}`,
      cwd: folder,
      args: ['worktree', 'remove', '--force', '--force', '--', found.path],
      isCheckout: true,
    })
    return
  }
  const { adminDir, path } = found
  if (path !== null && (await pointsTo(path, adminDir))) {
    await rm(join(path, '.git'), { force: true })
    if ((await readdir(path)).length === 0) await rmdir(path)
  }
  await rm(adminDir, { recursive: true, force: true })
}
