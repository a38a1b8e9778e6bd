/** Every recording, through its protocol, comes to what stands in the table. */
import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { families, recordedLines, recordingsFolder } from './recorded.js'
import type { Expected, Family } from './recorded.js'
import { LIMITS, Recorder } from './recorder.js'
import { replay } from './replay.js'

interface Recording {
  readonly name: string
  readonly family: Family
  readonly expected: Expected
}

const recordings: readonly Recording[] = families.flatMap((family) =>
  Object.entries(family.files).map(([scenario, expected]) => ({
    name: family.prefix + scenario,
    family,
    expected,
  })),
)

const ofScenario = (scenario: string): readonly Recording[] =>
  recordings.filter(({ name }) => name.endsWith(`-${scenario}`))

const familyOf = (prefix: string): Family => {
  const family = families.find((one) => one.prefix === prefix)
  if (family === undefined) throw new Error(`no family ${prefix}`)
  return family
}

test('K2: every recording is in the table, once', () => {
  const files = readdirSync(recordingsFolder).filter((file) => file.endsWith('.ndjson'))
  expect(recordings.map(({ name }) => `${name}.ndjson`).sort()).toEqual(files.sort())
})

describe('K2: a recording comes to what it shows', () => {
  test.each(recordings)('K2: $name', async ({ name, family, expected }) => {
    const { sink, session } = await replay(family, recordedLines(name))
    expect({
      progress: sink.count('progress'),
      ends: sink.results.map(({ isOk }) => (isOk ? 'ok' : 'error')),
      cancelled: sink.count('cancelled'),
      retries: sink.notices.length,
      signals: sink.count('completionSignalled'),
      asked: sink.count('personAsked'),
      open: session.openTools.map(({ title }) => title),
      unknown: sink.unknown,
    }).toEqual({
      progress: expected.progress,
      ends: expected.ends === undefined ? [] : [expected.ends],
      cancelled: 0,
      retries: expected.retries ?? 0,
      signals: expected.signals ?? 0,
      asked: expected.asked ?? 0,
      open: expected.open ?? [],
      unknown: [],
    })
  })
})

describe('K5: an agent whose model gave nothing never started', () => {
  test.each(ofScenario('hang-before'))('K5: $name', async ({ name, family }) => {
    const { sink } = await replay(family, recordedLines(name))
    expect(sink.heard.filter((call) => call !== 'retrying')).toEqual([])
  })
})

describe('K8: an agent that fell silent after a token is not complete', () => {
  const streaming = ofScenario('hang-after').filter(({ expected }) => expected.progress > 0)

  test.each(streaming)('K8: $name', async ({ name, family }) => {
    const { sink } = await replay(family, recordedLines(name))
    expect(new Set(sink.heard)).toEqual(new Set(['progress']))
  })

  test('K8: all that stream are among them', () => {
    expect(streaming.map(({ family }) => family.protocol().name).sort()).toMatchInlineSnapshot(`
      [
        "acp",
        "acp",
        "acp",
        "acp",
        "acp",
        "claude-stream-json",
        "claude-stream-json",
        "codex-app-server",
        "gemini-json",
        "opencode-json",
        "pi-json",
        "pi-rpc",
        "qwen-json",
      ]
    `)
  })
})

test.each(ofScenario('tool-long'))('K8: no title of $name shows an argument', async ({ name, family }) => {
  const lines = recordedLines(name)
  const { session } = await replay(family, lines)
  for (const { title } of session.openTools) expect(title).toMatch(/^\w+$/)
})

describe('K11: a warning that Codex sends unasked, around the first prompt', () => {
  const codex = familyOf('codex-acp-2.6.0-acp-')
  const lines = recordedLines('codex-acp-2.6.0-acp-hang-before')
  const warning = lines.findIndex((line) => line.includes('agent_message_chunk'))

  test('K11: before the prompt it does not count for the turn', async () => {
    const { sink } = await replay(codex, lines, warning + 1)
    expect(sink.hasSeenProgress).toBe(false)
  })

  test('K2: behind the prompt it is progress, by its type alone', async () => {
    const { sink } = await replay(codex, lines, warning)
    expect(sink.count('progress')).toBe(1)
  })
})

const oneShot = recordings.filter(({ family }) => family.promptAfterLines === undefined)

test.each(oneShot)('K1: $name in one chunk has its progress before its end', ({ name, family, expected }) => {
  const sink = new Recorder()
  const session = family.protocol().open(sink, LIMITS)
  session.push('stdout', Buffer.from(recordedLines(name).join('\n')))
  session.end()
  const facts = sink.heard.filter((call) => call === 'progress' || call === 'completed')
  expect(sink.hasSeenProgress).toBe(expected.progress > 0)
  if (expected.ends !== undefined) expect(facts.at(-1)).toBe('completed')
})
