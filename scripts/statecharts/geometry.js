// @ts-check
/**
 * What is wrong with a picture, seen as rectangles and lines.
 *
 * Owns: the claims of legibility that the drift test and the tuner check.
 */

/**
 * @typedef {import('./elk.js').Rect} Rect
 * @typedef {import('./elk.js').Point} Point
 * @typedef {import('./elk.js').PlacedBox} PlacedBox
 * @typedef {import('./elk.js').PlacedArrow} PlacedArrow
 * @typedef {import('./typeset.js').Row} Row
 * @typedef {{ boxes: readonly PlacedBox[], arrows: readonly PlacedArrow[] }} Placed
 *
 * @typedef {{ name: string, rect: Rect }} Named
 * @typedef {Named & { within: Rect }} NamedText
 * @typedef {{ name: string, ends: readonly string[], from: Point, to: Point }} Segment
 *
 * @typedef {object} Geometry
 * @property {readonly Named[]} labels     What is written on arrows.
 * @property {readonly Named[]} leaves     States, and initial dots, with nothing inside.
 * @property {readonly Named[]} outers     Boxes around others: states and frames.
 * @property {readonly NamedText[]} texts  Every row of text, and what must hold it.
 * @property {readonly Segment[]} segments The straight pieces of the arrows.
 */

const SLACK = 0.75
/** Parallel lines nearer than this read as one. */
const LINE_GAP = 5

/** @param {Placed} picture @returns {Geometry} */
export function geometryOf({ boxes, arrows }) {
  return {
    labels: arrows.flatMap(({ arrow, label }) => (label ? [{ name: nameOf(arrow), rect: label }] : [])),
    leaves: boxes.filter(({ box }) => box.boxes.length === 0).map((rect) => ({ name: rect.box.id, rect })),
    outers: boxes.filter(({ box }) => box.boxes.length > 0).map((rect) => ({ name: rect.box.id, rect })),
    texts: [
      ...boxes.flatMap((placed) => placed.rows.map((row) => textOf(row, placed, placed.box.id))),
      ...arrows.flatMap(({ arrow, label }) =>
        label ? label.text.rows.map((row) => textOf(row, label, nameOf(arrow))) : [],
      ),
    ],
    segments: arrows.flatMap(({ arrow, points, label }) =>
      points.slice(1).map((to, index) => ({
        name: nameOf(arrow),
        ends: [arrow.source, arrow.target, ...(label ? [nameOf(arrow)] : [])],
        from: points[index] ?? to,
        to,
      })),
    ),
  }
}

/**
 * Overlaps of labels, states, text and lines; a picture is legible when there are none.
 * @param {Geometry} geometry
 * @returns {readonly string[]}
 */
export function overlapsIn({ labels, leaves, outers, texts, segments }) {
  const solids = [...labels, ...leaves]
  return [
    ...pairsOf(solids)
      .filter(([a, b]) => overlap(a.rect, b.rect))
      .map(([a, b]) => `${a.name} overlaps ${b.name}`),
    ...solids.flatMap((solid) =>
      outers
        .filter(({ rect }) => overlap(solid.rect, rect) && !isInside(solid.rect, rect))
        .map(({ name }) => `${solid.name} lies across the border of ${name}`),
    ),
    ...texts
      .filter(({ rect, within }) => !isInside(rect, within))
      .map(({ name, rect }) => `${name}: text runs out of its box by ${overhang(rect, texts, name)}`),
    ...solids.flatMap((solid) =>
      segments
        .filter((segment) => !segment.ends.includes(solid.name) && crosses(segment, solid.rect))
        .map(({ name }) => `the arrow ${name} runs through ${solid.name}`),
    ),
    ...texts.flatMap((text) =>
      segments
        .filter((segment) => !labels.some(({ name }) => name === text.name) && crosses(segment, text.rect))
        .map(({ name }) => `the arrow ${name} runs through the text of ${text.name}`),
    ),
    ...pairsOf(segments)
      .filter(([a, b]) => a.name !== b.name && runsAlong(a, b))
      .map(([a, b]) => `the arrows ${a.name} and ${b.name} lie on each other`),
    ...segments
      .filter(({ from, to }) => Math.min(Math.abs(from.x - to.x), Math.abs(from.y - to.y)) > SLACK)
      .map(({ name }) => `the arrow ${name} has a slanted piece`),
  ]
}

/** How many times arrows cross each other. @param {Geometry} geometry */
export function crossingsIn({ segments }) {
  const upright = segments.filter(({ from, to }) => Math.abs(from.y - to.y) > Math.abs(from.x - to.x))
  const level = segments.filter((segment) => !upright.includes(segment))
  const crossing = (/** @type {Segment} */ a, /** @type {Segment} */ b) =>
    a.name !== b.name && isBetween(a.from.x, b.from.x, b.to.x) && isBetween(b.from.y, a.from.y, a.to.y)
  return upright.reduce((sum, a) => sum + level.filter((b) => crossing(a, b)).length, 0)
}

/** @param {{ source: string, target: string }} arrow */
const nameOf = ({ source, target }) => `${source} → ${target}`

/** @param {Row} row @param {Rect} within @param {string} name @returns {NamedText} */
function textOf({ x, y, width, size }, within, name) {
  return { name, rect: { x: within.x + x, y: within.y + y - size * 0.8, width, height: size }, within }
}

/** @param {Rect} rect @param {readonly NamedText[]} texts @param {string} name */
function overhang(rect, texts, name) {
  const within = texts.find((text) => text.name === name)?.within ?? rect
  return `${Math.ceil(Math.max(rect.x + rect.width - within.x - within.width, within.x - rect.x, 0))} px`
}

/** @param {Rect} a @param {Rect} b */
function overlap(a, b) {
  return (
    a.x + SLACK < b.x + b.width &&
    b.x + SLACK < a.x + a.width &&
    a.y + SLACK < b.y + b.height &&
    b.y + SLACK < a.y + a.height
  )
}

/** @param {Rect} inner @param {Rect} outer */
function isInside(inner, outer) {
  return (
    inner.x + SLACK >= outer.x &&
    inner.y + SLACK >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width + SLACK &&
    inner.y + inner.height <= outer.y + outer.height + SLACK
  )
}

/** @param {Segment} segment @param {Rect} rect */
function crosses({ from, to }, rect) {
  const left = Math.min(from.x, to.x)
  const top = Math.min(from.y, to.y)
  return overlap(
    {
      x: left - SLACK,
      y: top - SLACK,
      width: Math.abs(from.x - to.x) + 2 * SLACK,
      height: Math.abs(from.y - to.y) + 2 * SLACK,
    },
    rect,
  )
}

/** Whether two pieces run side by side with no gap to see. @param {Segment} a @param {Segment} b */
function runsAlong(a, b) {
  const isUpright = (/** @type {Segment} */ { from, to }) => Math.abs(from.y - to.y) > Math.abs(from.x - to.x)
  if (isUpright(a) !== isUpright(b)) return false
  const [along, across] = isUpright(a) ? /** @type {const} */ (['y', 'x']) : /** @type {const} */ (['x', 'y'])
  const start = Math.max(Math.min(a.from[along], a.to[along]), Math.min(b.from[along], b.to[along]))
  const end = Math.min(Math.max(a.from[along], a.to[along]), Math.max(b.from[along], b.to[along]))
  return end - start > SLACK && Math.abs(a.from[across] - b.from[across]) < LINE_GAP
}

/** @param {number} value @param {number} a @param {number} b */
const isBetween = (value, a, b) => value > Math.min(a, b) + SLACK && value < Math.max(a, b) - SLACK

/** @template T @param {readonly T[]} items @returns {readonly (readonly [T, T])[]} */
function pairsOf(items) {
  return items.flatMap((a, index) => items.slice(index + 1).map((b) => /** @type {const} */ ([a, b])))
}
