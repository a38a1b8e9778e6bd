/** What stands in the way: thrown where it is found, and turned into the port's answer at its door. */
import type { WorkspaceCode, WorkspaceRefusal } from '../../actors/workspace.ports.js'
import { RunwardenError, codeOf, messageOf } from '../../errors.js'

const PASSING: ReadonlySet<WorkspaceCode> = new Set(['busy', 'disk-full', 'timeout'])

export class Obstacle extends RunwardenError {
  readonly refusal: WorkspaceRefusal

  constructor(code: WorkspaceCode, reason: string) {
    super('refused', reason)
    this.refusal = { isOk: false, code, reason, mayPass: PASSING.has(code) }
  }
}

export function refuse(code: WorkspaceCode, reason: string): never {
  throw new Obstacle(code, reason)
}

const FILE_SYSTEM_CODES: Readonly<Record<string, WorkspaceCode>> = {
  EROFS: 'read-only',
  ENOSPC: 'disk-full',
  EDQUOT: 'disk-full',
  EACCES: 'no-permission',
  EPERM: 'no-permission',
  EEXIST: 'path-occupied',
  ENOTDIR: 'path-occupied',
}

/** What an error of the file system means here; null for one that means nothing of its own. */
export const fileSystemCodeOf = (error: unknown): WorkspaceCode | null =>
  FILE_SYSTEM_CODES[codeOf(error) ?? ''] ?? null

/** Every error of the file system has a path or a system call: anything else is a defect and goes on. */
const obstacleOf = (error: unknown): Obstacle => {
  if (error instanceof Obstacle) return error
  if (!(error instanceof Error) || !('syscall' in error)) throw error
  return new Obstacle(fileSystemCodeOf(error) ?? 'io-failed', messageOf(error))
}

/** The answer of a step, or what stood in its way. */
export const answerOf = async <T>(step: () => Promise<T>): Promise<T | WorkspaceRefusal> => {
  try {
    return await step()
  } catch (error) {
    return obstacleOf(error).refusal
  }
}
