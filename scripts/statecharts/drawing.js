// @ts-check
/**
 * What is to be drawn of a definition: boxes within boxes, and arrows between them.
 *
 * Owns: which boxes there are and which transitions become one arrow.
 * Does not own: the choice of frames (frames.js), words (wording.js), places (layout.js) and looks (svg.js).
 * Invariants: every transition of the definition is drawn once, as a line of an arrow or inside a box; one line may
 * speak for the same transition of several states, and then carries the id of each.
 */
import { allStates } from './definition.js'
import { groupsOf, sharedOf } from './frames.js'
import { wordingOf } from './wording.js'

/**
 * @typedef {import('./definition.js').Definition} Definition
 * @typedef {import('./definition.js').State} State
 * @typedef {import('./frames.js').Group} Group
 * @typedef {import('./frames.js').Shared} Shared
 * @typedef {import('./wording.js').Line} Line
 *
 * @typedef {object} Arrow
 * @property {string} source           A box id.
 * @property {string} target
 * @property {readonly Line[]} lines   None for the arrow that leaves an initial dot.
 *
 * @typedef {object} Box
 * @property {string} id               A state id; `<first id>+<count>` for a frame, `<id>.` for an initial dot.
 * @property {'state' | 'final' | 'compound' | 'parallel' | 'frame' | 'initial'} kind
 * @property {string} title
 * @property {string} description
 * @property {readonly Line[]} lines
 * @property {readonly Box[]} boxes
 * @property {number} [titleSize]      In an overview: the title stands alone, that large; its description is in the tooltip.
 *
 * @typedef {object} Drawing
 * @property {Definition} definition
 * @property {Box} root
 * @property {readonly Arrow[]} arrows
 * @property {boolean} [isOverview]    It has no legend.
 */

/**
 * @param {Definition} definition
 * @returns {Drawing}
 */
export function drawingOf(definition) {
  /** @type {Map<string, Arrow & { lines: Line[] }>} */
  const arrows = new Map()
  const wording = wordingOf(definition)
  const entered = enteredByDefault(definition)

  /** All that leads from one box to another is one arrow. @param {string} source @param {readonly Shared[]} outgoing */
  const draw = (source, outgoing) => {
    for (const shared of outgoing) {
      const { target } = shared
      if (target === source) continue
      const arrow = arrows.get(`${source} ${target}`) ?? { source, target, lines: [] }
      arrows.set(`${source} ${target}`, arrow)
      arrow.lines.push(wording.onArrow(shared))
    }
  }

  /** @param {State} state @param {readonly Shared[]} outgoing @returns {Box} */
  const boxOf = (state, outgoing) => {
    const { groups, ofAll } = groupsOf(state.states)
    draw(state.id, [...outgoing, ...ofAll])
    const boxes = groups.map(groupBox)
    const hasDot = state.initial !== null && entered.has(state.initial)
    if (hasDot) arrows.set(`${state.id}.`, { source: `${state.id}.`, target: state.initial ?? '', lines: [] })
    return {
      id: state.id,
      kind: kindOf(state),
      title: state.key,
      description: state.description,
      lines: wording.inBox(state, outgoing),
      boxes: hasDot ? withDot(boxes, state.initial ?? '', dotOf(state)) : boxes,
    }
  }

  /** @param {Group} group @returns {Box} */
  const groupBox = ({ id, states, shared, members }) => {
    const [state] = states
    if (members.length === 0 && state) return boxOf(state, shared)
    draw(id, shared)
    const description = `An arrow from this frame leaves ${states.map(({ key }) => key).join(', ')}.`
    return { id, kind: 'frame', title: 'any of these', description, lines: [], boxes: members.map(groupBox) }
  }

  const root = boxOf(definition, sharedOf(definition))
  return { definition, root, arrows: [...arrows.values()] }
}

/** @param {State} state @returns {Box['kind']} */
function kindOf({ type }) {
  return type === 'final' || type === 'compound' || type === 'parallel' ? type : 'state'
}

/** @param {State} state @returns {Box} */
function dotOf({ id }) {
  return { id: `${id}.`, kind: 'initial', title: '', description: '', lines: [], boxes: [] }
}

/** The dot stands with the state it points at, also where that one is in a frame. @param {readonly Box[]} boxes @param {string} id @param {Box} dot @returns {readonly Box[]} */
function withDot(boxes, id, dot) {
  return boxes.flatMap((box) => {
    if (box.id === id) return [dot, box]
    return box.kind === 'frame' ? [{ ...box, boxes: withDot(box.boxes, id, dot) }] : [box]
  })
}

/**
 * States that are entered because a state around them is; an initial dot elsewhere would show a way nobody takes.
 * @param {State} root
 * @returns {ReadonlySet<string>}
 */
export function enteredByDefault(root) {
  const states = new Map(allStates(root).map((state) => [state.id, state]))
  /** @type {Set<string>} */
  const entered = new Set()
  /** @param {string} id */
  const enter = (id) => {
    const state = states.get(id)
    const next = state?.type === 'parallel' ? state.states.map((child) => child.id) : [state?.initial]
    for (const child of next) {
      if (!child || entered.has(child)) continue
      entered.add(child)
      enter(child)
    }
  }
  enter(root.id)
  const targets = [...states.values()].flatMap(({ transitions }) => transitions.map(({ target }) => target))
  for (const target of targets) if (target !== null) enter(target)
  return entered
}
