// @ts-check
/**
 * The looks: a picture as an SVG that stands by itself, in light and in dark.
 *
 * Owns: shapes, colours, ids. `data-state` marks each state's group; `data-edge` lists the ids of the transitions
 * that an arrow, or a line of text, stands for (select one with `[data-edge~="…"]`).
 * Does not own: places (layout.js) and what is written (drawing.js).
 * Invariants: no script, no link, nothing loaded; class names and ids are prefixed, so several charts fit in one page.
 */
import { faces } from './text.js'
import { stylesheet } from './style.js'

/**
 * @typedef {import('./layout.js').Picture} Picture
 * @typedef {import('./layout.js').PlacedBox} PlacedBox
 * @typedef {import('./layout.js').PlacedArrow} PlacedArrow
 * @typedef {import('./layout.js').Point} Point
 * @typedef {import('./typeset.js').Row} Row
 */

const BEND = 5
const HEAD_LENGTH = 7
const HEAD_WIDTH = 6.4

/**
 * @param {Picture} picture
 * @returns {string}
 */
export function svgOf(picture) {
  const { definition, width, height, boxes, arrows } = picture
  const [w, h] = [round(width), round(height)]
  const { id } = definition
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" class="chart" data-machine="${id}" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" role="img" aria-labelledby="chart-${id}-title chart-${id}-desc">`,
    `<title id="chart-${id}-title">Statechart ${escape(id)}, version ${escape(definition.version)}</title>`,
    `<desc id="chart-${id}-desc">${escape(definition.description)}</desc>`,
    `<style>${stylesheet}</style>`,
    `<rect class="sheet" width="${w}" height="${h}"/>`,
    ...boxes.map((box) => drawBox(box, boxes)),
    ...arrows.map(drawArrow),
    ...arrows.map(drawLabel),
    '</svg>',
  ]
    .filter((part) => part !== '')
    .join('\n')}\n`
}

/** @param {PlacedBox} placed @param {readonly PlacedBox[]} all */
function drawBox(placed, all) {
  const { x, y, width, height, box, block, level } = placed
  if (box.kind === 'initial') {
    return `<circle class="initial" cx="${round(x + width / 2)}" cy="${round(y + height / 2)}" r="${round(width / 2)}"/>`
  }
  const at = `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"`
  const text = drawRows(block.rows, x, y)
  const tooltip = `<title>${escape(box.kind === 'frame' ? box.description : `${box.title}: ${box.description}`)}</title>`
  if (box.kind === 'frame') return `<g class="frame">${tooltip}<rect ${at} rx="9"/>${text}</g>`

  const isRegion = level === 1 && all[0]?.box.kind === 'parallel'
  const shape = isRegion
    ? drawRegion(placed, all)
    : [
        `<rect class="box" ${at} rx="8"/>`,
        box.kind === 'final' ? `<rect class="inner" ${inset(placed, 3)} rx="5.5"/>` : '',
        box.boxes.length > 0 ? `<path class="bar" d="${barPath(placed)}"/>` : '',
        block.ruleY > 0 && box.boxes.length === 0
          ? `<path class="rule" d="M${round(x + 1)} ${round(y + block.ruleY)}h${round(width - 2)}"/>`
          : '',
      ].join('')
  const kind = isRegion ? 'region' : box.kind
  return `<g class="state ${kind}" data-state="${box.id}">${tooltip}${shape}${text}</g>`
}

/** Regions stand side by side with a dashed line between them. @param {PlacedBox} placed @param {readonly PlacedBox[]} all */
function drawRegion(placed, all) {
  const [machine] = all
  const bottom = (machine?.y ?? 0) + (machine?.height ?? 0)
  const area = `<rect class="area" x="${round(placed.x)}" y="${round(placed.y)}" width="${round(placed.width)}" height="${round(bottom - placed.y)}"/>`
  const isFirst = placed.x === machine?.x
  return isFirst ? area : `${area}<path class="separator" d="M${round(placed.x)} ${round(placed.y)}V${round(bottom)}"/>`
}

/** @param {import('./layout.js').Rect} rect @param {number} by */
function inset({ x, y, width, height }, by) {
  return `x="${round(x + by)}" y="${round(y + by)}" width="${round(width - 2 * by)}" height="${round(height - 2 * by)}"`
}

/** The title bar of a box that holds others: rounded above, straight below. @param {PlacedBox} placed */
function barPath({ x, y, width, block }) {
  const right = x + width
  const bottom = y + block.ruleY
  const d = [
    `M${round(x)} ${round(bottom)}`,
    `V${round(y + 8)}a8 8 0 0 1 8 -8`,
    `H${round(right - 8)}a8 8 0 0 1 8 8`,
    `V${round(bottom)}z`,
  ]
  return d.join('')
}

/** @param {PlacedArrow} placed */
function drawArrow({ arrow, points }) {
  const ids = arrow.lines.flatMap((line) => line.ids).join(' ')
  const data = ids === '' ? '' : ` data-edge="${escape(ids)}"`
  const [first] = points
  const origin = arrow.source.includes('+') && first ? `<circle class="origin" cx="${round(first.x)}" cy="${round(first.y)}" r="2.6"/>` : ''
  const tip = points.at(-1) ?? { x: 0, y: 0 }
  const before = points.at(-2) ?? tip
  const direction = { x: Math.sign(tip.x - before.x), y: Math.sign(tip.y - before.y) }
  const end = { x: tip.x - direction.x * (HEAD_LENGTH - 1), y: tip.y - direction.y * (HEAD_LENGTH - 1) }
  const path = roundedPath([...points.slice(0, -1), end])
  return `<g class="edge"${data}><path class="line" d="${path}"/>${origin}<path class="head" d="${headPath(tip, direction)}"/></g>`
}

/** @param {Point} tip @param {Point} direction */
function headPath(tip, direction) {
  const back = { x: tip.x - direction.x * HEAD_LENGTH, y: tip.y - direction.y * HEAD_LENGTH }
  const side = { x: (direction.y * HEAD_WIDTH) / 2, y: (direction.x * HEAD_WIDTH) / 2 }
  return `M${spot(tip)}L${round(back.x + side.x)} ${round(back.y + side.y)}L${round(back.x - side.x)} ${round(back.y - side.y)}z`
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

/** @param {Point} a @param {Point} b */
const distance = (a, b) => Math.abs(a.x - b.x) + Math.abs(a.y - b.y)

/** @param {Point} from @param {Point} to @param {number} by */
const towards = (from, to, by) => ({ x: from.x + Math.sign(to.x - from.x) * by, y: from.y + Math.sign(to.y - from.y) * by })

/** @param {PlacedArrow} placed */
function drawLabel({ arrow, label }) {
  if (!label) return ''
  const ids = arrow.lines.flatMap((line) => line.ids).join(' ')
  const at = `x="${round(label.x)}" y="${round(label.y)}" width="${round(label.width)}" height="${round(label.height)}"`
  return `<g class="label" data-edge="${escape(ids)}"><rect ${at} rx="4"/>${drawRows(label.block.rows, label.x, label.y)}</g>`
}

/** Rows that belong to one line stand in one group, with its ids and its tooltip. @param {readonly Row[]} rows @param {number} x @param {number} y */
function drawRows(rows, x, y) {
  /** @type {{ line: Row['line'], rows: Row[] }[]} */
  const groups = []
  for (const row of rows) {
    const group = groups.at(-1)
    if (group && row.line !== null && group.line === row.line) group.rows.push(row)
    else groups.push({ line: row.line, rows: [row] })
  }
  return groups
    .map(({ line, rows: own }) => {
      const text = own.map((row) => drawRow(row, x, y)).join('')
      if (line === null) return text
      const data = line.ids.length === 0 ? '' : ` data-edge="${escape(line.ids.join(' '))}"`
      const hint = line.hint === '' ? '' : `<title>${escape(line.hint)}</title>`
      return `<g class="words ${line.kind}"${data}>${hint}${text}</g>`
    })
    .join('')
}

/** @param {Row} row @param {number} x @param {number} y */
function drawRow(row, x, y) {
  const [first, ...others] = row.spans
  const at = `x="${round(x + row.x)}" y="${round(y + row.y)}"`
  const size = `font-size="${row.size}"`
  if (others.length === 0) return `<text class="${row.face} ${first?.role ?? ''}" ${at} ${size}>${escape(first?.text ?? '')}</text>`
  const spans = row.spans.map(({ text, role }) => `<tspan class="${role}">${escape(text)}</tspan>`).join(' ')
  return `<text class="${row.face}" ${at} ${size}>${spans}</text>`
}

/** @param {Point} point */
const spot = ({ x, y }) => `${round(x)} ${round(y)}`

/** Half a pixel is finer than anyone sees, and hides what differs between two machines' arithmetic. @param {number} value */
const round = (value) => Math.round(value * 2) / 2

/** @param {string} text */
function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

export { faces }
