/** What `run` says about a run in words: the status line, the notes on stderr, the last line. */
import type { Evidence, Outcome, Run, Survivor } from '../index.js'
import { formatDuration } from './durations.js'
import { isLaunchFailure } from './exit-codes.js'
import { clean } from './output.js'

const nameSurvivor = ({ pid, name, state, error }: Survivor): string =>
  `${String(pid)} ${clean(name)} (${[state, ...(error === undefined ? [] : [clean(error)])].join(', ')})`

export const nameSurvivors = (survivors: readonly Survivor[]): string =>
  survivors.length === 0 ? 'processes that could not be read' : survivors.map(nameSurvivor).join(', ')

export const nameEvidence = (evidence: readonly Evidence[]): string =>
  [...new Set(evidence.map(({ kind }) => kind))].join(', ')

export const statusText = ({ id, pid, state }: Run, elapsedMs: number): string => {
  const parts = [
    state.headline,
    formatDuration(elapsedMs),
    ...(pid === undefined ? [] : [`pid ${String(pid)}`]),
    ...(state.process === 'unconfirmed' ? [`still alive: ${nameSurvivors(state.survivors)}`] : []),
  ]
  return `${id}  ${parts.join(' · ')}`
}

export const unconfirmedNote = (runId: string, survivors: readonly Survivor[]): string =>
  `run ${runId} is unconfirmed: still alive: ${nameSurvivors(survivors)}`

/** A command that ended by itself and left its code speaks for itself. */
export const speaksForItself = (outcome: Outcome): boolean =>
  !isLaunchFailure(outcome) &&
  (outcome.status === 'completed' || (outcome.status === 'failed' && outcome.exitCode !== null))

export const outcomeText = ({ status, message, reason }: Outcome): string => {
  const why =
    reason === '' || ['exit', 'signal', 'launch-failed', status].includes(reason) ? '' : `: ${clean(reason)}`
  return message === status ? `${status}${why}` : `${status}: ${clean(message)}`
}
