/**
 * The ending of one run on behalf of one order, or its pause: the command is given, and its answer awaited.
 *
 * Invariants: INV-3 (a settled run is terminated without a word on its outcome), INV-5 (`confirmed` only from the process region), K14, P7.
 */
import { messageOf } from '../errors.js'
import { isFreezeMode } from '../machines/stop-order/stop-order.context.js'
import type { StopLine, StopMode } from '../machines/stop-order/stop-order.context.js'
import type { Posted } from './actor-role.js'
import { pauseRun, resumeRun } from './freezing.js'
import type { Clock } from './ports.js'
import type { RunActor, RunMessage } from './run.actor.js'
import type { RunState } from './run-state.js'

export interface EndRequest {
  readonly mode: StopMode
  readonly force: boolean
  readonly reason: string
  readonly by: string
  readonly requestedAt: number
}

export interface Ending {
  readonly first: StopLine
  readonly answer: Promise<StopLine>
}

/** A freeze says how it went long before. */
const FREEZE_WAIT_MS = 5_000
/** An unconfirmed tree whose survivors nobody could name in this time is reported without names. */
const SURVIVORS_WAIT_MS = 1_000

const workOf = (state: RunState): string => state.outcome?.status ?? 'open'

/** P16: a persistent run is stopped, never cancelled: another run may go on where it stood. */
const modeFor = ({ policy }: RunActor, { mode }: EndRequest): StopMode =>
  policy.isPersistent && mode === 'cancel' ? 'interrupt' : mode

const messageFor = (state: RunState, request: EndRequest): RunMessage => {
  const { force, reason, by, mode } = request
  if (state.isSettled || mode === 'terminate') return { type: 'run.terminate', force, reason, by }
  return { type: mode === 'cancel' ? 'run.cancel' : 'run.interrupt', force, reason, by }
}

/** P7: asked for already, by the same or a stronger request, recorded or not yet. */
const isRepeat = (run: RunActor, mode: StopMode): boolean =>
  mode === 'cancel' ? run.wantedEnd.kind === 'cancel' : run.isEndWanted

/** Whose work ended because someone asked: its line says `confirmed`; another's end was its own. */
const wasEndedOnRequest = (state: RunState): boolean =>
  state.outcome?.status === 'cancelled' || state.outcome?.status === 'interrupted'

/** How the run stood when the order came. */
interface Before {
  readonly state: RunState
  readonly isRepeat: boolean
}

const lineOf = (run: RunActor, request: EndRequest, before: Before): Omit<StopLine, 'status'> => {
  const { state } = run
  const kind = request.mode === 'interrupt' ? 'interrupt' : 'cancel'
  return {
    runId: run.id,
    work: workOf(state),
    requestedAt: run.context.requestedAt[kind] ?? request.requestedAt,
    repeated: before.isRepeat,
    isLive: !before.state.isConfirmed,
    ...(state.evidence.length > 0 ? { evidence: state.evidence } : {}),
  }
}

const confirmedLine = (run: RunActor, request: EndRequest, before: Before): StopLine => {
  const isTerminated = request.mode === 'terminate' && before.state.isSettled && !before.state.isConfirmed
  const status =
    isTerminated || (!before.state.isSettled && wasEndedOnRequest(run.state))
      ? 'confirmed'
      : 'already-terminal'
  const confirmedAt = Math.max(run.state.evidence.at(-1)?.at ?? 0, request.requestedAt)
  return { ...lineOf(run, request, before), status, ...(before.state.isConfirmed ? {} : { confirmedAt }) }
}

const unconfirmedLine = (run: RunActor, request: EndRequest, before: Before): StopLine => {
  const { lastError } = run.context
  return {
    ...lineOf(run, request, before),
    status: 'unconfirmed',
    survivors: run.state.survivors,
    ...(lastError === null ? {} : { error: lastError }),
  }
}

/** Resolves with the first answer there is: the tree confirmed gone, or a deadline that it outlived. */
const awaitAnswer = async (
  run: RunActor,
  request: EndRequest,
  before: Before,
  clock: Clock,
  posted: Promise<Posted>,
): Promise<StopLine> => {
  if ((await posted) === 'disowned') {
    return {
      ...lineOf(run, request, before),
      status: 'refused',
      error: 'this engine does not hold the run any more',
    }
  }
  return new Promise((resolve) => {
    let cancelWait = (): void => undefined
    const look = (): void => {
      const { state } = run
      if (state.isConfirmed) finish(confirmedLine(run, request, before))
      else if (state.process !== 'unconfirmed') cancelWait()
      else if (state.survivors.length > 0) finish(unconfirmedLine(run, request, before))
      else {
        cancelWait()
        cancelWait = clock.after(SURVIVORS_WAIT_MS, () => {
          finish(unconfirmedLine(run, request, before))
        })
      }
    }
    const finish = (line: StopLine): void => {
      cancelWait()
      stopListening()
      resolve(line)
    }
    const stopListening = run.onTransition(look)
    look()
  })
}

const pendingBecause = ({ state }: RunActor): string =>
  state.freeze === null
    ? 'it is not on record yet, and given up if the store does not take it'
    : 'it is on record, and done as soon as it can be'

/** O4: an order of the user's to pause or to resume; nothing of the run's end is in it. */
const freezeRun = (run: RunActor, { mode, requestedAt }: EndRequest, clock: Clock): Ending => {
  const { state } = run
  const line = { runId: run.id, work: workOf(state), requestedAt, repeated: false, isLive: !state.isSettled }
  if (state.isSettled) {
    const over: StopLine = { ...line, status: 'already-terminal' }
    return { first: over, answer: Promise.resolve(over) }
  }
  const wait = { clock, timeoutMs: FREEZE_WAIT_MS }
  const asked = mode === 'pause' ? pauseRun(run, 'user', wait) : resumeRun(run, 'user', wait)
  const answer = asked.then(
    (answered): StopLine => {
      if (typeof answered === 'boolean' || answered.status === 'frozen')
        return { ...line, status: 'confirmed', confirmedAt: Math.max(clock.wallMs(), requestedAt) }
      const { status, running } = answered
      const error = status === 'pending' ? pendingBecause(run) : undefined
      return { ...line, status: 'unconfirmed', survivors: running, ...(error === undefined ? {} : { error }) }
    },
    (error: unknown): StopLine => ({ ...line, status: 'refused', error: messageOf(error) }),
  )
  return { first: { ...line, status: 'requested' }, answer }
}

export const endRun = (run: RunActor, asked: EndRequest, clock: Clock): Ending => {
  if (isFreezeMode(asked.mode)) return freezeRun(run, asked, clock)
  const request = { ...asked, mode: modeFor(run, asked) }
  const before: Before = { state: run.state, isRepeat: isRepeat(run, request.mode) }
  if (before.state.isConfirmed) {
    const line = confirmedLine(run, request, before)
    return { first: line, answer: Promise.resolve(line) }
  }
  if (request.mode === 'terminate' && !before.state.isSettled) {
    const error = 'the work of this run is not settled: cancel or interrupt it'
    const line: StopLine = { ...lineOf(run, request, before), status: 'refused', error }
    return { first: line, answer: Promise.resolve(line) }
  }
  // P1: in the mailbox, ahead of every fact, before this call returns.
  const posted = run.post(messageFor(before.state, request))
  return {
    first: { ...lineOf(run, request, before), status: 'requested' },
    answer: awaitAnswer(run, request, before, clock, posted),
  }
}
