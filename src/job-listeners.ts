/** Who is told of changes of the queue. */
import type { JobChange, JobStorePort } from './actors/job.ports.js'
import type { Logger } from './actors/ports.js'
import { messageOf } from './errors.js'
import { toRecord } from './job-record.js'
import type { JobEventOut } from './job-record.js'

export type JobListener = (event: JobEventOut) => unknown

/** A listener that throws hurts nobody (F). */
export class JobListeners {
  readonly #jobs: JobStorePort
  readonly #logger: Logger
  readonly #all = new Set<JobListener>()

  constructor(jobs: JobStorePort, logger: Logger) {
    this.#jobs = jobs
    this.#logger = logger
  }

  get isEmpty(): boolean {
    return this.#all.size === 0
  }

  add(listener: JobListener): void {
    this.#all.add(listener)
  }

  delete(listener: JobListener): void {
    this.#all.delete(listener)
  }

  clear(): void {
    this.#all.clear()
  }

  async publish(jobId: string, change: JobChange): Promise<void> {
    const job = await this.#jobs.load(jobId)
    const event: JobEventOut = {
      type: 'job',
      jobId,
      change: job === null ? 'removed' : change,
      job: job === null ? null : toRecord(job),
    }
    const failed = (error: unknown): void => {
      this.#logger.error({ error: messageOf(error) }, 'a subscriber failed')
    }
    for (const listener of [...this.#all]) {
      try {
        Promise.resolve(listener(event)).catch(failed)
      } catch (error) {
        failed(error)
      }
    }
  }
}
