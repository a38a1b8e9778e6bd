/** The files of the page, and the drawings of the run chart, read from the package once. */
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RunwardenError } from '../index.js'

/** Built: also for who runs this file from its source. */
const PAGE = fileURLToPath(new URL('../../dist/inspector/page/', import.meta.url))
const CHARTS = fileURLToPath(new URL('../../statecharts/', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
}

export interface Asset {
  readonly type: string
  readonly body: string
}

const STYLE = /<style>([\s\S]*?)<\/style>/

/** The page may have no style of its own inside (CSP): the drawing's is a file. */
const chart = (name: string): string => readFileSync(`${CHARTS}${name}`, 'utf8')
const withoutStyle = (svg: string): string => svg.replace(STYLE, '')
const styleOf = (svg: string): string => STYLE.exec(svg)?.[1] ?? ''

const sources: Readonly<Record<string, () => string>> = {
  'index.html': () => readFileSync(`${PAGE}index.html`, 'utf8'),
  'page.js': () => readFileSync(`${PAGE}page.js`, 'utf8'),
  'page.css': () => readFileSync(`${PAGE}page.css`, 'utf8'),
  'favicon.svg': () => readFileSync(`${PAGE}favicon.svg`, 'utf8'),
  'chart.css': () => styleOf(chart('run.svg')),
  'chart/full.svg': () => withoutStyle(chart('run.svg')),
  'chart/overview.svg': () => withoutStyle(chart('run.overview.svg')),
}

const cache = new Map<string, Asset>()

/** Null: there is no such file. Throws `refused` when the installation lacks it. */
export const assetFor = (path: string): Asset | null => {
  const name = path === '' ? 'index.html' : path
  const known = cache.get(name)
  if (known !== undefined) return known
  const read = Object.hasOwn(sources, name) ? sources[name] : undefined
  if (read === undefined) return null
  try {
    const asset = { type: TYPES[extname(name)] ?? 'application/octet-stream', body: read() }
    cache.set(name, asset)
    return asset
  } catch (cause) {
    throw new RunwardenError('refused', `the page is missing from this installation (${name})`, { cause })
  }
}
