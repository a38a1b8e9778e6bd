// @ts-check
/**
 * Looks for hints that make a column of a chart smaller and calmer, and writes them to hints.json. Run by hand after a
 * change to a machine: node scripts/generate-statecharts.tune.mjs <box id> <seconds> [<widest px>] [<seed>], for example
 * `run.process 600 620`, or `run.process:overview 600 520` for the overview. It goes on from the hints that are there; without any, a chart is right and only larger.
 *
 * Owns: the search (simulated annealing over labels' homes and layering strategies) and what counts as better.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { format } from 'node:util'
import { chartNamed, charts } from './statecharts/charts.js'
import { definitionOf } from './statecharts/definition.js'
import { drawingOf } from './statecharts/drawing.js'
import { homesOf, keyOf, placeColumn } from './statecharts/elk.js'
import { crossingsIn, geometryOf, overlapsIn } from './statecharts/geometry.js'
import { placeHeads } from './statecharts/heads.js'
import { overviewOf } from './statecharts/overview.js'

/**
 * @typedef {import('./statecharts/elk.js').Hints} Hints
 * @typedef {import('./statecharts/elk.js').Part} Part
 * @typedef {import('./statecharts/drawing.js').Box} Box
 */

const layerings = ['NETWORK_SIMPLEX', 'MIN_WIDTH', 'LONGEST_PATH', '2 wide', '3 wide', '4 wide', '5 wide']
const placements = ['NETWORK_SIMPLEX', 'BRANDES_KOEPF', 'LINEAR_SEGMENTS']
const MAX_SEED = 50
const HEAT = 60

/** Penalty points: an overlap is never worth anything else. */
const OVERLAP = 400

/** @param {Part} part @param {{ width: number, height: number }} limits */
function penaltyOf(part, limits) {
  const geometry = geometryOf(part)
  const rows = new Set(part.boxes.filter(({ box }) => box.kind === 'final').map(({ y }) => Math.round(y / 4)))
  const bends = part.arrows.reduce((sum, { points }) => sum + points.length - 2, 0)
  const length = geometry.segments.reduce(
    (sum, { from, to }) => sum + Math.abs(from.x - to.x) + Math.abs(from.y - to.y),
    0,
  )
  return (
    2 * part.width +
    8 * Math.max(0, part.width - limits.width) +
    0.6 * part.height +
    2 * Math.max(0, part.height - limits.height) +
    0.03 * length +
    4 * bends +
    14 * crossingsIn(geometry) +
    25 * rows.size +
    headPenaltyOf(part) +
    OVERLAP * overlapsIn(geometry).length
  )
}

/** A title belongs at the left, with its description behind it. @param {Part} part */
function headPenaltyOf({ boxes }) {
  return boxes
    .filter(({ box }) => box.boxes.length > 0)
    .reduce(
      (sum, { rows, text }) =>
        sum + 0.4 * ((rows[0]?.x ?? 0) - 9) + 30 * (text.head.rows.length - rows.length),
      0,
    )
}

/** @param {number} seed */
function randomFrom(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** @param {Box} top @returns {ReadonlyMap<string, { path: readonly string[], isOuter: boolean }>} */
function pathsWithin(top) {
  const paths = new Map()
  const visit = (/** @type {Box} */ box, /** @type {readonly string[]} */ path) => {
    paths.set(box.id, { path, isOuter: box.boxes.length > 0 })
    for (const child of box.boxes) visit(child, [...path, box.id])
  }
  visit(top, [])
  return paths
}

const [key = '', seconds = '60', width = '600', seed = '1'] = process.argv.slice(2)
const [boxId = '', view] = key.split(':')
const chart = chartNamed(boxId.split('.')[0] ?? '') ?? charts[0]
const { machine, isInternal } = await chart.load((path) => import(`../dist/machines/${path}`))
const whole = drawingOf(definitionOf(machine, isInternal))
const drawing = view === 'overview' ? overviewOf(whole) : whole
const isRegion = drawing.root.kind === 'parallel'
const top = (isRegion ? drawing.root.boxes : [drawing.root]).find(({ id }) => id === boxId)
if (!top) throw new RangeError(`No column ${boxId}`)

const file = process.env.HINTS ?? new URL('./statecharts/hints.json', import.meta.url)
const readHints = () => JSON.parse(readFileSync(file, 'utf8'))
const paths = pathsWithin(top)
const outers = [...paths].filter(([, { isOuter }]) => isOuter).map(([id]) => id)
const labelled = drawing.arrows.filter(({ source, lines }) => paths.has(source) && lines.length > 0)
const limits = { width: Number(width), height: 1900 }
const random = randomFrom(Number(seed))
/** @template T @param {readonly T[]} items @returns {T} */
const pick = (items) => /** @type {T} */ (items[Math.floor(random() * items.length)])

/** @param {Hints} hints @returns {Hints} */
function changed(hints) {
  const kind = random()
  if (kind < 0.2) return { ...hints, seed: 1 + Math.floor(random() * MAX_SEED) }
  if (kind < 0.28) return { ...hints, finalRows: pick([1, 2, 3]) }
  if (kind < 0.35) return { ...hints, placement: pick(placements) }
  if (kind < 0.6) return { ...hints, layering: { ...hints.layering, [pick(outers)]: pick(layerings) } }
  const arrow = pick(labelled)
  return { ...hints, homes: { ...hints.homes, [keyOf(arrow)]: pick(homesOf(arrow, paths)) } }
}

/** @param {Hints} hints ELK fails on a few combinations: those are no candidates. */
const judge = (hints) =>
  placeColumn(drawing, top, isRegion, hints).then(
    (column) => {
      const part = placeHeads(column)
      return { hints, penalty: penaltyOf(part, limits), part }
    },
    () => ({ hints, penalty: Infinity, part: null }),
  )

let current = await judge(readHints()[key] ?? {})
let best = current
const begin = performance.now()
const share = () => (performance.now() - begin) / (1000 * Number(seconds))
while (share() < 1) {
  const changes = 1 + Math.floor(random() * 3)
  let hints = current.hints
  for (let index = 0; index < changes; index += 1) hints = changed(hints)
  const next = await judge(hints)
  const heat = Math.max(1, HEAT * (1 - share()))
  if (random() < Math.exp((current.penalty - next.penalty) / heat)) current = next
  if (current.penalty >= best.penalty) continue
  best = current
  const { part } = best
  if (part)
    console.log(
      format(
        '%d: %d × %d, %d overlaps',
        Math.round(best.penalty),
        Math.round(part.width),
        Math.round(part.height),
        overlapsIn(geometryOf(part)).length,
      ),
    )
  writeFileSync(file, `${JSON.stringify({ ...readHints(), [key]: best.hints }, null, 2)}\n`)
}
