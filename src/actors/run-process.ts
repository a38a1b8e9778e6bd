/** Wires a run to the process actor of one attempt: its facts come back into the mailbox, its output goes to log, protocol and listeners. */
import type { HostServices } from './actor-role.js'
import { ProcessActor } from './process.actor.js'
import type { RunActor } from './run.actor.js'
import { isOnFiles } from './run-survival.js'

/** Output that went through pipes went to the engine that launched it: of an adopted execution that log is not written to again. */
const openLog = ({ id, policy, environment: { logs } }: RunActor, attempt: number, isAdopted: boolean) => {
  if (isOnFiles(policy)) return logs.openIndex(id, attempt, { isAdopted })
  return isAdopted ? null : logs.open(id, attempt)
}

export const newProcessActor = (
  run: RunActor,
  attempt: number,
  host: HostServices,
  { isAdopted }: { readonly isAdopted: boolean },
): ProcessActor => {
  const { processes, drainMs } = run.environment
  const { clock, logger } = host
  // First: a protocol of the host's own making may throw here.
  const session = run.turns.newSession(attempt)
  const log = openLog(run, attempt, isAdopted)
  run.output.begin({ isAdopted })
  return new ProcessActor({
    attempt,
    processes,
    clock,
    logger,
    drainMs,
    report: (fact) => void run.post(fact),
    onOutput: (stream, chunk) => {
      const at = clock.wallMs()
      const isAhead = !isOnFiles(run.policy)
      if (isAhead) log?.write(stream, chunk, at)
      run.output.chunk(stream, chunk)
      session.push(stream, chunk)
      // R10: read is what has been acted upon, and is on record.
      return isAhead ? undefined : run.caughtUp().then(() => log?.write(stream, chunk, at))
    },
    onDrained: (isCut) => {
      session.end()
      // The end of the output is told once its log is whole.
      void (log?.close() ?? Promise.resolve()).then(() => {
        run.output.drained(isCut)
      })
    },
  })
}
