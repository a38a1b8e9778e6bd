/** What an engine tells its guardian, and whether it can have one. */
import { fileURLToPath } from 'node:url'
import type { GuardianPort } from './actors/guardian.ports.js'
import type { Logger, ProcessIdentity } from './actors/ports.js'
import { createGuardian } from './adapters/process/guardian.js'
import { RunwardenError } from './errors.js'
import type { ParsedEngineOptions } from './options.js'

export interface GuardianTask {
  readonly engineId: string
  readonly identity: ProcessIdentity
  /** Of the engine, as far as they can be told through a pipe. */
  readonly options: Pick<
    ParsedEngineOptions,
    'database' | 'containment' | 'logs' | 'spool' | 'commitDeadlineMs'
  >
}

/** R7: null where none is wanted. A store that only this process can open is refused: nobody else could record what is done (INV-1). */
export const chooseGuardian = (
  engineId: string,
  identity: ProcessIdentity,
  options: ParsedEngineOptions,
  logger: Logger,
): GuardianPort | null => {
  const { database, containment, logs, spool, commitDeadlineMs, guardian } = options
  if (!guardian) return null
  if (database === undefined || database === ':memory:') {
    throw new RunwardenError(
      'invalid-option',
      'createEngine: option guardian needs a store that another process can open: a database by path or postgres://',
    )
  }
  const task: GuardianTask = {
    engineId,
    identity,
    options: { database, containment, logs, spool, commitDeadlineMs },
  }
  const program = fileURLToPath(new URL('./guardian-main.js', import.meta.url))
  return createGuardian({ engineId, program, task, logger })
}
