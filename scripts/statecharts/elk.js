// @ts-check
/**
 * One column of a picture, laid out by ELK.
 *
 * Owns: what ELK is asked and how its answer is read.
 * Does not own: text (typeset.js), the columns' places (layout.js).
 * Invariants: states stand in the machine's order, top to bottom, so an arrow that points up goes back; the same
 * drawing with the same hints gives the same places (ELK's seed is fixed).
 */
import elkModule from 'elkjs/lib/elk.bundled.js'
import { compact } from './compact.js'
import { simplified } from './straighten.js'
import { setBox, setLabel } from './typeset.js'

/**
 * @typedef {import('./drawing.js').Drawing} Drawing
 * @typedef {import('./drawing.js').Box} Box
 * @typedef {import('./drawing.js').Arrow} Arrow
 * @typedef {import('./typeset.js').BoxText} BoxText
 * @typedef {import('./typeset.js').Block} Block
 * @typedef {import('./typeset.js').Row} Row
 *
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ x: number, y: number, width: number, height: number }} Rect
 * @typedef {Rect & { box: Box, text: BoxText, rows: readonly Row[], isRegion: boolean }} PlacedBox
 * @typedef {{ arrow: Arrow, points: readonly Point[], label: (Rect & { text: Block }) | null }} PlacedArrow
 * @typedef {{ width: number, height: number, boxes: readonly PlacedBox[], arrows: readonly PlacedArrow[] }} Part
 *
 * @typedef {object} Hints             Found by generate-statecharts.tune.mjs; a picture without any is valid, and larger.
 * @property {number} [seed]
 * @property {string} [placement]      ELK's node placement strategy.
 * @property {number} [finalRows]      Rows in which a box of nothing but finals is set.
 * @property {Readonly<Record<string, string>>} [layering] By box id: an ELK strategy, or `<most boxes in a row> wide`.
 * @property {readonly string[]} [wide] Boxes that are to be as wide as their own text.
 * @property {Readonly<Record<string, string>>} [homes]    By arrow key: the box in which its label stands.
 *
 * @typedef {object} Known             What is known of a box while ELK works.
 * @property {Box} box
 * @property {BoxText} text
 * @property {number} order
 * @property {readonly string[]} path  The ids of the boxes around it, outermost first.
 * @property {boolean} isRegion
 * @property {any[]} children          The ELK nodes within.
 */

// elkjs is CommonJS, and its types say otherwise.
const Elk = /** @type {any} */ (elkModule)
const elk = new Elk()

const FINALS_IN_A_ROW = 4
const SIDE = 14
const BELOW = 14

const layered = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.spacing.nodeNode': '16',
  'elk.spacing.edgeNode': '10',
  'elk.spacing.edgeEdge': '9',
  'elk.layered.spacing.nodeNodeBetweenLayers': '14',
  'elk.layered.spacing.edgeNodeBetweenLayers': '10',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '9',
}

/** @param {{ source: string, target: string }} arrow */
export const keyOf = ({ source, target }) => `${source} ${target}`

/**
 * @param {Drawing} drawing
 * @param {Box} top
 * @param {boolean} isRegion
 * @param {Hints} hints
 * @returns {Promise<Part>} Without the text of boxes, which has its place when the arrows have theirs (heads.js).
 */
export async function placeColumn(drawing, top, isRegion, hints) {
  const known = knownWithin(top, isRegion, drawing.arrows)
  const arrows = drawing.arrows.filter(({ source }) => known.has(source))
  const node = nodeOf(top, known, hints)
  for (const arrow of arrows) if (arrow.lines.length > 0) addLabel(arrow, known, hints)
  const graph = {
    id: '',
    layoutOptions: {
      ...layered,
      'elk.padding': '[top=0,left=0,bottom=0,right=0]',
      'elk.json.shapeCoords': 'ROOT',
      'elk.json.edgeCoords': 'ROOT',
      'elk.randomSeed': String(hints.seed ?? 1),
    },
    children: [node],
    edges: [...arrows.flatMap((arrow) => edgesOf(arrow, known)), ...finalRows(known, hints)],
  }
  return compact(partOf(await elk.layout(graph), known, arrows))
}

// ── what ELK is asked ───────────────────────────────────────────────────────────────────────────

/** @param {Box} top @param {boolean} isRegion @param {readonly Arrow[]} arrows @returns {ReadonlyMap<string, Known>} */
function knownWithin(top, isRegion, arrows) {
  const inner = new Map()
  /** @param {Box} box @returns {readonly string[]} */
  const collect = (box) => [box.id, ...box.boxes.flatMap(collect)]
  const visit = (/** @type {Box} */ box, /** @type {readonly string[]} */ path) => {
    const within = new Set(collect(box))
    const comesIn = arrows.some(
      ({ source, target }) => !within.has(source) && within.has(target) && target !== box.id,
    )
    const goesOut = arrows.some(
      ({ source, target }) => within.has(source) && source !== box.id && !within.has(target),
    )
    const place = {
      isRegion: isRegion && box === top,
      isMachine: !isRegion && box === top,
      hasFoot: comesIn && !goesOut,
    }
    inner.set(box.id, {
      box,
      text: setBox(box, place),
      order: inner.size,
      path,
      isRegion: place.isRegion,
      children: [],
    })
    for (const child of box.boxes) visit(child, [...path, box.id])
  }
  visit(top, [])
  return inner
}

/** @param {Box} box @param {ReadonlyMap<string, Known>} known @param {Hints} hints @returns {object} */
function nodeOf(box, known, hints) {
  const { text, children } = entryOf(known, box.id)
  const { width, height } = text.head
  if (box.boxes.length === 0) return { id: box.id, width, height }
  children.push(...box.boxes.map((child) => nodeOf(child, known, hints)))
  // ELK has no least width for a box with others in it; a box of that width within it does as well.
  if (hints.wide?.includes(box.id)) {
    children.push({
      id: `${box.id} width`,
      width: Math.max(width, text.foot?.width ?? 0) - 2 * SIDE,
      height: 1,
    })
  }
  const bottom = BELOW + (text.foot?.height ?? 0)
  const layoutOptions = {
    ...layered,
    ...layeringOf(hints.layering?.[box.id]),
    'elk.layered.nodePlacement.strategy': hints.placement ?? 'NETWORK_SIMPLEX',
    'elk.padding': `[top=${height + 12},left=${SIDE},bottom=${bottom},right=${SIDE}]`,
  }
  return { id: box.id, children, layoutOptions }
}

/** @param {string} [name] */
function layeringOf(name = 'NETWORK_SIMPLEX') {
  const [, bound] = /^(\d+) wide$/.exec(name) ?? []
  if (bound === undefined) return { 'elk.layered.layering.strategy': name }
  return {
    'elk.layered.layering.strategy': 'COFFMAN_GRAHAM',
    'elk.layered.layering.coffmanGraham.layerBound': bound,
  }
}

/**
 * A label is a node of its own, with one edge in and one out: so it takes room like any box, and no line crosses it.
 * @param {Arrow} arrow
 * @param {ReadonlyMap<string, Known>} known
 * @param {Hints} hints
 */
function addLabel(arrow, known, hints) {
  const homes = homesOf(arrow, known)
  const hint = hints.homes?.[keyOf(arrow)]
  const home = hint !== undefined && homes.includes(hint) ? hint : (homes[0] ?? '')
  const { width, height } = setLabel(arrow.lines)
  entryOf(known, home).children.push({ id: keyOf(arrow), width, height })
}

/**
 * The boxes in which an arrow's label can stand: the innermost around both ends first, then those around one.
 * @param {Arrow} arrow
 * @param {ReadonlyMap<string, Pick<Known, 'path'>>} known
 * @returns {readonly string[]}
 */
export function homesOf({ source, target }, known) {
  const from = [...(known.get(source)?.path ?? []), source]
  const to = [...(known.get(target)?.path ?? []), target]
  const shared = from.filter((id) => to.includes(id))
  const innermost = shared.at(-1)
  const around = [...from.slice(0, -1), ...to.slice(0, -1)].filter((id) => !shared.includes(id))
  return innermost === undefined ? around : [innermost, ...around]
}

/**
 * ELK breaks cycles as it likes; told of an upward arrow the other way round, it keeps the machine's own order.
 * @param {Arrow} arrow
 * @param {ReadonlyMap<string, Known>} known
 */
function edgesOf(arrow, known) {
  const id = keyOf(arrow)
  const { source, target } = arrow
  const [upper, lower] = isUpward(arrow, known) ? [target, source] : [source, target]
  if (arrow.lines.length === 0) return [{ id, sources: [upper], targets: [lower] }]
  return [
    { id: `${id} 1`, sources: [upper], targets: [id] },
    { id: `${id} 2`, sources: [id], targets: [lower] },
  ]
}

/** Many finals in one row would make the chart wide: an edge that is not drawn puts one below the other. @param {ReadonlyMap<string, Known>} known @param {Hints} hints */
function finalRows(known, { finalRows: count = 2 }) {
  return [...known.values()].flatMap(({ box: { boxes } }) => {
    if (boxes.length <= FINALS_IN_A_ROW || boxes.some(({ kind }) => kind !== 'final')) return []
    const perRow = Math.ceil(boxes.length / count)
    return boxes
      .slice(perRow)
      .map(({ id }, index) => ({ id: `below ${id}`, sources: [boxes[index]?.id ?? ''], targets: [id] }))
  })
}

// ── what ELK answers ────────────────────────────────────────────────────────────────────────────

/** @param {any} graph @param {ReadonlyMap<string, Known>} known @param {readonly Arrow[]} arrows @returns {Part} */
function partOf(graph, known, arrows) {
  /** @type {Map<string, Rect>} */
  const places = new Map()
  const visit = (/** @type {any} */ { id, x, y, width, height, children = [] }) => {
    places.set(id, { x, y, width, height })
    children.forEach(visit)
  }
  graph.children.forEach(visit)
  const edges = new Map(graph.edges.map((/** @type {any} */ edge) => [edge.id, edge]))
  const pointsOf = (/** @type {string} */ id) =>
    (edges.get(id)?.sections ?? []).flatMap(
      (/** @type {any} */ { startPoint, bendPoints = [], endPoint }) => [startPoint, ...bendPoints, endPoint],
    )
  return {
    width: graph.width,
    height: graph.height,
    boxes: [...known.values()].map(({ box, text, isRegion }) => ({
      ...placeOf(places, box.id),
      box,
      text,
      rows: [],
      isRegion,
    })),
    arrows: arrows.map((arrow) => {
      const id = keyOf(arrow)
      const points = simplified(
        arrow.lines.length === 0 ? pointsOf(id) : [...pointsOf(`${id} 1`), ...pointsOf(`${id} 2`)],
      )
      const label = arrow.lines.length === 0 ? null : { ...placeOf(places, id), text: setLabel(arrow.lines) }
      return { arrow, points: isUpward(arrow, known) ? points.reverse() : points, label }
    }),
  }
}

/** @param {Arrow} arrow @param {ReadonlyMap<string, Known>} known */
function isUpward({ source, target }, known) {
  return entryOf(known, source).order > entryOf(known, target).order
}

/** @param {ReadonlyMap<string, Known>} known @param {string} id @returns {Known} */
function entryOf(known, id) {
  const entry = known.get(id)
  if (!entry) throw new RangeError(`No box ${id} in this column`)
  return entry
}

/** @param {ReadonlyMap<string, Rect>} places @param {string} id @returns {Rect} */
function placeOf(places, id) {
  const place = places.get(id)
  if (!place) throw new RangeError(`ELK placed no ${id}`)
  return place
}
