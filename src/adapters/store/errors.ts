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
  ECONNREFUSED: 'nothing listens there',
  ENOENT: 'there is no such socket',
  ENOTFOUND: 'the host is not known',
  EAI_AGAIN: 'the host cannot be looked up now',
  '25006': 'the database can only be read',
  '28000': 'the server refuses this user',
  '28P01': 'the server refuses this user or password',
  '3D000': 'the server has no such database',
  '3F000': 'the database has no such schema to create in',
  '40001': 'another transaction came between',
  '40P01': 'two transactions waited for each other',
  '42501': 'the database user lacks a right',
  '53100': 'the disk is full',
  '53300': 'the server takes no more connections',
  '55P03': 'the database is locked by another transaction',
  '57014': 'a statement took too long',
  '57P01': 'the server ended the connection',
  '57P02': 'the server crashed',
  '57P03': 'the server is starting or stopping',
}

/** `SQLITE_BUSY_SNAPSHOT` is a kind of `SQLITE_BUSY`. */
const causeOf = (error: unknown): string | undefined => {
  const code = codeOf(error)
  return code === undefined ? undefined : CAUSES[code.split('_').slice(0, 2).join('_')]
}

/** The COMMIT was sent, and what became of it was not heard: the transaction may be in, and may not. */
export class CommitInDoubt extends RunwardenError {
  constructor(cause: unknown) {
    super('store-unavailable', `a commit was not answered: ${messageOf(cause)}`, { cause })
  }
}

/** SQLite answers in the same call; a server's answer may be lost on the way. */
export const isDoubtful = (error: unknown): boolean => codeOf(error)?.startsWith('SQLITE_') !== true

/**
 * Whether the same write may be taken later. What the database says of the data itself (a constraint, a type, a size) never passes;
 * everything else is the state of a disk, a lock or a connection.
 */
export const isPassing = (error: unknown): boolean => {
  const code = codeOf(error)
  if (error instanceof TypeError || error instanceof RangeError) return false
  return code === undefined || !/^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG|RANGE)|^(22|23|54)/.test(code)
}

/** Someone else holds what is needed, for a moment. */
export const isBusy = (error: unknown): boolean => {
  const code = codeOf(error)
  return code !== undefined && /^(SQLITE_BUSY|40001|40P01|55P03|57P03)/.test(code)
}

/** The connection broke, which says nothing of the next one: after a restart of the server every idle one of a pool is like that. */
export const isConnectionLost = (error: unknown): boolean =>
  /^(08|57P0[12]|ECONNRESET|EPIPE)/.test(codeOf(error) ?? '') ||
  /^Connection terminated|not queryable/.test(messageOf(error))

/** L7: who was refused, and as whom, is not for a message that others read. */
const isAboutCredentials = (error: unknown): boolean => codeOf(error)?.startsWith('28') ?? false

export const toStoreError = (error: unknown, place = 'the store'): RunwardenError => {
  if (error instanceof RunwardenError) return error
  const cause = causeOf(error)
  const said = isAboutCredentials(error) ? '' : messageOf(error)
  const why = cause === undefined ? said : `${cause}${said === '' ? '' : ` (${said})`}`
  return new RunwardenError('store-unavailable', `${place}: ${why}`, { cause: error })
}
