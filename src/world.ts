/** What an engine takes from the machine that it is opened on, besides its clock, its processes and its store. */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { uuidv7 } from 'uuidv7'
import type { SpoolPort } from './actors/spool.ports.js'
import { isPostgresUrl } from './adapters/store/postgres-url.js'
import { createSpool } from './adapters/store/spool.js'
import type { ParsedEngineOptions } from './options.js'
import { placesOf } from './places.js'

export interface World {
  /** Ids that sort by time. */
  readonly newId: () => string
  readonly hostId: string
  readonly spoolOf: (engineId: string) => SpoolPort | null
}

export const isPath = (database: string | undefined): database is string =>
  database !== undefined && database !== ':memory:' && !isPostgresUrl(database)

const machineId = (): string => {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim() || hostname()
  } catch {
    return hostname()
  }
}

/**
 * Which machine this is: process ids of another one mean nothing here. A file is shared by one machine. A server is not, and machines
 * that were cloned have one machine id: there the name must be the same too, or one of them would take the other for its own former
 * self, restarted since, with nothing of it alive (R5).
 */
const hostIdFor = (options: ParsedEngineOptions): string =>
  isPath(options.database) ? machineId() : `${machineId()}/${hostname()}`

export const worldOf = (options: ParsedEngineOptions): World => ({
  newId: uuidv7,
  hostId: hostIdFor(options),
  spoolOf: (engineId) => {
    const { spool } = placesOf(options)
    return spool === null ? null : createSpool(spool, engineId)
  },
})
