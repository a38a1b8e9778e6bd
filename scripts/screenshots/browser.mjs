// @ts-check
/** A headless Chromium with a profile of its own, for screenshots and tests. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Null where there is none. `CHROMIUM` names another one. */
export const findChromium = () =>
  [process.env.CHROMIUM, ...PLACES].find((place) => place !== undefined && existsSync(place)) ?? null

/** It talks to nobody but the page that it is given. */
const ARGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * @param {string} executablePath
 * @param {readonly string[]} [args]
 */
export const openBrowser = async (executablePath, args = []) => {
  const profile = mkdtempSync(join(tmpdir(), 'runwarden-chromium-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    // Root has no sandbox of Chromium's, and runs it in containers.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [...ARGS, ...args],
    viewport: { width: 1440, height: 900 },
  })
  return {
    context,
    close: async () => {
      await context.close()
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
