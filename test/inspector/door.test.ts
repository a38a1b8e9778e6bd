/** Who is let in, and what the server gives away to whom. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openRecords } from '../../src/index.js'
import { createInspector } from '../../src/inspector.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine, startFixture } from '../support/engine.js'
import { ask, serve } from '../support/inspector.js'
import { waitFor } from '../support/wait-for.js'

const PATHS = [
  '',
  'index.html',
  'page.js',
  'page.css',
  'chart.css',
  'chart/overview.svg',
  'fleet',
  'run?run=it',
  'log?run=it',
]

const withoutToken = (address: string, path: string): string =>
  new URL(path, address.replace(/[\w-]+\/$/, '')).href

const isFirstMessage = (body: string): boolean => body.includes('event: fleet')

describe('a page of one run', () => {
  const open = async () => {
    const engine = await openTestEngine()
    await engine.start({ id: 'it', command: ['true'] })
    return serve(engine)
  }

  test.for(PATHS)('V1: /%s gives nothing without the token', async (path) => {
    const { address } = await open()
    for (const wrong of [withoutToken(address, path), `${withoutToken(address, 'A'.repeat(43))}/${path}`]) {
      const answer = await ask(wrong)
      expect([answer.status, answer.body]).toEqual([404, ''])
    }
  })

  test.for(PATHS)('V1: /%s gives nothing to a name that is not its own', async (path) => {
    const { address } = await open()
    for (const host of [
      'evil.example',
      'evil.example:80',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
    ]) {
      const answer = await ask(`${address}${path}`, { headers: { host } })
      expect([answer.status, answer.body]).toEqual([403, ''])
    }
  })

  test.for(PATHS)('V1: /%s gives nothing to a page of another origin', async (path) => {
    const { address } = await open()
    const strangers = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: 'http://127.0.0.1:1' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ]
    for (const headers of strangers) {
      const answer = await ask(`${address}${path}`, { headers })
      expect([answer.status, answer.body]).toEqual([403, ''])
    }
  })

  test('V1: with the token, its own name and no stranger, everything is there', async () => {
    const { address } = await open()
    for (const path of PATHS) {
      const answer = await ask(`${address}${path}`, { isEnough: (body) => body.includes('event: ') })
      expect([path, answer.status]).toEqual([path, 200])
      expect(answer.body.length).toBeGreaterThan(40)
    }
  })

  test('V1: the page allows no script or style but its own, and nobody to frame it', async () => {
    const { address } = await open()
    const { headers, body } = await ask(address)
    const policy = headers['content-security-policy'] ?? ''
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'/)
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' })
    expect(body).not.toMatch(/<style|<script(?![^>]*src=)| style=|https?:/)
  })

  test.for([
    'page.ts',
    '../package.json',
    '..%2f..%2fpackage.json',
    'constructor',
    '__proto__',
    'chart/../page.js/',
  ])('V1: there is no file %s', async (path) => {
    const { address } = await open()
    expect((await ask(`${address}${path}`)).status).toBe(404)
  })
})

const post = (address: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  ask(`${address}act`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

test('V1: an act needs the token, its own origin, and a type that no form can send', async () => {
  const engine = await openTestEngine()
  const started = await startFixture(engine, 'heartbeat', { id: 'it' })
  const { address } = await serve(engine)
  const act = { run: 'it', act: 'force' }
  expect((await post(withoutToken(address, ''), act)).status).toBe(404)
  expect((await post(address, act, { origin: 'http://evil.example' })).status).toBe(403)
  expect((await post(address, act, { host: 'evil.example' })).status).toBe(403)
  expect((await post(address, act, { 'content-type': 'text/plain' })).status).toBe(415)
  expect((await ask(`${address}act`)).status).toBe(405)
  expect((await post(address, { ...act, reason: 'x'.repeat(20_000) })).status).toBe(413)
  expect(started.run.state.isSettled).toBe(false)
})

test('V1: read-only, and over records alone, nothing can be done', async () => {
  const database = await testDatabase()
  const engine = await openTestEngine({ database })
  const started = await startFixture(engine, 'heartbeat', { id: 'it' })
  await using records = await openRecords({ database })
  for (const { address, inspector } of [await serve(engine, { readOnly: true }), await serve(records)]) {
    expect(inspector.isReadOnly).toBe(true)
    const answer = await post(address, { run: 'it', act: 'force' })
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      403,
      { error: { code: 'refused', message: 'this inspector is read-only' } },
    ])
  }
  expect(started.run.state.isSettled).toBe(false)
})

test('V7: an act that makes no sense is refused with its reason', async () => {
  const engine = await openTestEngine()
  const { address } = await serve(engine)
  const unknown = await post(address, { run: 'nobody', act: 'cancel' })
  expect([unknown.status, JSON.parse(unknown.body)]).toMatchObject([409, { error: { code: 'unknown-run' } }])
  const wrong = await post(address, { run: 'it', act: 'explode' })
  expect([wrong.status, JSON.parse(wrong.body)]).toMatchObject([409, { error: { code: 'invalid-option' } }])
})

test.for([
  [{ port: 70_000 }, 'port'],
  [{ token: 'short' }, 'token'],
  [{ basePath: 'no slash' }, 'basePath'],
  [{ allowedHosts: [''] }, 'allowedHosts'],
  [{ colour: 'red' }, 'colour'],
] as const)('V1: option %j is refused by name', async ([options, name]) => {
  const engine = await openTestEngine()
  const refused = expect.objectContaining({
    code: 'invalid-option',
    message: expect.stringContaining(name) as string,
  }) as Error
  expect(() => createInspector(engine, options as never)).toThrow(refused)
})

test('V1: an address that is taken is refused by name, and it may listen elsewhere', async () => {
  const engine = await openTestEngine()
  const { address } = await serve(engine)
  const { port } = new URL(address)
  const other = createInspector(engine, { port: Number(port) })
  await expect(other.listen()).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringContaining(port) as string,
  })
})

test("V1: it can be mounted in a server of the host's, for node:http and for Fetch", async () => {
  const engine = await openTestEngine()
  await engine.start({ id: 'it', command: ['true'] })
  const inspector = createInspector(engine, { basePath: '/admin/runs', allowedHosts: ['host.example'] })
  onTestFinished(() => inspector.close())
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/admin/runs/') === true) inspector.handler(request, response)
    else response.end("the host's own")
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`
  expect(inspector.path).toMatch(/^\/admin\/runs\/[\w-]{43}\/$/)
  expect((await ask(`${address}/`)).body).toBe("the host's own")
  expect((await ask(`${address}${inspector.path}`, { headers: { host: 'host.example' } })).body).toContain(
    '<title>runwarden',
  )
  expect((await ask(`${address}${inspector.path}fleet`, { isEnough: isFirstMessage })).body).toContain(
    '"runId":"it"',
  )
  expect((await ask(`${address}/admin/runs/`)).status).toBe(404)
  const page = await inspector.fetch(
    new Request(`http://localhost${inspector.path}`, { headers: { host: 'localhost' } }),
  )
  expect([page.status, await page.text()]).toEqual([
    200,
    expect.stringContaining('<title>runwarden') as string,
  ])
})

test('V3: a client that does not read is dropped, and the others go on', async () => {
  const engine = await openTestEngine()
  // A text in every message, so that a buffer is full soon.
  const { address } = await serve(engine, {
    redact: (text) => (text === 'true' ? 'x'.repeat(1_000_000) : text),
  })
  const { port, pathname } = new URL(address)
  const slow = connect(Number(port), '127.0.0.1')
  onTestFinished(() => void slow.destroy())
  slow.write(`GET ${pathname}fleet HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  slow.pause()
  const isDropped = new Promise((resolve) => slow.once('close', resolve))
  slow.on('error', () => undefined)
  for (let index = 0; index < 40; index += 1) await engine.start({ command: ['true'] })
  // What was sent before is still there to be read.
  await waitFor(() => engine.runs().then((runs) => runs.every(({ settledAt }) => settledAt !== null)), {
    deadlineMs: 20_000,
    what: 'the runs are over',
  })
  slow.resume()
  await isDropped
  const other = await ask(`${address}page.css`)
  expect(other.status).toBe(200)
})

test('V3: there are no more streams than a maximum, and one that goes makes room', async () => {
  const engine = await openTestEngine()
  const { address } = await serve(engine)
  const controllers: AbortController[] = []
  const open = async (): Promise<number> => {
    const controller = new AbortController()
    controllers.push(controller)
    return (await fetch(`${address}fleet`, { signal: controller.signal })).status
  }
  for (let index = 0; index < 48; index += 1) expect(await open()).toBe(200)
  expect(await open()).toBe(503)
  controllers[0]?.abort()
  await waitFor(async () => (await open()) === 200, { deadlineMs: 10_000, what: 'there is room again' })
  for (const controller of controllers) controller.abort()
})
