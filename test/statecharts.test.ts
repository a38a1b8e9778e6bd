/**
 * The charts people read are those the engine runs: everything in statecharts/ is generated anew, in memory, and compared.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { charts } from '../scripts/statecharts/charts.js'
import { allStates, lacksIn } from '../scripts/statecharts/definition.js'
import { generate } from '../scripts/statecharts/generate.js'
import type { Generated } from '../scripts/statecharts/generate.js'
import { geometryOf, overlapsIn } from '../scripts/statecharts/geometry.js'
import { pageWith } from '../scripts/statecharts/pages.js'

const folder = join(import.meta.dirname, '../statecharts')
const read = (file: string) => readFileSync(join(folder, file), 'utf8')
const behind = (file: string) => `statecharts/${file} is behind its machine: npm run charts`

/** Names in the first column of the page's tables below a heading. */
function namesUnder(page: string, heading: string): string[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name).sort()
}

describe.each(charts.map((chart) => [chart.name, chart] as const))('%s', (name, chart) => {
  let generated: Generated
  beforeAll(async () => {
    const { machine, isInternal } = await chart.load(
      (path) => import(/* @vite-ignore */ `../src/machines/${path}`),
    )
    generated = await generate(machine, isInternal)
  })

  test('CHARTS: the generated files are those of the machine', () => {
    for (const [file, text] of Object.entries(generated.files)) {
      expect(read(file) === text, behind(file)).toBe(true)
    }
  })

  test('CHARTS: the tables of the page are those of the machine', () => {
    const page = read(`${name}.md`)
    expect(pageWith(page, generated.definition) === page, behind(`${name}.md`)).toBe(true)
  })

  test('CHARTS: the page explains every event, guard, timer and effect, and no other', () => {
    const page = read(`${name}.md`)
    const { events, guards, delays, actions } = generated.definition
    const effects = actions.filter(({ kind }) => kind === 'effect').map((action) => action.name)
    expect({
      events: namesUnder(page, 'Events'),
      guards: namesUnder(page, 'Guards'),
      timers: namesUnder(page, 'Timers'),
      effects: namesUnder(page, 'Effects'),
    }).toEqual({ events, guards, timers: delays, effects })
  })

  test('CHARTS: every state is described, and every action, guard and delay is named', () => {
    expect(lacksIn(generated.definition)).toEqual([])
  })

  test('CHARTS: every state and every transition is in the picture', () => {
    const svg = generated.files[`${name}.svg`] ?? ''
    const states = allStates(generated.definition)
    const shown = new Set([...svg.matchAll(/data-edge="([^"]*)"/g)].flatMap(([, ids = '']) => ids.split(' ')))
    const transitions = states.flatMap((state) => state.transitions.map(({ id }) => id))
    expect(states.filter(({ id }) => !svg.includes(`data-state="${id}"`))).toEqual([])
    expect([...shown].sort()).toEqual([...transitions].sort())
  })

  test('CHARTS: in the picture no label, state, line or text lies on another', () => {
    const { picture, overview } = generated
    for (const each of overview === null ? [picture] : [picture, overview]) {
      const geometry = geometryOf(each)
      expect(geometry.labels.length).toBeGreaterThan(0)
      expect(overlapsIn(geometry)).toEqual([])
    }
  })

  test('CHARTS: the picture fits a screen in width', () => {
    expect(generated.picture.width).toBeLessThanOrEqual(1900)
    expect(generated.overview?.width ?? 0).toBeLessThanOrEqual(1700)
  })
})

test('CHARTS: there is no chart without a machine', () => {
  const names = new Set(readdirSync(folder).map((file) => file.replace(/\..*$/, '')))
  expect([...names].sort()).toEqual(['README', ...charts.map((chart) => chart.name)].sort())
})
