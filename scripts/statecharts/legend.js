// @ts-check
/**
 * The legend: how the notation is read, for a stranger. It names only what the chart uses.
 */
import { allStates } from './definition.js'
import { codeRow, row } from './typeset.js'

/**
 * @typedef {import('./drawing.js').Drawing} Drawing
 * @typedef {import('./typeset.js').Row} Row
 *
 * @typedef {'initial' | 'final' | 'frame' | 'none'} Sign
 * @typedef {{ sign: Sign, y: number, rows: readonly Row[] }} Entry
 * @typedef {{ width: number, height: number, title: Row, entries: readonly Entry[] }} Legend
 */

const ROW = 17
const PAD = 10
/** The column of signs and samples. */
const SAMPLE = 118
const PROSE = 10

/** @param {Drawing} drawing @returns {Legend} */
export function legendOf(drawing) {
  const used = samples.filter(({ isUsed }) => isUsed(traitsOf(drawing)))
  const entries = used.map(({ sign, sample, text }, index) => {
    const y = 40 + index * ROW
    const words = sample ? [{ ...codeRow(sample.spans, lineOf(sample.kind), 0), x: PAD, y }] : []
    return { sign, y, rows: [...words, row(text, 'prose', PROSE, 'prose', { x: PAD + SAMPLE, y })] }
  })
  const widest = Math.max(...entries.flatMap(({ rows }) => rows.map(({ x, width }) => x + width)))
  const title = row('How to read it', 'title', 11, 'title', { x: PAD, y: 19 })
  return { width: widest + PAD, height: 40 + (entries.length - 1) * ROW + 12, title, entries }
}

/** @param {Drawing} drawing */
function traitsOf({ definition, arrows, root }) {
  const states = allStates(definition)
  const lines = arrows.flatMap((arrow) => arrow.lines)
  return {
    hasFinal: states.some(({ type }) => type === 'final'),
    hasEntry: states.some(({ entry }) => entry.length > 0),
    hasElse: lines.some(({ guard }) => guard === 'else'),
    hasAlways: lines.some(({ kind }) => kind === 'always'),
    hasAfter: definition.delays.length > 0,
    hasGuard: definition.guards.length > 0,
    hasInternal: definition.internal.length > 0,
    hasEffect: definition.actions.some(({ kind }) => kind === 'effect'),
    hasFrame: JSON.stringify(root).includes('"frame"'),
  }
}

/** @typedef {ReturnType<typeof traitsOf>} Traits */

/**
 * @typedef {object} Sample
 * @property {Sign} sign
 * @property {{ kind: import('./wording.js').Line['kind'], spans: readonly import('./typeset.js').Span[] }} [sample]
 * @property {string} text
 * @property {(traits: Traits) => boolean} isUsed
 */

/** @type {readonly Sample[]} */
const samples = [
  { sign: 'initial', text: 'the state it begins in', isUsed: () => true },
  { sign: 'final', text: 'final: nothing leads out of it', isUsed: ({ hasFinal }) => hasFinal },
  {
    sign: 'frame',
    text: 'an arrow from the frame leaves each state in it',
    isUsed: ({ hasFrame }) => hasFrame,
  },
  sampleOf(
    'event',
    [
      ['event', 'event'],
      ['[guard]', 'guard'],
    ],
    'taken on the event, if the guard holds',
    ({ hasGuard }) => hasGuard,
  ),
  sampleOf(
    'event',
    [
      ['event', 'event'],
      ['[else]', 'guard'],
    ],
    'if no guard of the same event held',
    ({ hasElse }) => hasElse,
  ),
  sampleOf(
    'after',
    [['after delay', 'event']],
    'a timer, started on entering the state',
    ({ hasAfter }) => hasAfter,
  ),
  sampleOf('always', [['always', 'event']], 'taken at once, without an event', ({ hasAlways }) => hasAlways),
  sampleOf(
    'raised',
    [['⇒ event', 'raised']],
    'raises the event, for another region',
    ({ hasInternal }) => hasInternal,
  ),
  sampleOf(
    'internal',
    [['event', 'event']],
    'an event that only the chart itself raises',
    ({ hasInternal }) => hasInternal,
  ),
  sampleOf(
    'event',
    [
      ['event', 'event'],
      ['/ action', 'actions'],
    ],
    'in a box: the state stays',
    () => true,
  ),
  sampleOf(
    'entry',
    [
      ['entry', 'event'],
      ['/ action', 'actions'],
    ],
    'done on entering, whatever led there',
    ({ hasEntry }) => hasEntry,
  ),
  sampleOf(
    'entry',
    [['dotted.action', 'actions']],
    'an effect in the world; others only note',
    ({ hasEffect }) => hasEffect,
  ),
]

/**
 * @param {import('./wording.js').Line['kind']} kind
 * @param {readonly (readonly [string, string])[]} spans
 * @param {string} text
 * @param {(traits: Traits) => boolean} isUsed
 * @returns {Sample}
 */
function sampleOf(kind, spans, text, isUsed) {
  return {
    sign: 'none',
    sample: { kind, spans: spans.map(([word, role]) => ({ text: word, role })) },
    text,
    isUsed,
  }
}

/** @param {import('./wording.js').Line['kind']} kind @returns {import('./drawing.js').Line} */
function lineOf(kind) {
  return { event: '', guard: '', actions: '', raises: '', hint: '', kind, ids: [] }
}
