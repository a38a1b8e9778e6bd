// @ts-check
/**
 * What is to be drawn of a definition: boxes within boxes, and arrows between them.
 *
 * Owns: which transitions become one arrow, which states share a frame, what is written where.
 * Does not own: places and sizes (layout.js) and looks (svg.js).
 * Invariants: every transition of the definition is drawn once, as a line of an arrow or inside a box; one line may
 * speak for the same transition of several states, and then carries the id of each.
 */
import { allStates } from './definition.js'

/**
 * @typedef {import('./definition.js').Definition} Definition
 * @typedef {import('./definition.js').State} State
 * @typedef {import('./definition.js').Transition} Transition
 *
 * @typedef {object} Line              One transition, as it is written.
 * @property {string} event            `run.cancel`, `after termGrace`, `entry`.
 * @property {string} guard            `isForcedNow`, `else`, or empty.
 * @property {string} actions          Written inside boxes; empty on arrows.
 * @property {string} raises           The event that its actions put back into the machine at once; written on arrows.
 * @property {string} hint             The tooltip.
 * @property {'event' | 'internal' | 'after' | 'always' | 'done' | 'entry' | 'raised'} kind
 * @property {readonly string[]} ids   Transition ids; none for an entry line.
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
 *
 * @typedef {object} Drawing
 * @property {Definition} definition
 * @property {Box} root
 * @property {readonly Arrow[]} arrows
 */

/** An arrow saved is worth this many label lines saved; a frame costs as much as the second number of arrows. */
const LINE_WORTH = 0.15
const FRAME_COST = 1.2

/**
 * @param {Definition} definition
 * @returns {Drawing}
 */
export function drawingOf(definition) {
  /** @type {Map<string, Arrow & { lines: Line[] }>} */
  const arrows = new Map()
  const vocabulary = vocabularyOf(definition)
  const entered = enteredByDefault(definition.root)

  /** @param {string} source @param {Shared} shared */
  const draw = (source, shared) => {
    const { target } = shared
    const key = `${source} ${target}`
    const arrow = arrows.get(key) ?? { source, target, lines: [] }
    arrows.set(key, arrow)
    arrow.lines.push(vocabulary.arrowLine(shared))
  }

  /** @param {State} state @param {readonly Shared[]} outgoing @returns {Box} */
  const boxOf = (state, outgoing) => {
    for (const shared of outgoing) if (shared.target !== state.id) draw(state.id, shared)
    const children = groupsOf(state.states.map((child) => ({ id: child.id, states: [child], shared: sharedOf(child) })))
    const boxes = children.map(drawGroup)
    if (state.initial !== null && entered.has(state.initial)) {
      const dot = `${state.id}.`
      arrows.set(dot, { source: dot, target: state.initial, lines: [] })
      placeBeside(boxes, state.initial, { id: dot, kind: 'initial', title: '', description: '', lines: [], boxes: [] })
    }
    return {
      id: state.id,
      kind: kindOf(state),
      title: state.key,
      description: state.description,
      lines: vocabulary.linesWithin(state, outgoing),
      boxes,
    }
  }

  /** @param {Group} group @returns {Box} */
  const drawGroup = (group) => {
    if (group.members === undefined) return boxOf(group.states[0], group.shared)
    for (const shared of group.shared) draw(group.id, shared)
    const boxes = group.members.map(drawGroup)
    return { id: group.id, kind: 'frame', title: 'any of these', description: frameHint(group), lines: [], boxes }
  }

  const root = boxOf(definition.root, sharedOf(definition.root))
  return { definition, root, arrows: [...arrows.values()] }
}

/** @param {State} state @returns {Box['kind']} */
function kindOf(state) {
  if (state.type === 'final' || state.type === 'compound' || state.type === 'parallel') return state.type
  return 'state'
}

/** @param {Group} group */
function frameHint(group) {
  return `An arrow from this frame leaves ${group.states.map(({ key }) => key).join(', ')}.`
}

/** The dot stands with the state it points at, also where that one is in a frame. @param {any[]} boxes @param {string} id @param {Box} dot */
function placeBeside(boxes, id, dot) {
  const index = boxes.findIndex((box) => box.id === id)
  if (index >= 0) {
    boxes.splice(index, 0, dot)
    return
  }
  for (const { kind, boxes: inner } of boxes) if (kind === 'frame') placeBeside(inner, id, dot)
}

/** States that are entered because a state around them is: an initial dot elsewhere would show a way nobody takes. @param {State} root */
function enteredByDefault(root) {
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
  for (const { target } of [...states.values()].flatMap(({ transitions }) => transitions)) if (target) enter(target)
  return entered
}

// ── transitions that several states share ───────────────────────────────────────────────────────

/**
 * @typedef {object} Shared            The same transition out of one or more states.
 * @property {string} signature        Equal for transitions that differ in nothing but their source.
 * @property {string} target
 * @property {boolean} isElse          Taken when the guards before it, for the same event, do not hold.
 * @property {readonly Transition[]} transitions
 *
 * @typedef {object} Group             A state, or a frame around states that share transitions.
 * @property {string} id
 * @property {readonly State[]} states
 * @property {readonly Shared[]} shared What leaves it as a whole.
 * @property {readonly Group[]} [members] Those in the frame.
 */

/** @param {State} state @returns {readonly Shared[]} */
function sharedOf(state) {
  return state.transitions.flatMap((transition) => {
    const { event, kind, guard, target, actions, delay } = transition
    if (target === null) return []
    const isElse = isElseOf(state, transition)
    const name = kind === 'after' ? `after ${delay}` : event
    const signature = JSON.stringify([name, guard, isElse, target, actions])
    return [{ signature, target, isElse, transitions: [transition] }]
  })
}

/** @param {State} state @param {Transition} transition */
function isElseOf(state, transition) {
  const candidates = state.transitions.filter(({ event }) => event === transition.event)
  return transition.guard === null && candidates.indexOf(transition) > 0
}

/**
 * Frames siblings that share transitions, where that saves more arrows than the frame costs; the best frame first,
 * then within it and beside it again. Frames never overlap, because each is made of whole groups.
 * @param {readonly Group[]} groups
 * @returns {readonly Group[]}
 */
function groupsOf(groups) {
  const best = candidatesAmong(groups)
    .map((members) => ({ members, worth: worthOf(members) }))
    .reduce((a, b) => (b.worth > a.worth ? b : a), { members: /** @type {readonly Group[]} */ ([]), worth: 0 })
  if (best.worth <= 0) return groups
  const { members } = best
  const common = commonTo(members)
  const stripped = members.map((group) => ({
    ...group,
    shared: group.shared.filter(({ signature }) => !common.has(signature)),
  }))
  /** @type {Group} */
  const frame = {
    id: `${members[0]?.states[0]?.id}+${members.flatMap(({ states }) => states).length}`,
    states: members.flatMap(({ states }) => states),
    shared: [...common.values()],
    members: groupsOf(stripped),
  }
  const [first] = members
  return groupsOf(groups.flatMap((group) => (group === first ? [frame] : members.includes(group) ? [] : [group])))
}

/** Sets of groups that share at least one transition, and what any two of those sets have in common. @param {readonly Group[]} groups */
function candidatesAmong(groups) {
  const signatures = new Set(groups.flatMap(({ shared }) => shared.map(({ signature }) => signature)))
  const sets = [...signatures].map((signature) =>
    groups.filter(({ shared }) => shared.some((each) => each.signature === signature)),
  )
  const crossed = sets.flatMap((a) => sets.map((b) => a.filter((group) => b.includes(group))))
  return crossed.filter(({ length }) => length > 1)
}

/** @param {readonly Group[]} members */
function commonTo(members) {
  const [first, ...others] = members
  /** @type {Map<string, Shared>} */
  const common = new Map()
  for (const shared of first?.shared ?? []) {
    const same = others.map((group) => group.shared.find(({ signature }) => signature === shared.signature))
    if (same.some((each) => each === undefined)) continue
    const transitions = [shared, ...same].flatMap((each) => each?.transitions ?? [])
    common.set(shared.signature, { ...shared, transitions })
  }
  return common
}

/** @param {readonly Group[]} members */
function worthOf(members) {
  const common = commonTo(members)
  if (common.size === 0) return 0
  const arrowsOf = (/** @type {readonly Shared[]} */ shared) => new Set(shared.map(({ target }) => target)).size
  const before = members.map(({ shared }) => arrowsOf(shared))
  const after = members.map(({ shared }) => arrowsOf(shared.filter(({ signature }) => !common.has(signature))))
  const arrowsSaved = sum(before) - sum(after) - arrowsOf([...common.values()])
  return arrowsSaved + LINE_WORTH * common.size * (members.length - 1) - FRAME_COST
}

/** @param {readonly number[]} numbers */
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0)

// ── what is written ─────────────────────────────────────────────────────────────────────────────

/** @param {Definition} definition */
function vocabularyOf(definition) {
  const keys = new Map(allStates(definition.root).map(({ id, key }) => [id, key]))
  const kinds = new Map(definition.actions.map((action) => [action.name, action]))
  const raised = new Set(definition.actions.map(({ raises }) => raises).filter((name) => name !== null))
  const atOnce = new Set(definition.actions.filter(({ delay }) => delay === null).map(({ raises }) => raises))

  /** @param {string} name What an action raises says more than its own name. */
  const actionText = (name) => {
    const { raises = null, delay = null } = kinds.get(name) ?? {}
    if (raises === null) return name
    return delay === null ? `${name} ⇒ ${raises}` : `${name} ⇒ ${raises} after ${delay}`
  }

  /** @param {Transition} transition @param {boolean} isElse @param {string} actions @param {string} hint @returns {Line} */
  const line = (transition, isElse, actions, hint) => ({
    event: transition.kind === 'after' ? `after ${transition.delay}` : transition.event,
    guard: transition.guard ?? (isElse ? 'else' : ''),
    actions,
    raises: '',
    hint,
    kind: transition.kind === 'event' && atOnce.has(transition.event) && raised.has(transition.event) ? 'internal' : transition.kind,
    ids: [transition.id],
  })

  return {
    /** @param {Shared} shared @returns {Line} */
    arrowLine: ({ transitions, isElse }) => {
      const [transition] = transitions
      const from = transitions.map(({ id }) => keys.get(id.split('|')[0] ?? '')).join(', ')
      const does = transition.actions.map(actionText).join(', ')
      const head = line(transition, isElse, '', '')
      const words = `${head.event}${head.guard && ` [${head.guard}]`}${does && ` / ${does}`}`
      const raises = transition.actions.map((name) => kinds.get(name)).find((action) => action?.raises && action.delay === null)
      return { ...head, raises: raises?.raises ?? '', hint: `${from} → ${keys.get(transition.target ?? '')}: ${words}`, ids: transitions.map(({ id }) => id) }
    },
    /** Staying is no arrow: it is written inside the box. @param {State} state @param {readonly Shared[]} outgoing @returns {readonly Line[]} */
    linesWithin: (state, outgoing) => [
      ...entryLine('entry', state.entry.map(actionText)),
      ...entryLine('exit', state.exit.map(actionText)),
      ...state.transitions
        .filter((transition) => transition.target === null || outgoing.some((shared) => shared.target === state.id && shared.transitions[0] === transition))
        .map((transition) => {
          const isElse = isElseOf(state, transition)
          return line(transition, isElse, transition.actions.map(actionText).join(', '), `${state.key} stays`)
        }),
    ],
  }
}

/** @param {string} event @param {readonly string[]} actions @returns {readonly Line[]} */
function entryLine(event, actions) {
  if (actions.length === 0) return []
  return [{ event, guard: '', actions: actions.join(', '), raises: '', hint: '', kind: 'entry', ids: [] }]
}
