/** From public options to a queue: with an engine, which works it; or over a store alone. */
import { uuidv7 } from 'uuidv7'
import { systemClock } from './adapters/clock/system-clock.js'
import { createGitWorkspaces } from './adapters/workspace/git-workspaces.js'
import type { Engine } from './engine.js'
import { JobList } from './job-list.js'
import { queueOptionsSchema } from './job-options.js'
import type { QueueOptions } from './job-options.js'
import { JobQueue } from './job-queue.js'
import { openStore } from './open-engine.js'
import type { EngineOptions } from './open-engine.js'
import { parseOptions } from './option-types.js'
import { engineOptionsSchema } from './options.js'

/**
 * The queue of the engine's store, to be worked by this engine. Nothing is claimed before `work` is called.
 *
 * @throws `invalid-option`; `engine-closing`.
 */
export const openJobs = async (engine: Engine, options: QueueOptions = {}): Promise<JobQueue> => {
  const parsed = parseOptions(queueOptionsSchema, options, 'openJobs')
  return new JobQueue(engine, createGitWorkspaces({ clock: engine.seam.clock }), parsed)
}

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/**
 * The queue of a store, without an engine: to add, order, look and follow, while engines in other processes work it.
 *
 * @throws `invalid-option`; `store-unavailable` and `store-too-new`, naming the store and the cause.
 */
export const openJobList = async (
  options: Pick<EngineOptions, 'database' | 'dialect' | 'kysely'>,
): Promise<JobList & AsyncDisposable> => {
  const store = await openStore(parseOptions(engineOptionsSchema, options, 'openJobList'))
  let isClosed = false
  const list = new JobList({
    isClosed: () => isClosed,
    store,
    clock: systemClock,
    logger: silent,
    newId: uuidv7,
    workspaces: createGitWorkspaces({ clock: systemClock }),
  })
  return Object.assign(list, {
    [Symbol.asyncDispose]: async () => {
      if (isClosed) return
      isClosed = true
      list.close()
      await store.close()
    },
  })
}
