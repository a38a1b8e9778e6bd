/** Wires a run to the process actor of one attempt: its facts come back into the mailbox, its output goes to log, protocol and listeners. */
import type { HostServices } from './actor-role.js'
import type { ProtocolSession } from './ports.js'
import { ProcessActor } from './process.actor.js'
import type { RunActor } from './run.actor.js'

const openSession = (run: RunActor, attempt: number): ProtocolSession => {
  const { protocol, maxLineBytes } = run.environment
  return protocol.open(
    {
      progress: () => {
        run.progress.progress()
      },
      completed: (result) => {
        const { generation } = run.progress.stamp
        void run.post({ type: 'turn.completed', attempt, generation, result })
      },
      cancelled: () => undefined,
      cancelAcknowledged: () => undefined,
      completionSignalled: () => undefined,
      retrying: () => undefined,
      personAsked: () => undefined,
      personAnswered: () => undefined,
      unknownFrame: () => undefined,
      wantsLines: () => run.output.wantsLines,
      line: (stream, text, isTruncated) => {
        run.output.line(stream, text, isTruncated)
      },
    },
    { maxLineBytes },
  )
}

/** An adopted execution's output went to the engine that launched it: its log is not written to again. */
export const newProcessActor = (
  run: RunActor,
  attempt: number,
  host: HostServices,
  { isAdopted }: { readonly isAdopted: boolean },
): ProcessActor => {
  const { processes, drainMs, logs } = run.environment
  const { clock, logger } = host
  const log = isAdopted ? null : logs.open(run.id, attempt)
  const session = openSession(run, attempt)
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
