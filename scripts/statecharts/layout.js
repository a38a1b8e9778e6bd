// @ts-check
/**
 * Where everything stands: a drawing becomes a picture with places and sizes.
 *
 * Owns: what is asked of ELK, and the columns of a parallel machine.
 * Does not own: looks (svg.js) and text (typeset.js).
 * Invariants: states stand in the order of the machine, top to bottom, so an arrow that points up goes back; the same
 * drawing gives the same picture (ELK's seed is fixed).
 */
import { createRequire } from 'node:module'
import { compact } from './compact.js'
import { hintsFor } from './hints.js'
import { setBox, setLabel } from './typeset.js'

/**
 * @typedef {import('./drawing.js').Drawing} Drawing
 * @typedef {import('./drawing.js').Box} Box
 * @typedef {import('./drawing.js').Arrow} Arrow
 * @typedef {import('./typeset.js').Block} Block
 *
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ x: number, y: number, width: number, height: number }} Rect
 * @typedef {Rect & { box: Box, block: Block, level: number }} PlacedBox
 * @typedef {{ arrow: Arrow, points: readonly Point[], label: (Rect & { block: Block }) | null }} PlacedArrow
 *
 * @typedef {object} Picture
 * @property {import('./definition.js').Definition} definition
 * @property {number} width
 * @property {number} height
 * @property {readonly PlacedBox[]} boxes   Outer ones first.
 * @property {readonly PlacedArrow[]} arrows
 */

// elkjs is CommonJS and types itself as an ES module.
const elk = new (createRequire(import.meta.url)('elkjs/lib/elk.bundled.js'))()

const MARGIN = 12
/** More finals than this stand in two rows. */
const FINALS_IN_A_ROW = 4

const spacing = {
  'elk.spacing.nodeNode': '16',
  'elk.spacing.edgeNode': '10',
  'elk.spacing.edgeEdge': '9',
  'elk.spacing.labelLabel': '6',
  'elk.spacing.edgeLabel': '2',
  'elk.layered.spacing.nodeNodeBetweenLayers': '14',
  'elk.layered.spacing.edgeNodeBetweenLayers': '10',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '9',
}

const layered = {
  'elk.algorithm': 'layered',
  'elk.direction': 'DOWN',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  ...spacing,
}

/**
 * @param {Drawing} drawing
 * @param {import('./hints.js').Hints} [hints]
 * @returns {Promise<Picture>}
 */
export async function pictureOf(drawing, hints = hintsFor(drawing.definition.id)) {
  const { root } = drawing
  const columns = root.kind === 'parallel' ? root.boxes : [root]
  const placed = []
  for (const column of columns) placed.push(await placeColumn(drawing, column, root.kind === 'parallel' ? 1 : 0, hints[column.id] ?? {}))
  if (root.kind !== 'parallel') return sheet(drawing, placed[0])
  return sheet(drawing, sideBySide(root, placed))
}

/** @typedef {{ width: number, height: number, boxes: PlacedBox[], arrows: PlacedArrow[] }} Part */

/**
 * @param {Drawing} drawing
 * @param {Box} box
 * @param {number} level
 * @param {import('./hints.js').Hints} hints
 * @returns {Promise<Part>}
 */
export async function placeColumn({ arrows }, box, level, hints) {
  /** @type {Map<string, { box: Box, block: Block, level: number, order: number, path: string[], node: any }>} */
  const known = new Map()
  const rows = []
  const nodeOf = (each, depth, path) => {
    const block = setBox(each, depth)
    const entry = { box: each, block, level: depth, order: known.size, path, node: null }
    known.set(each.id, entry)
    if (each.boxes.length === 0) { entry.node = { id: each.id, width: block.width, height: block.height }; return entry.node }
    rows.push(...rowsWithin(each, hints.rows ?? 2))
    const children = each.boxes.map((child) => nodeOf(child, each.kind === 'frame' ? depth : depth + 1, [...path, each.id]))
    entry.node = { id: each.id, children, layoutOptions: { ...layered, ...(hints.options??{}), ...layeringOf(hints.layering?.[each.id]), 'elk.layered.nodePlacement.strategy': hints.placement ?? 'NETWORK_SIMPLEX', ...roomFor(each, block) } }
    return entry.node
  }
  const node = nodeOf(box, level, [])
  const inside = arrows.filter(({ source }) => known.has(source))
  const edges = inside.flatMap((arrow) => edgesOf(arrow, isUpward(arrow, known)))
  for (const { source, target, lines } of inside) {
    if (lines.length === 0) continue
    const a = [...known.get(source).path, source], b = [...known.get(target).path, target]
    // an arrow from a frame to within it: the label is within
    let k = 0
    while (k < a.length && k < b.length && a[k] === b[k]) k++
    const lca = a[k - 1] === source || a[k-1] === target ? a[k-1] : a[k - 1]
    const home = hints.homes?.[`${source} ${target}`] ?? lca
    const { width, height } = setLabel(lines)
    known.get(home).node.children.push({ id: `${source} ${target}`, width, height })
  }
  for (const [above, below] of hints.below ?? []) rows.push({ id: `${above}>${below}`, sources: [above], targets: [below] })
  const graph = {
    id: '',
    layoutOptions: { ...layered, ...(hints.options??{}), 'elk.json.shapeCoords': 'ROOT', 'elk.json.edgeCoords': 'ROOT', 'elk.randomSeed': String(hints.seeds?.[box.id] ?? 1) },
    children: [node],
    edges: [...edges, ...rows],
  }
  const done = await elk.layout(graph)
  return compact(partOf(done, known, inside))
}

/** @param {Box} box @param {Block} block */
function roomFor(box, block) {
  const side = box.kind === 'frame' ? 12 : 14
  return {
    'elk.padding': `[top=${block.height + 12},left=${side},bottom=14,right=${side}]`,
    'elk.nodeSize.constraints': 'MINIMUM_SIZE',
    'elk.nodeSize.minimum': `(${block.width},${block.height})`,
  }
}

/** Many finals in one row would make the chart wide: an edge that is not drawn puts the second half below the first. @param {Box} box */
function rowsWithin(box, count) {
  const isFinals = box.boxes.length > FINALS_IN_A_ROW && box.boxes.every(({ kind }) => kind === 'final')
  if (!isFinals || count === 1) return []
  const size = Math.ceil(box.boxes.length / count)
  return box.boxes.slice(size).map((each, index) => ({ id: `row ${each.id}`, sources: [box.boxes[index]?.id], targets: [each.id] }))
}

function layeringOf(name = 'NETWORK_SIMPLEX') {
  const bound = /^CG(\d)$/.exec(name)
  return bound ? { 'elk.layered.layering.strategy': 'COFFMAN_GRAHAM', 'elk.layered.layering.coffmanGraham.layerBound': bound[1] } : { 'elk.layered.layering.strategy': name }
}

/** @param {Arrow} arrow @param {ReadonlyMap<string, { order: number }>} known */
function isUpward({ source, target }, known) {
  return (known.get(source)?.order ?? 0) > (known.get(target)?.order ?? 0)
}

/**
 * ELK breaks cycles as it likes; told of an upward arrow the other way round, it keeps the machine's own order.
 * A label is a node of its own, with one edge in and one out: so it takes room in a layer like any box.
 */
function edgesOf({ source, target, lines }, isFlipped) {
  const id = `${source} ${target}`
  const [from, to] = isFlipped ? [target, source] : [source, target]
  if (lines.length === 0) return [{ id, sources: [from], targets: [to] }]
  return [
    { id: `${id} 1`, sources: [from], targets: [id] },
    { id: `${id} 2`, sources: [id], targets: [to] },
  ]
}

/**
 * @param {any} graph
 * @param {ReadonlyMap<string, { box: Box, block: Block, level: number }>} known
 * @param {readonly Arrow[]} arrows
 * @returns {Part}
 */
function partOf(graph, known, arrows) {
  /** @type {PlacedBox[]} */
  const boxes = []
  const nodes = new Map()
  /** @param {any} node */
  const visit = (node) => {
    nodes.set(node.id, node)
    const { box, block, level } = known.get(node.id) ?? {}
    if (box && block) boxes.push({ x: node.x, y: node.y, width: node.width, height: node.height, box, block, level: level ?? 0 })
    node.children?.forEach(visit)
  }
  graph.children.forEach(visit)
  const edges = new Map(graph.edges.map((/** @type {any} */ edge) => [edge.id, edge]))
  const placed = arrows.map((arrow) => {
    const id = `${arrow.source} ${arrow.target}`
    const label = nodes.get(id)
    const parts = label ? [edges.get(`${id} 1`), edges.get(`${id} 2`)] : [edges.get(id)]
    const points = parts.flatMap((edge) => edge.sections.flatMap((/** @type {any} */ s) => [s.startPoint, ...(s.bendPoints ?? []), s.endPoint]))
    return {
      arrow,
      points: isUpward(arrow, known) ? [...points].reverse() : points,
      label: label ? { x: label.x, y: label.y, width: label.width, height: label.height, block: setLabel(arrow.lines) } : null,
    }
  })
  return { width: graph.width, height: graph.height, boxes, arrows: placed }
}

/** @param {Box} root @param {readonly Part[]} parts @returns {Part} */
function sideBySide(root, parts) {
  const block = setBox(root, 0)
  const boxes = []
  const arrows = []
  let x = 0
  for (const part of parts) {
    const moved = move(part, x, block.height)
    boxes.push(...moved.boxes)
    arrows.push(...moved.arrows)
    x += part.width
  }
  const height = block.height + Math.max(...parts.map((part) => part.height))
  return { width: x, height, boxes: [{ x: 0, y: 0, width: x, height, box: root, block, level: 0 }, ...boxes], arrows }
}

/** @param {Part} part @param {number} dx @param {number} dy @returns {Part} */
function move(part, dx, dy) {
  const by = (/** @type {any} */ thing) => ({ ...thing, x: thing.x + dx, y: thing.y + dy })
  return {
    ...part,
    boxes: part.boxes.map(by),
    arrows: part.arrows.map(({ arrow, points, label }) => ({ arrow, points: points.map(by), label: label && by(label) })),
  }
}

/** @param {Drawing} drawing @param {Part} part @returns {Picture} */
function sheet({ definition }, part) {
  return { definition, ...move(part, MARGIN, MARGIN), width: part.width + 2 * MARGIN, height: part.height + 2 * MARGIN }
}
