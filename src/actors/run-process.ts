/** Wires a run to the process actor of one attempt: its facts come back into the mailbox, its output goes to log, protocol and listeners. */
import type { HostServices } from './actor-role.js'
import { ProcessActor } from './process.actor.js'
import type { RunActor } from './run.actor.js'

/** An adopted execution's output went to the engine that launched it: its log is not written to again. */
export const newProcessActor = (
  run: RunActor,
  attempt: number,
  host: HostServices,
  { isAdopted }: { readonly isAdopted: boolean },
): ProcessActor => {
  const { processes, drainMs, logs } = run.environment
  const { clock, logger } = host
  // First: a protocol of the host's own making may throw here.
  const session = run.turns.newSession(attempt)
  const log = isAdopted ? null : logs.open(run.id, attempt)
  run.output.begin()
  return new ProcessActor({
    attempt,
    processes,
    clock,
    logger,
    drainMs,
    report: (fact) => void run.post(fact),
    onOutput: (stream, chunk) => {
      log?.write(stream, chunk, clock.wallMs())
      run.output.chunk(stream, chunk)
      session.push(stream, chunk)
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
