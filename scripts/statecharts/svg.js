// @ts-check
/**
 * The looks: a picture as an SVG that stands by itself, in light and in dark.
 *
 * Owns: shapes and ids. `data-state` marks each state's group; `data-edge` lists the ids of the transitions that an
 * arrow, a label or a line of text stands for (select one with `[data-edge~="…"]`).
 * Does not own: places (layout.js), colours (style.js), what is written (drawing.js).
 * Invariants: no script, no link, nothing loaded; ids carry the machine's name, so several charts fit in one page.
 */
import { stylesheet } from './style.js'

/**
 * @typedef {import('./layout.js').Picture} Picture
 * @typedef {import('./elk.js').PlacedBox} PlacedBox
 * @typedef {import('./elk.js').PlacedArrow} PlacedArrow
 * @typedef {import('./elk.js').Point} Point
 * @typedef {import('./elk.js').Rect} Rect
 * @typedef {import('./typeset.js').Row} Row
 */

const BEND = 5
const HEAD_LENGTH = 7
const HEAD_WIDTH = 6.4
const CORNER = 8

/**
 * @param {Picture} picture
 * @returns {string}
 */
export function svgOf({ definition, width, height, boxes, arrows, legend }) {
  const { id, version, description } = definition
  const size = `width="${round(width)}" height="${round(height)}"`
  const name = `chart-${id}`
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" class="chart" data-machine="${id}" viewBox="0 0 ${round(width)} ${round(height)}" ${size} role="img" aria-labelledby="${name}-title ${name}-desc">`,
    `<title id="${name}-title">${escape(`Statechart ${id}, version ${version}`)}</title>`,
    `<desc id="${name}-desc">${escape(description)}</desc>`,
    `<style>${stylesheet}</style>`,
    `<rect class="sheet" ${size}/>`,
    ...boxes.map((box) => drawBox(box)),
    ...separators(boxes),
    ...arrows.map(drawArrow),
    ...arrows.map(drawLabel),
    legend === null ? '' : drawLegend(legend),
    '</svg>',
  ]
  return `${parts.filter((part) => part !== '').join('\n')}\n`
}

// ── boxes ───────────────────────────────────────────────────────────────────────────────────────

/** @param {PlacedBox} placed */
function drawBox(placed) {
  const { x, y, width, box, rows, isRegion } = placed
  if (box.kind === 'initial') return drawInitial(x + width / 2, y + width / 2)
  const text = drawRows(rows, x, y)
  if (box.kind === 'frame') {
    return `<g class="frame">${titleOf(box.description)}<rect ${at(placed)} rx="${CORNER}"/>${text}</g>`
  }
  const kind = isRegion ? 'region' : box.kind
  const shape = isRegion ? `<rect class="box" ${at(placed)}/>` : drawShape(placed)
  return `<g class="state ${kind}" data-state="${box.id}">${titleOf(`${box.title}: ${box.description}`)}${shape}${text}</g>`
}

/** @param {PlacedBox} placed */
function drawShape(placed) {
  const { x, y, width, box, text } = placed
  const outline = `<rect class="box" ${at(placed)} rx="${CORNER}"/>`
  if (box.boxes.length > 0) return `${outline}<path class="bar" d="${barPath(placed)}"/>`
  const inner =
    box.kind === 'final' ? `<rect class="inner" ${at(inset(placed, 3))} rx="${CORNER - 2.5}"/>` : ''
  const margin = box.kind === 'final' ? 3 : 1
  const rule = `<path class="rule" d="M${round(x + margin)} ${round(y + text.head.ruleY)}h${round(width - 2 * margin)}"/>`
  return `${outline}${inner}${text.head.ruleY > 0 ? rule : ''}`
}

/** @param {number} x @param {number} y */
function drawInitial(x, y) {
  return `<circle class="initial" cx="${round(x)}" cy="${round(y)}" r="5"/>`
}

/** The title bar of a box that holds others: rounded above, straight below. @param {PlacedBox} placed */
function barPath({ x, y, width, text }) {
  const bottom = round(y + text.head.ruleY)
  const arc = (/** @type {string} */ to) => `a${CORNER} ${CORNER} 0 0 1 ${to}`
  return [
    `M${round(x)} ${bottom}V${round(y + CORNER)}`,
    arc(`${CORNER} -${CORNER}`),
    `H${round(x + width - CORNER)}`,
    arc(`${CORNER} ${CORNER}`),
    `V${bottom}z`,
  ].join('')
}

/** Regions stand side by side with a dashed line between them. @param {readonly PlacedBox[]} boxes */
function separators(boxes) {
  return boxes
    .filter(({ isRegion }) => isRegion)
    .slice(1)
    .map(({ x, y, height }) => `<path class="separator" d="M${round(x)} ${round(y)}v${round(height)}"/>`)
}

// ── arrows ──────────────────────────────────────────────────────────────────────────────────────

/** @param {PlacedArrow} placed */
function drawArrow({ arrow, points }) {
  const [first, second] = points
  const tip = points.at(-1)
  const before = points.at(-2)
  if (!first || !second || !tip || !before) return ''
  // A frame's border is thin: a dot shows that the arrow begins there.
  const origin = arrow.source.includes('+')
    ? `<circle class="origin" cx="${round(first.x)}" cy="${round(first.y)}" r="2.6"/>`
    : ''
  const line = roundedPath([...points.slice(0, -1), towards(tip, before, HEAD_LENGTH - 1)])
  return `<g class="edge"${idsOf(arrow.lines)}><path class="line" d="${line}"/>${origin}<path class="head" d="${headPath(tip, before)}"/></g>`
}

/** @param {Point} tip @param {Point} before */
function headPath(tip, before) {
  const back = towards(tip, before, HEAD_LENGTH)
  const isUpright = Math.abs(tip.y - before.y) > Math.abs(tip.x - before.x)
  const [dx, dy] = isUpright ? [HEAD_WIDTH / 2, 0] : [0, HEAD_WIDTH / 2]
  return `M${spot(tip)}L${spot({ x: back.x + dx, y: back.y + dy })}L${spot({ x: back.x - dx, y: back.y - dy })}z`
}

/** @param {readonly Point[]} points */
function roundedPath(points) {
  const parts = points.map((point, index) => {
    const before = points[index - 1]
    const after = points[index + 1]
    if (!before) return `M${spot(point)}`
    if (!after) return `L${spot(point)}`
    const bend = Math.min(BEND, distance(before, point) / 2, distance(point, after) / 2)
    return `L${spot(towards(point, before, bend))}Q${spot(point)} ${spot(towards(point, after, bend))}`
  })
  return parts.join('')
}

/** Along an upright or level line. @param {Point} a @param {Point} b */
const distance = (a, b) => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)

/** @param {Point} from @param {Point} to @param {number} by @returns {Point} */
function towards(from, to, by) {
  const length = distance(from, to) || 1
  return { x: from.x + ((to.x - from.x) * by) / length, y: from.y + ((to.y - from.y) * by) / length }
}

/** @param {PlacedArrow} placed */
function drawLabel({ arrow, label }) {
  if (!label) return ''
  return `<g class="label"${idsOf(arrow.lines)}><rect ${at(label)} rx="4"/>${drawRows(label.text.rows, label.x, label.y)}</g>`
}

/** @param {readonly { ids: readonly string[] }[]} lines */
function idsOf(lines) {
  const ids = lines.flatMap((line) => line.ids)
  return ids.length === 0 ? '' : ` data-edge="${escape(ids.join(' '))}"`
}

// ── text ────────────────────────────────────────────────────────────────────────────────────────

/** Rows of one line stand in one group, with its ids and its tooltip. @param {readonly Row[]} rows @param {number} x @param {number} y */
function drawRows(rows, x, y) {
  /** @type {Row[][]} */
  const groups = []
  for (const row of rows) {
    const group = groups.at(-1)
    if (group && row.line !== null && group[0]?.line === row.line) group.push(row)
    else groups.push([row])
  }
  return groups.map((group) => drawGroup(group, x, y)).join('')
}

/** @param {readonly Row[]} rows @param {number} x @param {number} y */
function drawGroup(rows, x, y) {
  const text = rows.map((row) => drawRow(row, x, y)).join('')
  const line = rows[0]?.line ?? null
  if (line === null) return text
  return `<g class="words ${line.kind}"${idsOf([line])}>${line.hint === '' ? '' : titleOf(line.hint)}${text}</g>`
}

/** @param {Row} row @param {number} x @param {number} y */
function drawRow({ face, size, spans, x: dx, y: dy }, x, y) {
  const place = `x="${round(x + dx)}" y="${round(y + dy)}" font-size="${size}"`
  const [only, ...others] = spans
  if (only && others.length === 0) {
    return `<text class="${[...new Set([face, only.role])].join(' ')}" ${place}>${escape(only.text)}</text>`
  }
  const pieces = spans.map(({ text, role }) => `<tspan class="${role}">${escape(text)}</tspan>`)
  return `<text class="${face}" ${place}>${pieces.join(' ')}</text>`
}

// ── the legend ──────────────────────────────────────────────────────────────────────────────────

/** @param {NonNullable<Picture['legend']>} placed */
function drawLegend(placed) {
  const { x, y, legend } = placed
  const entries = legend.entries.map(
    (entry) => drawSign(entry.sign, x + 10, y + entry.y - 4) + drawRows(entry.rows, x, y),
  )
  return `<g class="legend"><rect ${at(placed)} rx="${CORNER}"/>${drawRows([legend.title], x, y)}${entries.join('')}</g>`
}

/** @param {import('./legend.js').Sign} sign @param {number} x @param {number} y The sign's middle. */
function drawSign(sign, x, y) {
  const rect = { x, y: y - 6, width: 26, height: 12 }
  if (sign === 'initial') return drawInitial(x + 5, y)
  if (sign === 'frame') return `<g class="frame"><rect ${at(rect)} rx="3"/></g>`
  if (sign === 'none') return ''
  return `<g class="final"><rect class="box" ${at(rect)} rx="4"/><rect class="inner" ${at(inset(rect, 2.5))} rx="2"/></g>`
}

// ── numbers and names ───────────────────────────────────────────────────────────────────────────

/** @param {Rect} rect */
function at({ x, y, width, height }) {
  const [left, top] = [round(x), round(y)]
  return `x="${left}" y="${top}" width="${round(x + width) - left}" height="${round(y + height) - top}"`
}

/** @param {Rect} rect @param {number} by @returns {Rect} */
function inset({ x, y, width, height }, by) {
  return { x: x + by, y: y + by, width: width - 2 * by, height: height - 2 * by }
}

/** @param {Point} point */
const spot = ({ x, y }) => `${round(x)} ${round(y)}`

/** Half a pixel is finer than anyone sees. @param {number} value */
const round = (value) => Math.round(value * 2) / 2

/** @param {string} text */
const titleOf = (text) => `<title>${escape(text)}</title>`

/** @param {string} text */
function escape(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
