/** An agent that writes frames as fast as they are read, and what goes on beside it in the same engine. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import type { Engine, Run } from '../../src/index.js'
import { claudeStreamJson } from '../../src/protocols.js'
import { floodingAgent, listenTo, scriptedAgent, sharedEngine, untilStands } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { quickStop } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

vi.setConfig({ testTimeout: 90_000 })

const shared = sharedEngine()

const DELTA = { type: 'stream_event', event: { type: 'content_block_delta' } }
const FRAMES_MIN = 300_000
/** Room for a busy machine: without the flood it is some ms. */
const LATE_MAX_MS = 3_000
const MEMORY_MAX_BYTES = 300 * 1024 * 1024

interface Flood {
  readonly run: Run
  /** Frames that were read, so far. */
  readonly frames: () => number
}

const startFlood = async (engine: Engine): Promise<Flood> => {
  const countFile = join(shared.folder, randomUUID())
  const run = await engine.start({
    command: floodingAgent(countFile),
    protocol: claudeStreamJson(),
    stop: quickStop,
  })
  const frames = (): number => {
    try {
      return Number(readFileSync(countFile, 'utf8'))
    } catch {
      // It has not begun.
      return 0
    }
  }
  await waitFor(() => frames() > 0, { deadlineMs: 30_000, what: 'the flood' })
  return { run, frames }
}

const startQuiet = (engine: Engine, ...steps: readonly Step[]) =>
  engine.start({
    command: scriptedAgent(...steps, { stay: true }),
    protocol: claudeStreamJson(),
    watchdog: { neverStartedMs: 2_000, advisoryMs: 1_000 },
    stop: quickStop,
  })

/** The most memory that is in use until the test asks. */
const watchMemory = (): (() => number) => {
  const before = process.memoryUsage().rss
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 50)
  return () => {
    clearInterval(timer)
    return most - before
  }
}

it('L6: frames as fast as they are read hold up neither watchdogs nor stops, of others or its own', async () => {
  const { engine } = shared
  const memory = watchMemory()
  const flood = await startFlood(engine)
  const [startedAt, framesBefore] = [performance.now(), flood.frames()]

  const [mute, silent, stopped] = await Promise.all([
    startQuiet(engine),
    startQuiet(engine, { say: DELTA }),
    startQuiet(engine, { say: DELTA }),
  ])
  const told = listenTo(silent)
  const launchedAt = performance.now()
  await mute.outcome
  const neverStartedLateMs = performance.now() - launchedAt - 2_000
  expect((await mute.outcome).status).toBe('failed-never-started')

  await told.until('notice')
  const quietMs = silent.activity.quietMs ?? NaN

  await untilStands(stopped, 'open.active.stalled-advisory')
  const askedAt = performance.now()
  expect((await stopped.cancel()).status).toBe('confirmed')
  const stopMs = performance.now() - askedAt

  await waitFor(() => flood.frames() - framesBefore > FRAMES_MIN, {
    deadlineMs: 60_000,
    what: 'enough frames',
  })
  const perSecond = (flood.frames() - framesBefore) / ((performance.now() - startedAt) / 1_000)
  expect(flood.run.state.work).toBe('open.active.progressing')

  const floodAskedAt = performance.now()
  expect((await flood.run.cancel()).status).toBe('confirmed')
  const floodStopMs = performance.now() - floodAskedAt
  const grownBytes = memory()
  console.log(
    [
      `${Math.round(perSecond).toLocaleString('en')} frames a second`,
      `never started ${Math.round(neverStartedLateMs)} ms late`,
      `told after ${Math.round(quietMs)} ms of 1,000`,
      `stopped in ${Math.round(stopMs)} ms, the flood itself in ${Math.round(floodStopMs)} ms`,
      `memory grew by ${Math.round(grownBytes / 1024 / 1024)} MiB`,
    ].join(' · '),
  )
  for (const lateMs of [neverStartedLateMs, quietMs - 1_000, stopMs, floodStopMs])
    expect(lateMs).toBeLessThan(LATE_MAX_MS)
  expect(grownBytes).toBeLessThan(MEMORY_MAX_BYTES)
})

it('L3: whoever listens to all of it and reads nothing loses frames, counted, and holds up nobody', async () => {
  const { engine } = shared
  const memory = watchMemory()
  const { run, frames } = await startFlood(engine)
  const framesBefore = frames()
  const events = run.events({ output: 'frames' })
  const mute = await startQuiet(engine)
  const launchedAt = performance.now()
  expect((await mute.outcome).status).toBe('failed-never-started')
  expect(performance.now() - launchedAt - 2_000).toBeLessThan(LATE_MAX_MS)
  await waitFor(() => frames() - framesBefore > FRAMES_MIN / 10, {
    deadlineMs: 60_000,
    what: 'enough frames',
  })
  const askedAt = performance.now()
  expect((await run.cancel()).status).toBe('confirmed')
  expect(performance.now() - askedAt).toBeLessThan(LATE_MAX_MS)
  const counts: Partial<Record<string, number>> = {}
  let dropped = 0
  for await (const event of events) {
    counts[event.type] = (counts[event.type] ?? 0) + 1
    if (event.type === 'dropped') dropped += event.count
  }
  expect(counts).toMatchObject({ settled: 1, confirmed: 1, 'output-ended': 1 })
  expect(counts['frame']).toBeGreaterThan(0)
  expect(dropped).toBeGreaterThan(0)
  expect((counts['frame'] ?? 0) + dropped).toBeGreaterThan(FRAMES_MIN / 10)
  expect(memory()).toBeLessThan(MEMORY_MAX_BYTES)
})
