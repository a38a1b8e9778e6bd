// @ts-check
/**
 * Takes out small steps in upright lines, where something else may move a little instead.
 *
 * Owns: the last change of arrows. A change that makes the picture worse in any way is not made.
 */
import { crossingsIn, geometryOf, overlapsIn } from './geometry.js'

/**
 * @typedef {import('./elk.js').Part} Part
 * @typedef {import('./elk.js').PlacedArrow} PlacedArrow
 * @typedef {import('./elk.js').PlacedBox} PlacedBox
 * @typedef {import('./elk.js').Point} Point
 */

/** Wider steps are a change of lane. */
const MAX_STEP = 24
/** From a corner of a box to where an arrow may touch it. */
const CORNER = 10
/** Room that a label keeps at its sides. */
const CLEARANCE = 4

/** @param {Part} part @returns {Part} */
export function straighten(part) {
  let best = part
  let faults = faultsOf(part)
  for (let index = 0; index < part.arrows.length; index += 1) {
    // After each success the arrow is looked at again: it has fewer steps now.
    for (let tried = candidatesFor(best, index); tried.length > 0;) {
      const better = tried.find((candidate) => faultsOf(candidate) <= faults)
      if (!better) break
      best = better
      faults = faultsOf(best)
      tried = candidatesFor(best, index)
    }
  }
  return best
}

/** @param {Part} part */
function faultsOf(part) {
  const geometry = geometryOf(part)
  const roomy = {
    ...geometry,
    labels: geometry.labels.map((label) => ({ ...label, rect: grown(label.rect) })),
  }
  return (overlapsIn(geometry).length + overlapsIn(roomy).length) * 100 + crossingsIn(geometry)
}

/** @param {import('./elk.js').Rect} rect */
function grown({ x, y, width, height }) {
  return { x: x - CLEARANCE, y, width: width + 2 * CLEARANCE, height }
}

/** Ways to take one step out of an arrow: the line above moves, or the one below. @param {Part} part @param {number} index @returns {readonly Part[]} */
function candidatesFor(part, index) {
  const arrow = part.arrows[index]
  if (!arrow) return []
  return stepsOf(arrow.points).flatMap((at) => {
    const [a, b] = [arrow.points[at], arrow.points[at + 1]]
    if (!a || !b) return []
    return [moved(part, index, at, b.x - a.x), moved(part, index, at + 1, a.x - b.x)].filter(
      (each) => each !== null,
    )
  })
}

/** Where a short level piece stands between two upright ones. @param {readonly Point[]} points */
function stepsOf(points) {
  return points.slice(0, -1).flatMap((a, at) => {
    const b = points[at + 1] ?? a
    const isShort = a.y === b.y && a.x !== b.x && Math.abs(a.x - b.x) <= MAX_STEP
    const isBetween = points[at - 1]?.x === a.x && points[at + 2]?.x === b.x
    return isShort && isBetween ? [at] : []
  })
}

/**
 * The upright run through one point moved sideways, with the label that stands on it.
 * @param {Part} part @param {number} index @param {number} at @param {number} by @returns {Part | null}
 */
function moved(part, index, at, by) {
  const arrow = part.arrows[index]
  const x = arrow?.points[at]?.x
  if (!arrow || x === undefined) return null
  let [from, to] = [at, at]
  while (arrow.points[from - 1]?.x === x) from -= 1
  while (arrow.points[to + 1]?.x === x) to += 1
  const points = arrow.points.map((point, place) =>
    place >= from && place <= to ? { ...point, x: x + by } : point,
  )
  if (from === 0 && !mayTouch(part, arrow.arrow.source, x + by)) return null
  if (to === points.length - 1 && !mayTouch(part, arrow.arrow.target, x + by)) return null
  const { label } = arrow
  const [top, bottom] = [arrow.points[from]?.y ?? 0, arrow.points[to]?.y ?? 0]
  const isOn =
    label && label.x <= x && x <= label.x + label.width && isBetween(label.y + label.height / 2, top, bottom)
  const changed = {
    ...arrow,
    points: simplified(points),
    label: label && isOn ? { ...label, x: label.x + by } : label,
  }
  return { ...part, arrows: part.arrows.map((each) => (each === arrow ? changed : each)) }
}

/** @param {Part} part @param {string} id @param {number} x */
function mayTouch({ boxes }, id, x) {
  const box = boxes.find((each) => each.box.id === id)
  return (
    box !== undefined && box.box.kind !== 'initial' && x >= box.x + CORNER && x <= box.x + box.width - CORNER
  )
}

/** @param {number} value @param {number} a @param {number} b */
const isBetween = (value, a, b) => value >= Math.min(a, b) && value <= Math.max(a, b)

/** Without the points that lie on the way between two others. @param {readonly Point[]} points @returns {Point[]} */
export function simplified(points) {
  /** @type {Point[]} */
  const kept = []
  points.forEach((point, index) => {
    const before = kept.at(-1)
    const after = points[index + 1]
    const isOnWay =
      before &&
      after &&
      ((before.x === point.x && point.x === after.x) || (before.y === point.y && point.y === after.y))
    if (!isOnWay) kept.push(point)
  })
  return kept
}
