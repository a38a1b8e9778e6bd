/**
 * What options are made of, and the error that names one which cannot be used.
 *
 * Unknown keys are refused by name; values of the environment, arguments and prompts are never repeated (L7).
 */
import { resolve } from 'node:path'
import * as v from 'valibot'
import { RunwardenError } from './errors.js'

/** About 24.8 days fit into a Node timer; ours take longer waits, up to this. */
const MAX_MS = 10 * 365 * 24 * 3_600_000

export const ms = v.pipe(
  v.number(),
  v.integer('must be a whole number of milliseconds'),
  v.minValue(0, 'must not be negative'),
  v.maxValue(MAX_MS, 'must be at most ten years'),
)
export const bytes = v.pipe(
  v.number(),
  v.integer('must be a whole number of bytes'),
  v.minValue(1, 'must be at least 1'),
)
export const noNul = v.check((text: string) => !text.includes('\0'), 'must not hold a NUL byte')
export const name = v.pipe(
  v.string(),
  v.nonEmpty('must not be empty'),
  v.maxLength(256, 'must be at most 256 characters'),
  noNul,
)

export const onRecoverSchema = v.picklist(['interrupt', 'adopt', 'keep'])

/** Ids name folders and appear in URLs. */
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/
export const runId = v.pipe(
  v.string(),
  v.regex(RUN_ID, 'must be 1 to 128 letters, digits or . _ : @ - and begin with a letter or digit'),
)

/** Names that a record of JavaScript has by itself: dropped in silence by whoever guards against them, so refused by name here. */
const RESERVED = ['__proto__', 'constructor', 'prototype']

export const unreserved = <T>() =>
  v.custom<Readonly<Record<string, T>>>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !Object.keys(value).some((key) => RESERVED.includes(key)),
    `must be a record without the names ${RESERVED.join(', ')}`,
  )

/** L7: what stands below one of these names is never repeated in an error. */
const SECRET = new Set(['env', 'command', 'stdin', 'prompt', 'mcpServers'])
const CREDENTIALS = /\/\/[^/?#]*@/g

/** Of what has parts only their names: the values may be secrets, and are many. */
const describe = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return `a list of ${String(value.length)}`
  if (typeof value !== 'object' || value === null) return String(value)
  const keys = Object.keys(value)
  return keys.length === 0 ? 'an object without options' : `an object with ${keys.join(', ')}`
}

const show = (path: string, value: unknown): string => {
  if (path.split('.').some((key) => SECRET.has(key))) return ''
  const text = describe(value).replaceAll(CREDENTIALS, '//…@')
  return `, got ${text.length > 80 ? `${text.slice(0, 77)}…` : text}`
}

/** What is there and wrong says more than what is missing for another shape. */
const isAboutGiven = ({ input, expected }: v.BaseIssue<unknown>): boolean =>
  input !== undefined && expected !== 'never'

/** A value that fits none of several shapes: the fault within one of them says more than that it is none. */
const locate = (
  issue: v.BaseIssue<unknown>,
  above: readonly string[] = [],
): { readonly issue: v.BaseIssue<unknown>; readonly path: string } => {
  const places = [...above, v.getDotPath(issue) ?? ''].filter((place) => place !== '')
  const inside = issue.issues?.filter(({ path }) => path !== undefined) ?? []
  const within = inside.find(isAboutGiven) ?? inside[0]
  return within === undefined ? { issue, path: places.join('.') } : locate(within, places)
}

const explain = (what: string, outermost: v.BaseIssue<unknown>): string => {
  const { issue, path } = locate(outermost)
  if (issue.type === 'strict_object' && issue.expected === 'never') return `${what}: unknown option ${path}`
  const message = issue.message.startsWith('Invalid')
    ? `must be ${(issue.expected ?? 'something else').replaceAll('"', '')}`
    : issue.message
  // Where several options are looked at together, the one that is named.
  const value = issue.path === undefined ? issue.input : issue.path.at(-1)?.value
  return `${what}: option ${path === '' ? '' : `${path} `}${message}${show(path, value)}`
}

/** Throws `invalid-option`, naming the option and the value. */
export const parseOptions = <S extends v.GenericSchema>(
  schema: S,
  input: unknown,
  what: string,
): v.InferOutput<S> => {
  const result = v.safeParse(schema, input, { abortEarly: true })
  if (result.success) return result.output
  throw new RunwardenError('invalid-option', explain(what, result.issues[0]))
}

export const absolute = (path: string): string => resolve(path)
