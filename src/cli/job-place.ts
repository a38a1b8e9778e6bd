/** Where a job is to stand, as the command line says it; and how one is said in a line. */
import type { JobRecord, Place } from '../jobs.js'
import { CliError } from './errors.js'
import { clean } from './output.js'

export interface PlaceOptions {
  readonly first?: boolean
  readonly last?: boolean
  readonly before?: string
  readonly behind?: string
}

/** At most one place; undefined where none is given. */
export const placeOf = (what: string, { first, last, before, behind }: PlaceOptions): Place | undefined => {
  const places: Place[] = [
    ...(first === true ? [{ at: 'first' as const }] : []),
    ...(last === true ? [{ at: 'last' as const }] : []),
    ...(before === undefined ? [] : [{ before }]),
    ...(behind === undefined ? [] : [{ after: behind }]),
  ]
  if (places.length > 1)
    throw new CliError('invalid-option', `${what}: give one of --first, --last, --before and --behind`)
  return places[0]
}

export const wordOf = ({ state, runHeadline, phase }: JobRecord): string =>
  state === 'active' ? `active: ${runHeadline ?? phase ?? ''}` : state

export const lineOf = (job: JobRecord): string => {
  const parts = [`job ${job.jobId}`, wordOf(job), ...(job.runId === null ? [] : [`run ${job.runId}`])]
  return clean([...parts, ...(job.reason === '' ? [] : [job.reason])].join(' · '))
}
