// @ts-check
/**
 * Transitions that several states share, drawn once.
 *
 * Owns: which transitions are the same but for their source, and which states get a frame that they leave from.
 * Invariants: frames never overlap, since each is made of whole groups; a shared transition keeps the id of each
 * transition it stands for.
 */

/**
 * @typedef {import('./definition.js').State} State
 * @typedef {import('./definition.js').Transition} Transition
 *
 * @typedef {object} Shared            The same transition out of one or more states.
 * @property {string} signature        Equal for transitions that differ in nothing but their source.
 * @property {string} target
 * @property {boolean} isElse          Taken when the guards before it, for the same event, do not hold.
 * @property {Transition} first
 * @property {readonly Transition[]} transitions
 *
 * @typedef {object} Group             A state, or a frame around groups that share transitions.
 * @property {string} id
 * @property {readonly State[]} states
 * @property {readonly Shared[]} shared What leaves it as a whole.
 * @property {readonly Group[]} members Those in the frame; none for a state.
 */

/** A label line saved is worth this much of an arrow saved. */
const LINE_WORTH = 0.15
/** In arrows saved. */
const FRAME_COST = 1.2

/** @param {State} state @returns {readonly Shared[]} */
export function sharedOf(state) {
  return state.transitions.flatMap((transition) => {
    const { event, kind, guard, target, actions, delay } = transition
    if (target === null) return []
    const isElse = isElseOf(state, transition)
    const name = kind === 'after' ? `after ${delay}` : event
    const signature = JSON.stringify([name, guard, isElse, target, actions])
    return [{ signature, target, isElse, first: transition, transitions: [transition] }]
  })
}

/** @param {State} state @param {Transition} transition */
export function isElseOf(state, transition) {
  const candidates = state.transitions.filter(({ event }) => event === transition.event)
  return transition.guard === null && candidates.indexOf(transition) > 0
}

/**
 * The children of a state, framed; and what all of them share, which leaves the state itself.
 * @param {readonly State[]} states
 * @returns {{ groups: readonly Group[], ofAll: readonly Shared[] }}
 */
export function groupsOf(states) {
  const groups = states.map((state) => ({
    id: state.id,
    states: [state],
    shared: sharedOf(state),
    members: [],
  }))
  const ofAll = states.length > 1 ? [...commonTo(groups).values()] : []
  return { groups: framed(without(groups, ofAll)), ofAll }
}

/** Frames what is worth it: the best frame first, then within it and beside it again. @param {readonly Group[]} groups @returns {readonly Group[]} */
function framed(groups) {
  const { members, worth } = bestAmong(groups)
  if (worth <= 0) return groups
  const shared = [...commonTo(members).values()]
  const states = members.flatMap((group) => group.states)
  const id = `${states[0]?.id}+${states.length}`
  const frame = { id, states, shared, members: framed(without(members, shared)) }
  return framed(
    groups.flatMap((group) => (group === members[0] ? [frame] : members.includes(group) ? [] : [group])),
  )
}

/** Sets of groups that share a transition, and what any two of those sets have in common. @param {readonly Group[]} groups */
function bestAmong(groups) {
  const signatures = new Set(groups.flatMap(({ shared }) => shared.map(({ signature }) => signature)))
  const sets = [...signatures].map((signature) => groups.filter((group) => has(group, signature)))
  const crossed = sets.flatMap((a) => sets.map((b) => a.filter((group) => b.includes(group))))
  let best = { members: /** @type {readonly Group[]} */ ([]), worth: 0 }
  for (const members of crossed) {
    const worth = members.length > 1 ? worthOf(members) : 0
    if (worth > best.worth) best = { members, worth }
  }
  return best
}

/** @param {readonly Group[]} members */
function worthOf(members) {
  const common = [...commonTo(members).values()]
  const left = without(members, common)
  const arrowsSaved = arrowsOf(members) - arrowsOf(left) - arrowsOf([{ shared: common }])
  return arrowsSaved + LINE_WORTH * common.length * (members.length - 1) - FRAME_COST
}

/** How many arrows leave these: all lines to one target are one arrow. @param {readonly { shared: readonly Shared[] }[]} groups */
function arrowsOf(groups) {
  return groups.reduce((sum, { shared }) => sum + new Set(shared.map(({ target }) => target)).size, 0)
}

/** @param {readonly Group[]} members @returns {ReadonlyMap<string, Shared>} */
function commonTo(members) {
  const [first, ...others] = members
  const common = (first?.shared ?? []).filter(({ signature }) =>
    others.every((group) => has(group, signature)),
  )
  return new Map(
    common.map((shared) => {
      const same = members.flatMap((group) =>
        group.shared.filter(({ signature }) => signature === shared.signature),
      )
      return [shared.signature, { ...shared, transitions: same.flatMap(({ transitions }) => transitions) }]
    }),
  )
}

/** @param {readonly Group[]} groups @param {readonly Shared[]} taken */
function without(groups, taken) {
  const signatures = new Set(taken.map(({ signature }) => signature))
  return groups.map((group) => ({
    ...group,
    shared: group.shared.filter(({ signature }) => !signatures.has(signature)),
  }))
}

/** @param {Group} group @param {string} signature */
const has = ({ shared }, signature) => shared.some((each) => each.signature === signature)
