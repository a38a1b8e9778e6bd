// @ts-check
/**
 * The stylesheet inside each SVG. Colours are variables on the root element: light, dark, and whatever a page that
 * shows the chart sets. A page lights what is active with the classes `lit` (now) and `was` (just before).
 */
import { faces } from './text.js'

const light = {
  sheet: '#ffffff',
  area: '#f7f8fa',
  bar: '#e9edf3',
  group: '#eff2f6',
  box: '#ffffff',
  edge: '#5b6b80',
  border: '#8793a5',
  faint: '#c6cdd8',
  ink: '#17202e',
  prose: '#566174',
  label: '#ffffff',
  event: '#1d4f91',
  internal: '#7a3e9d',
  after: '#a04a00',
  always: '#566174',
  guard: '#66707f',
  lit: '#0b7a4b',
  'lit-fill': '#e2f6ec',
}

/** @type {typeof light} */
const dark = {
  sheet: '#0f141b',
  area: '#141a23',
  bar: '#232d3b',
  group: '#1a222d',
  box: '#0f151d',
  edge: '#8fa0b7',
  border: '#66748a',
  faint: '#35404f',
  ink: '#e8edf4',
  prose: '#a3b0c2',
  label: '#141b25',
  event: '#8ebcf7',
  internal: '#d0a3ee',
  after: '#f0b06c',
  always: '#a3b0c2',
  guard: '#97a3b4',
  lit: '#45d08f',
  'lit-fill': '#0f3324',
}

/** @param {typeof light} colours */
const variables = (colours) => Object.entries(colours).map(([name, colour]) => `--chart-${name}:${colour}`).join(';')

/** @param {keyof typeof light} name */
const of = (name) => `var(--chart-${name})`

/** @param {keyof typeof faces} face */
const font = (face) => `font-family:${faces[face].family};font-weight:${faces[face].weight}`

const rules = {
  '.chart': variables(light),
  '.chart .sheet': `fill:${of('sheet')}`,
  '.chart .title': `${font('title')};fill:${of('ink')}`,
  '.chart .prose,.chart .frame-title': `${font('prose')};fill:${of('prose')}`,
  '.chart .code': `${font('code')};fill:${of('guard')}`,
  '.chart .box': `fill:${of('box')};stroke:${of('border')};stroke-width:1.2`,
  '.chart .compound>.box': `fill:${of('group')}`,
  '.chart .parallel>.box': `fill:${of('area')}`,
  '.chart .bar': `fill:${of('bar')};stroke:${of('border')};stroke-width:1.2`,
  '.chart .inner,.chart .rule': `fill:none;stroke:${of('border')};stroke-width:1`,
  '.chart .rule': `stroke:${of('faint')}`,
  '.chart .area': 'fill:none',
  '.chart .separator': `fill:none;stroke:${of('border')};stroke-dasharray:7 5`,
  '.chart .frame rect': `fill:none;stroke:${of('border')};stroke-dasharray:3 3`,
  '.chart .initial,.chart .origin': `fill:${of('edge')}`,
  '.chart .edge .line': `fill:none;stroke:${of('edge')};stroke-width:1.2`,
  '.chart .head': `fill:${of('edge')}`,
  '.chart .label rect': `fill:${of('label')};stroke:${of('faint')}`,
  '.chart .event': `fill:${of('event')}`,
  '.chart .internal .event': `fill:${of('internal')};font-style:italic`,
  '.chart .after .event': `fill:${of('after')}`,
  '.chart .always .event,.chart .entry .event': `fill:${of('always')}`,
  '.chart .actions': `fill:${of('ink')}`,
  '.chart .state.lit>.box,.chart .state.lit>.inner': `stroke:${of('lit')};stroke-width:2.4`,
  '.chart .state.lit:not(.compound)>.box': `fill:${of('lit-fill')}`,
  '.chart .edge.lit .line': `stroke:${of('lit')};stroke-width:2.4`,
  '.chart .edge.lit .head,.chart .edge.lit .origin,.chart .words.lit .event': `fill:${of('lit')}`,
}

const text = Object.entries(rules).map(([selector, declarations]) => `${selector}{${declarations}}`)

export const stylesheet = `\n${[...text, `@media (prefers-color-scheme:dark){.chart{${variables(dark)}}}`].join('\n')}\n`
