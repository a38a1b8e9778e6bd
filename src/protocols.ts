/** The public door to the protocols: how an agent's output is understood, and how it is spoken to. */
import type { Protocol } from './actors/ports.js'
import { acp as acpOf } from './adapters/protocol/acp/acp.js'
import type { AcpOptions } from './adapters/protocol/acp/acp-options.js'
import { claudeStreamJson as claudeOf } from './adapters/protocol/agents/claude.js'
import type { ClaudeOptions } from './adapters/protocol/agents/claude.js'
import { piJson as piOf } from './adapters/protocol/agents/pi.js'
import type { PiOptions } from './adapters/protocol/agents/pi.js'
import { custom as customOf } from './adapters/protocol/custom.js'
import type { CustomOptions } from './adapters/protocol/custom.js'
import {
  acpOptionsSchema,
  checked,
  claudeOptionsSchema,
  customOptionsSchema,
  piOptionsSchema,
} from './protocol-options.js'

/** An agent that speaks the Agent Client Protocol, version 1. Prompts are given one by one. @throws `invalid-option` */
export const acp = (options: AcpOptions = {}): Protocol => acpOf(checked(acpOptionsSchema, options, 'acp'))

/** Claude Code with `--output-format stream-json --verbose`. @throws `invalid-option` */
export const claudeStreamJson = (options: ClaudeOptions = {}): Protocol =>
  claudeOf(checked(claudeOptionsSchema, options, 'claudeStreamJson'))

/** Pi with `--mode json` or `--mode rpc`. @throws `invalid-option` */
export const piJson = (options: PiOptions = {}): Protocol => piOf(checked(piOptionsSchema, options, 'piJson'))

/** A protocol of your own: it says of each line what it is. @throws `invalid-option` */
export const custom = (options: CustomOptions): Protocol =>
  customOf(checked(customOptionsSchema, options, 'custom'))

export type { AcpMethod, AcpOffers, AcpOptions } from './adapters/protocol/acp/acp-options.js'
export { qwenJson } from './adapters/protocol/agents/claude.js'
export type { ClaudeOptions } from './adapters/protocol/agents/claude.js'
export { codexAppServer } from './adapters/protocol/agents/codex-app-server.js'
export { codexJson } from './adapters/protocol/agents/codex.js'
export { geminiJson } from './adapters/protocol/agents/gemini.js'
export { opencodeJson } from './adapters/protocol/agents/opencode.js'
export type { PiOptions } from './adapters/protocol/agents/pi.js'
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
