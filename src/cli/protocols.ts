/** `--protocol`, `--input` and the limits of silence: from words on the command line to options of the library. */
import { readFileSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import type { RunSpec } from '../index.js'
import type { JobSpec } from '../jobs.js'
import { PROTOCOL_NAMES, namedProtocol, protocolNamed } from '../protocol-names.js'
import { parseDuration } from './durations.js'
import { CliError } from './errors.js'

export interface ProtocolFlags {
  readonly protocol?: string
  readonly input?: string
  readonly permissions?: 'allow' | 'refuse'
  readonly neverStarted?: number | false
  readonly advisory?: number | false
  readonly stalled?: number | false
  readonly stalledTool?: number | false
}

/** A time, or `off`. */
const parseLimit = (text: string): number | false => (text === 'off' ? false : parseDuration(text))

/** The whole file, or all of our stdin for `-`. */
const parseInput = (path: string): string => {
  let text: string
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read: ${(error as Error).message}.`)
  }
  if (text.trim() === '') throw new InvalidArgumentError('It is empty.')
  // The newline at the end belongs to the file.
  return text.replace(/\r?\n$/, '')
}

const limit = (flags: string, what: string): Option => new Option(flags, what).argParser(parseLimit)

export const protocolOptions = (): readonly Option[] => [
  new Option('--protocol <name>', 'what its output means (default: lines)').choices(PROTOCOL_NAMES),
  new Option('--input <file>', 'its prompt: through the protocol, or on its stdin; - for ours').argParser(
    parseInput,
  ),
  new Option(
    '--permissions <answer>',
    'what it is told when it asks to use a tool (default: refuse)',
  ).choices(['allow', 'refuse']),
  limit('--never-started <time>', 'nothing at all since the prompt: it fails (default with a protocol: 5m)'),
  limit('--advisory <time>', 'silence after progress: you are told (default with a protocol: 5m)'),
  limit('--stalled <time>', 'silence without an open tool: it fails (default: off)'),
  limit('--stalled-tool <time>', 'silence of an open tool: it fails (default: off)'),
]

const watchdogOf = (flags: ProtocolFlags) => {
  const { neverStarted, advisory, stalled, stalledTool } = flags
  const given = {
    ...(neverStarted === undefined ? {} : { neverStartedMs: neverStarted }),
    ...(advisory === undefined ? {} : { advisoryMs: advisory }),
    ...(stalled === undefined ? {} : { stalledMs: stalled }),
    ...(stalledTool === undefined ? {} : { stalledToolMs: stalledTool }),
  }
  return Object.keys(given).length === 0 ? undefined : given
}

/** `run` waits for its turn in the foreground, and a job in the queue: without a prompt there would be none. */
const isSpoken = (verb: string, { protocol, input }: ProtocolFlags): boolean => {
  const isInteractive = protocol !== undefined && namedProtocol(protocol)?.isInteractive === true
  if (isInteractive && input === undefined)
    throw new CliError(
      'invalid-option',
      `${verb}: option --protocol ${protocol} needs a prompt: give --input <file>`,
    )
  return isInteractive
}

const optionsOf = (verb: string, { protocol, permissions }: ProtocolFlags) => {
  if (permissions === undefined) return {}
  if (protocol === undefined || namedProtocol(protocol)?.isInteractive !== true)
    throw new CliError(
      'invalid-option',
      `${verb}: option --permissions has no use: it is for a --protocol that takes prompts`,
    )
  return { permissions }
}

/** What the flags say of the run. A run in the foreground has one turn. */
export const protocolSpecOf = async (flags: ProtocolFlags): Promise<Partial<RunSpec>> => {
  const { protocol, input } = flags
  const watchdog = watchdogOf(flags)
  const isInteractive = isSpoken('run', flags)
  const options = optionsOf('run', flags)
  return {
    // Only a run that names one loads it.
    ...(protocol === undefined ? {} : { protocol: await protocolNamed(protocol, options) }),
    oneShot: true,
    ...(watchdog === undefined ? {} : { watchdog }),
    ...(input === undefined ? {} : isInteractive ? { prompt: input } : { stdin: { text: input } }),
  }
}

/** The same for a job, which keeps it as data. */
export const protocolJobOf = (flags: ProtocolFlags): Partial<JobSpec> => {
  const { protocol, input } = flags
  const watchdog = watchdogOf(flags)
  const isInteractive = isSpoken('jobs add', flags)
  const options = optionsOf('jobs add', flags)
  return {
    ...(protocol === undefined ? {} : { protocol: { name: protocol, options } }),
    ...(watchdog === undefined ? {} : { watchdog }),
    ...(input === undefined ? {} : isInteractive ? { prompt: input } : { stdin: input }),
  }
}
