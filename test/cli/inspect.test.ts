/** `runwarden inspect`: beside other processes over one store. */
import { connect } from 'node:net'
import { expect, test, vi } from 'vitest'
import { ask } from '../support/inspector.js'
import { waitFor } from '../support/wait-for.js'
import { TEST_TIMEOUT_MS, cli, runFixture, start } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const isReachable = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 })
    const done = (answer: boolean) => (): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', done(true)).once('error', done(false)).once('timeout', done(false))
  })

const listen = async (...args: readonly string[]) => {
  const inspect = start(['inspect', '--json', ...args])
  const line = await waitFor(() => /^\{.*\}$/m.exec(inspect.text())?.[0], {
    deadlineMs: 30_000,
    what: 'it listens',
  })
  return { inspect, said: JSON.parse(line) as { type: string; address: string; isReadOnly: boolean } }
}

test('V1, V7: the page shows a run of another process and ends it with its receipt, on this machine alone', async () => {
  const run = await runFixture('setsid-grandchild', ['--id', 'it'])
  const { inspect, said } = await listen()
  expect(said).toMatchObject({ type: 'listening', isReadOnly: false })
  const { hostname, port } = new URL(said.address)
  expect(hostname).toBe('127.0.0.1')
  expect(await isReachable('127.0.0.1', Number(port))).toBe(true)
  // Another address of this machine.
  expect(await isReachable('127.0.0.2', Number(port))).toBe(false)
  const fleet = await ask(`${said.address}fleet`, { isEnough: (body) => body.includes('"runId":"it"') })
  expect(fleet.status).toBe(200)
  const act = await ask(`${said.address}act`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ run: 'it', act: 'cancel', reason: 'seen enough' }),
  })
  expect(JSON.parse(act.body)).toMatchObject({ receipt: { status: 'confirmed', runs: [{ runId: 'it' }] } })
  expect(run.alive()).toEqual([])
  inspect.kill('SIGTERM')
  expect((await inspect.ended).code).toBe(0)
  expect((await run.ended).code).toBe(143)
})

test('V1: --read-only looks, writes nothing of itself into the store, and acts on nothing', async () => {
  const run = await runFixture('heartbeat', ['--id', 'it'])
  const { inspect, said } = await listen('--read-only')
  expect(said.isReadOnly).toBe(true)
  const body = JSON.stringify({ run: 'it', act: 'force' })
  const headers = { 'content-type': 'application/json' }
  expect((await ask(`${said.address}act`, { method: 'POST', headers, body })).status).toBe(403)
  expect(run.alive().length).toBeGreaterThan(0)
  inspect.kill('SIGINT')
  expect((await inspect.ended).code).toBe(0)
  expect((await cli(['stop', 'it', '--force'])).code).toBe(0)
})

test.for([
  [['--port', '99999'], 64],
  [['--port', 'x'], 64],
  [[], 74],
] as const)('CLI: inspect %j without a store, or with a wrong port, says so', async ([args, code]) => {
  expect((await cli(['inspect', ...args])).code).toBe(code)
})
