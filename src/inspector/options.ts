/** The options of the inspector, checked at the door. */
import * as v from 'valibot'
import { RunwardenError } from '../index.js'

const MIN_TOKEN_CHARS = 32

const port = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65_535))
const text = v.pipe(v.string(), v.nonEmpty('must not be empty'))

const schema = v.strictObject({
  /** Where `listen` listens. 0: any free port. Default 0. */
  port: v.optional(port, 0),
  /** The address that `listen` listens on. Default `127.0.0.1`: this machine alone. */
  host: v.optional(text, '127.0.0.1'),
  /** What the browser may call this server, `name` or `name:port`, besides its loopback names. */
  allowedHosts: v.optional(v.array(text), []),
  /** The path below which the handlers are mounted in a server of the host's: `/admin/runs`. Default: the root. */
  basePath: v.optional(
    v.pipe(v.string(), v.regex(/^(?:\/[\w.~-]+)*\/?$/, 'must be a path such as /admin/runs')),
    '',
  ),
  /** Part of every address; who knows it is let in. Default: 32 random bytes. */
  token: v.optional(
    v.pipe(
      v.string(),
      v.minLength(MIN_TOKEN_CHARS, `must have ${String(MIN_TOKEN_CHARS)} characters or more`),
      v.regex(/^[\w-]+$/, 'may have letters, digits, - and _'),
    ),
  ),
  /** Look, and act on nothing. Default false; of records alone always true. */
  readOnly: v.optional(v.boolean(), false),
  /** Whether the page may show what the runs wrote. Default true. */
  logs: v.optional(v.boolean(), true),
  /** Applied to every text that leaves: the host's own secrets can be taken out here. */
  redact: v.optional(
    v.custom<(text: string) => string>((value) => typeof value === 'function', 'must be a function'),
  ),
})

export type InspectorOptions = v.InferInput<typeof schema>
export type ParsedOptions = v.InferOutput<typeof schema>

/** Throws `invalid-option`, which names the option and the value. */
export const parseInspectorOptions = (options: InspectorOptions): ParsedOptions => {
  const result = v.safeParse(schema, options, { abortEarly: true })
  if (result.success) return result.output
  const [issue] = result.issues
  const path = v.getDotPath(issue) ?? ''
  // The value of a token is a secret.
  const got = path === 'token' ? '' : `, got ${issue.received}`
  throw new RunwardenError('invalid-option', `createInspector: option ${path}: ${issue.message}${got}`)
}
