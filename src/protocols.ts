/** The public door to the protocols: how an agent's output is understood, and how it is spoken to. */
export { acp } from './adapters/protocol/acp/acp.js'
export type { AcpMethod, AcpOffers, AcpOptions } from './adapters/protocol/acp/acp-options.js'
export { claudeStreamJson, qwenJson } from './adapters/protocol/agents/claude.js'
export type { ClaudeOptions } from './adapters/protocol/agents/claude.js'
export { codexAppServer } from './adapters/protocol/agents/codex-app-server.js'
export { codexJson } from './adapters/protocol/agents/codex.js'
export { geminiJson } from './adapters/protocol/agents/gemini.js'
export { opencodeJson } from './adapters/protocol/agents/opencode.js'
export { piJson } from './adapters/protocol/agents/pi.js'
export type { PiOptions } from './adapters/protocol/agents/pi.js'
export { custom } from './adapters/protocol/custom.js'
export type { CustomOptions, LineFact } from './adapters/protocol/custom.js'
export type {
  PermissionAnswer,
  PermissionOption,
  PermissionOptions,
  PermissionRequest,
} from './adapters/protocol/frames/permission-desk.js'
export { bytes, lines } from './adapters/protocol/lines.js'
export { PROTOCOL_NAMES, protocolNamed } from './protocol-names.js'
export type { NamedProtocolOptions, ProtocolName } from './protocol-names.js'
export type {
  OpenTool,
  Protocol,
  ProtocolIo,
  ProtocolReply,
  ProtocolSession,
  ProtocolSink,
  RetryNotice,
} from './actors/ports.js'
export type { TurnResult } from './machines/run/run.context.js'
