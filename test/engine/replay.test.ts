/**
 * Every recording, played by a real process at a multiple of its speed, through its protocol and an engine over a file.
 *
 * What each must come to follows from what it shows (../adapters/protocol/recorded.ts) and from how the recorded process
 * ended (arrivals.json). All are played a dozen at a time; each test waits for its own.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, Outcome, Run, RunActivity, RunHistory, RunSpec, RunState } from '../../src/index.js'
import { acp } from '../../src/protocols.js'
import { families, recordedLines, recordingsFolder } from '../adapters/protocol/recorded.js'
import type { Expected, Family } from '../adapters/protocol/recorded.js'
import { listenTo, recordedAgent } from '../support/agents.js'
import type { Told } from '../support/agents.js'
import { isAlive } from '../support/proc-reader.js'
import { waitFor } from '../support/wait-for.js'

vi.setConfig({ testTimeout: 90_000 })

const AT_A_TIME = 12
/** What was five minutes of silence is less than a second. */
const SPEED = 500
const ADVISORY_MS = 700
/** Time for a Node to start on a busy machine, and for a handshake. */
const NEVER_STARTED_MS = 3_000

interface Arrivals {
  /** Its exit code; the end of its input; or the recording's own end. */
  readonly ends: number | 'input' | 'never'
  readonly leavesChild?: true
}

const arrivals = JSON.parse(readFileSync(new URL('arrivals.json', recordingsFolder), 'utf8')) as Readonly<
  Record<string, Arrivals>
>

type Fate = 'completed' | 'failed' | 'never started' | 'falls silent'

interface Recording {
  readonly name: string
  readonly family: Family
  readonly expected: Expected
  readonly fate: Fate
}

/** It says that it is done, whether or not it is: its last word before that counts. */
const DONE_AND_FAILED = 'pi-old-0.73.1-json-error429'

const fateOf = (name: string, { ends, progress }: Expected): Fate => {
  const exit = arrivals[name]?.ends
  if (ends !== undefined) return ends === 'ok' ? 'completed' : 'failed'
  if (typeof exit === 'number') return exit === 0 && name !== DONE_AND_FAILED ? 'completed' : 'failed'
  return progress > 0 ? 'falls silent' : 'never started'
}

const recordings: readonly Recording[] = families.flatMap((family) =>
  Object.entries(family.files).map(([scenario, expected]) => {
    const name = family.prefix + scenario
    return { name, family, expected, fate: fateOf(name, expected) }
  }),
)

const allow: NonNullable<Parameters<typeof acp>[0]> = {
  onPermission: ({ options }) => options.find(({ kind }) => kind.startsWith('allow'))?.id ?? null,
}

const APP_SERVER_REQUESTS = ['initialize', 'thread/start', 'turn/start']
  .map((method, index) => `${JSON.stringify({ id: index + 1, method, params: {} })}\n`)
  .join('')

const specOf = ({ name, family, fate }: Recording): RunSpec => {
  const made = family.protocol()
  const protocol = made.name === 'acp' ? acp(allow) : made
  const isRpc = protocol.name === 'acp' || protocol.name === 'codex-app-server'
  const talks = isRpc ? 'rpc' : protocol.isInteractive ? 'lines' : 'never'
  const promptAfter = protocol.isInteractive ? family.promptAfterLines : undefined
  return {
    command: recordedAgent({ name, speed: SPEED, talks, promptAfter }),
    protocol,
    oneShot: true,
    ...(protocol.isInteractive ? { prompt: 'Do the task.' } : isRpc ? { stdin: 'pipe' } : {}),
    watchdog: {
      neverStartedMs: fate === 'never started' ? NEVER_STARTED_MS : 60_000,
      advisoryMs: ADVISORY_MS,
    },
    stop: { termGraceMs: 2_000, killGraceMs: 20_000 },
  }
}

interface Played {
  readonly run: Run
  readonly told: Told
  readonly outcome: Outcome
  readonly history: RunHistory
  /** Lines of its stdout that came. */
  readonly lines: number
  /** As it stood when it had been silent for long enough; null where it ended by itself. */
  readonly silent: { readonly state: RunState; readonly activity: RunActivity } | null
}

/** An answer to what this client does not ask is left out. */
const linesPlayed = (name: string): number =>
  recordedLines(name).filter((line) => !line.startsWith('{"jsonrpc":"2.0","id":4,"result":{}}')).length

const linesIn = async (engine: Engine, runId: string): Promise<number> => {
  let lines = 0
  for await (const piece of engine.logs(runId)) {
    if (piece.kind === 'chunk' && piece.stream === 'stdout')
      lines += piece.bytes.toString('latin1').split('\n').length - 1
  }
  return lines
}

/** Silent for three times the limit: whatever one notice too many there is has come. */
const untilSilent = async (run: Run, told: Told): Promise<Played['silent']> => {
  await told.until('notice')
  await waitFor(() => (run.activity.quietMs ?? 0) > 3 * ADVISORY_MS, {
    deadlineMs: 30_000,
    what: `${run.id} is silent`,
  })
  return { state: run.state, activity: run.activity }
}

const play = async (engine: Engine, recording: Recording): Promise<Played> => {
  const spec = specOf(recording)
  const run = await engine.start({ id: recording.name, ...spec })
  const told = listenTo(run)
  if (spec.stdin === 'pipe') {
    await told.until('launched')
    run.write(APP_SERVER_REQUESTS)
  }
  const isToBeSilent = recording.fate === 'falls silent'
  const silent = isToBeSilent ? await untilSilent(run, told) : null
  if (isToBeSilent) await run.cancel()
  const outcome = await run.outcome
  await run.gone
  await told.ended
  return {
    run,
    told,
    outcome,
    silent,
    history: await engine.history(run.id),
    lines: await linesIn(engine, run.id),
  }
}

/** Lets so many jobs go on at once; the others wait their turn. */
const gate = (max: number) => {
  let free = max
  const waiting: (() => void)[] = []
  return async <T>(job: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await job()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}

const folder = mkdtempSync(join(tmpdir(), 'runwarden-replay-'))
const played = new Map<string, Promise<Played>>()
let engine: Engine

beforeAll(async () => {
  engine = await createEngine({ database: join(folder, 'runs.db') })
  const oneOfSome = gate(AT_A_TIME)
  for (const recording of recordings) {
    const result = oneOfSome(() => play(engine, recording))
    // Its test hears of a failure; until then it is nobody's.
    result.catch(() => undefined)
    played.set(recording.name, result)
  }
})

afterAll(async () => {
  await engine.close({ runs: 'cancel', deadlineMs: 20_000 })
  rmSync(folder, { recursive: true, force: true })
}, 60_000)

const resultOf = async ({ name }: Recording): Promise<Played> => {
  const result = await played.get(name)
  if (result === undefined) throw new Error(`no recording ${name}`)
  return result
}

/** What holds of every recording, whatever it comes to. */
const expectWhole = ({ run, told, history, lines }: Played, { name, expected, fate }: Recording): void => {
  expect(lines).toBe(linesPlayed(name))
  expect(told.of('unknown-frame')).toEqual([])
  expect(told.of('retrying')).toHaveLength(expected.retries ?? 0)
  expect(history.transitions.filter(({ event }) => event === 'person.asked')).toHaveLength(
    expected.asked ?? 0,
  )
  expect(history.transitions.some(({ event }) => event === 'turn.progressed')).toBe(expected.progress > 0)
  expect(told.of('notice').filter(({ kind }) => kind === 'terminal')).toHaveLength(
    fate === 'never started' ? 1 : 0,
  )
  expect(run.state).toMatchObject({ isConfirmed: true, isSettled: true })
  const pid = history.executions[0]?.identity
  expect(pid != null && isAlive(pid)).toBe(false)
}

const named = (fate: Fate): readonly Recording[] => recordings.filter((one) => one.fate === fate)

describe('K5: an agent whose model gave nothing never started', () => {
  test.each(named('never started'))('K5: $name', async (recording) => {
    const result = await resultOf(recording)
    const message = 'Agent produced no output since start'
    expect(result.outcome).toMatchObject({ status: 'failed-never-started', message, attempt: 1 })
    expect(result.history.notices).toMatchObject([{ kind: 'terminal', text: message }])
    expect(result.history.transitions.filter(({ event }) => event === 'watchdog.silent')).toHaveLength(1)
    expectWhole(result, recording)
  })

  test('K5: every agent that was recorded hanging before its first word is among them', () => {
    const hanging = recordings.filter(({ name }) => name.endsWith('-hang-before'))
    expect(hanging.filter(({ fate }) => fate !== 'never started')).toEqual([])
    expect(hanging.length).toBeGreaterThan(12)
  })
})

describe('K8: an agent that fell silent at work is told of once, and left alone', () => {
  test.each(named('falls silent'))('K8: $name', async (recording) => {
    const result = await resultOf(recording)
    const [tool] = recording.expected.open ?? []
    const text = `Still waiting ${tool === undefined ? 'for the agent' : `on ${tool}`}`
    expect(result.told.of('notice').map((notice) => [notice.kind, notice.text])).toEqual([['advisory', text]])
    expect(result.silent?.state.work).toMatch(/^open\.active\./)
    expect(result.silent?.activity).toMatchObject({
      isTurnOpen: true,
      openTools: (recording.expected.open ?? []).map((title) => ({ title })),
    })
    expect(result.outcome.status).toBe('cancelled')
    expectWhole(result, recording)
  })
})

describe('K1: an agent that answers completes its run', () => {
  test.each(named('completed'))('K1: $name', async (recording) => {
    const result = await resultOf(recording)
    expect(result.outcome).toMatchObject({ status: 'completed', exitCode: 0, signal: null })
    expect(result.outcome.result?.isOk ?? true).toBe(true)
    expectWhole(result, recording)
  })
})

describe('K1: an agent that says that it failed fails its run', () => {
  test.each(named('failed'))('K1: $name', async (recording) => {
    const result = await resultOf(recording)
    expect(result.outcome.status).toBe('failed')
    // It ended by itself: with the code that it gave, or at the end of its input.
    const { ends } = arrivals[recording.name] ?? {}
    expect(result.outcome.exitCode).toBe(ends === 'input' ? 0 : ends)
    expectWhole(result, recording)
  })
})
