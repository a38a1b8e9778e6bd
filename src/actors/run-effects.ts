/**
 * What the run actor does for each effect of the run chart, after the commit that called for it.
 *
 * Each is idempotent under its key, except the launch, which is never done twice (R2): see machines/run/run.effects.ts.
 */
import { messageOf } from '../errors.js'
import type { RunPolicy } from '../machines/run/run.context.js'
import type { RunEffect } from '../machines/run/run.effects.js'
import type { Deliveries } from './deliveries.js'
import type { FailedAttempt } from './fallback.js'
import type { LaunchSpec, LogPort, PaneRecord, ProcessPort, Protocol } from './ports.js'
import type { WatchdogLimits } from './watchdog-limits.js'
import type { HostServices } from './actor-role.js'
import type { ProcessActor } from './process.actor.js'
import type { ExecutionFacts } from './run-rows.js'
import type { RunActor } from './run.actor.js'
import { isOnFiles } from './run-survival.js'

/** How one candidate is launched. Kept in memory only: arguments and environment may hold secrets (L7). */
export type Candidate = Pick<LaunchSpec, 'command' | 'cwd' | 'env' | 'stdin' | 'terminal' | 'pane'> & {
  readonly protocol: Protocol
}

/** Everything a run actor needs that is not in its record. */
export interface RunEnvironment {
  readonly policy: RunPolicy
  /** Null for a run that was begun by an engine which is gone: it can be ended, not launched. */
  readonly candidates: readonly Candidate[] | null
  readonly processes: ProcessPort
  readonly logs: LogPort
  readonly protocol: Protocol
  /** The first prompt of a driven run. In memory only, like the commands. */
  readonly prompt: string | undefined
  readonly watchdog: WatchdogLimits | null
  readonly drainMs: number
  readonly maxLineBytes: number
  readonly deliveries: Deliveries
  readonly isFallbackEligible: (failure: FailedAttempt) => boolean
  /** Asks the registry to admit the next attempt; it answers with an event. */
  readonly requestAdmission: (run: RunActor) => void
  readonly onDisowned: (run: RunActor) => void
}

const plannedPane = (candidate: Candidate | undefined): PaneRecord | null => {
  if (candidate?.pane === undefined) return null
  const { kind, socket, isRetained, paneId } = candidate.pane
  return { kind, socket, isRetained, isBorrowed: paneId !== undefined, place: null }
}

/** R2: what can be said of an execution before its launch, for the row that is committed first. */
export const plannedExecution = ({ id, environment }: RunActor, attempt: number): ExecutionFacts => {
  const { processes, logs, candidates } = environment
  const pane = plannedPane(candidates?.[attempt - 1])
  return {
    marks: processes.mintMarks(),
    containment: pane === null ? processes.containment : 'pane',
    pane,
    logPath: logs.pathOf(id, attempt),
    identity: null,
    launchedAt: null,
  }
}

const launch = async (run: RunActor, attempt: number): Promise<void> => {
  const fail = (code: string, message: string) =>
    run.post({ type: 'process.launch-failed', attempt, code, message, isFallbackEligible: false })
  const candidate = run.environment.candidates?.[attempt - 1]
  const marks = run.execution?.marks
  let processActor: ProcessActor
  try {
    processActor = run.newProcess(attempt, { isAdopted: false })
  } catch (error) {
    // F: a protocol of the host's own making may throw.
    const { name } = run.environment.protocol
    await fail('protocol-failed', `protocol ${JSON.stringify(name)} cannot be opened: ${messageOf(error)}`)
    return
  }
  if (candidate === undefined || marks === undefined) {
    await fail('unknown-command', 'the command of this attempt is not known to this engine')
    return
  }
  run.turns.launching(attempt)
  const { protocol: _protocol, ...command } = candidate
  const outputFolder = isOnFiles(run.policy) ? (run.execution?.logPath ?? undefined) : undefined
  await processActor.launch(
    { ...command, runId: run.id, attempt, marks, outputFolder },
    () => !run.isEndWanted,
  )
}

const performEffect = async (run: RunActor, effect: RunEffect): Promise<void> => {
  const processActor = run.process
  switch (effect.type) {
    case 'admission.request':
      run.environment.requestAdmission(run)
      return
    case 'process.launch':
      await launch(run, effect.params.attempt)
      return
    case 'process.ask':
      run.turns.askToEnd()
      processActor?.endInput()
      return
    case 'turn.dispatch':
      await run.turns.dispatch(effect.params.generation)
      return
    case 'turn.abort':
      run.turns.abort(effect.params.generation)
      return
    case 'process.terminate':
      processActor?.terminate()
      return
    case 'process.kill':
      processActor?.kill(effect.params.deadlineMs)
      return
    case 'process.freeze':
      await processActor?.freeze()
      return
    case 'process.thaw':
      await processActor?.thaw()
      return
    case 'process.release':
    case 'notice.raise':
    case 'notice.withdraw':
      // The rows are in the commit, the listeners have the transition; nothing else is held.
      return
    case 'delivery.finalize':
      await run.environment.deliveries.finalize(run)
      return
    case 'delivery.deliver':
      await run.environment.deliveries.deliver(run)
  }
}

/** Does an effect and marks it done; one that failed stays due, and is done again by whoever takes the run up (R4). */
export const doEffect = (
  run: RunActor,
  { commits, clock, logger }: HostServices,
  { effect, rev, index }: { readonly effect: RunEffect; readonly rev: number; readonly index: number },
): void => {
  const startedAt = clock.wallMs()
  const mark = (doneAt: number | null): void => {
    commits.mark({ kind: 'run', actor: run.id, rev, index, startedAt, doneAt })
  }
  performEffect(run, effect).then(
    () => {
      mark(clock.wallMs())
    },
    (error: unknown) => {
      logger.error({ run: run.id, effect: effect.type, error: messageOf(error) }, 'an effect failed')
      mark(null)
    },
  )
}
