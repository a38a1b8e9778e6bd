/**
 * Everything that may be put to a run: all commands always, facts as the world allows them, timers while they are armed.
 *
 * Owns: the alphabet, with the parameter values that a guard could tell apart, and which of them are stale.
 * The hostile part: facts of other attempts, generations and epochs, facts of executions that have ended, and exits told twice
 *   are offered in every state.
 */
import type { AnyEventObject } from 'xstate'
import type { ExitStatus, RunContext, TurnStamp } from '../../../src/machines/run/run.context.js'
import type { RunEvent } from '../../../src/machines/run/run.events.js'
import { standsStill } from '../../../src/machines/run/run.timers.js'
import type { ExecutionPhase, RunNode, RunOffer } from './node.js'

/** `legal`: facts come only when the world gives cause for them. `anything`: every fact in every state. */
export type Mode = 'legal' | 'anything'

type Unstamped<E> = E extends unknown ? Omit<E, 'at'> : never
export type Draft = Unstamped<RunEvent>

interface Entry {
  readonly label: string
  readonly draft: Draft
  readonly nature: RunOffer['nature']
  readonly isStale?: boolean
  readonly isPossible?: boolean
}

const EXITS: readonly (readonly [string, ExitStatus])[] = [
  ['0', { exitCode: 0, signal: null }],
  ['7', { exitCode: 7, signal: null }],
  ['SIGKILL', { exitCode: null, signal: 'SIGKILL' }],
  ['unseen', { exitCode: null, signal: null, isUnseen: true }],
]
const SURVIVOR = { pid: 77, startTicks: 1, state: 'D', name: 'stuck' } as const
const BOTH = [false, true] as const

const ordered = (force: boolean) => ({ by: 'tester', reason: 'because', force })
const forced = (force: boolean): string => (force ? ' force' : '')

const commands = (): Entry[] => [
  ...(['run.cancel', 'run.interrupt', 'run.terminate', 'run.suppress'] as const).flatMap((type) =>
    BOTH.map((force): Entry => ({
      label: `${type}${forced(force)}`,
      draft: { type, ...ordered(force) },
      nature: 'command',
    })),
  ),
  ...(['run.pause', 'run.resume'] as const).flatMap((type) =>
    (['machine', 'user'] as const).map((owner): Entry => ({
      label: `${type} ${owner}`,
      draft: { type, owner },
      nature: 'command',
    })),
  ),
  { label: 'run.finish', draft: { type: 'run.finish' }, nature: 'command' },
  { label: 'turn.started', draft: { type: 'turn.started' }, nature: 'command' },
  { label: 'turn.cancel', draft: { type: 'turn.cancel' }, nature: 'command' },
]

/** They do not change from node to node. */
const COMMANDS = commands()

const turnFacts = ({ attempt, generation }: RunContext, isPossible: boolean): Entry[] => {
  const stamps = [
    { mark: '', isStale: false, attempt, generation },
    { mark: ' of the attempt before', isStale: true, attempt: attempt - 1, generation },
    { mark: ' of the generation before', isStale: true, attempt, generation: generation - 1 },
    { mark: ' of a generation to come', isStale: true, attempt, generation: generation + 1 },
  ]
  return stamps.flatMap(({ mark, isStale, ...stamp }): Entry[] => {
    const fact = (label: string, draft: Draft): Entry => ({
      label: `${label}${mark}`,
      draft,
      nature: 'fact',
      isStale,
      isPossible: isStale || isPossible,
    })
    return [
      fact('turn.progressed', { type: 'turn.progressed', ...stamp }),
      fact('turn.completed ok', { type: 'turn.completed', ...stamp, result: { isOk: true, text: 'done' } }),
      fact('turn.completed not-ok', { type: 'turn.completed', ...stamp, result: { isOk: false } }),
      fact('turn.cancel-acknowledged', { type: 'turn.cancel-acknowledged', ...stamp }),
      fact('turn.cancelled', { type: 'turn.cancelled', ...stamp }),
      fact('person.asked', { type: 'person.asked', ...stamp }),
      fact('person.answered', { type: 'person.answered', ...stamp }),
    ]
  })
}

const watchFacts = ({ attempt, generation }: RunContext, isPossible: boolean): Entry[] => {
  const now: TurnStamp = { attempt, generation, epoch: 2 }
  const before: TurnStamp = { attempt, generation: generation - 1, epoch: 2 }
  const other: TurnStamp = { attempt: attempt - 1, generation, epoch: 2 }
  const stamps = [
    { mark: '', isStale: false, seen: now, current: now },
    { mark: ' of an epoch before', isStale: true, seen: { ...now, epoch: 1 }, current: now },
    { mark: ' of the generation before', isStale: true, seen: before, current: now },
    { mark: ' of the attempt before', isStale: true, seen: other, current: now },
    { mark: ' of a clock one generation behind', isStale: true, seen: before, current: before },
    { mark: ' of a clock one attempt behind', isStale: true, seen: other, current: other },
    { mark: ' while the clock went to another turn', isStale: true, seen: now, current: before },
    { mark: ' while the clock went to another attempt', isStale: true, seen: now, current: other },
  ]
  return stamps.flatMap(({ mark, isStale, seen, current }): Entry[] => {
    const fact = (label: string, draft: Draft): Entry => ({
      label: `${label}${mark}`,
      draft,
      nature: 'fact',
      isStale,
      isPossible: isStale || isPossible,
    })
    return [
      fact('watchdog.silent', { type: 'watchdog.silent', seen, current }),
      fact('watchdog.silent on a tool', { type: 'watchdog.silent', seen, current, tool: 'bash' }),
      fact('watchdog.exhausted', { type: 'watchdog.exhausted', seen, current }),
      fact('watchdog.completion-silent', { type: 'watchdog.completion-silent', seen, current }),
    ]
  })
}

const exits = (attempt: number): { label: string; draft: Draft }[] =>
  EXITS.flatMap(([name, status]) =>
    BOTH.flatMap((isTreeEmpty) =>
      BOTH.map((isFallbackEligible) => ({
        label: `process.exited ${name}${isTreeEmpty ? '' : ' leaving members'}${isFallbackEligible ? ' eligible' : ''}`,
        draft: {
          type: 'process.exited' as const,
          attempt,
          ...status,
          isTreeEmpty,
          evidence: 'tree-reaped' as const,
          isFallbackEligible,
        },
      })),
    ),
  )

/** The process actor's facts of one attempt, by the phase of the execution in which each may come. */
const processFacts = (
  attempt: number,
  may: {
    launch: boolean
    talk: boolean
    exit: boolean
    go: boolean
    survive: boolean
    fail: boolean
    freeze: boolean
  },
  mark: string,
  isStale: boolean,
): Entry[] => {
  const fact = (isPossible: boolean, label: string, draft: Draft): Entry[] =>
    isPossible || isStale ? [{ label: `${label}${mark}`, draft, nature: 'fact', isStale }] : []
  const failure = {
    type: 'process.launch-failed',
    attempt,
    code: 'ENOENT',
    message: 'no such program',
  } as const
  return [
    ...fact(may.launch, 'process.launched', { type: 'process.launched', attempt }),
    ...BOTH.flatMap((isFallbackEligible) =>
      fact(may.launch, `process.launch-failed${isFallbackEligible ? ' eligible' : ''}`, {
        ...failure,
        isFallbackEligible,
      }),
    ),
    ...BOTH.flatMap((isFallbackEligible) =>
      fact(may.talk, `session.failed${isFallbackEligible ? ' eligible' : ''}`, {
        type: 'session.failed',
        attempt,
        message: 'no handshake',
        isFallbackEligible,
      }),
    ),
    ...exits(attempt).flatMap(({ label, draft }) => fact(may.exit, label, draft)),
    ...fact(may.go, 'process.gone', { type: 'process.gone', attempt, evidence: 'tree-reaped' }),
    ...fact(may.survive, 'process.survived', { type: 'process.survived', attempt, survivors: [SURVIVOR] }),
    ...fact(may.survive, 'process.survived EPERM', {
      type: 'process.survived',
      attempt,
      survivors: [SURVIVOR],
      error: 'EPERM',
    }),
    ...fact(may.freeze, 'process.frozen', { type: 'process.frozen', attempt }),
    ...fact(may.freeze, 'process.freeze-failed', {
      type: 'process.freeze-failed',
      attempt,
      running: [SURVIVOR],
      error: 'EPERM',
    }),
    ...fact(may.fail, 'process.signal-failed', { type: 'process.signal-failed', attempt, error: 'EPERM' }),
  ]
}

/** What was said of an execution before, and is heard again or late. */
const LATE: Readonly<Partial<Record<ExecutionPhase, readonly string[]>>> = {
  up: ['process.launched'],
  members: ['process.launched', 'session.failed'],
}
const ALL = { launch: true, talk: true, exit: true, go: true, survive: true, fail: true, freeze: true }
const NONE = {
  launch: false,
  talk: false,
  exit: false,
  go: false,
  survive: false,
  fail: false,
  freeze: false,
}

const factsOfExecution = (node: RunNode, mode: Mode): Entry[] => {
  const { executionAttempt } = node.context
  const { execution } = node.world
  const others = [
    ...processFacts(executionAttempt - 1, NONE, ' of the execution before', true),
    ...processFacts(executionAttempt + 1, NONE, ' of an execution to come', true),
  ]
  if (mode === 'anything') return [...processFacts(executionAttempt, ALL, '', false), ...others]
  if (execution === 'none') return others
  if (execution === 'ended') {
    return [...processFacts(executionAttempt, NONE, ' of an execution that has ended', true), ...others]
  }
  const isThere = execution === 'up' || execution === 'members'
  const may = {
    launch: execution === 'starting',
    talk: execution === 'up',
    exit: execution === 'up',
    go: true,
    survive: isThere && (node.process === 'kill-sent' || node.process === 'unconfirmed'),
    fail: isThere,
    // Told a moment after the tree was thawed, or given over to the ladder.
    freeze: isThere,
  }
  const again = execution === 'members' ? exits(executionAttempt).filter(isWithMembers) : []
  const late = processFacts(executionAttempt, NONE, ' told late', true).filter(({ draft: { type } }) =>
    LATE[execution]?.includes(type),
  )
  return [
    ...processFacts(executionAttempt, may, '', false),
    ...late,
    ...again.map(({ label, draft }): Entry => ({ label: `${label} again`, draft, nature: 'fact' })),
    ...others,
  ]
}

const isWithMembers = ({ draft }: { draft: Draft }): boolean => 'isTreeEmpty' in draft && !draft.isTreeEmpty

/** What an engine without knowledge of this run's past may learn, and what the host's hooks answer. */
const otherFacts = (node: RunNode, mode: Mode): Entry[] => {
  const isAnything = mode === 'anything'
  const isUnderDelivery = isAnything || node.delivery !== 'pending'
  const { execution, isAdmissionAsked } = node.world
  const mayBeLost = isAnything || execution !== 'ended' || node.process === 'waiting'
  return [
    {
      label: 'run.admitted',
      draft: { type: 'run.admitted' },
      nature: 'command',
      isPossible: isAnything || isAdmissionAsked,
    },
    {
      label: 'run.lost',
      draft: { type: 'run.lost', evidence: 'identity-gone' },
      nature: 'fact',
      isPossible: mayBeLost,
    },
    {
      label: 'limit.exceeded',
      draft: { type: 'limit.exceeded', limit: 'maxOutputBytes', max: 9 },
      nature: 'fact',
      isPossible: isAnything || execution !== 'none',
    },
    { label: 'run.faulted', draft: { type: 'run.faulted', message: 'broken' }, nature: 'fact' },
    {
      label: 'delivery.finalized',
      draft: { type: 'delivery.finalized' },
      nature: 'fact',
      isPossible: isUnderDelivery,
    },
    {
      label: 'delivery.acknowledged',
      draft: { type: 'delivery.acknowledged' },
      nature: 'fact',
      isPossible: isUnderDelivery,
    },
    {
      label: 'delivery.failed',
      draft: { type: 'delivery.failed', error: 'down' },
      nature: 'fact',
      isPossible: isUnderDelivery,
    },
  ]
}

/** The agent speaks while its leader runs, and what it said is read a little after. */
const isSpeaking = ({ world, context }: RunNode): boolean =>
  (world.execution === 'up' || world.execution === 'members') && context.attempt === context.executionAttempt

/** A timer that was armed for a turn which is over. */
const isOfOtherTurn = ({ context }: RunNode, event: AnyEventObject): boolean =>
  'generation' in event &&
  (event['generation'] !== context.generation || event['attempt'] !== context.attempt)

export const offersAt = (node: RunNode, mode: Mode): RunOffer[] => {
  const at = node.at + 1
  const isAnything = mode === 'anything'
  const entries = [
    ...COMMANDS,
    ...otherFacts(node, mode),
    ...turnFacts(node.context, isAnything || isSpeaking(node)),
    ...watchFacts(node.context, isAnything || isSpeaking(node)),
    ...factsOfExecution(node, mode),
  ]
  const offers = entries
    .filter(({ isPossible }) => isPossible ?? true)
    .map(({ label, draft, nature, isStale }): RunOffer => ({
      label,
      event: { ...draft, at },
      nature,
      isStale: isStale ?? false,
    }))
  for (const { id, event } of node.timers.values()) {
    // O7: the host lets no time pass for these.
    if (standsStill(node.snapshot, id)) continue
    const label = `after ${id.replace('xstate.after.', '')}`
    offers.push({ label, event: { ...event, at }, nature: 'timer', isStale: isOfOtherTurn(node, event) })
  }
  return offers
}
