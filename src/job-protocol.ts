/** The protocol of a job: kept by its name, and made when a run of it is started. */
import * as v from 'valibot'
import type { Protocol } from './actors/ports.js'
import { RunwardenError, messageOf } from './errors.js'
import type { OnRecover } from './machines/run/run.context.js'
import { name, parseOptions, unreserved } from './option-types.js'
import { namedProtocol, protocolNamed } from './protocol-names.js'
import { namedOptionsSchema } from './protocol-options.js'

/** Deeper data is a slip, or turns in a circle. */
const DEPTH_MAX = 32

const isJson = (value: unknown, depth = 0): boolean => {
  if (depth > DEPTH_MAX) return false
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every((one) => isJson(one, depth + 1))
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) return false
  return Object.values(value).every((one) => one === undefined || isJson(one, depth + 1))
}

const protocolOptions = v.pipe(
  unreserved<unknown>(),
  v.check((options) => isJson(options), 'must be data that JSON can hold'),
)

/** A name, or a name with options for what it stands for. */
export const protocolSchema = v.union([name, v.strictObject({ name, options: v.optional(protocolOptions) })])
type ProtocolOption = v.InferOutput<typeof protocolSchema>

/** Makes a protocol for one run, of the options that the job gives. */
export type ProtocolMaker = (options: Readonly<Record<string, unknown>>) => Protocol | Promise<Protocol>

export const hostProtocols = v.pipe(
  unreserved<ProtocolMaker>(),
  v.record(
    name,
    v.custom<ProtocolMaker>(
      (value) => typeof value === 'function',
      'must be a function that makes a protocol',
    ),
  ),
)
export type HostProtocols = v.InferOutput<typeof hostProtocols>

const split = (
  protocol: ProtocolOption,
): { readonly name: string; readonly options: Readonly<Record<string, unknown>> } =>
  typeof protocol === 'string'
    ? { name: protocol, options: {} }
    : { name: protocol.name, options: protocol.options ?? {} }

interface Speaking {
  readonly protocol?: ProtocolOption | undefined
  readonly prompt?: string | undefined
  readonly stdin?: string | undefined
  readonly onRecover?: OnRecover | undefined
}

const needsPrompt = (given: string): string =>
  `option prompt must be given: protocol ${given} takes prompts, and a job has one turn`

/**
 * What a job's protocol, prompt and stdin say to each other, where the protocol is the library's own: of a host's own the host that works
 * the queue will say.
 *
 * @throws `invalid-option`.
 */
export const assertSpeakable = ({ protocol, prompt, stdin, onRecover }: Speaking, what: string): void => {
  const refuse = (why: string): never => {
    throw new RunwardenError('invalid-option', `${what}: ${why}`)
  }
  const given = split(protocol ?? 'lines')
  const own = namedProtocol(given.name)
  if (own === undefined) return
  const shape = v.strictObject({ protocol: v.strictObject({ options: namedOptionsSchema(own.options) }) })
  parseOptions(shape, { protocol: { options: given.options } }, what)
  if (own.isInteractive) {
    if (onRecover === 'adopt' || onRecover === 'keep')
      refuse(
        `option onRecover "${onRecover}" cannot be had: protocol ${given.name} takes prompts, and that conversation ends with the engine`,
      )
    if (prompt === undefined) refuse(needsPrompt(given.name))
    if (stdin !== undefined)
      refuse(`option stdin has no use: protocol ${given.name} writes to it; give the prompt as option prompt`)
  } else if (prompt !== undefined) {
    refuse(
      `option prompt has no use: protocol ${given.name} takes no prompts; give the agent its prompt by its command or its stdin`,
    )
  }
}

const madeBy = async (
  make: ProtocolMaker,
  { name: given, options }: ReturnType<typeof split>,
): Promise<Protocol> => {
  try {
    return await make(options)
  } catch (error) {
    // F: the host's own code; the job waits until it is mended.
    throw new RunwardenError('invalid-option', `protocol ${given} could not be made: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

/**
 * The protocol for one run of a job.
 *
 * @throws `invalid-option` where it cannot be had here, which blocks the job with the reason.
 */
export const protocolFor = async (
  { protocol, prompt }: Speaking,
  hosts: HostProtocols,
): Promise<Protocol | undefined> => {
  if (protocol === undefined) return undefined
  const given = split(protocol)
  const make = Object.hasOwn(hosts, given.name) ? hosts[given.name] : undefined
  if (make === undefined && namedProtocol(given.name) === undefined) {
    throw new RunwardenError(
      'invalid-option',
      `it speaks the protocol ${JSON.stringify(given.name)}, and this queue was opened without one of that name`,
    )
  }
  const made = make === undefined ? await protocolNamed(given.name, given.options) : await madeBy(make, given)
  if ((made as Protocol | undefined)?.isInteractive === true && prompt === undefined)
    throw new RunwardenError('invalid-option', needsPrompt(given.name))
  return made
}
