/** Observers of the charts: what they are told, and what they cannot do. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createWebSocketInspector } from '@statelyai/inspect'
import type { StatelyInspectionEvent } from '@statelyai/inspect'
import { WebSocketServer } from 'ws'
import { expect, onTestFinished, test } from 'vitest'
import type { InspectionEvent } from 'xstate'
import { openTestEngine, startFixture } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

const soon = { deadlineMs: 15_000 }

/** Where the frames of `@statelyai/inspect` arrive. */
async function receiver() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  await once(server, 'listening')
  const frames: StatelyInspectionEvent[] = []
  server.on('connection', (socket) => {
    socket.on('message', (data: Buffer) =>
      frames.push(JSON.parse(data.toString('utf8')) as StatelyInspectionEvent),
    )
  })
  return { frames, url: `ws://127.0.0.1:${String((server.address() as AddressInfo).port)}` }
}

test('V9: the frames that @statelyai/inspect sends show the registry, the runs and their processes as they move', async () => {
  const { frames, url } = await receiver()
  const stately = createWebSocketInspector({ url })
  onTestFinished(() => {
    stately.stop()
  })
  const engine = await openTestEngine({ inspect: stately.inspect })
  const run = await engine.start({ id: 'it', command: ['true'] })
  await run.gone
  const of = (sessionId: string) => frames.filter((frame) => frame.sessionId === sessionId)
  await waitFor(() => JSON.stringify(of('it')).includes('"delivery":"delivered"'), {
    ...soon,
    what: 'the last frame came',
  })
  const actor = of('it').find(({ type }) => type === '@xstate.actor')
  expect(actor).toMatchObject({ name: 'run', rootId: engine.id, parentId: engine.id })
  const definition = JSON.parse((actor as { definition: string }).definition) as { states: object }
  expect(Object.keys(definition.states).sort()).toEqual(['delivery', 'process', 'work'])
  const events = of('it').flatMap((frame) => (frame.type === '@xstate.event' ? [frame] : []))
  expect(events.map(({ event }) => event.type)).toEqual(
    (await engine.history('it')).transitions.map(({ event }) => event),
  )
  expect(events.find(({ event }) => event.type === 'process.launched')?.sourceId).toBe('it/process-1')
  const last = of('it').findLast(({ type }) => type === '@xstate.snapshot')
  expect(last).toMatchObject({
    snapshot: { value: { work: { settled: 'completed' }, process: 'confirmed', delivery: 'delivered' } },
  })
  expect(of('it/process-1')[0]).toMatchObject({ type: '@xstate.actor', parentId: 'it' })
  expect(of(engine.id).find(({ type }) => type === '@xstate.actor')).toMatchObject({ name: 'registry' })
})

test('V9: an observer that comes late is told what is there, and one that went hears no more', async () => {
  const engine = await openTestEngine()
  const started = await startFixture(engine, 'heartbeat', { id: 'it' })
  await waitFor(() => started.run.state.process === 'alive', { ...soon, what: 'it is launched' })
  const seen: InspectionEvent[] = []
  const stop = engine.inspect((event) => seen.push(event))
  await waitFor(() => seen.length >= 2, { ...soon, what: 'the actors that are there' })
  expect(seen.slice(0, 2).map(({ type, actorRef }) => [type, actorRef.sessionId])).toEqual([
    ['@xstate.actor', engine.id],
    ['@xstate.actor', 'it'],
  ])
  stop()
  const count = seen.length
  await started.run.cancel({ force: true })
  expect(seen).toHaveLength(count)
})

test('V2, V9: an observer is told nothing of arguments, the environment, or what the agent said', async () => {
  const secret = 'hunter2-f00dfeed'
  const seen: string[] = []
  const engine = await openTestEngine({
    inspect: ({ type, ...event }: InspectionEvent) => {
      const { actorRef, ...rest } = event as unknown as { actorRef: { getSnapshot(): unknown } }
      seen.push(JSON.stringify([type, actorRef.getSnapshot(), rest]))
    },
  })
  const run = await engine.start({
    command: ['sh', '-c', 'echo $API_KEY', secret],
    env: { ...process.env, API_KEY: secret },
  })
  await run.gone
  await waitFor(() => seen.some((text) => text.includes('"delivered"')), { ...soon, what: 'the last event' })
  expect(seen.join('\n')).not.toContain(secret)
})

const blockFor = (ms: number): void => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test.for([
  [
    'throws',
    () => {
      throw new Error('not me')
    },
  ],
  ['rejects', () => Promise.reject(new Error('not me'))],
  [
    'blocks',
    () => {
      blockFor(50)
    },
  ],
  ['never answers', () => new Promise(() => undefined)],
] as const)('V4: an observer that %s hurts no run', async ([, observer]) => {
  const errors: string[] = []
  const note = (_: unknown, message: string): void => void errors.push(message)
  const ignore = (): void => undefined
  const engine = await openTestEngine({
    inspect: observer,
    logger: { debug: ignore, info: ignore, warn: ignore, error: note },
  })
  const runs = await Promise.all(Array.from({ length: 20 }, () => engine.start({ command: ['true'] })))
  const outcomes = await Promise.all(runs.map((run) => run.outcome))
  expect(outcomes.map(({ status }) => status)).toEqual(Array(20).fill('completed'))
  await Promise.all(runs.map((run) => run.gone))
  // Told once, however often it fails.
  expect(errors.filter((text) => text === 'an inspection observer failed').length).toBeLessThanOrEqual(1)
})

test('V4: an observer that is flooded loses the oldest events, is told so in the log, and rests after it blocked', async () => {
  const warnings: string[] = []
  const note = (_: unknown, message: string): void => void warnings.push(message)
  const ignore = (): void => undefined
  const engine = await openTestEngine({ logger: { debug: ignore, info: ignore, warn: note, error: ignore } })
  const begunAt: number[] = []
  engine.inspect(() => {
    begunAt.push(performance.now())
    blockFor(20)
  })
  const runs = await Promise.all(Array.from({ length: 120 }, () => engine.start({ command: ['true'] })))
  await Promise.all(runs.map((run) => run.gone))
  await waitFor(() => warnings.some((text) => text.includes('events were dropped')), {
    ...soon,
    what: 'a warning',
  })
  const gaps = begunAt.slice(1).map((at, index) => at - (begunAt[index] ?? 0))
  // A call takes 20 ms, and several times that is the rest, of which a late beginning may have taken some.
  expect(Math.min(...gaps)).toBeGreaterThan(40)
})

test.for([null, 7, {}, { next: 'x' }] as const)('V9: an observer %j is refused', async (observer) => {
  const engine = await openTestEngine()
  const refused = expect.objectContaining({
    code: 'invalid-option',
    message: expect.stringContaining('observer') as string,
  }) as Error
  expect(() => engine.inspect(observer as never)).toThrow(refused)
})
