// @ts-check
/**
 * The stylesheet inside each SVG.
 *
 * Owns: colours, as variables on the root element: light, dark, and whatever a page that shows the chart sets instead.
 * A page lights things with the classes `lit` (active now) and `was` (active just before) on what carries
 * `data-state` or `data-edge`.
 */
import { faces } from './text.js'

const light = {
  sheet: '#ffffff',
  area: '#fafbfc',
  bar: '#e6ebf2',
  group: '#f1f4f8',
  box: '#ffffff',
  edge: '#5b6b80',
  border: '#8290a3',
  faint: '#c9d1dc',
  ink: '#17202e',
  prose: '#566174',
  label: '#ffffff',
  event: '#1a4f96',
  internal: '#7b3aa6',
  after: '#a04a00',
  quiet: '#66707f',
  lit: '#0a7d4c',
  'lit-fill': '#dff6ea',
  was: '#b7791f',
}

/** @type {typeof light} */
const dark = {
  sheet: '#0d1218',
  area: '#11171f',
  bar: '#263243',
  group: '#18202b',
  box: '#0d131a',
  edge: '#8c9db4',
  border: '#5f6e85',
  faint: '#364152',
  ink: '#e8edf4',
  prose: '#a9b5c6',
  label: '#121922',
  event: '#8fc0ff',
  internal: '#d6a8f5',
  after: '#f3b26b',
  quiet: '#95a3b6',
  lit: '#3fd08c',
  'lit-fill': '#0f3526',
  was: '#e0a84a',
}

/** @param {typeof light} colours */
const variables = (colours) =>
  Object.entries(colours)
    .map(([name, colour]) => `--chart-${name}:${colour}`)
    .join(';')

/** The plain colour comes first, for programs that draw SVG and know no variables. @param {'fill' | 'stroke'} property @param {keyof typeof light} name */
const paint = (property, name) => `${property}:${light[name]};${property}:var(--chart-${name})`

/** @param {keyof typeof light} name */
const fill = (name) => paint('fill', name)

/** @param {keyof typeof light} name @param {number} width */
const stroke = (name, width) => `${paint('stroke', name)};stroke-width:${width}`

/** @param {keyof typeof faces} face */
const font = (face) => `font-family:${faces[face].family};font-weight:${faces[face].weight}`

/** @type {readonly (readonly [string, string])[]} In order: a later rule wins over an earlier one. */
const rules = [
  ['', variables(light)],
  ['.sheet', fill('sheet')],
  ['.title', `${font('title')};${fill('ink')}`],
  ['.prose,.frame-title', `${font('prose')};${fill('prose')}`],
  ['.code', `${font('code')};${fill('quiet')}`],
  ['.box', `${fill('box')};${stroke('border', 1.2)}`],
  ['.compound>.box', fill('group')],
  ['.parallel>.box', fill('area')],
  ['.region>.box', 'fill:none;stroke:none'],
  ['.bar', `${fill('bar')};${stroke('border', 1.2)}`],
  ['.inner', `fill:none;${stroke('border', 1)}`],
  ['.rule', `fill:none;${stroke('faint', 1)}`],
  ['.separator', `fill:none;${stroke('border', 1.2)};stroke-dasharray:7 5`],
  ['.frame rect', `fill:none;${stroke('border', 1)};stroke-dasharray:3 3`],
  ['.initial,.origin,.head', fill('edge')],
  ['.line', `fill:none;${stroke('edge', 1.2)}`],
  ['.label rect,.legend>rect', `${fill('label')};${stroke('faint', 1)}`],
  ['.event', fill('event')],
  ['.internal .event,.raised', `${fill('internal')};font-style:italic`],
  ['.after .event', fill('after')],
  ['.always .event,.entry .event,.guard', fill('quiet')],
  ['.actions', fill('ink')],
  ['.state.was>.box,.state.was>.inner', stroke('was', 2)],
  ['.edge.was>.line', stroke('was', 2)],
  ['.state.lit>.box,.state.lit>.inner', stroke('lit', 2.4)],
  ['.state.lit:not(.compound)>.box', fill('lit-fill')],
  ['.edge.lit>.line', stroke('lit', 2.4)],
  ['.edge.lit>.head,.edge.lit>.origin,.words.lit .event', fill('lit')],
]

const scoped = rules.map(([selectors, declarations]) => {
  const each = selectors.split(',').map((selector) => (selector === '' ? '.chart' : `.chart ${selector}`))
  return `${each.join(',')}{${declarations}}`
})

export const stylesheet = `\n${[...scoped, `@media (prefers-color-scheme:dark){.chart{${variables(dark)}}}`].join('\n')}\n`
