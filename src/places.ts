/** Where an engine keeps what is not in its store: its logs and its spool. */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { isPostgresUrl, withoutCredentials } from './adapters/store/postgres-url.js'
import type { ParsedEngineOptions } from './options.js'

export interface Places {
  /** Null: nothing is kept. */
  readonly logs: string | null
  readonly spool: string | null
}

/** One level at a time: a recursive mkdir below a path that cannot be made does not return on every Node. */
const makeFolder = (path: string): void => {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const isMissingParent = (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path
    // There already, or not to be made: who writes there says so.
    if (!isMissingParent) return
    makeFolder(dirname(path))
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch {
      // As above.
    }
  }
}

/** The user's folder for what a program wants to find again: `$XDG_STATE_HOME`, else `~/.local/state`. */
const stateFolder = (): string => {
  const { XDG_STATE_HOME: given } = process.env
  const root = given !== undefined && isAbsolute(given) ? given : join(homedir(), '.local', 'state')
  return join(root, 'runwarden')
}

/** Run ids are unique in one store only. The options name its schema. */
const storeFolder = (url: string): string =>
  createHash('sha256')
    .update(`${withoutCredentials(url)} ${/[?&]options=([^&#]*)/.exec(url)?.[1] ?? ''}`)
    .digest('hex')
    .slice(0, 16)

/** Beside a database file. For a server, below the user's state folder. A store that only the host knows has no place of its own. */
const placeFor = (database: string | undefined, name: 'logs' | 'spool'): string | null => {
  if (database === undefined || database === ':memory:') return null
  if (!isPostgresUrl(database)) return `${database}-${name}`
  const place = join(stateFolder(), storeFolder(database), name)
  makeFolder(dirname(place))
  return place
}

export const placesOf = ({ database, logs, spool }: ParsedEngineOptions): Places => ({
  logs: logs === false ? null : (logs.directory ?? placeFor(database, 'logs')),
  spool: spool === false ? null : (spool?.directory ?? placeFor(database, 'spool')),
})
