/** `runwarden ps`: the runs in the store. */
import type { Command } from 'commander'
import type { RunSummary } from '../index.js'
import { formatDuration } from './durations.js'
import { coloursFor, paintStatus, printJson, printLine, printLines, table } from './output.js'
import type { Colours, Column } from './output.js'
import { stdout } from './streams.js'
import { examples, readingStore, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

interface PsOptions extends SharedOptions {
  readonly all?: boolean
}

/** How long the run has made no recorded progress; of no interest once it is settled. */
const quietMs = ({ settledAt, lastProgressAt, startedAt }: RunSummary, now: number): number | null => {
  const since = lastProgressAt ?? startedAt
  return settledAt !== null || since === null ? null : now - since
}

const duration = (ms: number | null): string => (ms === null ? '-' : formatDuration(ms))

const columnsOf = (now: number, colours: Colours): readonly Column<RunSummary>[] => [
  { title: 'RUN', of: ({ runId }) => runId, paint: (text) => colours.bold(text) },
  {
    title: 'STATE',
    of: ({ headline }) => headline,
    paint: (text, { headline }) => paintStatus(colours, headline)(text),
  },
  { title: 'AGE', of: ({ createdAt }) => formatDuration(now - createdAt) },
  { title: 'QUIET', of: (run) => duration(quietMs(run, now)) },
  { title: 'ATTEMPT', of: ({ attempt }) => String(attempt) },
  { title: 'PID', of: ({ pid }) => (pid === null ? '-' : String(pid)) },
  { title: 'CONTAINMENT', of: ({ containment }) => containment ?? '-' },
  { title: 'TASK', of: ({ task }) => task ?? '-' },
  { title: 'PROGRAM', of: ({ program }) => program },
]

const print = async (runs: readonly RunSummary[], { json: isJson, all: isAll }: PsOptions): Promise<void> => {
  if (isJson === true) {
    await printJson(runs)
  } else if (runs.length === 0) {
    await printLine(isAll === true ? 'no runs' : 'no open runs; --all shows the finished ones too')
  } else {
    const colours = coloursFor(stdout)
    await printLines(table(runs, columnsOf(Date.now(), colours), colours))
  }
}

export const addPs = (program: Command): void => {
  verb(program, 'ps', 'list the runs that are not over')
    .option('--all', 'and those that are')
    .addHelpText(
      'after',
      `${examples('runwarden ps', 'runwarden ps --all --json | jq \'.[] | select(.task == "t7")\'')}

STATE is one word for the three regions of the run; \`runwarden show RUN\` has them all.
QUIET is the time since its last recorded progress.`,
    )
    .action(async (_options: unknown, self: Command) => {
      const options = self.optsWithGlobals<PsOptions>()
      await readingStore(options, async (records) => {
        await print(await records.runs({ onlyOpen: options.all !== true }), options)
      })
    })
}
