/** `runwarden show`: everything that is recorded of one run. */
import type { Command } from 'commander'
import type { Intent, Outcome, RunHistory } from '../index.js'
import { formatDuration } from './durations.js'
import { clean, coloursFor, paintStatus, printJson, printLines } from './output.js'
import type { Colours } from './output.js'
import { outcomeText, speaksForItself } from './run-messages.js'
import { executionLines, journalLines, noticeLines, orderLines } from './show-tables.js'
import { stdout } from './streams.js'
import { examples, readingStore, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

const field = (name: string, value: string): string => `  ${name.padEnd(10)} ${value}`

const when = (at: number, now: number): string =>
  `${new Date(at).toISOString()} (${formatDuration(now - at)} ago)`

const belongings = ({ task, session, labels }: RunHistory['run']): string =>
  [
    ...(task === null ? [] : [`task ${task}`]),
    ...(session === null ? [] : [`session ${session}`]),
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
  ]
    .map(clean)
    .join(' · ')

const intentText = ({ kind, by, reason, force, requestedAt }: Intent, createdAt: number): string =>
  clean(
    `${kind}${force ? ', forced' : ''}, by ${by}${reason === '' ? '' : `: ${reason}`}, at +${formatDuration(requestedAt - createdAt)}`,
  )

/** What the outcome's own message does not say. */
const exitText = (outcome: Outcome): string => {
  const { exitCode, signal } = outcome
  if (speaksForItself(outcome) || (exitCode === null && signal === null)) return ''
  return signal === null
    ? ` · the command exited with code ${String(exitCode)}`
    : ` · the command was ended by ${signal}`
}

const headLines = ({ run }: RunHistory, now: number, colours: Colours): string[] => {
  const outcome = run.outcome as Outcome | null
  const intent = run.intent as Intent | null
  const whose = belongings(run)
  return [
    `${colours.bold(run.runId)}  ${paintStatus(colours, run.headline)(run.headline)}`,
    field('program', clean(run.program)),
    ...(whose === '' ? [] : [field('belongs to', whose)]),
    field('accepted', when(run.createdAt, now)),
    ...(run.settledAt === null
      ? []
      : [field('settled', `after ${formatDuration(run.settledAt - run.createdAt)}`)]),
    '',
    field('work', run.work),
    field('process', run.process),
    field('delivery', run.delivery),
    ...(intent === null ? [] : [field('intent', intentText(intent, run.createdAt))]),
    field('outcome', outcome === null ? 'none yet' : `${outcomeText(outcome)}${exitText(outcome)}`),
  ]
}

const section = (title: string, lines: readonly string[], colours: Colours): string[] =>
  lines.length === 0 ? [] : ['', colours.bold(title), ...lines.map((line) => `  ${line}`)]

const pageOf = (history: RunHistory, colours: Colours): string[] => {
  const { executions, transitions, orders, notices, run } = history
  return [
    ...headLines(history, Date.now(), colours),
    ...section('Executions', executionLines(executions, run.createdAt, colours), colours),
    ...section('Stop orders', orderLines(orders, run.createdAt, colours), colours),
    ...section('Notices', noticeLines(notices, run.createdAt, colours), colours),
    ...section('Journal', journalLines(transitions, run.createdAt, colours), colours),
  ]
}

export const addShow = (program: Command): void => {
  verb(program, 'show', 'show one run: its regions, executions, orders and journal')
    .argument('<run>', 'the id of the run')
    .addHelpText(
      'after',
      `${examples('runwarden show run-42', "runwarden show --json run-42 | jq -r '.transitions[].event'")}

Times in the tables are counted from the acceptance of the run.`,
    )
    .action(async (runId: string, _options: unknown, self: Command) => {
      const options = self.optsWithGlobals<SharedOptions>()
      await readingStore(options, async (records) => {
        const history = await records.history(runId)
        // What is on record; timers are of this moment.
        const { timers: _timers, policy: _policy, ...recorded } = history
        if (options.json === true) await printJson(recorded)
        else await printLines(pageOf(history, coloursFor(stdout)))
      })
    })
}
