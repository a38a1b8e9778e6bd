/** What `run` says about a run in words: the status line, the notes on stderr, the last line. */
import type { Evidence, Outcome, Run, RunActivity, Survivor } from '../index.js'
import { formatDuration } from './durations.js'
import { failureCode, isLaunchFailure } from './exit-codes.js'
import { clean } from './output.js'

const nameSurvivor = ({ pid, name, state, error }: Survivor): string =>
  `${String(pid)} ${clean(name)} (${[state, ...(error === undefined ? [] : [clean(error)])].join(', ')})`

export const nameSurvivors = (survivors: readonly Survivor[]): string =>
  survivors.length === 0 ? 'processes that could not be read' : survivors.map(nameSurvivor).join(', ')

export const nameEvidence = (evidence: readonly Evidence[]): string =>
  [...new Set(evidence.map(({ kind }) => kind))].join(', ')

/** From here on a silence is worth a word. */
const QUIET_MIN_MS = 5_000

/** What an agent is at: nothing of it for a command without a protocol, whose silence says nothing. */
const activityText = ({ openTools, quietMs, generation, isWaitingForPerson }: RunActivity): string[] => [
  ...(generation > 1 ? [`turn ${String(generation)}`] : []),
  ...(isWaitingForPerson ? ['waits for an answer'] : []),
  ...openTools.slice(0, 1).map(({ title }) => clean(title)),
  ...(quietMs !== null && quietMs >= QUIET_MIN_MS ? [`quiet ${formatDuration(quietMs)}`] : []),
]

export const statusText = ({ id, pid, state, activity }: Run, elapsedMs: number): string => {
  const parts = [
    state.headline,
    formatDuration(elapsedMs),
    ...(state.isSettled ? [] : activityText(activity)),
    ...(pid === undefined ? [] : [`pid ${String(pid)}`]),
    ...(state.process === 'unconfirmed' ? [`still alive: ${nameSurvivors(state.survivors)}`] : []),
  ]
  return `${id}  ${parts.join(' · ')}`
}

export const unconfirmedNote = (runId: string, survivors: readonly Survivor[]): string =>
  `run ${runId} is unconfirmed: still alive: ${nameSurvivors(survivors)}`

/** A command that ended by itself and left its code speaks for itself. */
export const speaksForItself = (outcome: Outcome): boolean =>
  !isLaunchFailure(outcome) && (outcome.status === 'completed' || failureCode(outcome) !== null)

const FAILURE_CHARS_MAX = 300

/** What an agent gave as the reason of its failure. */
const failureOf = ({ status, result }: Outcome): string | undefined => {
  const text = status === 'failed' && result?.isOk === false ? result.text : undefined
  return text !== undefined && text.length > FAILURE_CHARS_MAX ? `${text.slice(0, FAILURE_CHARS_MAX)}…` : text
}

export const outcomeText = (outcome: Outcome): string => {
  const { status, message, reason } = outcome
  // Who ended it said why; of what ended by itself the message tells more than the reason's one word.
  const parts = message === status ? [reason] : [message, failureOf(outcome) ?? '']
  const said = new Set([status, ...parts].filter((part) => part !== ''))
  return [...said].map(clean).join(': ')
}
