/**
 * What a guardian does when its engine is gone: the library's own recovery, for the runs of that engine alone, over the same store.
 *
 * Records, journal, ladder and evidence are those of any engine, because it is one. Several guardians and engines may do this at once:
 * each run is taken by one of them (R5).
 * Invariants: R7, INV-11 (a store that does not answer, and a tree that will not go, are waited for so long and no longer).
 */
import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { RunActor } from './actors/run.actor.js'
import { isPostgresUrl } from './adapters/store/postgres-url.js'
import type { Engine } from './engine.js'
import type { GuardianTask } from './guardian-task.js'
import { openEngineOver, openStore } from './open-engine.js'
import { parseOptions } from './option-types.js'
import { engineOptionsSchema } from './options.js'

/** From the engine's death to the guardian's own end. The kills of what will not go are repeated meanwhile, in growing distances. */
const STAY_MAX_MS = 15 * 60_000
const STORE_WAIT_MS = 500
/** What the dead engine had sent to a server may be committed after it. */
const LOOK_AGAIN_MS = 500
const LOOKS_MIN = 2
const CLOSE_DEADLINE_MS = 5_000

const isStoreThere = ({ options: { database } }: GuardianTask): boolean =>
  database !== undefined && (isPostgresUrl(database) || existsSync(database))

/** Null when there is no store any more, or the time is over. */
const openWhenAnswered = async (task: GuardianTask, endsAt: number): Promise<Engine | null> => {
  const options = parseOptions(engineOptionsSchema, { ...task.options, recover: false }, 'guardian')
  while (isStoreThere(task) && performance.now() < endsAt) {
    try {
      const store = await openStore(options, { mayMake: false })
      try {
        return await openEngineOver(store, options)
      } catch (error) {
        await store.close()
        throw error
      }
    } catch {
      // Locked, away, or full: the runs are there all the same. There is nobody to tell.
      await wait(STORE_WAIT_MS)
    }
  }
  return null
}

/** Resolves when the runs are proven gone, or at `endsAt`. */
const untilGone = async (runs: readonly RunActor[], endsAt: number): Promise<void> => {
  const over = new AbortController()
  const deadline = wait(Math.max(0, endsAt - performance.now()), undefined, { signal: over.signal })
  await Promise.race([Promise.all(runs.map((run) => run.gone)), deadline])
  over.abort()
  // Aborted on purpose.
  await deadline.catch(() => undefined)
}

/** Resolves when every run of that engine is proven gone, or taken by another engine, or the guardian's time is over. */
export const endRunsOf = async (task: GuardianTask): Promise<void> => {
  const endsAt = performance.now() + STAY_MAX_MS
  const engine = await openWhenAnswered(task, endsAt)
  if (engine === null) return
  for (let idleLooks = 0; idleLooks < LOOKS_MIN && performance.now() < endsAt;) {
    try {
      const runs = await engine.recover({ by: 'guardian', of: task.engineId, runId: null })
      idleLooks = runs.length === 0 ? idleLooks + 1 : 0
      await untilGone(runs, endsAt)
    } catch {
      // The store did not answer: the next look finds what this one has missed.
    }
    await wait(LOOK_AGAIN_MS)
  }
  await engine.close({ runs: 'leave', deadlineMs: CLOSE_DEADLINE_MS })
}
