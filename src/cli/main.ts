#!/usr/bin/env node
/**
 * The command line: an ordinary host app over the library's public door.
 *
 * Owns: the program, how an error is said, and the exit. Each verb is a file of its own and sets `process.exitCode`.
 */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addCharts } from './charts.js'
import { addDoctor } from './doctor.js'
import { isCoded } from './errors.js'
import { EXIT, exitCodeOfError } from './exit-codes.js'
import { addInspect } from './inspect.js'
import { addJobs } from './jobs.js'
import { addLogs } from './logs.js'
import { clean, printJson } from './output.js'
import { addPause } from './pause.js'
import { addPs } from './ps.js'
import { addRun } from './run.js'
import { addShow } from './show.js'
import { addStop } from './stop.js'
import { nextSignal } from './signals.js'
import { hideCredentials } from './store-path.js'
import { stderr, stdout } from './streams.js'
import { examples, withSharedOptions } from './verb.js'

const HELP = `${examples(
  'runwarden run --task t7 -- npm test',
  'runwarden ps',
  'runwarden stop --task t7',
  'runwarden show run-42',
)}

Verbs act on one store, which other processes use at the same time.
\`runwarden <verb> --help\` has examples and exit codes.`

/** Of the package that this file lies in. */
const version = (): string => {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

const build = (): Command => {
  const program = new Command('runwarden')
    .description('Runs commands under supervision: stopped means proven stopped.')
    .version(version())
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      // Said below, once, in the form of every other error.
      outputError: () => undefined,
    })
    .addHelpText('after', HELP)
  withSharedOptions(program)
  const verbs = [
    addRun,
    addPs,
    addShow,
    addStop,
    addPause,
    addLogs,
    addInspect,
    addJobs,
    addCharts,
    addDoctor,
  ]
  for (const add of verbs) add(program)
  return program
}

/** Asked before the options are parsed, or when they cannot be: what follows `--` belongs to the command. */
const wantsJson = (argv: readonly string[]): boolean => {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json')
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly exitCode: number
}

const failureOf = (error: unknown): Failure => {
  if (error instanceof CommanderError) {
    return { code: 'usage', message: error.message.replace(/^error: /, ''), exitCode: EXIT.usage }
  }
  const code = isCoded(error) ? error.code : 'unexpected'
  const message = error instanceof Error ? error.message : String(error)
  return { code, message, exitCode: exitCodeOfError(error) }
}

const isHelpOrVersion = (error: unknown): boolean =>
  error instanceof CommanderError && error.exitCode === EXIT.ok

const VERBS = ['run', 'ps', 'show', 'stop', 'pause', 'resume', 'logs', 'inspect', 'jobs', 'charts', 'doctor']

const helpFor = (argv: readonly string[]): string => {
  const verb = argv.find((word) => !word.startsWith('-'))
  return verb !== undefined && VERBS.includes(verb) ? `runwarden ${verb} --help` : 'runwarden --help'
}

const fail = async (error: unknown, argv: readonly string[]): Promise<void> => {
  const { code, message, exitCode } = failureOf(error)
  process.exitCode = exitCode
  // Help that was not asked for has said everything.
  if (error instanceof CommanderError && error.code === 'commander.help') return
  if (wantsJson(argv)) await printJson({ type: 'error', code, message })
  const lines = message.split('\n').map(clean)
  const hint = error instanceof CommanderError ? `\nSee \`${helpFor(argv)}\`.` : ''
  await stderr.write(`runwarden: ${lines.join('\n')}${hint}\n`)
}

const main = async (argv: readonly string[]): Promise<void> => {
  hideCredentials(argv)
  try {
    await build().parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!isHelpOrVersion(error)) await fail(error, argv)
  }
  // Who reads slowly is given the time, until a signal.
  await Promise.race([Promise.all([stdout.flush(), stderr.flush()]), nextSignal()])
  // Whatever may still be open, an inherited stdin above all, the command is over.
  process.exit()
}

await main(process.argv.slice(2))
