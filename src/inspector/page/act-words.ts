/** What an act will do to a run, said before it is done. Pure. */
import type { RunHistory } from '../../index.js'
import type { Act } from '../wire.js'
import { duration } from './format.js'

export interface ActWords {
  readonly title: string
  readonly button: string
  /** What will happen, in order. */
  readonly will: readonly string[]
  readonly isHard: boolean
}

type Run = RunHistory['run']
type Policy = RunHistory['policy']

const NEVER_LAUNCHED = 'Nothing was launched yet, and nothing will be.'

const ladder = (
  { process }: Run,
  { canAsk, askGraceMs, termGraceMs, killGraceMs }: Policy,
): readonly string[] => {
  if (process === 'waiting') return [NEVER_LAUNCHED]
  return [
    ...(canAsk ? [`Now: the agent is asked to end by its own means, for ${duration(askGraceMs)}.`] : []),
    `${canAsk ? 'Then' : 'Now'}: TERM goes to every process of the run.`,
    `${duration(termGraceMs)} later: KILL goes to each that is still there.`,
    `The receipt says “confirmed” only when every process is proven gone, and names what is not ${duration(killGraceMs)} after the KILL.`,
  ]
}

const confirmedFor = (pid: number | null): string => (pid === null ? '' : ` (process ${String(pid)})`)

export const wordsFor = (act: Act, run: Run, policy: Policy): ActWords => {
  switch (act) {
    case 'pause':
      return {
        title: 'Pause this run?',
        button: 'Pause',
        isHard: false,
        will: [
          'Every process of the run is stopped (SIGSTOP) and keeps its memory.',
          `If nobody resumes it within ${duration(policy.pauseGraceMs)}, it is interrupted.`,
        ],
      }
    case 'resume':
      return {
        title: 'Resume this run?',
        button: 'Resume',
        isHard: false,
        will: ['Every process that the pause has stopped goes on, whoever paused it.'],
      }
    case 'interrupt':
      return {
        title: 'Interrupt this run?',
        button: 'Interrupt',
        isHard: false,
        will: ['It ends as “interrupted”: a later run may continue its work.', ...ladder(run, policy)],
      }
    case 'cancel':
      return {
        title: 'Cancel this run?',
        button: 'Cancel run',
        isHard: true,
        will: ['It ends as “cancelled”, for good, and its children with it.', ...ladder(run, policy)],
      }
    case 'force':
      return {
        title: 'Kill this run now?',
        button: 'Kill now',
        isHard: true,
        will: [
          `Now: KILL goes to every process of the run${confirmedFor(run.pid)}. Nothing can be saved.`,
          run.settledAt === null
            ? 'It ends as “cancelled”, for good, and its children with it.'
            : 'Its outcome stays as it is.',
          `What is still alive after ${duration(policy.killGraceMs)} is named, and killed again.`,
        ],
      }
  }
}

const LADDER = ['asking', 'term-sent', 'kill-sent', 'unconfirmed']

/** Why an act makes no sense now; null when it does. */
export const obstacleTo = (
  act: Act,
  { process, settledAt }: Run,
  { isPersistent }: Policy,
): string | null => {
  const isSettled = settledAt !== null
  if (process === 'confirmed' && isSettled) return 'the run is over'
  const isEnding = isSettled || LADDER.includes(process)
  switch (act) {
    case 'pause':
      return process === 'frozen' ? 'it is paused' : isEnding ? 'it is being ended' : null
    case 'resume':
      return process === 'frozen' ? null : 'it is not paused'
    case 'interrupt':
      return isSettled ? 'it is settled' : isEnding ? 'it is being ended' : null
    case 'cancel':
      return isSettled
        ? 'it is settled'
        : isPersistent
          ? 'a persistent run is interrupted, not cancelled'
          : null
    case 'force':
      return process === 'waiting' ? 'nothing was launched' : null
  }
}
