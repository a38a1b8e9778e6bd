/** The tables of `runwarden show`. Times are counted from the acceptance of the run. */
import type { RegionStates, RunHistory, Survivor, TransitionRecord } from '../index.js'
import { formatDuration } from './durations.js'
import { clean, paintStatus, table } from './output.js'
import type { Colours } from './output.js'
import { nameEvidence, nameSurvivors } from './run-messages.js'

type Execution = RunHistory['executions'][number]
type Order = RunHistory['orders'][number]
type Notice = RunHistory['notices'][number]

const since = (from: number, at: number): string => `+${formatDuration(at - from)}`

const REGIONS = ['work', 'process', 'delivery'] as const

/** `xstate.after.termGrace.run.process.term-sent` is the timer `termGrace`. */
const eventName = (event: string): string => event.replace(/^xstate\.after\.([^.]+)\..*$/, 'after $1')

/** What an event brought along, where a reader would ask. */
const detailOf = ({ detail }: TransitionRecord): string => {
  const { exitCode, signal, error, message, survivors, by, reason } = detail as Readonly<
    Record<string, unknown>
  >
  const texts = [
    ...(typeof exitCode === 'number' ? [`code ${String(exitCode)}`] : []),
    ...[signal, error, message, reason].filter((text) => typeof text === 'string' && text !== ''),
    ...(Array.isArray(survivors) && survivors.length > 0 ? [nameSurvivors(survivors as Survivor[])] : []),
    ...(typeof by === 'string' ? [`by ${by}`] : []),
  ]
  return texts.length === 0 ? '' : `(${texts.join(', ')})`
}

/** Only the regions that moved. */
const movesOf = ({ from, to }: { readonly from: RegionStates | null; readonly to: RegionStates }): string =>
  REGIONS.filter((region) => from?.[region] !== to[region])
    .map((region) =>
      from === null ? `${region} ${to[region]}` : `${region} ${from[region]} → ${to[region]}`,
    )
    .join(', ')

const changeOf = (transition: TransitionRecord): string =>
  [movesOf(transition), detailOf(transition)].filter((text) => text !== '').join(' ')

/** An effect that was called for and is not done is what a reader looks for. */
const effectsOf = ({ effects }: TransitionRecord): string =>
  effects.map(({ kind, doneAt }) => (doneAt === null ? `${kind} (not done)` : kind)).join(', ')

export const journalLines = (
  transitions: readonly TransitionRecord[],
  createdAt: number,
  colours: Colours,
): readonly string[] =>
  table(
    transitions,
    [
      { title: 'REV', of: ({ rev }) => String(rev), paint: (text) => colours.dim(text) },
      { title: 'AT', of: ({ at }) => since(createdAt, at) },
      { title: 'EVENT', of: ({ event }) => eventName(event), paint: (text) => colours.cyan(text) },
      { title: 'CHANGE', of: changeOf },
      { title: 'EFFECTS', of: effectsOf },
    ],
    colours,
  )

const identityText = ({ identity, marks }: Execution): string => {
  if (identity === undefined) return 'no process'
  const { pid, startTicks, bootId, pidNamespace } = identity
  const mark = marks?.limit == null ? 'cookie' : 'cookie and limit'
  return `pid ${String(pid)} · start ${String(startTicks)} ticks · boot ${bootId} · ${pidNamespace} · marked by ${mark}`
}

const exitOf = ({ exit }: Execution): string =>
  exit === undefined
    ? ''
    : exit.signal !== null
      ? ` (${exit.signal})`
      : ` (code ${String(exit.exitCode ?? '?')})`

const timesOf = (execution: Execution, createdAt: number): string => {
  const { requestedAt, launchedAt, exitedAt, confirmedAt, evidence } = execution
  const by = evidence === undefined ? '' : ` by ${evidence}`
  return [
    ...(requestedAt === undefined ? [] : [`requested ${since(createdAt, requestedAt)}`]),
    ...(launchedAt === undefined ? [] : [`launched ${since(createdAt, launchedAt)}`]),
    ...(exitedAt === undefined ? [] : [`exited ${since(createdAt, exitedAt)}${exitOf(execution)}`]),
    confirmedAt === undefined ? 'not confirmed' : `confirmed ${since(createdAt, confirmedAt)}${by}`,
  ].join(' · ')
}

export const executionLines = (
  executions: readonly Execution[],
  createdAt: number,
  colours: Colours,
): readonly string[] =>
  executions.flatMap((execution) => {
    const { attempt, containment, logPath, marks, pane, survivors = [] } = execution
    const held = containment === 'cgroup' ? `cgroup ${clean(marks?.cgroup ?? '')}` : (containment ?? '-')
    const place = pane?.place ?? null
    return [
      `attempt ${String(attempt)}  ${identityText(execution)}`,
      `           ${timesOf(execution, createdAt)}`,
      `           contained by ${held} · log ${clean(logPath ?? 'none')}`,
      ...(pane === undefined || place === null
        ? []
        : [
            `           pane ${place.paneId} of tmux at ${clean(pane.socket)}${pane.isRetained ? ', retained' : ''}`,
          ]),
      ...(survivors.length === 0
        ? []
        : [`           ${colours.red(`still alive: ${nameSurvivors(survivors)}`)}`]),
    ]
  })

const answerOf = ({ line }: Order): string => {
  if (line.status === 'unconfirmed') return `${line.status}: ${nameSurvivors(line.survivors ?? [])}`
  return line.evidence === undefined ? line.status : `${line.status} by ${nameEvidence(line.evidence)}`
}

export const orderLines = (
  orders: readonly Order[],
  createdAt: number,
  colours: Colours,
): readonly string[] =>
  orders.length === 0
    ? []
    : table(
        orders,
        [
          { title: 'AT', of: ({ requestedAt }) => since(createdAt, requestedAt) },
          { title: 'MODE', of: ({ mode, isForced }) => (isForced ? `${mode}, forced` : mode) },
          { title: 'BY', of: ({ by }) => by },
          { title: 'REASON', of: ({ reason }) => (reason === '' ? '-' : reason) },
          {
            title: 'ANSWER',
            of: answerOf,
            paint: (text, { line }) => paintStatus(colours, line.status)(text),
          },
        ],
        colours,
      )

export const noticeLines = (
  notices: readonly Notice[],
  createdAt: number,
  colours: Colours,
): readonly string[] =>
  notices.length === 0
    ? []
    : table(
        notices,
        [
          { title: 'AT', of: ({ at }) => since(createdAt, at) },
          { title: 'KIND', of: ({ kind }) => kind },
          { title: 'TURN', of: ({ generation }) => String(generation) },
          {
            title: 'TEXT',
            of: ({ text, withdrawnAt }) => (withdrawnAt === undefined ? text : `${text} (withdrawn)`),
          },
        ],
        colours,
      )
