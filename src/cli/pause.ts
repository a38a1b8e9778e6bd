/** `runwarden pause` and `runwarden resume`: orders in the user's name to whoever runs the runs. */
import type { Command } from 'commander'
import { parseDuration } from './durations.js'
import { exitCodeOfReceipt } from './exit-codes.js'
import { collectLabel } from './run.js'
import { printReceipt, scopeOf } from './stop.js'
import type { ScopeOptions } from './stop.js'
import { existingStore } from './store-path.js'
import { examples, verb } from './verb.js'

type FreezeVerb = 'pause' | 'resume'

interface FreezeVerbOptions extends ScopeOptions {
  readonly reason?: string
  readonly timeout?: number
}

const DEFAULT_TIMEOUT_MS = 10_000

const order = async (
  name: FreezeVerb,
  runIds: readonly string[],
  options: FreezeVerbOptions,
): Promise<void> => {
  const { db, json: isJson = false, reason, timeout } = options
  const scope = scopeOf(name, runIds, options)
  const { createEngine } = await import('../index.js')
  const engine = await createEngine({ database: existingStore(db), recover: false })
  try {
    const receipt = await engine[name](scope, {
      by: 'cli',
      timeoutMs: timeout ?? DEFAULT_TIMEOUT_MS,
      ...(reason === undefined ? {} : { reason }),
    })
    await printReceipt(receipt, isJson)
    process.exitCode = exitCodeOfReceipt(receipt)
  } finally {
    // Nothing is taken over for a pause: what another engine owns is that engine's.
    await engine.close({ runs: 'leave' })
  }
}

const add = (program: Command, name: FreezeVerb, what: string, help: string): void => {
  verb(program, name, what)
    .argument('[runs...]', 'ids of runs')
    .option('--task <name>', 'the runs of a task')
    .option('--session <name>', 'the runs of a session')
    .option('--label <name=value>', 'the runs that bear a label; may be repeated', collectLabel)
    .option('--all', 'every run in the store')
    .option('--reason <text>', 'why; it is recorded')
    .option('--timeout <time>', 'when the receipt is given at the latest (default: 10s)', parseDuration)
    .addHelpText('after', help)
    .action(async (runIds: string[], _options: unknown, self: Command) => {
      await order(name, runIds, self.optsWithGlobals<FreezeVerbOptions>())
    })
}

export const addPause = (program: Command): void => {
  add(program, 'pause', 'freeze every process of runs, until they are resumed', PAUSE_HELP)
  add(program, 'resume', 'continue runs that are paused, whoever paused them', RESUME_HELP)
}

const EXIT_CODES = `
Exit codes:
  0    confirmed             3    there was no open run
  75   not confirmed: what still runs is named, or the timeout came first
  66   no such run           1    refused, with the reason
  64   wrong usage           74   the store cannot be used`

const PAUSE_HELP = `${examples(
  'runwarden pause run-42',
  'runwarden pause --task t7',
  'runwarden pause --all --reason "the machine is needed"',
)}

Confirmed means that every process was seen stopped. A run that is not resumed within
its grace window (run --pause-grace, 15m) is interrupted. Refused for a run that is
being ended, and for one whose process has died: stop it.
${EXIT_CODES}`

const RESUME_HELP = `${examples('runwarden resume run-42', 'runwarden resume --all')}

Refused for a run that is being ended: its window may just have passed.
${EXIT_CODES}`
