// @ts-check
/**
 * Transitions in words: what is written on arrows and in boxes.
 */
import { allStates } from './definition.js'
import { isElseOf } from './frames.js'

/**
 * @typedef {import('./definition.js').Definition} Definition
 * @typedef {import('./definition.js').State} State
 * @typedef {import('./definition.js').Transition} Transition
 * @typedef {import('./frames.js').Shared} Shared
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
 * @typedef {object} Wording
 * @property {(shared: Shared) => Line} onArrow
 * @property {(state: State, outgoing: readonly Shared[]) => readonly Line[]} inBox
 */

/** @param {Definition} definition @returns {Wording} */
export function wordingOf(definition) {
  const keys = new Map(allStates(definition).map(({ id, key }) => [id, key]))
  const actions = new Map(definition.actions.map((action) => [action.name, action]))
  const internal = new Set(definition.internal)

  /** @param {readonly string[]} names What an action raises says more than its own name. */
  const wordsOf = (names) => {
    const words = names.map((name) => {
      const { raises = null, delay = null } = actions.get(name) ?? {}
      if (raises === null) return name
      return delay === null ? `${name} ⇒ ${raises}` : `${name} ⇒ ${raises} after ${delay}`
    })
    return words.join(', ')
  }
  /** @param {readonly string[]} names */
  const raisedBy = (names) => {
    const raising = names
      .map((name) => actions.get(name))
      .find((action) => action?.raises && action.delay === null)
    return raising?.raises ?? ''
  }
  /** @param {Transition} transition @param {boolean} isElse @returns {Line} */
  const lineOf = ({ id, kind, event, delay, guard }, isElse) => ({
    event: kind === 'after' ? `after ${delay}` : event,
    guard: guard ?? (isElse ? 'else' : ''),
    actions: '',
    raises: '',
    hint: '',
    kind: internal.has(event) ? 'internal' : kind,
    ids: [id],
  })

  return {
    onArrow: ({ first, transitions, target, isElse }) => {
      const line = lineOf(first, isElse)
      const does = wordsOf(first.actions)
      const from = transitions.map(({ id }) => keys.get(id.split('|')[0] ?? '')).join(', ')
      const words = `${line.event}${line.guard && ` [${line.guard}]`}${does && ` / ${does}`}`
      return {
        ...line,
        raises: raisedBy(first.actions),
        hint: `${from} → ${keys.get(target)}: ${words}`,
        ids: transitions.map(({ id }) => id),
      }
    },
    // Where the state stays there is no arrow: the line stands in the box.
    inBox: (state, outgoing) => {
      const own = outgoing.filter(({ target }) => target === state.id).map(({ first }) => first)
      const staying = state.transitions.filter((each) => each.target === null || own.includes(each))
      return [
        ...entryLine('entry', wordsOf(state.entry)),
        ...entryLine('exit', wordsOf(state.exit)),
        ...staying.map((each) => ({
          ...lineOf(each, isElseOf(state, each)),
          actions: wordsOf(each.actions),
          hint: each.target === null ? `${state.key} stays` : `${state.key} begins again`,
        })),
      ]
    },
  }
}

/** @param {string} event @param {string} actions @returns {readonly Line[]} */
function entryLine(event, actions) {
  return actions === '' ? [] : [{ event, guard: '', actions, raises: '', hint: '', kind: 'entry', ids: [] }]
}
