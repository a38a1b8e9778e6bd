/** `runwarden run`: one supervised run in the foreground. */
import { statSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'
import type { Engine, EngineOptions, OnRecover, Run, RunSpec } from '../index.js'
import { formatDuration, parseDuration } from './durations.js'
import { CliError } from './errors.js'
import { EXIT, exitCodeOfOutcome, isLaunchFailure } from './exit-codes.js'
import { awaitEnd, awaitPrinted } from './foreground.js'
import type { End } from './foreground.js'
import { clean, printJson } from './output.js'
import { protocolOptions, protocolSpecOf } from './protocols.js'
import type { ProtocolFlags } from './protocols.js'
import { canPassTerminal, passTerminal, terminalSize } from './pass-terminal.js'
import { nameEvidence, outcomeText, speaksForItself, statusText, unconfirmedNote } from './run-messages.js'
import { notesOn, printEventsAsJson, printOutput } from './run-printer.js'
import type { Notes } from './run-printer.js'
import { AskingSignals } from './signals.js'
import { parseSize } from './sizes.js'
import { StatusLine } from './status-line.js'
import { newOrExistingStore } from './store-path.js'
import { stderr } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

/** For the runs of dead engines that this engine took over when it opened. */
const CLOSE_DEADLINE_MS = 15_000
/** An own run that would not go has had its time. */
const UNCONFIRMED_CLOSE_DEADLINE_MS = 2_000

interface RunOptions extends SharedOptions, ProtocolFlags {
  readonly id?: string
  readonly session?: string
  readonly task?: string
  readonly label?: Readonly<Record<string, string>>
  readonly termGrace?: number
  readonly killGrace?: number
  readonly askGrace?: number
  readonly pauseGrace?: number
  readonly timeout?: number
  readonly maxOutput?: number
  readonly containment?: 'cgroup' | 'group+marks' | 'group'
  readonly cwd?: string
  readonly stdin?: boolean
  readonly pty?: boolean
  readonly tmux?: string | true
  readonly tmuxSocket?: string
  readonly keepPane?: boolean
  readonly quiet?: boolean
  readonly guardian?: boolean
  readonly onRecover?: OnRecover
}

export const onRecoverOption = (): Option =>
  new Option(
    '--on-recover <what>',
    'when its engine is killed: end it, go on with it in the next engine, or leave it to a stop (default: interrupt)',
  ).choices(['interrupt', 'adopt', 'keep'])

export const collectLabel = (
  text: string,
  labels: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Give a label as name=value.')
  return { ...labels, [text.slice(0, at)]: text.slice(at + 1) }
}

const parseFolder = (path: string): string => {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new InvalidArgumentError('It does not exist.')
  if (!found.isDirectory()) throw new InvalidArgumentError('It is not a folder.')
  return path
}

/** As our own is, so that what is drawn fits and is understood. */
const terminalOf = (): NonNullable<RunSpec['pty']> => {
  const term = process.env['TERM'] ?? ''
  return { ...terminalSize(), ...(term === '' ? {} : { name: term }) }
}

const surfaceOf = ({ tmux, tmuxSocket, keepPane }: RunOptions): NonNullable<RunSpec['surface']> => ({
  kind: 'tmux',
  ...(typeof tmux === 'string' ? { session: tmux } : {}),
  ...(tmuxSocket === undefined ? {} : { socketName: tmuxSocket }),
  ...(keepPane === undefined ? {} : { retained: keepPane }),
})

const specOf = async (command: readonly string[], options: RunOptions): Promise<RunSpec> => {
  const { id, session, task, label, cwd, termGrace, killGrace, askGrace, pauseGrace } = options
  const { timeout, maxOutput, onRecover } = options
  if (options.stdin === true && options.input !== undefined)
    throw new CliError('invalid-option', 'run: options --stdin and --input cannot both be given')
  return {
    ...(await protocolSpecOf(options)),
    command: [...command],
    ...(id === undefined ? {} : { id }),
    ...(session === undefined ? {} : { session }),
    ...(task === undefined ? {} : { task }),
    ...(label === undefined ? {} : { labels: label }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(onRecover === undefined ? {} : { onRecover }),
    ...(options.stdin === true ? { stdin: process.stdin } : {}),
    ...(options.pty === true ? { stdio: 'pty', pty: terminalOf() } : {}),
    ...(options.tmux === undefined ? {} : { surface: surfaceOf(options) }),
    stop: {
      ...(termGrace === undefined ? {} : { termGraceMs: termGrace }),
      ...(killGrace === undefined ? {} : { killGraceMs: killGrace }),
      ...(askGrace === undefined ? {} : { askGraceMs: askGrace }),
      ...(pauseGrace === undefined ? {} : { pauseGraceMs: pauseGrace }),
    },
    limits: {
      ...(timeout === undefined ? {} : { timeoutMs: timeout }),
      ...(maxOutput === undefined ? {} : { maxOutputBytes: maxOutput }),
    },
  }
}

/** A guardian ends what is to be adopted (R7), so that such a run has none. */
const engineOptionsOf = ({
  db,
  containment,
  onRecover,
  guardian = onRecover !== 'adopt',
}: RunOptions): EngineOptions => ({
  database: newOrExistingStore(db),
  guardian,
  ...(containment === undefined ? {} : { containment: { prefer: containment, atLeast: containment } }),
})

const printEndAsJson = async (run: Run, end: End): Promise<void> => {
  const runId = run.id
  if (end.outcome !== null) await printJson({ type: 'settled', runId, outcome: end.outcome })
  if (end.isConfirmed) {
    const { evidence, survivors, confirmedAt } = end.gone
    await printJson({ type: 'confirmed', runId, evidence, survivors, confirmedAt })
  } else {
    await printJson({ type: 'unconfirmed', runId, survivors: run.state.survivors })
  }
}

/** On a terminal every run has a last word; elsewhere only one that its exit code cannot tell. */
const sayEnd = async (run: Run, end: End, elapsedMs: number, notes: Notes): Promise<void> => {
  if (!end.isConfirmed) {
    await stderr.write(`runwarden: ${unconfirmedNote(run.id, run.state.survivors)}\n`)
  } else if (isLaunchFailure(end.outcome)) {
    await stderr.write(`runwarden: ${clean(end.outcome.message)}\n`)
  } else if (stderr.isTerminal || !speaksForItself(end.outcome)) {
    const parts = [
      outcomeText(end.outcome),
      formatDuration(elapsedMs),
      `confirmed by ${nameEvidence(end.gone.evidence)}`,
    ]
    await notes.say(`${run.id} ${parts.join(' · ')}`)
  }
}

/** In a pane it is seen there; what is drawn for one terminal makes no sense on another. */
const outputFor = ({ json, tmux }: RunOptions): 'lines' | 'bytes' | 'none' => {
  if (json === true) return 'lines'
  return tmux === undefined ? 'bytes' : 'none'
}

const supervise = async (
  engine: Engine,
  run: Run,
  signals: AskingSignals,
  options: RunOptions,
): Promise<number> => {
  const { json: isJson = false, quiet: isQuiet = false } = options
  const startedAt = performance.now()
  const elapsedMs = (): number => performance.now() - startedAt
  const events = run.events({ output: outputFor(options) })
  const isPassed = options.pty === true && !isJson && canPassTerminal()
  // What draws on the whole terminal has no line to spare.
  const status = new StatusLine(isQuiet || isPassed ? null : stderr, () => statusText(run, elapsedMs()))
  const notes = notesOn(status, isQuiet)
  const printed = isJson ? printEventsAsJson(events) : printOutput(run, events, status, notes)
  const giveBack = isPassed ? passTerminal(run) : (): void => undefined
  const end = await awaitEnd(engine, run, signals).finally(giveBack)
  const tookMs = elapsedMs()
  // Unconfirmed, the events have no end of their own.
  if (!end.isConfirmed) await events.return?.()
  await awaitPrinted(printed, signals)
  await status.end()
  if (isJson) await printEndAsJson(run, end)
  else await sayEnd(run, end, tookMs, notes)
  return end.isConfirmed ? exitCodeOfOutcome(end.outcome) : EXIT.unconfirmed
}

const run = async (command: readonly string[], options: RunOptions): Promise<void> => {
  const signals = new AskingSignals()
  const spec = await specOf(command, options)
  const { createEngine } = await import('../index.js')
  const engine = await createEngine(engineOptionsOf(options))
  let exitCode: number = EXIT.interrupted
  try {
    // Asked to end before anything was recorded: nothing is.
    if (signals.count === 0) {
      exitCode = await supervise(engine, await engine.start(spec), signals, options)
    }
  } finally {
    const deadlineMs = exitCode === EXIT.unconfirmed ? UNCONFIRMED_CLOSE_DEADLINE_MS : CLOSE_DEADLINE_MS
    await engine.close({ runs: 'interrupt', deadlineMs })
  }
  process.exitCode = exitCode
}

const duration = (flags: string, what: string): Option => new Option(flags, what).argParser(parseDuration)

export const addRun = (program: Command): void => {
  const command = verb(program, 'run', 'run a command under supervision, in the foreground')
    .usage('[options] -- <command> [args...]')
    .argument('<command...>', 'the program and its arguments; no shell')
    .passThroughOptions()
    .option('--id <id>', 'the id of the run (default: a new one)')
    .option('--session <name>', 'the session it belongs to')
    .option('--task <name>', 'the task it belongs to')
    .option('--label <name=value>', 'a label; may be repeated', collectLabel)
    .addOption(
      duration('--timeout <time>', 'interrupt it after this time, not counting pauses (default: none)'),
    )
    .addOption(
      new Option(
        '--max-output <size>',
        'interrupt it when it has written more (default: no limit)',
      ).argParser(parseSize),
    )
    .addOption(duration('--ask-grace <time>', 'close its stdin first, and wait this long before TERM'))
    .addOption(duration('--term-grace <time>', 'from TERM to KILL (default: 5s)'))
    .addOption(duration('--kill-grace <time>', 'from KILL to unconfirmed (default: 2s)'))
    .addOption(duration('--pause-grace <time>', 'from a pause to its interruption (default: 15m)'))
    .addOption(
      new Option('--containment <tier>', 'how the process tree is held (default: the best there is)').choices(
        ['cgroup', 'group+marks', 'group'],
      ),
    )
    .option('--cwd <folder>', 'where it runs (default: here)', parseFolder)
    .option('--stdin', 'pass our stdin on (default: it has none)')
    .addOption(new Option('--pty', 'give it a terminal of its own, and pass ours through').conflicts('stdin'))
    .addOption(
      new Option('--tmux [session]', 'run it in a new tmux window (default session: runwarden)').conflicts([
        'pty',
        'stdin',
      ]),
    )
    .option('--tmux-socket <name>', 'the tmux server, as its -L')
    .option('--keep-pane', 'leave the pane open at the end, with a shell')
    .option('--quiet', 'say nothing of our own, but for errors')
    .addOption(onRecoverOption().conflicts(['stdin', 'pty', 'tmux']))
    .option(
      '--no-guardian',
      'let its processes outlive this one when it is killed (default with --on-recover adopt)',
    )
  for (const option of protocolOptions()) command.addOption(option)
  command.addHelpText('after', HELP).action(async (command: string[], _options: unknown, self: Command) => {
    await run(command, self.optsWithGlobals<RunOptions>())
  })
}

const HELP = `${examples(
  'runwarden run -- npm test',
  'runwarden run --task t7 --term-grace 10s -- claude -p "fix it"',
  'runwarden run --timeout 1h --max-output 50M -- ./agent.sh',
  'runwarden run --id nightly-42 --json -- ./agent.sh | jq .',
  'git diff | runwarden run --stdin -- codex exec "review this"',
  'runwarden run --protocol claude -- claude -p "fix it" --output-format stream-json --verbose',
  'runwarden run --protocol acp --input prompt.md --advisory 2m -- gemini --experimental-acp',
  'runwarden run --pty -- claude',
  'runwarden run --tmux=agents --keep-pane -- claude',
)}

Its output passes through unchanged. The first SIGINT, SIGTERM or SIGHUP interrupts
the run (TERM to the whole process tree, KILL after the grace), the second kills at
once. When nobody reads our stdout any more, the run is interrupted too. With --pty
on a terminal every key, control-C too, goes to the command.

With a protocol, silence is watched: an agent that says nothing at all after its prompt
fails (70), and one that falls silent at work is told to you and left alone.

Exit codes:
  the command's own    it ended by itself (1 if a signal ended it)
  70, 71               it never started to work, it stalled
  75                   unconfirmed: processes of it are still alive; they are named
  126, 127             it cannot be launched, there is no such program
  130, 143             it was interrupted, it was cancelled
  64, 74               wrong usage (also an id that is taken), the store cannot be used

With --json every line is an event: accepted, launched, transition, output, notice, …
and last settled and confirmed (or unconfirmed).`
