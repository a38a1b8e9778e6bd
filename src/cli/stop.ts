/** `runwarden stop`: files a stop order over the store, waits, and prints the receipt. */
import type { Engine, Scope, StopLine, StopOptions, StopReceipt } from '../index.js'
import type { Command } from 'commander'
import { formatDuration, parseDuration } from './durations.js'
import { CliError } from './errors.js'
import { EXIT, exitCodeOfReceipt } from './exit-codes.js'
import { coloursFor, paintStatus, printJson, printLines, table } from './output.js'
import type { Colours, Column } from './output.js'
import { collectLabel } from './run.js'
import { nameEvidence, nameSurvivors } from './run-messages.js'
import { AskingSignals } from './signals.js'
import { existingStore } from './store-path.js'
import { stderr, stdout } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

const DEFAULT_TIMEOUT_MS = 20_000
/** What this command took over from a dead engine is brought to its end, also past the receipt. */
const FINISH_MS = 15_000
const ANSWERED_FINISH_MS = 2_000

export interface ScopeOptions extends SharedOptions {
  readonly task?: string
  readonly session?: string
  readonly label?: Readonly<Record<string, string>>
  readonly all?: boolean
}

interface StopVerbOptions extends ScopeOptions {
  readonly force?: boolean
  readonly interrupt?: boolean
  readonly reason?: string
  readonly timeout?: number
}

/** What an order of a verb covers: runs by id, or by what they belong to. */
export const scopeOf = (
  verb: string,
  runIds: readonly string[],
  { task, session, label, all }: ScopeOptions,
): Scope => {
  const scope: Scope = {
    ...(runIds.length === 0 ? {} : { run: [...runIds] }),
    ...(task === undefined ? {} : { task }),
    ...(session === undefined ? {} : { session }),
    ...(label === undefined ? {} : { labels: label }),
  }
  const isNamed = Object.keys(scope).length > 0
  if (all !== true && !isNamed) {
    throw new CliError('invalid-option', `${verb}: name runs, or give --task, --session, --label or --all`)
  }
  if (all === true && isNamed) {
    throw new CliError('invalid-option', `${verb}: --all covers every run: name nothing else with it`)
  }
  return all === true ? { all: true } : scope
}

const detailOf = ({ evidence, survivors, error, status }: StopLine): string => {
  if (status === 'refused') return error ?? ''
  if (status === 'unconfirmed')
    return `still alive: ${nameSurvivors(survivors ?? [])}${error === undefined ? '' : `; ${error}`}`
  return evidence === undefined ? '' : `by ${nameEvidence(evidence)}`
}

const columnsOf = (colours: Colours): readonly Column<StopLine>[] => [
  { title: 'RUN', of: ({ runId }) => runId, paint: (text) => colours.bold(text) },
  {
    title: 'ANSWER',
    of: ({ status, repeated }) => (repeated ? `${status} (joined)` : status),
    paint: (text, { status }) => paintStatus(colours, status)(text),
  },
  { title: 'WORK', of: ({ work }) => work },
  {
    title: 'TOOK',
    of: ({ confirmedAt, requestedAt }) =>
      confirmedAt === undefined ? '-' : formatDuration(confirmedAt - requestedAt),
  },
  { title: '', of: detailOf },
]

const LOOKUP_NOTE = 'the store could not be read: runs that this command does not know of may be missing here'

export const printReceipt = async (receipt: StopReceipt, isJson: boolean): Promise<void> => {
  if (isJson) return printJson(receipt)
  const colours = coloursFor(stdout)
  const { status, lookup, runs } = receipt
  await printLines([
    paintStatus(colours, status)(status.replaceAll('-', ' ')),
    ...(lookup === 'incomplete' ? [colours.yellow(LOOKUP_NOTE)] : []),
    ...(runs.length === 0 ? [] : table(runs, columnsOf(colours), colours)),
  ])
}

/** A signal ends the wait, not the stop. */
const waitUntilAsked = (signals: AskingSignals): AbortSignal => {
  const controller = new AbortController()
  signals.onEach(() => {
    controller.abort()
  })
  return controller.signal
}

const fileOrder = async (
  engine: Engine,
  scope: Scope,
  options: StopOptions,
  isJson: boolean,
): Promise<number> => {
  const signals = new AskingSignals()
  // What is held here has no other owner: it is not let go before it is gone, or its time is over.
  const finish = (deadlineMs: number) =>
    engine.close({ runs: options.mode === 'interrupt' ? 'interrupt' : 'cancel', deadlineMs })
  try {
    const receipt = await engine.stop(scope, { ...options, signal: waitUntilAsked(signals) })
    await printReceipt(receipt, isJson)
    await finish(receipt.status === 'requested' ? FINISH_MS : ANSWERED_FINISH_MS)
    return exitCodeOfReceipt(receipt)
  } catch (error) {
    if (signals.count === 0) throw error
    await stderr.write('runwarden: the wait was ended; the stop goes on\n')
    return EXIT.interrupted
  } finally {
    await finish(FINISH_MS)
  }
}

const stop = async (runIds: readonly string[], options: StopVerbOptions): Promise<void> => {
  const { db, json: isJson = false, force = false, interrupt = false, reason, timeout } = options
  const scope = scopeOf('stop', runIds, options)
  const order: StopOptions = {
    mode: interrupt ? 'interrupt' : 'cancel',
    force,
    by: 'cli',
    timeoutMs: timeout ?? DEFAULT_TIMEOUT_MS,
    ...(reason === undefined ? {} : { reason }),
  }
  // Recovery is this very stop: the runs of dead engines that it covers are taken over, and no others.
  const { createEngine } = await import('../index.js')
  const engine = await createEngine({ database: existingStore(db), recover: false })
  process.exitCode = await fileOrder(engine, scope, order, isJson)
}

export const addStop = (program: Command): void => {
  verb(program, 'stop', 'end runs, and wait for the proof that nothing of them is left')
    .argument('[runs...]', 'ids of runs')
    .option('--task <name>', 'the runs of a task')
    .option('--session <name>', 'the runs of a session')
    .option('--label <name=value>', 'the runs that bear a label; may be repeated', collectLabel)
    .option('--all', 'every run in the store')
    .option('--force', 'KILL at once')
    .option('--interrupt', 'so that a later run may continue the work (default: for good)')
    .option('--reason <text>', 'why; it is recorded')
    .option('--timeout <time>', 'when the receipt is given at the latest (default: 20s)', parseDuration)
    .addHelpText('after', HELP)
    .action(async (runIds: string[], _options: unknown, self: Command) => {
      await stop(runIds, self.optsWithGlobals<StopVerbOptions>())
    })
}

const HELP = `${examples(
  'runwarden stop run-42',
  'runwarden stop --task t7 --reason "superseded"',
  'runwarden stop --session s1 --interrupt',
  'runwarden stop --all --force --json',
)}

Several conditions must all hold. The process that runs a run ends it; a run whose
process has died is taken over and ended by this command. A signal ends the wait,
not the stop.

Exit codes:
  0    confirmed: every process is gone, with evidence
  3    there was nothing to stop
  75   not confirmed: survivors are named, or the timeout came first
  66   no such run        1   refused
  64   wrong usage       74   the store cannot be used`
