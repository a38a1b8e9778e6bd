/**
 * Whether a program can be started, found out before it is tried.
 *
 * Where a shell execs the command, its failure would show as the exit code of a command that ran (L1). The checks are the kernel's
 * own, in its order: the name along the PATH, the right to execute, the interpreter of a script.
 */
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { codeOf } from '../../errors.js'

/** What `execvp` searches where the environment names no PATH. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'
const SHEBANG_MAX_BYTES = 256

export interface ProgramPlace {
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Null where the path is an executable file. */
const problemOf = (path: string): string | null => {
  try {
    if (!statSync(path).isFile()) return 'EACCES'
    accessSync(path, constants.X_OK)
    return null
  } catch (error) {
    return codeOf(error) ?? 'ENOENT'
  }
}

const interpreterOf = (path: string): string | undefined => {
  const head = Buffer.alloc(SHEBANG_MAX_BYTES)
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    const text = head.toString('latin1', 0, readSync(fd, head, 0, head.length, 0))
    return /^#![ \t]*([^\s\0]+)/.exec(text)?.[1]
  } catch {
    // What may be executed need not be readable: then it is no script.
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

const candidatesFor = (program: string, { cwd, env }: ProgramPlace): string[] =>
  program.includes('/')
    ? [resolve(cwd, program)]
    : (env['PATH'] ?? DEFAULT_PATH).split(delimiter).map((folder) => resolve(cwd, folder, program))

/** The code with which an `exec` of `program` would fail, or null. */
export const programProblem = (program: string, place: ProgramPlace): string | null => {
  const problems: string[] = []
  for (const path of candidatesFor(program, place)) {
    const problem = problemOf(path)
    if (problem === null) {
      const interpreter = interpreterOf(path)
      return interpreter === undefined ? null : problemOf(resolve(place.cwd, interpreter))
    }
    problems.push(problem)
  }
  return problems.find((problem) => problem === 'EACCES') ?? problems[0] ?? 'ENOENT'
}
