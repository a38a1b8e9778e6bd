/**
 * The pausing of one run on behalf of one caller: the command is given, and its answer awaited.
 *
 * Owns: what a caller is told: that the tree is proven stopped, or is not, or why the command was refused (O4).
 * Does not own: whether a command is taken (the run chart), nor how a tree is stopped (tree-freeze.ts).
 * Invariants: INV-11 (an answer by the deadline).
 */
import { RunwardenError } from '../errors.js'
import type { FreezeOwner, Intent, Survivor } from '../machines/run/run.context.js'
import type { Posted } from './actor-role.js'
import type { Clock } from './ports.js'
import type { RunActor } from './run.actor.js'

/** What became of a pause by the time it was answered. Whether it is on record, `RunState.freeze` says. */
export interface PauseAnswer {
  /**
   * `frozen`: every process of the tree was seen stopped. `incomplete`: those in `running` could not be stopped yet. `pending`: there is
   * no process yet, or no word of it within the deadline: a pause that is not on record by then is given up when the store
   * does not take it within the engine's `commitDeadlineMs`.
   */
  readonly status: 'frozen' | 'incomplete' | 'pending'
  readonly running: readonly Survivor[]
}

export interface FreezeWait {
  readonly clock: Clock
  readonly timeoutMs: number
}

const PENDING: PauseAnswer = { status: 'pending', running: [] }

/** O4: why a run can be neither paused nor resumed; null when it can. */
const refusalOf = ({ state }: RunActor, intent: Pick<Intent, 'kind' | 'reason'> | null): string | null => {
  if (state.isSettled) return `its work is settled: ${state.outcome?.status ?? state.work}`
  if (intent === null) return null
  const { kind, reason } = intent
  return `it is being ended (${state.process}) by ${kind}${reason === '' ? '' : `: ${reason}`}`
}

const recordedRefusalOf = (run: RunActor): string | null => refusalOf(run, run.state.intent)

/** P1: also by an end that was asked for and is not on record yet. */
const wantedRefusalOf = (run: RunActor): string | null => {
  const { kind, reason } = run.wantedEnd
  return refusalOf(run, kind === 'none' ? run.state.intent : { kind, reason })
}

const refused = (run: RunActor, verb: string, why: string): RunwardenError =>
  new RunwardenError('refused', `${verb}: run ${run.id}: ${why}`)

const assertTaken = (run: RunActor, verb: string, posted: Posted): void => {
  if (posted === 'unrecorded') {
    // A pause is given up for the end that was asked for behind it: the store is not to blame.
    const why = wantedRefusalOf(run)
    if (why !== null) throw refused(run, verb, why)
    throw new RunwardenError('store-unavailable', `${verb}: run ${run.id}: the store did not take it`)
  }
  if (posted === 'disowned') throw refused(run, verb, 'this engine does not hold the run any more')
  const why = recordedRefusalOf(run)
  if (why !== null) throw refused(run, verb, why)
}

/** Resolves with the promise, or with the other value at the deadline. */
const within = <T, E>(promise: Promise<T>, { clock, timeoutMs }: FreezeWait, late: E): Promise<T | E> =>
  new Promise((resolve, reject) => {
    const cancel = clock.after(timeoutMs, () => {
      resolve(late)
    })
    promise.then(resolve, reject).finally(cancel)
  })

/** The first word on the freeze, from the run's own record. */
const awaitReport = (run: RunActor): { readonly answer: Promise<PauseAnswer>; readonly stop: () => void } => {
  let stop = (): void => undefined
  const answer = new Promise<PauseAnswer>((resolve, reject) => {
    const look = (): void => {
      const { freeze } = run.state
      if (freeze === null) reject(refused(run, 'pause', recordedRefusalOf(run) ?? 'it was resumed meanwhile'))
      else if (freeze.status === 'frozen' || freeze.status === 'incomplete')
        resolve({ status: freeze.status, running: freeze.running })
    }
    const stops = [
      run.onTransition(look),
      run.onLeave(() => {
        reject(refused(run, 'pause', 'this engine does not hold the run any more'))
      }),
    ]
    stop = () => {
      for (const one of stops) one()
    }
    look()
  })
  return { answer, stop }
}

/** O1, O4, O8. Rejects `refused` with the reason, or `store-unavailable` when it could not be recorded: then nothing was frozen. */
export const pauseRun = async (run: RunActor, owner: FreezeOwner, wait: FreezeWait): Promise<PauseAnswer> => {
  const { clock } = wait
  const deadlineMs = clock.monotonicMs() + wait.timeoutMs
  const posted = await within(run.post({ type: 'run.pause', owner }), wait, 'late' as const)
  if (posted === 'late') return PENDING
  assertTaken(run, 'pause', posted)
  const { answer, stop } = awaitReport(run)
  try {
    return await within(answer, { clock, timeoutMs: Math.max(0, deadlineMs - clock.monotonicMs()) }, PENDING)
  } finally {
    stop()
  }
}

/** O10: continues every run that is frozen, or about to be, whoever wanted it so; never rejects. */
export const thawAll = async (runs: Iterable<RunActor>, wait: FreezeWait): Promise<void> => {
  // Behind a pause that is still on its way to the store. One that is being ended goes on by its ladder.
  const left = [...runs].filter((run) => !run.state.isSettled && !run.isEndWanted)
  await Promise.all(left.map((run) => resumeRun(run, 'user', wait).catch(() => false)))
}

/**
 * Resolves true when nobody wants the run frozen any more and its processes go on (past the deadline: are about to), false when someone
 * stronger keeps it frozen (O4). A run that was not paused is one that goes on. Rejects as `pauseRun` does.
 */
export const resumeRun = async (run: RunActor, owner: FreezeOwner, wait: FreezeWait): Promise<boolean> => {
  const posted = await within(run.post({ type: 'run.resume', owner }), wait, 'late' as const)
  if (posted === 'late') {
    const why = `it is not recorded after ${String(wait.timeoutMs)} ms; it follows when the store answers`
    throw new RunwardenError('store-unavailable', `resume: run ${run.id}: ${why}`)
  }
  assertTaken(run, 'resume', posted)
  if (run.state.freeze !== null) return false
  await within(run.process?.thawed ?? Promise.resolve(), wait, undefined)
  return true
}
