/** Protocols as a record names them: for runs that another engine began, whose agents take no prompts (R10). */
import type { Protocol } from '../../actors/ports.js'
import { claudeStreamJson, qwenJson } from './agents/claude.js'
import { codexJson } from './agents/codex.js'
import { geminiJson } from './agents/gemini.js'
import { opencodeJson } from './agents/opencode.js'
import { piJson } from './agents/pi.js'
import { bytes, lines } from './lines.js'

const makers: readonly (() => Protocol)[] = [
  lines,
  bytes,
  claudeStreamJson,
  qwenJson,
  codexJson,
  geminiJson,
  opencodeJson,
  piJson,
]

/** Null for one of the host's own making, and for one that takes prompts: what its agent says is output, and means nothing here. */
export const protocolNamed = (name: string): Protocol | null => {
  const protocol = makers.map((make) => make()).find((one) => one.name === name)
  return protocol === undefined || protocol.isInteractive ? null : protocol
}
