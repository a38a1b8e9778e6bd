/** What a host may say to a protocol, at the door. */
import * as v from 'valibot'
import { ACP_METHODS } from './adapters/protocol/acp/acp-options.js'
import { ms, name, parseOptions } from './option-types.js'

const callback = v.function('must be a function')

const permissions = {
  onPermission: v.optional(callback),
  permissionTimeoutMs: v.optional(ms),
}

export const acpOptionsSchema = v.strictObject({
  ...permissions,
  client: v.optional(v.strictObject({ name, version: name })),
  // A name that no client of ACP can offer would be offered to nobody, in silence.
  offers: v.optional(v.strictObject(v.entriesFromList(ACP_METHODS, v.optional(callback)))),
  mcpServers: v.optional(v.array(v.looseObject({}))),
  authMethod: v.optional(name),
  modeId: v.optional(name),
  startTimeoutMs: v.optional(ms),
  settleMs: v.optional(ms),
})

export const claudeOptionsSchema = v.strictObject({
  ...permissions,
  input: v.optional(v.picklist(['text', 'stream-json'])),
})

export const piOptionsSchema = v.strictObject({
  ...permissions,
  mode: v.optional(v.picklist(['json', 'rpc'])),
})

export const customOptionsSchema = v.strictObject({
  name: v.optional(name),
  hasWatchdog: v.optional(v.boolean()),
  classify: callback,
})

const { mcpServers, authMethod, modeId, startTimeoutMs, settleMs } = acpOptionsSchema.entries
const asData = {
  permissions: v.optional(v.picklist(['allow', 'refuse'])),
  ...{ mcpServers, authMethod, modeId, startTimeoutMs, settleMs },
}

/** What a protocol takes that was asked for by its name. */
export const namedOptionsSchema = (options: readonly (keyof typeof asData)[]) =>
  v.strictObject(Object.fromEntries(options.map((option) => [option, asData[option]])))

/** Throws `invalid-option` before there is a protocol; callbacks and all else are handed on as they are. */
export const checked = <T>(schema: v.GenericSchema, options: T, what: string): T => {
  parseOptions(schema, options, what)
  return options
}
