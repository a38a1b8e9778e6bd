// @ts-check
/**
 * The drawing with its main lines only: states by their names, in large type, arrows by their events. It fits a screen, for a page that
 * shows a run move.
 *
 * Owns: what is left out. Every transition between two states is still there, and one line may stand for several: it has the ids of all.
 */

/**
 * @typedef {import('./drawing.js').Drawing} Drawing
 * @typedef {import('./drawing.js').Box} Box
 * @typedef {import('./wording.js').Line} Line
 */

const TITLE = 16

/** @param {Drawing} drawing @returns {Drawing} */
export function overviewOf(drawing) {
  return {
    ...drawing,
    isOverview: true,
    root: withoutLines(drawing.root),
    arrows: drawing.arrows.map((arrow) => ({ ...arrow, lines: byEvent(arrow.lines) })),
  }
}

/** @param {Box} box @returns {Box} */
function withoutLines(box) {
  const isLeaf = box.boxes.length === 0
  const boxes = box.boxes.map(withoutLines)
  return { ...box, lines: [], boxes, ...(isLeaf && { titleSize: TITLE }) }
}

/** @param {readonly Line[]} lines @returns {readonly Line[]} */
function byEvent(lines) {
  /** @type {Map<string, Line>} */
  const merged = new Map()
  for (const line of lines) {
    const known = merged.get(line.event)
    const ids = [...(known?.ids ?? []), ...line.ids]
    const hint = known ? `${known.hint}\n${line.hint}` : line.hint
    merged.set(line.event, { ...line, guard: '', raises: '', hint, ids })
  }
  return [...merged.values()]
}
