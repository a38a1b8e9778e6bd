/** Which arrows of the drawing a transition went along: for every transition of real journals there are some. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Engine, TransitionRecord } from '../../src/index.js'
import { parseEdge, wayOf } from '../../src/inspector/page/edges.js'
import { openTestEngine, startFixture } from '../support/engine.js'

const REGIONS = ['work', 'process', 'delivery'] as const

const edgesIn = (file: string) => {
  const svg = readFileSync(new URL(`../../statecharts/${file}`, import.meta.url), 'utf8')
  const ids = [...svg.matchAll(/data-edge="([^"]*)"/g)].flatMap(([, all = '']) => all.split(' '))
  return [...new Set(ids)].map(parseEdge)
}

/** The way of each region that a transition moved, as `source event target` of each arrow. */
const waysOf = (edges: ReturnType<typeof edgesIn>, { from, to, event }: TransitionRecord) =>
  REGIONS.filter((region) => from !== null && from[region] !== to[region]).map((region) => {
    const own = edges.filter(({ source }) => source.startsWith(`run.${region}.`))
    const way = wayOf(own, {
      from: `run.${region}.${from?.[region] ?? ''}`,
      to: `run.${region}.${to[region]}`,
      event,
    })
    return way.map(
      (edge) => `${edge.source.replace('run.', '')} ${edge.event} ${edge.target.replace('run.', '')}`,
    )
  })

const journalOf = async (engine: Engine, id: string) => (await engine.history(id)).transitions

test.for(['run.svg', 'run.overview.svg'])('V6: every move of a journal has its way in %s', async (file) => {
  const edges = edgesIn(file)
  const engine = await openTestEngine()
  await (
    await engine.start({ id: 'completed', command: ['true'] })
  ).gone
  await (
    await engine.start({ id: 'failed', command: ['false'] })
  ).gone
  await (
    await engine.start({ id: 'not-there', command: ['/no/such/program'] })
  ).gone
  const paused = await startFixture(engine, 'ignore-term', { id: 'paused' })
  await paused.ready()
  await paused.run.pause()
  await paused.run.resume()
  await paused.run.cancel()
  await paused.run.gone
  const moves = new Map<string, string[][]>()
  for (const id of ['completed', 'failed', 'not-there', 'paused']) {
    for (const transition of await journalOf(engine, id)) {
      const ways = waysOf(edges, transition)
      for (const way of ways) expect([id, transition, way.length > 0]).toEqual([id, transition, true])
      moves.set(`${id} ${transition.event}`, ways)
    }
  }
  expect(moves.get('paused run.cancel')).toEqual([
    [expect.stringContaining('run.cancel work.open.cancel-requested') as string],
    ['process.alive intent.recorded process.term-sent'],
  ])
  expect(moves.get('paused run.pause')).toEqual([['process.alive run.pause process.frozen']])
  const gone = [...moves].find(([, ways]) => ways.flat().some((step) => step.endsWith('process.confirmed')))
  expect(gone?.[1].flat()).toContain('process.gone always process.confirmed')
})
