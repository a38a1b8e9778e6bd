/** What a host can say about its ACP agents. */
import type { ClientRequestHandlersByMethod, NewSessionRequest } from '@agentclientprotocol/sdk'
import type { PermissionOptions } from '../frames/permission-desk.js'

/** Requests of an agent to its client that a host can offer to answer. Permissions have an option of their own. */
export type AcpMethod = Exclude<
  keyof ClientRequestHandlersByMethod,
  'session/request_permission' | 'elicitation/create'
>

export const TERMINAL_METHODS = [
  'terminal/create',
  'terminal/output',
  'terminal/wait_for_exit',
  'terminal/kill',
  'terminal/release',
] as const satisfies readonly AcpMethod[]

export const ACP_METHODS = [
  'fs/read_text_file',
  'fs/write_text_file',
  ...TERMINAL_METHODS,
] as const satisfies readonly AcpMethod[]

export type AcpOffers = { readonly [M in AcpMethod]?: ClientRequestHandlersByMethod[M] | undefined }

export interface AcpOptions extends PermissionOptions {
  /** How the host introduces itself to the agent. Default: as runwarden. */
  readonly client?: { readonly name: string; readonly version: string }
  /**
   * What the host does for the agent: `'fs/read_text_file'`, `'terminal/create'` and so on, each by a handler. The agent is told what is
   * offered, a terminal only when all five of its methods are; anything else that it asks for is refused as not offered.
   */
  readonly offers?: AcpOffers
  /** Given to the session when it opens. Default: none. */
  readonly mcpServers?: NewSessionRequest['mcpServers']
  /** Sign in with this method of the agent before the session opens. Default: the agent is signed in already. */
  readonly authMethod?: string
  /** The session's mode, by the agent's id for it. Default: the agent's own. */
  readonly modeId?: string
  /** How long the agent may take until its session is open. Default 300 000 ms. */
  readonly startTimeoutMs?: number
  /** Wait between the opening of the session and the first prompt, for what agents send unasked. Default 100 ms. */
  readonly settleMs?: number
}
