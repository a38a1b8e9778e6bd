/**
 * The protocols by name, for what is kept as data: a job's spec, a command line. The one table of these names.
 *
 * Nothing of a protocol is loaded before it is asked for.
 */
import type { Protocol } from './actors/ports.js'
import type { AcpOptions } from './adapters/protocol/acp/acp-options.js'
import type { PermissionOptions } from './adapters/protocol/frames/permission-desk.js'
import { RunwardenError } from './errors.js'

/** What a protocol can be told as data; which protocol takes what, `protocolNamed` says. */
export interface NamedProtocolOptions extends Pick<
  AcpOptions,
  'mcpServers' | 'authMethod' | 'modeId' | 'startTimeoutMs' | 'settleMs'
> {
  /** What the agent is told when it asks to use a tool: its first option that allows, or no. Default `refuse`. */
  readonly permissions?: 'allow' | 'refuse'
}

interface Named {
  /** It takes prompts, and needs one. */
  readonly isInteractive: boolean
  readonly options: readonly (keyof NamedProtocolOptions)[]
  readonly make: (options: NamedProtocolOptions) => Promise<Protocol>
}

const allowed = ({ permissions }: NamedProtocolOptions): PermissionOptions =>
  permissions === 'allow'
    ? { onPermission: ({ options }) => options.find(({ kind }) => kind.startsWith('allow'))?.id ?? null }
    : {}

/** It has its prompt with its command or on its stdin, and is not spoken to. */
const listened = (make: () => Promise<Protocol>): Named => ({ isInteractive: false, options: [], make })

const spoken = (make: Named['make'], options: Named['options'] = []): Named => ({
  isInteractive: true,
  options: ['permissions', ...options],
  make,
})

const NAMED = {
  lines: listened(async () => (await import('./adapters/protocol/lines.js')).lines()),
  acp: spoken(
    async (options) => {
      const { permissions: _permissions, ...rest } = options
      const { acp } = await import('./adapters/protocol/acp/acp.js')
      return acp({ ...rest, ...allowed(options) })
    },
    ['mcpServers', 'authMethod', 'modeId', 'startTimeoutMs', 'settleMs'],
  ),
  claude: listened(async () => (await import('./adapters/protocol/agents/claude.js')).claudeStreamJson()),
  'claude-input': spoken(async (options) => {
    const { claudeStreamJson } = await import('./adapters/protocol/agents/claude.js')
    return claudeStreamJson({ input: 'stream-json', ...allowed(options) })
  }),
  codex: listened(async () => (await import('./adapters/protocol/agents/codex.js')).codexJson()),
  gemini: listened(async () => (await import('./adapters/protocol/agents/gemini.js')).geminiJson()),
  opencode: listened(async () => (await import('./adapters/protocol/agents/opencode.js')).opencodeJson()),
  pi: listened(async () => (await import('./adapters/protocol/agents/pi.js')).piJson()),
  'pi-rpc': spoken(async (options) => {
    const { piJson } = await import('./adapters/protocol/agents/pi.js')
    return piJson({ mode: 'rpc', ...allowed(options) })
  }),
  qwen: listened(async () => (await import('./adapters/protocol/agents/claude.js')).qwenJson()),
} as const satisfies Readonly<Record<string, Named>>

/** `claude` and `pi` are told their one prompt by their command; `claude-input` and `pi-rpc` are spoken to. */
export type ProtocolName = keyof typeof NAMED

export const PROTOCOL_NAMES: readonly string[] = Object.keys(NAMED)

/** What is known of a name before the protocol is made; undefined for a name that is not ours. */
export const namedProtocol = (name: string): Omit<Named, 'make'> | undefined =>
  Object.hasOwn(NAMED, name) ? NAMED[name as ProtocolName] : undefined

/**
 * A protocol by its name, with options that are data.
 *
 * @throws `invalid-option` for a name that is not one of ours, and for an option that this protocol does not take, or not so.
 */
export const protocolNamed = async (name: string, options: NamedProtocolOptions = {}): Promise<Protocol> => {
  const named = namedProtocol(name)
  if (named === undefined) {
    throw new RunwardenError(
      'invalid-option',
      `option protocol ${JSON.stringify(name)} is none of ${PROTOCOL_NAMES.join(', ')}`,
    )
  }
  const { checked, namedOptionsSchema } = await import('./protocol-options.js')
  checked<object>(namedOptionsSchema(named.options), options, `protocol ${name}`)
  return NAMED[name as ProtocolName].make(options)
}
