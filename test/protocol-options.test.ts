/** The options of protocols, and what is said to an open run, at the door. */
import { expect, it, test } from 'vitest'
import { acp, claudeStreamJson, custom, piJson } from '../src/protocols.js'
import type { Protocol } from '../src/protocols.js'
import { openTestEngine } from './support/engine.js'

test.each<[string, (given: never) => Protocol, unknown, RegExp]>([
  ['no options', acp, null, /^acp: option must be Object, got null$/],
  ['an unknown option', acp, { colour: 1 }, /^acp: unknown option colour$/],
  ['a time that is none', acp, { settleMs: Infinity }, /option settleMs must be .*, got Infinity/],
  ['a time that is no number', acp, { startTimeoutMs: NaN }, /option startTimeoutMs must be .*, got NaN/],
  [
    'a permission time in words',
    acp,
    { permissionTimeoutMs: 'x' },
    /option permissionTimeoutMs must be .*"x"/,
  ],
  ['a callback that is none', acp, { onPermission: 5 }, /option onPermission must be a function, got 5/],
  [
    'an offer that no client has',
    acp,
    { offers: { 'fs/readTextFile': () => null } },
    /unknown option offers\.fs\/readTextFile/,
  ],
  ['an offer without a handler', acp, { offers: { 'fs/read_text_file': 5 } }, /must be a function, got 5/],
  ['an unknown kind of input', claudeStreamJson, { input: 'nope' }, /option input must be .*, got "nope"/],
  ['an unknown mode', piJson, { mode: 'nope' }, /option mode must be .*, got "nope"/],
  ['a classifier that is none', custom, { classify: 5 }, /option classify must be a function, got 5/],
  ['a protocol of nothing', custom, undefined, /^custom: option must be Object, got undefined$/],
])('L1: a protocol with %s is refused, and it says which and why', (_, make, given, message) => {
  expect(() => make(given as never)).toThrow(message)
})

it('L1: an open run is asked for nothing that there is not, and given nothing that cannot be written', async () => {
  const engine = await openTestEngine()
  const run = await engine.start({ command: ['sleep', '100'], stdin: 'pipe' })
  expect(() => run.events({ output: 'nope' as 'lines' })).toThrow(/option output must be .*, got "nope"/)
  expect(() => run.events(null as never)).toThrow(/events: option must be/)
  expect(() => run.write(5 as unknown as string)).toThrow('write: option stdin must be text or bytes')
  expect((await run.cancel()).status).toBe('confirmed')
})
