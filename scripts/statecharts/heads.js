// @ts-check
/**
 * Puts the text of boxes in its place: a title goes where no arrow runs through its bar.
 */

/**
 * @typedef {import('./elk.js').Part} Part
 * @typedef {import('./elk.js').PlacedBox} PlacedBox
 * @typedef {import('./typeset.js').Row} Row
 */

const PAD = 9
/** Between a title and an arrow beside it. */
const CLEARANCE = 4

/** @param {Part} part @returns {Part} */
export function placeHeads(part) {
  return { ...part, boxes: part.boxes.map((placed) => ({ ...placed, rows: rowsOf(placed, part) })) }
}

/** @param {PlacedBox} placed @param {Part} part @returns {readonly Row[]} */
function rowsOf(placed, part) {
  const { box, text, height } = placed
  if (box.boxes.length === 0) return text.head.rows
  const gaps = gapsIn(placed, part)
  const [title, ...others] = text.head.rows
  const prose = others.filter(({ line }) => line === null)
  const lines = others.filter(({ line }) => line !== null)
  const foot = (text.foot?.rows ?? []).map((row) => ({
    ...row,
    y: row.y + height - (text.foot?.height ?? 0) - 4,
  }))
  const heading = title ? [title, ...prose] : prose
  // Where there is no room for the description it is left to the tooltip; a frame's title may go as well.
  const placedHeading =
    fit(heading, gaps) ?? fit(heading.slice(0, 1), gaps) ?? (box.kind === 'frame' ? [] : heading)
  return [...placedHeading, ...(fit(lines, gaps) ?? lines), ...foot]
}

/** Moves rows together into the first gap they fit in. @param {readonly Row[]} rows @param {readonly (readonly [number, number])[]} gaps */
function fit(rows, gaps) {
  const end = Math.max(PAD, ...rows.map(({ x, width }) => x + width))
  const gap = gaps.find(([from, to]) => to - from >= end - PAD)
  return gap && rows.map((row) => ({ ...row, x: row.x - PAD + gap[0] }))
}

/** Stretches of a box's head through which no arrow comes, from its left edge. @param {PlacedBox} placed @param {Part} part */
function gapsIn({ x, y, width, text }, { arrows }) {
  const crossings = arrows.flatMap(({ points }) =>
    points.slice(1).flatMap((to, index) => {
      const from = points[index] ?? to
      const isThrough = Math.min(from.y, to.y) < y + text.head.height && Math.max(from.y, to.y) > y + 1
      return isThrough && from.x === to.x && to.x > x && to.x < x + width ? [to.x - x] : []
    }),
  )
  const edges = [...new Set(crossings)].sort((a, b) => a - b)
  const starts = [PAD, ...edges.map((edge) => edge + CLEARANCE)]
  const ends = [...edges.map((edge) => edge - CLEARANCE), width - PAD]
  return starts.map((start, index) => /** @type {const} */ ([start, ends[index] ?? start]))
}
