// @ts-check
/**
 * What a machine says of itself, as plain data.
 *
 * Owns: reading an XState v5 machine into a definition: states, transitions, names. Pure; reads no file.
 * Does not own: how a definition is drawn (drawing.js, mermaid.js) or where it is kept (the generator).
 * Invariants: the order of states and transitions is the machine's own (the order in which XState tries them);
 * keys come in one fixed order; the same machine gives the same bytes.
 */

/**
 * @typedef {'event' | 'after' | 'always' | 'done'} TransitionKind
 *
 * @typedef {object} Transition
 * @property {string} id               `<source>|<event>|<target>|<index>`; the target is empty where the state stays.
 * @property {string} event            The type as the machine sees it; `always` for one that needs no event.
 * @property {TransitionKind} kind
 * @property {string | null} delay     The named delay of an `after`.
 * @property {string | null} guard
 * @property {string | null} target    A state id; null: the state stays, only the actions happen.
 * @property {readonly string[]} actions
 *
 * @typedef {object} State
 * @property {string} id
 * @property {string} key
 * @property {'atomic' | 'compound' | 'parallel' | 'final' | 'history'} type
 * @property {string} description
 * @property {string | null} initial   The id of the state a compound state begins in.
 * @property {readonly string[]} entry
 * @property {readonly string[]} exit
 * @property {readonly Transition[]} transitions
 * @property {readonly State[]} states
 *
 * @typedef {object} ActionKind
 * @property {string} name
 * @property {'effect' | 'assign' | 'raise' | 'cancel' | 'other'} kind An effect is for the actor to carry out.
 * @property {string | null} raises    The event that a `raise` puts back into the machine.
 * @property {string | null} delay     The named delay of a `raise`.
 *
 * @typedef {object} Vocabulary
 * @property {string} version
 * @property {readonly string[]} events
 * @property {readonly string[]} internal Those events that only the machine itself may raise.
 * @property {readonly string[]} guards
 * @property {readonly string[]} delays
 * @property {readonly ActionKind[]} actions
 *
 * @typedef {Vocabulary & State} Definition  The machine is its own outermost state.
 */

/** Stands where a machine has an inline function instead of a name. */
const UNNAMED = '(unnamed)'

/**
 * @param {import('xstate').AnyStateMachine} machine
 * @param {(eventType: string) => boolean} [isInternal] Events that the machine's host refuses from outside.
 * @returns {Definition}
 */
export function definitionOf(machine, isInternal = () => false) {
  const root = stateOf(machine.root)
  const states = allStates(root)
  const transitions = states.flatMap((state) => state.transitions)
  const actions = states.flatMap((state) => [
    ...state.entry,
    ...state.exit,
    ...state.transitions.flatMap((transition) => transition.actions),
  ])
  const events = sortedUnique(transitions.filter(({ kind }) => kind === 'event').map(({ event }) => event))
  const kinds = sortedUnique(actions).map((name) => actionKind(name, machine.implementations.actions[name]))
  const { id, ...rest } = root
  return {
    id,
    version: machine.version ?? '',
    events,
    internal: events.filter(isInternal),
    guards: sortedUnique(transitions.map(({ guard }) => guard)),
    delays: sortedUnique([...transitions, ...kinds].map(({ delay }) => delay)),
    actions: kinds,
    ...rest,
  }
}

/**
 * A state and all below it, parents first.
 * @param {State} state
 * @returns {readonly State[]}
 */
export function allStates(state) {
  return [state, ...state.states.flatMap(allStates)]
}

/**
 * What a definition lacks: descriptions, and names in place of inline functions. Empty when nothing.
 * @param {Definition} definition
 * @returns {readonly string[]}
 */
export function lacksIn(definition) {
  const states = allStates(definition)
  const undescribed = states
    .filter(({ description }) => description === '')
    .map(({ id }) => `${id} has no description`)
  const unnamed = states.flatMap(({ id, entry, exit, transitions }) => [
    ...(entry.includes(UNNAMED) ? [`${id}: an entry action has no name`] : []),
    ...(exit.includes(UNNAMED) ? [`${id}: an exit action has no name`] : []),
    ...transitions
      .filter(({ actions, guard, delay }) =>
        [...actions, guard, delay].some((name) => name?.includes(UNNAMED)),
      )
      .map((transition) => `${transition.id}: an action, guard or delay has no name`),
  ])
  return [...undescribed, ...unnamed]
}

/**
 * @param {import('xstate').AnyStateNode} node
 * @returns {State}
 */
function stateOf(node) {
  const initial = node.type === 'compound' ? (node.initial.target?.[0]?.id ?? null) : null
  return {
    id: node.id,
    key: node.key,
    type: node.type,
    description: node.description ?? '',
    initial,
    entry: node.entry.filter(isOwn).map(actionName),
    exit: node.exit.filter(isOwn).map(actionName),
    transitions: transitionsOf(node),
    states: Object.values(node.states).map(stateOf),
  }
}

/** @param {import('xstate').AnyStateNode} node */
function transitionsOf(node) {
  const always = (node.always ?? []).map((each, index) => transitionOf(node, each, 'always', index))
  const others = [...node.transitions.values()].flatMap((candidates) =>
    candidates.map((each, index) => transitionOf(node, each, kindOf(each.eventType), index)),
  )
  return [...always, ...others]
}

/**
 * @param {import('xstate').AnyStateNode} node
 * @param {import('xstate').AnyTransitionDefinition} transition
 * @param {TransitionKind} kind
 * @param {number} index Among the candidates for the same event, in the order they are tried.
 * @returns {Transition}
 */
function transitionOf(node, transition, kind, index) {
  const event = kind === 'always' ? 'always' : transition.eventType
  const [target = null, ...others] = (transition.target ?? []).map(({ id }) => id)
  if (others.length > 0)
    throw new TypeError(
      `${node.id}: a transition on ${event} has several targets; none is drawn for that yet`,
    )
  return {
    id: `${node.id}|${event}|${target ?? ''}|${index}`,
    event,
    kind,
    delay: kind === 'after' ? delayOf(node, transition.eventType) : null,
    guard: transition.guard === undefined ? null : guardName(transition.guard),
    target,
    actions: transition.actions.map(actionName),
  }
}

/**
 * @param {string} eventType
 * @returns {TransitionKind}
 */
function kindOf(eventType) {
  if (eventType.startsWith('xstate.after.')) return 'after'
  return eventType.startsWith('xstate.done.') ? 'done' : 'event'
}

/**
 * @param {import('xstate').AnyStateNode} node
 * @param {string} eventType
 */
function delayOf(node, eventType) {
  const { delay } = node.after.find((each) => each.eventType === eventType) ?? {}
  // A number is a delay without a name: how long a step may take belongs to the run's policy.
  return typeof delay === 'string' ? delay : UNNAMED
}

/** XState keeps the timers of `after` as entry and exit actions of its own; they are not the machine's. @param {any} action */
function isOwn(action) {
  const timer = action?.id ?? action?.sendId
  return !(typeof timer === 'string' && timer.startsWith('xstate.after.'))
}

/** @param {any} action @returns {string} */
function actionName(action) {
  if (typeof action === 'string') return action
  return typeof action === 'object' && typeof action.type === 'string' ? action.type : UNNAMED
}

/** @param {any} guard @returns {string} */
function guardName(guard) {
  if (typeof guard === 'string') return guard
  if (typeof guard === 'object' && typeof guard.type === 'string') return guard.type
  // and([...]), or([...]) and not(...) are functions that carry the guards they combine.
  if (Array.isArray(guard.guards)) return `${guard.name}(${guard.guards.map(guardName).join(', ')})`
  return UNNAMED
}

/**
 * @param {string} name
 * @param {any} implementation
 * @returns {ActionKind}
 */
function actionKind(name, implementation) {
  const builtIn =
    typeof implementation?.type === 'string' ? implementation.type.replace('xstate.', '') : 'effect'
  const kind = ['effect', 'assign', 'raise', 'cancel'].includes(builtIn) ? builtIn : 'other'
  return {
    name,
    kind,
    raises: kind === 'raise' ? raisedBy(implementation.event) : null,
    delay: kind === 'raise' && typeof implementation.delay === 'string' ? implementation.delay : null,
  }
}

/** The type of a raised event. It is a constant of the machine, also where the rest of the event is computed. @param {any} event */
function raisedBy(event) {
  if (typeof event !== 'function') return event.type
  try {
    return event({ context: {}, event: {} }).type
  } catch {
    // The rest of the event needs a real context; the picture does without the name.
    return null
  }
}

/** @param {readonly (string | null)[]} names @returns {readonly string[]} */
function sortedUnique(names) {
  return [...new Set(names.filter((name) => name !== null))].sort()
}
