// @ts-check
/**
 * Takes pictures of the inspector, over a fleet made for it: `npm run screenshots` those of the docs, into docs/images; with a folder as its
 * argument all of them, into that one.
 */
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInspector } from 'runwarden/inspector'
import { findChromium, openBrowser } from './screenshots/browser.mjs'
import { openFleet } from './screenshots/fleet.mjs'

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, '../docs/images'))
const OF_DOCS = ['fleet', 'run']

const executable = findChromium()
if (executable === null) throw new Error('no Chromium; the variable CHROMIUM may name one')
mkdirSync(folder, { recursive: true })

const fleet = await openFleet()
const inspector = createInspector(fleet.engine)
const address = await inspector.listen()
const browser = await openBrowser(executable)
try {
  const page = await browser.context.newPage()
  /** @param {string} name */
  const take = async (name) => {
    if (process.argv[2] === undefined && !OF_DOCS.includes(name)) return
    await page.screenshot({ path: join(folder, `inspector-${name}.png`) })
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.goto(address)
  await page.getByRole('link', { name: 'reindex' }).waitFor()
  // Progress needs a little time to be seen.
  await page.waitForTimeout(25_000)
  await take('fleet')

  await page.getByRole('link', { name: 'reindex' }).click()
  await page.getByRole('button', { name: 'Cancel', exact: true }).click()
  await page.getByLabel('Reason').fill('superseded by the new index')
  await take('act')
  await page.getByRole('button', { name: 'Cancel run' }).click()
  await page.getByRole('button', { name: 'Go on in the background' }).click()
  await page.locator('.timer').waitFor()
  await page.waitForTimeout(2_500)
  await take('run')
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.waitForTimeout(300)
  await take('run-dark')
  await page.setViewportSize({ width: 420, height: 880 })
  await page.waitForTimeout(600)
  await take('narrow')
} finally {
  await browser.close()
  await inspector.close()
  await fleet.close()
}
