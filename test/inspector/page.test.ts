/** The page in a real browser, over real runs. */
import { join } from 'node:path'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { Engine } from '../../src/index.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import { NO_CHROMIUM, chromium, openPage, serve } from '../support/inspector.js'
import { tempDir, waitFor } from '../support/wait-for.js'

vi.setConfig({ testTimeout: 120_000 })

beforeEach(({ skip }) => {
  if (chromium === null) skip(NO_CHROMIUM)
})

const heldLadder = { termGraceMs: 60_000, killGraceMs: 5_000 }

/** Names of the innermost states that are lit. */
const litStates = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(
    `[...document.querySelectorAll('.chart .state.lit:not(.compound)')].map((state) => state.dataset.state)`,
  )

const untilLit = (page: Page, ...states: readonly string[]): Promise<unknown> =>
  waitFor(async () => JSON.stringify((await litStates(page)).sort()) === JSON.stringify([...states].sort()), {
    deadlineMs: 15_000,
    what: `lit: ${states.join(', ')}`,
  })

const openRun = async (page: Page, runId: string): Promise<void> => {
  await page.getByRole('link', { name: runId }).click()
  await page.locator('.chart .state.lit').first().waitFor()
}

const hold = async (engine: Engine, id: string, spec: object = {}) => {
  const started = await startFixture(engine, 'stubborn-agent', { id, stop: heldLadder, ...spec })
  await started.ready()
  return started
}

describe('the page', () => {
  test('V5: runs are seen to appear and to move', async () => {
    const engine = await openTestEngine()
    const { address } = await serve(engine)
    const { page, faults } = await openPage(address)
    await page.getByText('No runs yet').waitFor()
    await startFixture(engine, 'heartbeat', { id: 'first' })
    const row = page.locator('[data-run=first]')
    await row.getByText(/accepted|active/).waitFor()
    await engine.pause({ run: 'first' })
    await row.getByText('paused').waitFor()
    await engine.stop({ run: 'first' }, { force: true })
    await row.getByText('cancelled').waitFor()
    await engine.start({ id: 'second', command: ['true'] })
    await page.locator('[data-run=second]').getByText('completed').waitFor()
    await page.getByRole('button', { name: /^Live/ }).click()
    await page.getByText('No run matches').waitFor()
    await page.getByRole('button', { name: /^All/ }).click()
    await page.getByRole('searchbox').fill('fir')
    await waitFor(async () => (await page.locator('[data-run]').count()) === 1, {
      deadlineMs: 5_000,
      what: 'one row',
    })
    expect(faults).toEqual([])
  })

  test('V6, V7: a stubborn run is cancelled from the page: its timer counts down, and the receipt says confirmed', async () => {
    const engine = await openTestEngine()
    const started = await hold(engine, 'stubborn')
    const { address } = await serve(engine)
    const { page, faults } = await openPage(address)
    await openRun(page, 'stubborn')
    await untilLit(page, `run.work.${started.run.state.work}`, 'run.process.alive', 'run.delivery.pending')
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.locator('.will').innerText()).toContain(
      '1 m 00 s later: KILL goes to each that is still there.',
    )
    await dialog.getByLabel('Reason').fill('superseded')
    expect(started.run.state.intent).toBeNull()
    await dialog.getByRole('button', { name: 'Cancel run' }).click()
    await dialog.getByText('requested').first().waitFor()
    await dialog.getByRole('button', { name: 'Go on in the background' }).click()
    await untilLit(page, 'run.work.open.cancel-requested', 'run.process.term-sent', 'run.delivery.pending')
    const timer = page.locator('.chart .timer text')
    const seen = new Set<string>()
    await waitFor(async () => seen.add((await timer.textContent()) ?? '').size > 2, {
      deadlineMs: 10_000,
      what: 'a countdown',
    })
    expect([...seen].every((text) => /^5\d\.\d s$|^1 m/.test(text))).toBe(true)
    await page.getByRole('button', { name: 'Force' }).click()
    await dialog.getByRole('button', { name: 'Kill now' }).click()
    await dialog.locator('.receipt-status').getByText('confirmed').waitFor()
    expect(await dialog.locator('.receipt-lines').innerText()).toMatch(
      /stubborn confirmed in .*, by tree-reaped/,
    )
    await dialog.getByRole('button', { name: 'Close' }).click()
    expect(started.alive()).toEqual([])
    expect(started.run.state).toMatchObject({
      headline: 'cancelled',
      intent: { by: 'inspector', reason: 'superseded' },
    })
    await page.getByRole('tab', { name: /Orders/ }).click()
    await page.getByRole('tabpanel').getByText('“superseded”').waitFor()
    expect(faults).toEqual([])
  })

  test('V6: a settled run is scrubbed back to accepted, and replayed, over the records of its store alone', async () => {
    const database = await testDatabase()
    const engine = await openTestEngine({ database })
    await (
      await engine.start({ id: 'past', command: ['sh', '-c', 'echo hello; exit 3'] })
    ).gone
    await using records = await openRecords({ database })
    const { address } = await serve(records)
    const { page, faults } = await openPage(address)
    await openRun(page, 'past')
    const end = ['run.work.settled.failed', 'run.process.confirmed', 'run.delivery.delivered']
    await untilLit(page, ...end)
    expect(await page.getByRole('button', { name: 'Cancel', exact: true }).count()).toBe(0)
    await page.locator('[data-rev="0"]').click()
    const begin = ['run.work.open.accepted', 'run.process.waiting', 'run.delivery.pending']
    await untilLit(page, ...begin)
    await page.keyboard.press('End')
    await untilLit(page, ...end)
    await page.getByRole('slider').fill('0')
    await untilLit(page, ...begin)
    await page.getByRole('button', { name: 'Replay' }).click()
    await untilLit(page, ...end)
    await page.getByRole('tab', { name: 'Log' }).click()
    await page.getByRole('tabpanel').getByText('hello').waitFor()
    expect(faults).toEqual([])
  })

  test('V2: a secret in an argument, the environment, or a mark is nowhere on the page, in its traffic or its drawing', async () => {
    const engine = await openTestEngine()
    const secret = 'hunter2-f00dfeed'
    const started = await hold(engine, 'careful', {
      args: [`--token=${secret}`],
      env: { API_KEY: secret },
    })
    await engine.pause({ run: 'careful' })
    const { executions } = await engine.history('careful')
    const cookie = executions[0]?.marks?.cookie ?? ''
    expect(cookie).toMatch(/^[0-9a-f]{32}$/)
    const { address } = await serve(engine)
    const { page, traffic } = await openPage(address)
    await openRun(page, 'careful')
    for (const tab of ['Processes', 'Orders', 'Notices', 'Attempts', 'Log']) {
      await page.getByRole('tab', { name: new RegExp(tab) }).click()
    }
    await waitFor(() => traffic().includes(`"pid":${String(started.run.pid)}`), {
      deadlineMs: 10_000,
      what: 'the processes came',
    })
    await waitFor(() => traffic().includes('"kind":"'), { deadlineMs: 10_000, what: 'the log came' })
    const everything = `${traffic()}\n${await page.content()}\n${address}`
    expect(everything).toContain('"runId":"careful"')
    expect(everything).not.toContain(secret)
    expect(everything).not.toContain(cookie)
    await engine.stop({ run: 'careful' }, { force: true })
  })

  test('V8: the keyboard alone leads to a run, along its journal, and back', async () => {
    const engine = await openTestEngine()
    for (const id of ['a', 'b', 'c']) await (await engine.start({ id, command: ['true'] })).gone
    const { address } = await serve(engine)
    const { page } = await openPage(address)
    await page.locator('[data-run=c]').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('b')
    await page.keyboard.press('Enter')
    await untilLit(page, 'run.work.settled.completed', 'run.process.confirmed', 'run.delivery.delivered')
    await page.keyboard.press('Home')
    await untilLit(page, 'run.work.open.accepted', 'run.process.waiting', 'run.delivery.pending')
    await page.keyboard.press('Escape')
    await page.getByRole('heading', { name: 'b' }).waitFor({ state: 'detached' })
  })

  test.for(['light', 'dark'] as const)('V8: axe finds no serious fault, in %s', async (colorScheme) => {
    const engine = await openTestEngine()
    await hold(engine, 'stubborn')
    await (
      await engine.start({ id: 'past', command: ['false'] })
    ).gone
    const { address } = await serve(engine)
    const { page } = await openPage(address)
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const faultsOf = async (): Promise<unknown> => {
      // By the debugger: the page itself lets no script in.
      await page.evaluate(axe.source)
      return page.evaluate(`axe.run().then(({ violations }) => violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(({ html }) => html.slice(0, 160))]))`)
    }
    await page.locator('[data-run=past]').waitFor()
    expect(await faultsOf()).toEqual([])
    await openRun(page, 'stubborn')
    await page.getByRole('tabpanel').getByText('sleeps').first().waitFor()
    expect(await faultsOf()).toEqual([])
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    expect(await faultsOf()).toEqual([])
    await page.getByRole('button', { name: 'Cancel run' }).click()
    await page.getByRole('button', { name: 'Go on in the background' }).click()
    await page.locator('.timer').waitFor()
    expect(await faultsOf()).toEqual([])
    await engine.stop({ run: 'stubborn' }, { force: true })
  })

  test('V8: it is there in light, in dark and on a narrow screen, with nothing beyond its edge', async () => {
    const engine = await openTestEngine()
    await hold(engine, 'stubborn')
    const { address } = await serve(engine)
    const { page } = await openPage(address)
    const folder = process.env['RUNWARDEN_SCREENSHOTS'] ?? tempDir()
    await openRun(page, 'stubborn')
    const grounds = new Set<string>()
    for (const [name, colorScheme, width] of [
      ['light', 'light', 1440],
      ['dark', 'dark', 1440],
      ['narrow', 'light', 400],
    ] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      const picture = await page.screenshot({ path: join(folder, `page-${name}.png`) })
      expect(picture.length).toBeGreaterThan(20_000)
      grounds.add(await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor'))
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    }
    expect(grounds.size).toBe(2)
    await engine.stop({ run: 'stubborn' }, { force: true })
  })
})
