/** Watchdogs over real agents that are paused, busy, or the next candidate: whose silence counts, and whose does not. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import type { Run, RunSpec } from '../../src/index.js'
import { claudeStreamJson } from '../../src/protocols.js'
import { listenTo, scriptedAgent, sharedEngine, untilStands } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { quickStop } from '../support/engine.js'
import { fixtureCommand } from '../support/fixture.js'
import { waitFor } from '../support/wait-for.js'

// Most of them wait most of the time.
vi.setConfig({ maxConcurrency: 6, testTimeout: 60_000 })

const shared = sharedEngine()

const DELTA = { type: 'stream_event', event: { type: 'content_block_delta' } }
const RESULT = { type: 'result', subtype: 'success', is_error: false, result: 'done' }
const OFF = { neverStartedMs: false, advisoryMs: false, completionSignalMs: false } as const

const start = (spec: Partial<RunSpec>, ...steps: readonly Step[]): Promise<Run> =>
  shared.engine.start({
    command: scriptedAgent({ hear: 1 }, ...steps),
    protocol: claudeStreamJson({ input: 'stream-json' }),
    prompt: 'go',
    stop: quickStop,
    ...spec,
  })

/** Paused for so long, from now on. */
const standStill = async (run: Run, ms: number): Promise<void> => {
  await run.pause()
  const ageOf = () => shared.engine.live().find(({ runId }) => runId === run.id)?.ageMs ?? Infinity
  const endMs = ageOf() + ms
  await waitFor(() => ageOf() > endMs, { deadlineMs: 30_000, what: `${String(ms)} ms of pause` })
}

describe.concurrent('a pause for longer than every limit', () => {
  it('O7, K5: is no silence of an agent that has not begun', async () => {
    const file = join(shared.folder, randomUUID())
    const run = await start(
      { watchdog: { ...OFF, neverStartedMs: 5_000 } },
      { until: file },
      { say: DELTA },
      { say: RESULT },
      { hearEnd: true },
    )
    await untilStands(run, 'open.accepted')
    await standStill(run, 6_000)
    expect(run.state).toMatchObject({ work: 'open.accepted', process: 'frozen', outcome: null })
    writeFileSync(file, '')
    await run.resume()
    await untilStands(run, 'open.ready')
    expect(await run.finish()).toMatchObject({ status: 'completed' })
  })

  it('O7, K8, K9: is no stall, and what is left of the limits is left after it', async () => {
    const run = await start(
      { watchdog: { ...OFF, advisoryMs: 2_000, stalledMs: 3_000 } },
      { say: DELTA },
      { stay: true },
    )
    const told = listenTo(run)
    await untilStands(run, 'open.active.progressing')
    await standStill(run, 5_000)
    expect(run.state).toMatchObject({ work: 'open.active.progressing', outcome: null })
    expect(told.of('notice')).toEqual([])
    await run.resume()
    expect(await told.until('notice')).toMatchObject({ kind: 'advisory' })
    expect((await run.outcome).status).toBe('failed-stalled')
    await run.gone
  })

  it('O7, K13: frees no turn that is being cancelled', async () => {
    const run = await start({ watchdog: OFF, turnCancelMs: 500 }, { say: DELTA }, { stay: true })
    await untilStands(run, 'open.active.progressing')
    const cancelled = run.cancelTurn()
    await standStill(run, 4_000)
    expect(run.state).toMatchObject({ work: 'open.active.progressing', process: 'frozen' })
    await run.resume()
    expect(await cancelled).toMatchObject({ generation: 1, status: 'cancelled' })
    expect(run.state).toMatchObject({ work: 'open.ready', process: 'alive' })
  })
})

it('K8: an agent that is silent and busy after its progress is told of, and goes on', async () => {
  const busy = fixtureCommand('busy-loop')
  const run = await start(
    { watchdog: { ...OFF, advisoryMs: 300 } },
    { say: DELTA },
    { child: busy },
    { stay: true },
  )
  const told = listenTo(run)
  await told.until('notice')
  await waitFor(() => (run.activity.quietMs ?? 0) > 2_000, { deadlineMs: 30_000, what: 'silence' })
  expect(told.of('notice')).toMatchObject([{ kind: 'advisory' }])
  expect(run.state).toMatchObject({ headline: 'stalled-advisory', process: 'alive', outcome: null })
  expect((await run.cancel()).status).toBe('confirmed')
})

it('K19: what the first candidate leaves in its pipe while it is swept is no progress of the second', async () => {
  const last = `trap 'echo ${JSON.stringify(JSON.stringify(DELTA))}; exit' TERM; while :; do sleep 0.05; done`
  const run = await start({
    // Its leader has a bad end before any output; what it leaves speaks when it is ended.
    command: ['sh', '-c', `(${last}) & sleep 0.5; exit 1`],
    fallback: { candidates: [{ command: scriptedAgent({ hear: 1 }, { stay: true }) }] },
    watchdog: { ...OFF, neverStartedMs: 1_500 },
  })
  const told = listenTo(run, { output: 'frames' })
  expect(await run.outcome).toMatchObject({ status: 'failed-never-started', attempt: 2 })
  expect(told.of('frame')).toMatchObject([{ frame: DELTA }])
  await run.gone
})
