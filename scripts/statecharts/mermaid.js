// @ts-check
/**
 * A definition as a Mermaid state diagram.
 *
 * Owns: the words and signs that Mermaid's grammar takes. Does not own: any layout; Mermaid draws.
 */
import { allStates } from './definition.js'
import { enteredByDefault } from './drawing.js'

/**
 * @typedef {import('./definition.js').Definition} Definition
 * @typedef {import('./definition.js').State} State
 * @typedef {import('./definition.js').Transition} Transition
 */

/**
 * @param {Definition} definition
 * @returns {string}
 */
export function mermaidOf(definition) {
  const { id, version, description } = definition
  const lines = [
    `%% Generated from the machine ${id}, version ${version}: npm run charts`,
    'stateDiagram-v2',
    '  direction TB',
    `  accTitle: Statechart ${id}`,
    `  accDescr: ${text(description)}`,
    ...body(definition).map((line) => `  ${line}`),
  ]
  return `${lines.join('\n')}\n`
}

/**
 * Mermaid moves a state into the block that names it last, except where that is the diagram itself: so all arrows come
 * at the end, outside every block.
 * @param {State} root
 * @returns {readonly string[]}
 */
function body(root) {
  const entered = enteredByDefault(root)
  if (root.type !== 'parallel') return [...inner(root, entered), ...arrowsOf(root)]
  const regions = root.states.flatMap((region, index) => [
    ...(index === 0 ? [] : ['  --']),
    ...block(region, inner(region, entered)).map((line) => `  ${line}`),
  ])
  return [`state "${text(root.key)}" as ${name(root.id)} {`, ...regions, '}', ...arrowsOf(root)]
}

/** @param {State} state @param {readonly string[]} lines */
function block(state, lines) {
  return [
    `state "${text(`${state.key}: ${state.description}`)}" as ${name(state.id)} {`,
    ...lines.map((line) => `  ${line}`),
    '}',
  ]
}

/** @param {State} state @param {ReadonlySet<string>} entered @returns {readonly string[]} */
function inner(state, entered) {
  return [
    ...state.states.flatMap((child) =>
      child.states.length > 0
        ? block(child, inner(child, entered))
        : [
            `state "${text(child.key)}" as ${name(child.id)}`,
            `${name(child.id)} : ${text(child.description)}`,
          ],
    ),
    ...(state.initial === null || !entered.has(state.initial) ? [] : [`[*] --> ${name(state.initial)}`]),
    ...state.states.filter(({ type }) => type === 'final').map(({ id }) => `${name(id)} --> [*]`),
  ]
}

/** One arrow for all transitions between the same two states; what stays in a state is a loop there. @param {State} root */
function arrowsOf(root) {
  /** @type {Map<string, { from: string, to: string, words: string[] }>} */
  const arrows = new Map()
  for (const { id, transitions } of allStates(root)) {
    for (const transition of transitions) {
      const to = transition.target ?? id
      const arrow = arrows.get(`${id} ${to}`) ?? { from: name(id), to: name(to), words: [] }
      arrows.set(`${id} ${to}`, arrow)
      arrow.words.push(text(words(transition)))
    }
  }
  return [...arrows.values()].map((arrow) => `${arrow.from} --> ${arrow.to} : ${arrow.words.join('<br/>')}`)
}

/** @param {Transition} transition */
function words({ kind, event, delay, guard }) {
  const trigger = kind === 'after' ? `after ${delay}` : event
  return guard === null ? trigger : `${trigger} [${guard}]`
}

/** Mermaid's names are words. @param {string} id */
const name = (id) => id.replace(/\W/g, '_')

/** Signs that Mermaid reads as its own. @param {string} words */
const text = (words) =>
  words
    .replaceAll(/: /g, ' – ')
    .replaceAll(':', ' ')
    .replaceAll(';', ',')
    .replaceAll('"', "'")
    .replaceAll('#', '')
