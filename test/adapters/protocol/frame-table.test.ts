/** The table over bytes says what the same table over parsed JSON would say. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FrameTable, by } from '../../../src/adapters/protocol/frames/frame-table.js'
import type { Entry } from '../../../src/adapters/protocol/frames/frame-table.js'
import { PROGRESS, TRAFFIC, UNKNOWN, USER_ECHO } from '../../../src/adapters/protocol/frames/frame-meaning.js'
import type { Meaning } from '../../../src/adapters/protocol/frames/frame-meaning.js'
import { listAt, valueAt } from '../../../src/adapters/protocol/frames/json-value.js'

const ENTRY = by(
  'type',
  {
    a: PROGRESS,
    nested: by('one.two', {
      deep: PROGRESS,
      'pre*': USER_ECHO,
      true: TRAFFIC,
      null: PROGRESS,
      '12': USER_ECHO,
    }),
    each: by('list[].kind', { tool: PROGRESS }, { other: USER_ECHO, absent: TRAFFIC }),
  },
  { absent: by('late', { yes: PROGRESS }, { other: USER_ECHO }) },
)
const TABLE = new FrameTable(ENTRY)

const decide = (text: string, table = TABLE): Meaning['is'] => {
  const bytes = Buffer.from(text)
  return table.meaningOf(bytes, 0, bytes.length).is
}

/** The same decision, taken the slow way. */
const decideParsed = (entry: Entry, frame: unknown): Meaning['is'] => {
  if (!('cases' in entry)) return entry.is
  const [outer = '', inner] = entry.path.split('[].')
  const value = valueAt(frame, outer)
  const pick = (found: unknown): Entry | undefined => {
    if (typeof found === 'object' && found !== null) return undefined
    const text = String(found)
    const prefix = Object.keys(entry.cases).find(
      (name) => name.endsWith('*') && text.startsWith(name.slice(0, -1)),
    )
    return Object.hasOwn(entry.cases, text) ? entry.cases[text] : entry.cases[prefix ?? '']
  }
  if (value === undefined || (inner !== undefined && !Array.isArray(value)))
    return decideParsed(entry.absent, frame)
  const candidates =
    inner === undefined ? [value] : listAt(frame, outer).map((element) => valueAt(element, inner))
  const found = candidates
    .filter((one) => one !== undefined)
    .map(pick)
    .find((one) => one !== undefined)
  return decideParsed(found ?? entry.other, frame)
}

test.each([
  ['{"type":"a"}', 'progress'],
  [' {"type" : "a" , "x":1}'.trim(), 'progress'],
  ['{"x":{"type":"z"},"type":"a"}', 'progress'],
  ['{"x":"\\"type\\":\\"b\\"","type":"a"}', 'progress'],
  ['{"x":"ends in a backslash \\\\","type":"a"}', 'progress'],
  [`{"x":"${'long '.repeat(50)}\\"","y":[1,{"type":"b"},"]"],"type":"a"}`, 'progress'],
  ['{"type":"nested","one":{"two":"deep"}}', 'progress'],
  ['{"one":{"zero":0,"two":"deep"},"type":"nested"}', 'progress'],
  ['{"type":"nested","one":{"two":"prefixed"}}', 'user-echo'],
  ['{"type":"nested","one":{"two":true}}', 'traffic'],
  ['{"type":"nested","one":{"two":null}}', 'progress'],
  ['{"type":"nested","one":{"two":12}}', 'user-echo'],
  ['{"type":"nested","one":{"two":123}}', 'unknown'],
  ['{"type":"nested","one":{"two":{"deep":1}}}', 'unknown'],
  ['{"type":"nested","one":"deep"}', 'unknown'],
  ['{"type":"each","list":[{"kind":"text","text":"\\"tool\\""},{"kind":"tool"}]}', 'progress'],
  ['{"type":"each","list":[{"kind":"text"}]}', 'user-echo'],
  ['{"type":"each","list":[1,"tool",[],{}]}', 'user-echo'],
  ['{"type":"each","list":"tool"}', 'traffic'],
  ['{"type":"each"}', 'traffic'],
  ['{"late":"yes"}', 'progress'],
  ['{"late":["yes"]}', 'user-echo'],
  ['{}', 'unknown'],
  ['{"type":"b"}', 'unknown'],
  ['{"type":5}', 'unknown'],
  ['{"typ', 'unknown'],
  ['{"type"', 'unknown'],
  ['{"type":', 'unknown'],
  ['{"type":"a', 'unknown'],
  ['{"x":{"type":"a"}', 'unknown'],
  ['{"type":"a","rest":garbage', 'progress'],
] as const)('K2: %s is %s', (text, meaning) => {
  expect(decide(text)).toBe(meaning)
})

describe('K2: bytes and parsed JSON agree', () => {
  const word = fc.constantFrom(
    'a',
    'b',
    'nested',
    'each',
    'tool',
    'deep',
    'prefab',
    'pre',
    'yes',
    'type',
    '"',
    '\\',
    'ü',
  )
  const scalar = fc.oneof(word, fc.string({ maxLength: 90 }), fc.boolean(), fc.constant(null), fc.integer())
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('value'), { maxLength: 3 }), tie('object')),
    object: fc.dictionary(
      fc.constantFrom('type', 'one', 'two', 'list', 'kind', 'late', 'x', 'ty"pe'),
      tie('value'),
      {
        maxKeys: 5,
      },
    ),
  }))
  const frame = fc
    .tuple(
      fc.dictionary(fc.constantFrom('type', 'one', 'list', 'late', 'pad'), value),
      fc.option(word, { nil: undefined }),
      fc.option(fc.array(fc.record({ kind: word, x: value }, { requiredKeys: [] })), { nil: undefined }),
    )
    .map(([members, type, list]) => ({ ...members, ...(type && { type }), ...(list && { list }) }))

  test('K2: for any frame, whatever its order and spacing, and whatever came before it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(frame, fc.constantFrom(undefined, 2)), { minLength: 1, maxLength: 6 }),
        (frames) => {
          // One table for all: the head that it remembers must not speak for another frame.
          const table = new FrameTable(ENTRY)
          for (const [one, spaces] of frames) {
            expect(decide(JSON.stringify(one, null, spaces), table)).toBe(decideParsed(ENTRY, one))
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('K2: a cut anywhere takes nothing away but what was behind it, and reads nothing beyond it', () => {
    fc.assert(
      fc.property(frame, fc.nat(), (one, at) => {
        const text = Buffer.from(JSON.stringify(one))
        const end = at % (text.length + 1)
        const alone = Buffer.from(text.subarray(0, end))
        expect(new FrameTable(ENTRY).meaningOf(text, 0, end)).toBe(
          new FrameTable(ENTRY).meaningOf(alone, 0, end),
        )
      }),
      { numRuns: 2_000 },
    )
  })
})

test('K2: the same head means the same, and a longer word with that beginning does not', () => {
  const table = new FrameTable(
    by('params.update.kind', { chunk: PROGRESS, chunks: TRAFFIC }, { absent: UNKNOWN }),
  )
  const line = (kind: string, text: string) =>
    `{"jsonrpc":"2.0","params":{"session":"0123456789","update":{"kind":"${kind}","text":"${text}"}}}`
  const said = ['chunk', 'chunk', 'chunks', 'chunk', 'chun', 'chunk'].map((kind, index) =>
    decide(line(kind, String(index)), table),
  )
  expect(said).toEqual(['progress', 'progress', 'traffic', 'progress', 'unknown', 'progress'])
})

test('K2: what an unknown frame calls itself is the way to where the table ends', () => {
  const typeOf = (text: string) => TABLE.typeOf(Buffer.from(text), 0, text.length)
  expect(typeOf('{"type":"b"}')).toBe('b')
  expect(typeOf('{"type":"nested","one":{"two":"else"}}')).toBe('nested:else')
  expect(typeOf('{}')).toBe('no type')
})
