/** An inspector that is closed after the test, requests as any program may send them, and a page in a real browser. */
import { request } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import type { Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { findChromium, openBrowser } from '../../scripts/screenshots/browser.mjs'
import type { Engine, Records } from '../../src/index.js'
import { createInspector } from '../../src/inspector.js'
import type { Inspector, InspectorOptions } from '../../src/inspector.js'

export const chromium = findChromium()
export const NO_CHROMIUM = 'no chromium'

export interface Served {
  readonly inspector: Inspector
  /** With the token. */
  readonly address: string
}

export async function serve(inspected: Engine | Records, options?: InspectorOptions): Promise<Served> {
  const inspector = createInspector(inspected, options)
  const address = await inspector.listen()
  onTestFinished(() => inspector.close())
  return { inspector, address }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A request with any headers, `Host` as well. Of a stream, what comes until it is told enough. */
export function ask(
  address: string,
  options: {
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
    readonly isEnough?: (body: string) => boolean
  } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body, isEnough = () => false } = options
  return new Promise((resolve, reject) => {
    const sent = request(address, { method, headers }, (response) => {
      let text = ''
      const done = (): void => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text })
        sent.destroy()
      }
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        if (isEnough(text)) done()
      })
      response.on('end', done)
      response.on('error', done)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

export interface OpenedPage {
  readonly page: Page
  /** Everything that the browser was sent, but pictures. */
  readonly traffic: () => string
  /** What went wrong on the page, if anything. */
  readonly faults: readonly string[]
}

/** The page in Chromium, closed after the test. */
export async function openPage(
  address: string,
  options: {
    readonly size?: { readonly width: number; readonly height: number }
    /** False for what runs long: nothing of the traffic is kept. */
    readonly keepsTraffic?: boolean
  } = {},
): Promise<OpenedPage> {
  const { size = { width: 1440, height: 900 }, keepsTraffic = true } = options
  if (chromium === null) throw new Error(NO_CHROMIUM)
  const browser = await openBrowser(chromium)
  onTestFinished(() => browser.close(), 60_000)
  const page = await browser.context.newPage()
  await page.setViewportSize(size)
  const faults: string[] = []
  const bodies: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text())
  })
  // What streams bring is not shown as a body: the devtools protocol tells it.
  const devtools = await browser.context.newCDPSession(page)
  await devtools.send('Network.enable')
  devtools.on('Network.eventSourceMessageReceived', ({ data }) => {
    if (keepsTraffic) bodies.push(data)
  })
  page.on('response', (response) => {
    if (response.headers()['content-type']?.startsWith('text/event-stream') === true) return
    response.text().then(
      (text) => bodies.push(text),
      () => undefined,
    )
  })
  await page.goto(address)
  return { page, faults, traffic: () => bodies.join('\n') }
}
