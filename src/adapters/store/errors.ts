/** What a database says, in the library's terms. */
import { RunwardenError, codeOf, messageOf } from '../../errors.js'

const CAUSES: Readonly<Record<string, string>> = {
  SQLITE_NOTADB: 'the file is not a SQLite database',
  SQLITE_CORRUPT: 'the database file is corrupt',
  SQLITE_READONLY: 'the database cannot be written',
  SQLITE_CANTOPEN: 'the database file cannot be opened',
  SQLITE_FULL: 'the disk is full',
  SQLITE_BUSY: 'the database is locked by another process',
  SQLITE_LOCKED: 'the database is locked',
  SQLITE_IOERR: 'the database file cannot be read or written',
}

/** `SQLITE_BUSY_SNAPSHOT` is a kind of `SQLITE_BUSY`. */
const causeOf = (error: unknown): string | undefined => {
  const code = codeOf(error)
  return code === undefined ? undefined : CAUSES[code.split('_').slice(0, 2).join('_')]
}

/**
 * Whether the same write may be taken later. What the database says of the data itself (a constraint, a type) never passes; everything
 * else is the state of a disk, a lock or a connection.
 */
export const isPassing = (error: unknown): boolean => {
  const code = codeOf(error)
  if (error instanceof TypeError || error instanceof RangeError) return false
  return code === undefined || !/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)|^(22|23)/.test(code)
}

export const isBusy = (error: unknown): boolean => codeOf(error)?.startsWith('SQLITE_BUSY') ?? false

export const toStoreError = (error: unknown, place = 'the store'): RunwardenError => {
  if (error instanceof RunwardenError) return error
  const cause = causeOf(error)
  return new RunwardenError(
    'store-unavailable',
    `${place}: ${cause === undefined ? messageOf(error) : `${cause} (${messageOf(error)})`}`,
    { cause: error },
  )
}
