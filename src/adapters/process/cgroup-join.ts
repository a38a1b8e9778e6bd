/**
 * A command that puts itself into a cgroup and only then becomes the program: there is no moment in which the program runs outside (C2).
 *
 * A shell does it. What it would change of the environment is known: dash drops variables whose names no shell can spell, bash keeps
 * them. See ADR 0071.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** `$0` is the file, `$@` the command. The code says that nothing of the command has run. */
export const JOIN_SCRIPT = 'echo 0 >"$0" || exit 125; exec "$@"'
export const JOIN_FAILED_CODE = 125

const SHELL = '/bin/sh'
/** Keeps every variable. */
const CAREFUL_SHELL = '/bin/bash'

/** Writing a 0 to it moves the writer. */
export const joinFile = (folder: string): string => join(folder, 'cgroup.procs')

const SPELLABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

const unspellable = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env).filter((name) => env[name] !== undefined && !SPELLABLE.test(name))

/** The names of variables that no shell here would pass on. */
export const lostVariables = (env: Readonly<Record<string, string | undefined>>): readonly string[] =>
  existsSync(CAREFUL_SHELL) ? [] : unspellable(env)

export const joining = (
  folder: string,
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] => {
  const shell = unspellable(env).length > 0 ? [CAREFUL_SHELL, '-p'] : [SHELL]
  return [...shell, '-c', JOIN_SCRIPT, joinFile(folder), ...command]
}
