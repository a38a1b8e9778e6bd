// @ts-check
/**
 * Where everything stands: a drawing becomes a picture with places and sizes.
 *
 * Owns: the sheet: the columns of a parallel machine side by side, the machine's own box around them, the legend.
 * Does not own: the inside of a column (elk.js), looks (svg.js), text (typeset.js).
 */
import { placeColumn } from './elk.js'
import { placeHeads } from './heads.js'
import { geometryOf, overlapsIn } from './geometry.js'
import { hintsFor } from './hints.js'
import { legendOf } from './legend.js'
import { straighten } from './straighten.js'
import { setBox } from './typeset.js'

/**
 * @typedef {import('./drawing.js').Drawing} Drawing
 * @typedef {import('./drawing.js').Box} Box
 * @typedef {import('./elk.js').Part} Part
 * @typedef {import('./elk.js').PlacedBox} PlacedBox
 * @typedef {import('./elk.js').PlacedArrow} PlacedArrow
 * @typedef {import('./elk.js').Rect} Rect
 *
 * @typedef {object} Picture
 * @property {import('./definition.js').Definition} definition
 * @property {number} width
 * @property {number} height
 * @property {readonly PlacedBox[]} boxes   Outer ones first.
 * @property {readonly PlacedArrow[]} arrows
 * @property {(Rect & { legend: import('./legend.js').Legend }) | null} legend  An overview has none.
 */

const MARGIN = 12
const GAP = 18

/**
 * @param {Drawing} drawing
 * @returns {Promise<Picture>}
 */
export async function pictureOf(drawing) {
  const { definition, root } = drawing
  const isParallel = root.kind === 'parallel'
  /** @type {Part[]} */
  const columns = []
  for (const box of isParallel ? root.boxes : [root]) {
    columns.push(await legibleColumn(drawing, box, isParallel))
  }
  const legend = legendOf(drawing)
  const chart = isParallel
    ? sideBySide(drawing, columns)
    : (columns[0] ?? { width: 0, height: 0, boxes: [], arrows: [] })
  const shortest = columns.reduce((a, b) => (b.height < a.height ? b : a))
  const room = chart.height - (isParallel ? headOf(drawing).height : 0) - shortest.height
  const x = columns.slice(0, columns.indexOf(shortest)).reduce((sum, { width }) => sum + width, 0)
  const isBelow = !isParallel || room < legend.height + 2 * GAP || shortest.width < legend.width + 2 * GAP
  const place = isBelow
    ? { x: 0, y: chart.height + GAP }
    : { x: x + GAP, y: chart.height - legend.height - GAP }
  const placed = drawing.isOverview
    ? { x: 0, y: 0, width: 0, height: 0 }
    : { ...place, width: legend.width, height: legend.height }
  const sheet = move(chart, MARGIN, MARGIN)
  return {
    definition,
    width: Math.max(chart.width, placed.x + placed.width) + 2 * MARGIN,
    height: Math.max(chart.height, placed.y + placed.height) + 2 * MARGIN,
    boxes: sheet.boxes,
    arrows: sheet.arrows,
    legend: drawing.isOverview ? null : { ...placed, x: placed.x + MARGIN, y: placed.y + MARGIN, legend },
  }
}

/**
 * A column with nothing on top of anything else: with its hints if they still do, else without.
 * @param {Drawing} drawing
 * @param {Box} box
 * @param {boolean} isRegion
 * @returns {Promise<Part>}
 */
async function legibleColumn(drawing, box, isRegion) {
  const hints = hintsFor(box.id, drawing.isOverview)
  /** @type {{ part: Part, faults: number }[]} */
  const tried = []
  for (const each of [hints, {}]) {
    const column = await placeColumn(drawing, box, isRegion, each).catch(() => null)
    if (!column) continue
    const wide = tooNarrow(column)
    const part = finished(
      wide.length === 0 ? column : await placeColumn(drawing, box, isRegion, { ...each, wide }),
    )
    const faults = overlapsIn(geometryOf(part)).length
    if (faults === 0) return part
    tried.push({ part, faults })
  }
  const [best] = tried.sort((a, b) => a.faults - b.faults)
  if (!best) throw new RangeError(`ELK cannot lay out ${box.id}`)
  return best.part
}

/** @param {Part} column */
const finished = (column) => placeHeads(straighten(column))

/** @param {Part} column */
function tooNarrow({ boxes }) {
  return boxes
    .filter(({ text, width }) => Math.max(text.head.width, text.foot?.width ?? 0) > width)
    .map(({ box }) => box.id)
}

/** @param {Drawing} drawing */
const headOf = ({ root }) => setBox(root, { isRegion: true, isMachine: false, hasFoot: false }).head

/** The columns of a parallel machine in one box, all as high as the highest. @param {Drawing} drawing @param {readonly Part[]} columns @returns {Part} */
function sideBySide(drawing, columns) {
  const head = headOf(drawing)
  const width = columns.reduce((sum, column) => sum + column.width, 0)
  const height = head.height + Math.max(...columns.map((column) => column.height))
  const machine = {
    x: 0,
    y: 0,
    width,
    height,
    box: drawing.root,
    text: { head, foot: null },
    rows: [],
    isRegion: false,
  }
  let x = 0
  const moved = columns.map((column) => {
    const part = move(column, x, head.height)
    x += column.width
    const [region, ...inner] = part.boxes
    return { ...part, boxes: region ? [{ ...region, height: height - region.y }, ...inner] : [] }
  })
  const boxes = [
    ...placeHeads({ width, height, boxes: [machine], arrows: [] }).boxes,
    ...moved.flatMap((part) => part.boxes),
  ]
  return { width, height, boxes, arrows: moved.flatMap(({ arrows }) => arrows) }
}

/** @param {Part} part @param {number} dx @param {number} dy @returns {Part} */
function move(part, dx, dy) {
  const by = (/** @type {any} */ thing) => ({ ...thing, x: thing.x + dx, y: thing.y + dy })
  return {
    ...part,
    boxes: part.boxes.map(by),
    arrows: part.arrows.map(({ arrow, points, label }) => ({
      arrow,
      points: points.map(by),
      label: label && by(label),
    })),
  }
}
