/** `--protocol`, `--input` and the limits of silence: from words on the command line to options of the library. */
import { readFileSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import type { RunSpec } from '../index.js'
import type * as Protocols from '../protocols.js'
import type { PermissionOptions, Protocol } from '../protocols.js'
import { parseDuration } from './durations.js'
import { CliError } from './errors.js'

const MAKERS = {
  lines: ({ lines }) => lines(),
  acp: ({ acp }, permissions) => acp(permissions),
  claude: ({ claudeStreamJson }) => claudeStreamJson(),
  'claude-input': ({ claudeStreamJson }, permissions) =>
    claudeStreamJson({ input: 'stream-json', ...permissions }),
  codex: ({ codexJson }) => codexJson(),
  gemini: ({ geminiJson }) => geminiJson(),
  opencode: ({ opencodeJson }) => opencodeJson(),
  pi: ({ piJson }) => piJson(),
  'pi-rpc': ({ piJson }, permissions) => piJson({ mode: 'rpc', ...permissions }),
  qwen: ({ qwenJson }) => qwenJson(),
} as const satisfies Readonly<
  Record<string, (from: typeof Protocols, permissions: PermissionOptions) => Protocol>
>

export type ProtocolName = keyof typeof MAKERS

export interface ProtocolFlags {
  readonly protocol?: ProtocolName
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
  new Option('--protocol <name>', 'what its output means (default: lines)').choices(Object.keys(MAKERS)),
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

const ALLOW: PermissionOptions = {
  onPermission: ({ options }) => options.find(({ kind }) => kind.startsWith('allow'))?.id ?? null,
}

const watchdogOf = (flags: ProtocolFlags): RunSpec['watchdog'] => {
  const { neverStarted, advisory, stalled, stalledTool } = flags
  const given = {
    ...(neverStarted === undefined ? {} : { neverStartedMs: neverStarted }),
    ...(advisory === undefined ? {} : { advisoryMs: advisory }),
    ...(stalled === undefined ? {} : { stalledMs: stalled }),
    ...(stalledTool === undefined ? {} : { stalledToolMs: stalledTool }),
  }
  return Object.keys(given).length === 0 ? undefined : given
}

/** Null: none is named. Only a run that names one loads them. */
const protocolOf = async ({
  protocol: name,
  input,
  permissions,
}: ProtocolFlags): Promise<Protocol | null> => {
  if (name === undefined) return null
  const protocol = MAKERS[name](await import('../protocols.js'), permissions === 'allow' ? ALLOW : {})
  if (protocol.isInteractive && input === undefined) {
    throw new CliError('invalid-option', `run: option --protocol ${name} needs a prompt: give --input <file>`)
  }
  return protocol
}

/** What the flags say of the run. A run in the foreground has one turn. */
export const protocolSpecOf = async (flags: ProtocolFlags): Promise<Partial<RunSpec>> => {
  const { input } = flags
  const protocol = await protocolOf(flags)
  const watchdog = watchdogOf(flags)
  return {
    ...(protocol === null ? {} : { protocol }),
    oneShot: true,
    ...(watchdog === undefined ? {} : { watchdog }),
    ...(input === undefined
      ? {}
      : protocol?.isInteractive === true
        ? { prompt: input }
        : { stdin: { text: input } }),
  }
}
