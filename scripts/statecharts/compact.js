// @ts-check
/**
 * Takes out of a laid out part what is empty: ELK leaves room below the contents of nested boxes.
 *
 * Owns: the last change of places. Order and shape stay: rows and columns only move together.
 */

/**
 * @typedef {import('./elk.js').Part} Part
 * @typedef {import('./elk.js').PlacedBox} PlacedBox
 * @typedef {import('./elk.js').PlacedArrow} PlacedArrow
 * @typedef {import('./elk.js').Point} Point
 */

/** An empty strip keeps this much. */
const STRIP = 14
/** Below what a box holds. */
const BELOW = 14

/** @param {Part} part @returns {Part} */
export function compact(part) {
  return squeeze(squeeze(shrinkBoxes(part), 'y', 'height'), 'x', 'width')
}

/** Ends each box that holds others below the last thing in it. @param {Part} part @returns {Part} */
function shrinkBoxes(part) {
  const boxes = part.boxes.map((box) => ({ ...box }))
  const arrows = part.arrows.map((arrow) => ({
    ...arrow,
    points: arrow.points.map((point) => ({ ...point })),
  }))
  // Inner boxes first: an outer one ends below them.
  for (const box of [...boxes].reverse()) {
    if (box.box.boxes.length === 0) continue
    const old = box.y + box.height
    const bottom = lowestWithin(box, boxes, arrows) + BELOW + (box.text.foot?.height ?? 0)
    if (bottom >= old) continue
    box.height = bottom - box.y
    for (const { points } of arrows) {
      for (const end of [points[0], points.at(-1)]) {
        if (end && Math.abs(end.y - old) < 0.6 && end.x >= box.x && end.x <= box.x + box.width) end.y = bottom
      }
    }
  }
  return { ...part, boxes, arrows }
}

/** @param {PlacedBox} box @param {readonly PlacedBox[]} boxes @param {readonly PlacedArrow[]} arrows */
function lowestWithin(box, boxes, arrows) {
  const bottom = box.y + box.height
  const isWithin = (/** @type {{ x: number, y: number }} */ { x, y }) =>
    x > box.x && x < box.x + box.width && y >= box.y && y < bottom - 0.6
  const inner = boxes.filter((each) => each !== box && isWithin(each)).map((each) => each.y + each.height)
  const labels = arrows.flatMap(({ label }) => (label && isWithin(label) ? [label.y + label.height] : []))
  const bends = arrows.flatMap(({ points }) => points.filter(isWithin).map(({ y }) => y))
  return Math.max(box.y + box.text.head.height, ...inner, ...labels, ...bends)
}

/** Narrows every strip across the part in which nothing stands but lines that cross it. @param {Part} part @param {'x' | 'y'} axis @param {'width' | 'height'} size @returns {Part} */
function squeeze(part, axis, size) {
  const solids = [...solidsOf(part, axis, size)].sort((a, b) => a[0] - b[0])
  /** @type {{ at: number, by: number }[]} */
  const cuts = []
  let end = 0
  for (const [from, to] of solids) {
    if (from - end > STRIP) cuts.push({ at: from, by: from - end - STRIP })
    end = Math.max(end, to)
  }
  const total = part[size]
  if (total - end > STRIP) cuts.push({ at: total, by: total - end - STRIP })
  const moved = (/** @type {number} */ value) =>
    value - cuts.reduce((sum, cut) => (value >= cut.at - 0.01 ? sum + cut.by : sum), 0)
  const shift = (/** @type {any} */ thing) => {
    const from = moved(thing[axis])
    return { ...thing, [axis]: from, [size]: moved(thing[axis] + thing[size]) - from }
  }
  return {
    ...part,
    [size]: moved(total),
    boxes: part.boxes.map(shift),
    arrows: part.arrows.map(({ arrow, points, label }) => ({
      arrow,
      points: points.map((point) => ({ ...point, [axis]: moved(point[axis]) })),
      label: label && shift(label),
    })),
  }
}

/** @param {Part} part @param {'x' | 'y'} axis @param {'width' | 'height'} size @returns {Iterable<readonly [number, number]>} */
function* solidsOf({ boxes, arrows }, axis, size) {
  for (const each of boxes) {
    const from = each[axis]
    const to = from + each[size]
    if (each.box.boxes.length === 0) yield [from, to]
    else {
      yield [from, from + each.text.head[size]]
      yield [to - (axis === 'y' ? (each.text.foot?.height ?? 0) : 0), to]
    }
  }
  for (const { points, label } of arrows) {
    if (label) yield [label[axis], label[axis] + label[size]]
    for (const point of points) yield [point[axis], point[axis]]
  }
}
