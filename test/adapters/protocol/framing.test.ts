/** From bytes to lines, and what is no frame. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { acp, bytes, claudeStreamJson, lines } from '../../../src/protocols.js'
import type { Protocol } from '../../../src/protocols.js'
import { LIMITS, Recorder } from './recorder.js'
import type { Line } from './recorder.js'
import { recordedLines } from './recorded.js'

const MIB = 1024 * 1024

interface Heard {
  readonly sink: Recorder
  readonly texts: readonly string[]
}

const hear = (
  chunks: readonly (string | Buffer)[],
  protocol: Protocol = lines(),
  maxLineBytes = LIMITS.maxLineBytes,
): Heard => {
  const sink = new Recorder()
  const session = protocol.open(sink, { maxLineBytes })
  for (const chunk of chunks) session.push('stdout', Buffer.from(chunk))
  session.end()
  return { sink, texts: sink.lines.map(({ text }) => text) }
}

const DELTA = '{"type":"stream_event","event":{"type":"content_block_delta"}}'
const UPDATE =
  '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk"}}}'

describe('L3: lines', () => {
  test.each<readonly [string, readonly (string | Buffer)[], readonly string[]]>([
    ['a chunk of several lines', ['one\ntwo\n'], ['one', 'two']],
    ['a line in pieces', ['o', 'n', 'e\ntw', 'o\n'], ['one', 'two']],
    ['no newline at the end', ['one\ntwo'], ['one', 'two']],
    ['CRLF', ['one\r\ntwo\r\n'], ['one', 'two']],
    ['CRLF cut between its bytes', ['one\r', '\ntwo'], ['one', 'two']],
    ['a carriage return of its own', ['a\rb\r\r\n'], ['a\rb\r']],
    ['empty lines', ['\n\none\n\n'], ['', '', 'one', '']],
    ['NUL', ['a\0b\n\0\n'], ['a\0b', '\0']],
    [
      'a character cut between its bytes',
      [Buffer.from('é').subarray(0, 1), Buffer.from('é\n').subarray(1)],
      ['é'],
    ],
    ['separators that are no newlines', ['a\u2028b\u2029c\n'], ['a\u2028b\u2029c']],
    ['nothing', [], []],
  ])('L3: %s', (_, chunks, expected) => {
    expect(hear(chunks).texts).toEqual(expected)
  })

  test('L3: the same lines, however the bytes are cut', () => {
    const text = 'plain\nCRLF\r\nümläut 🙂\n\0\n\nlast without end'
    const expected = hear([text]).texts
    fc.assert(
      fc.property(fc.array(fc.nat({ max: Buffer.byteLength(text) })), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), Buffer.byteLength(text)]
        const chunks = places.slice(1).map((to, index) => Buffer.from(text).subarray(places[index], to))
        expect(hear(chunks).texts).toEqual(expected)
      }),
    )
  })

  test('L3: a line of 20 MiB is truncated and marked, and the lines behind it are whole', () => {
    const huge = Buffer.alloc(20 * MIB, 'x')
    const chunks = [...Array(320).keys()].map((index) => huge.subarray(index * 65_536, (index + 1) * 65_536))
    const { sink } = hear([...chunks, '\nafter\n', huge, '\nlast'])
    const shape = sink.lines.map(({ text, isTruncated }: Line) => [text.length, isTruncated])
    expect(shape).toEqual([
      [8 * MIB, true],
      ['after'.length, false],
      [8 * MIB, true],
      ['last'.length, false],
    ])
  })

  test.each([
    ['exactly the maximum', 'abcd\n', 'abcd', false],
    ['the maximum and CRLF', 'abcd\r\n', 'abcd', false],
    ['one more', 'abcde\n', 'abcd', true],
    ['one more, which is a carriage return', 'abcd\rx\n', 'abcd', true],
  ])('L3: %s, whole and byte by byte', (_, text, expected, isTruncated) => {
    for (const chunks of [[text], Array.from(text)]) {
      const [line] = hear(chunks, lines(), 4).sink.lines
      expect(line).toMatchObject({ text: expected, isTruncated })
    }
  })

  test('L3: a line that never ends costs its maximum, however small its pieces', () => {
    const session = lines().open(new Recorder(), { maxLineBytes: MIB })
    const piece = Buffer.from('x')
    const before = process.memoryUsage().arrayBuffers
    for (let index = 0; index < 4 * MIB; index += 1) session.push('stdout', piece)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * MIB)
  })

  test('L3: nothing is decoded for nobody', () => {
    const sink = new Recorder()
    sink.isListening = false
    const session = claudeStreamJson().open(sink, LIMITS)
    session.push('stdout', Buffer.from(`${DELTA}\n`))
    expect(sink.lines).toEqual([])
    expect(sink.hasSeenProgress).toBe(true)
  })

  test('L3: of plain bytes every chunk is progress, and none is a line', () => {
    const { sink } = hear(['a', 'b\nc'], bytes())
    expect(sink.heard).toEqual(['progress', 'progress'])
    expect(sink.lines).toEqual([])
  })
})

describe('K2: frames', () => {
  test('K2: the same facts, however the bytes are cut', () => {
    const whole = Buffer.from(`${recordedLines('claude-2.1.332-json-io-tool').join('\n')}\n`)
    const expected = hear([whole], claudeStreamJson()).sink
    fc.assert(
      fc.property(fc.array(fc.nat({ max: whole.length }), { maxLength: 40 }), (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), whole.length]
        const chunks = places.slice(1).map((to, index) => whole.subarray(places[index], to))
        const { sink } = hear(chunks, claudeStreamJson())
        expect(sink.results).toEqual(expected.results)
        expect(sink.heard.at(-1)).toBe('completed')
        expect(sink.lines).toEqual(expected.lines)
      }),
      { numRuns: 50 },
    )
  })

  test.each([
    ['a banner', 'Welcome!', '(no frame)'],
    ['a number', '42', '(no frame)'],
    ['a string', '"hello"', '(no frame)'],
    ['an object without a type', '{"hello":1}', 'no type'],
    ['an object that breaks off', '{"type":', 'no type'],
    ['an empty object', '{}', 'no type'],
    ['an array, for an agent without batches', '[1,"2"]', '(no frame)'],
  ])('K2: %s on stdout is traffic of an unknown type', (_, line, type) => {
    const { sink } = hear([`${line}\n${line}\n`], claudeStreamJson())
    expect(sink.heard).toEqual(['unknownFrame'])
    expect(sink.unknown).toEqual([type])
  })

  test.each([
    ['space before it', `  \t${DELTA}`],
    ['a NUL before it', `\0${DELTA}`],
    ['a byte order mark before it', `\ufeff${DELTA}`],
    ['a carriage return behind it', `${DELTA}\r`],
    ['no newline behind it', DELTA],
  ])('K2: a frame with %s is a frame', (_, text) => {
    expect(hear([text], claudeStreamJson()).sink.heard).toEqual(['progress'])
  })

  test('K2: empty lines are nothing at all', () => {
    expect(hear(['\n\r\n   \n\0\n'], claudeStreamJson()).sink.heard).toEqual([])
  })

  test('K2: what stands on stderr is text, whatever it looks like', () => {
    const sink = new Recorder()
    const session = claudeStreamJson().open(sink, LIMITS)
    session.push('stderr', Buffer.from(`${DELTA}\n`))
    expect(sink.heard).toEqual([])
    expect(sink.lines).toEqual([{ stream: 'stderr', text: DELTA, isTruncated: false }])
  })

  test('K2: the members of a JSON-RPC batch are frames', () => {
    const usage = UPDATE.replace('agent_message_chunk', 'usage_update')
    expect(hear([`[${usage}]\n`], acp()).sink.heard).toEqual([])
    expect(hear([`[${usage}, 7, ${UPDATE}]\n`], acp()).sink.heard).toEqual(['unknownFrame', 'progress'])
    expect(hear(['[]\n[\n'], acp()).sink.heard).toEqual([])
  })

  test('L3: a frame that is cut still counts by its type, and a result that is cut still completes', () => {
    const long = 'x'.repeat(200)
    const delta = DELTA.replace('}}', `","text":"${long}"}}`)
    const result = `{"stop_reason":"end_turn","result":"${long}","type":"result"}`
    const { sink } = hear([`${delta}\n${result}\n`], claudeStreamJson(), 100)
    expect(sink.lines.map(({ isTruncated }) => isTruncated)).toEqual([true, true])
    expect(sink.heard).toEqual(['progress', 'completed'])
  })
})
