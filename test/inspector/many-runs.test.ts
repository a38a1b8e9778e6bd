/** A thousand runs, two hundred of which change every second: the page neither stutters nor grows. */
import { join } from 'node:path'
import type { CDPSession } from 'playwright-core'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { StorePort } from '../../src/actors/store.ports.js'
import { NO_CHROMIUM, chromium, openPage, serve } from '../support/inspector.js'
import { openStoreIn } from '../support/stores.js'
import { tempDir, waitFor } from '../support/wait-for.js'
import { runWrite } from '../support/writes.js'

beforeEach(({ skip }) => {
  if (chromium === null) skip(NO_CHROMIUM)
})

/** How long it changes. A whole look takes five minutes. */
const SECONDS = Number(process.env['RUNWARDEN_INSPECT_SECONDS'] ?? 12)
vi.setConfig({ testTimeout: 120_000 + SECONDS * 2_000 })

const RUNS = 1_000
const CHANGING = 200
/** In which part of a second the changes come. */
const BATCHES = 5
const LONG_TASK_MS = 100

const idOf = (index: number): string => `run-${String(index).padStart(4, '0')}`

const stateOf = (rev: number) =>
  rev % 2 === 0
    ? { work: 'open.active.progressing', process: 'alive', headline: 'active' }
    : { work: 'open.active.stalled-advisory', process: 'alive', headline: 'stalled-advisory' }

const writeOf = (index: number, rev: number, at: number) =>
  runWrite(idOf(index), rev, {
    row: { createdAt: at, program: 'agent', task: `task-${String(index % 20)}` },
    head: { ...stateOf(rev), lastProgressAt: at },
    write: { journal: { at, event: 'turn.progressed', detail: '{}', from: '', to: '{}', effects: [] } },
  })

/** Changes two hundred runs a second until it is told to stop. */
function change(store: StorePort): { readonly changes: () => number; stop(): Promise<void> } {
  let tick = 0
  let last: Promise<unknown> = Promise.resolve()
  const perTick = CHANGING / BATCHES
  const timer = setInterval(() => {
    const from = (tick % BATCHES) * perTick
    const rev = 1 + Math.floor(tick / BATCHES)
    const at = Date.now()
    last = store.commit(
      Array.from({ length: perTick }, (_, index) => writeOf(from + index, rev, at)),
      [],
    )
    tick += 1
  }, 1_000 / BATCHES)
  const stop = async (): Promise<void> => {
    clearInterval(timer)
    await last
  }
  return { changes: () => tick * perTick, stop }
}

interface TraceEvent {
  readonly name: string
  /** CPU time of the thread, in µs. */
  readonly tdur?: number
}

/** The CPU time of the browser's longest task, of those that its ring buffer still has: what another program took is none of it. */
async function traceTasks(devtools: CDPSession): Promise<() => Promise<number>> {
  let longestUs = 0
  devtools.on('Tracing.dataCollected', ({ value }) => {
    for (const { name, tdur = 0 } of value as unknown as TraceEvent[])
      if (name.endsWith('RunTask')) longestUs = Math.max(longestUs, tdur)
  })
  await devtools.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: {
      recordMode: 'recordContinuously',
      includedCategories: ['toplevel'],
      excludedCategories: ['*'],
    },
  })
  return async () => {
    const complete = new Promise((resolve) => devtools.once('Tracing.tracingComplete', resolve))
    await devtools.send('Tracing.end')
    await complete
    return longestUs / 1_000
  }
}

describe('1 000 runs', () => {
  test('V5: with 200 changing every second no task of the page takes over 100 ms, and its memory stays', async () => {
    const database = join(tempDir(), 'runs.db')
    const store = await openStoreIn({ database })
    const now = Date.now()
    await store.commit(
      Array.from({ length: RUNS }, (_, index) => writeOf(index, 0, now - index)),
      [],
    )
    const records = await openRecords({ database })
    onTestFinished(() => records[Symbol.asyncDispose]())
    const { address } = await serve(records)
    const { page, faults } = await openPage(address, { keepsTraffic: false })
    await page.getByText('1000 live').waitFor()
    // All of them are there, and few of them in the document.
    expect(await page.locator('[data-run]').count()).toBeLessThan(60)

    await page.evaluate(`
      globalThis.longTasks = []
      new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
        .observe({ type: 'longtask' })`)
    // One that is made for it is seen: then none means that there was none.
    await page.evaluate(`
      setTimeout(() => { const until = performance.now() + 150; while (performance.now() < until); }, 0)`)
    await waitFor(() => page.evaluate<boolean>('longTasks.splice(0).length > 0'), {
      deadlineMs: 10_000,
      what: 'a long task is seen',
    })
    const devtools = await page.context().newCDPSession(page)
    const heap = async (): Promise<number> => {
      await devtools.send('HeapProfiler.collectGarbage')
      return (await devtools.send('Runtime.getHeapUsage')).usedSize
    }
    const longestCpuMs = await traceTasks(devtools)
    const changing = change(store)
    onTestFinished(() => changing.stop())
    const changesBy = (count: number) =>
      waitFor(() => changing.changes() >= count, {
        deadlineMs: SECONDS * 2_000,
        what: `${String(count)} changes`,
      })
    // Every run that will change has changed, and what grows at first has grown.
    await changesBy((CHANGING * SECONDS) / 3)
    const before = await heap()
    await changesBy(CHANGING * SECONDS)
    await changing.stop()
    const after = await heap()
    const longTasks = await page.evaluate<number[]>('longTasks')
    const [first] = await records.runs({ scope: { run: idOf(0) } })
    await page
      .locator(`[data-run=${idOf(0)}]`)
      .getByText(first?.headline ?? '', { exact: true })
      .waitFor()
    const figures = {
      changes: changing.changes(),
      longestTaskMs: Math.round(Math.max(0, ...longTasks)),
      longestTaskCpuMs: Math.round(await longestCpuMs()),
      heapBefore: before,
      heapAfter: after,
    }
    console.log(JSON.stringify(figures))
    expect(figures.longestTaskCpuMs).toBeGreaterThan(0)
    // A task that was kept waiting by other programs did not take that time.
    expect(Math.min(figures.longestTaskMs, figures.longestTaskCpuMs)).toBeLessThanOrEqual(LONG_TASK_MS)
    expect(after - before).toBeLessThan(2 * 1024 * 1024)
    expect(faults).toEqual([])
  })
})
