/** A queue over an engine of its own, on a real file, or on the server that is named. */
import { onTestFinished } from 'vitest'
import { openJobList, openJobs } from '../../src/jobs.js'
import type { JobList, JobQueue, JobRecord, JobSpec, QueueOptions } from '../../src/jobs.js'
import type { Engine } from '../../src/index.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine } from '../support/engine.js'

export interface OpenQueue {
  readonly database: string
  readonly engine: Engine
  readonly queue: JobQueue
}

export const openTestQueue = async (options: QueueOptions = {}, given?: string): Promise<OpenQueue> => {
  const database = given ?? (await testDatabase())
  const engine = await openTestEngine({ database })
  return { database, engine, queue: await openJobs(engine, options) }
}

/** The queue without an engine, closed after the test. */
export const openTestList = async (database: string): Promise<JobList> => {
  const list = await openJobList({ database })
  onTestFinished(() => list[Symbol.asyncDispose]())
  return list
}

/** A job that notes its name in a file, once each time it is run. */
export const noting = (file: string, name: string, then = ''): JobSpec => ({
  id: name,
  command: ['sh', '-c', `echo ${name} >> '${file}'; ${then}`],
})

export const idsOf = (jobs: readonly JobRecord[]): string[] => jobs.map(({ jobId }) => jobId)

/** A stop that is over soon. */
export const quick = { termGraceMs: 200, killGraceMs: 5_000 }
