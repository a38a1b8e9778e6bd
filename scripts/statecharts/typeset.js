// @ts-check
/**
 * Text set into rows: what stands in a box and on an arrow, and how large that makes them.
 *
 * Owns: sizes of type, padding, where a row breaks. All measures in px.
 * Does not own: places in the picture (layout.js) and what is said (drawing.js).
 */
import { widthOf, wrap } from './text.js'

/**
 * @typedef {import('./drawing.js').Box} Box
 * @typedef {import('./wording.js').Line} Line
 * @typedef {import('./text.js').Face} Face
 *
 * @typedef {{ text: string, role: string }} Span  A piece of a row, by what it says: `event`, `guard`, `actions` …
 * @typedef {object} Row
 * @property {number} x                From the left edge of what holds the row.
 * @property {number} y                Of the baseline.
 * @property {number} width
 * @property {Face} face
 * @property {number} size
 * @property {readonly Span[]} spans
 * @property {Line | null} line        The transition, or the entry or exit, that the row belongs to.
 *
 * @typedef {object} Block             Set text and the size of what holds it.
 * @property {number} width
 * @property {number} height
 * @property {readonly Row[]} rows
 * @property {number} ruleY            Of the rule below the title, or the title bar; 0 where there is none.
 *
 * @typedef {object} Place             Where a box stands, as far as its text depends on it.
 * @property {boolean} isRegion        A region of a parallel machine: its title stands free.
 * @property {boolean} isMachine       The outermost box: its description has rows of its own.
 * @property {boolean} hasFoot         Its lines go below the inner boxes and leave the top to arrows.
 *
 * @typedef {object} BoxText
 * @property {Block} head              All of a leaf's text; of a box that holds others, what stands above them.
 * @property {Block | null} foot       What stands below them.
 */

const TITLE = 12.5
const REGION_TITLE = 15
const FRAME_TITLE = 9.5
const PROSE = 10
const REGION_PROSE = 11
const CODE = 10

const ROW = 13
const PAD = 9
const INDENT = 9
const LABEL_PAD = 6

const TITLE_BAR = 26
const REGION_BAR = 30
const FRAME_HEAD = 20

/** Widths at which text in a box breaks. */
const PROSE_WIDTH = 165
const FINAL_PROSE_WIDTH = 100
const MACHINE_PROSE_WIDTH = 250
const CODE_WIDTH = 185
/** A guard on an arrow goes under its event when both together would be wider than this. */
const LABEL_WIDTH = 172

/** @type {Block} */
const empty = { width: 0, height: 0, rows: [], ruleY: 0 }

/**
 * @param {Box} box
 * @param {Place} place
 * @returns {BoxText}
 */
export function setBox(box, place) {
  if (box.kind === 'initial') return { head: { ...empty, width: 10, height: 10 }, foot: null }
  if (box.kind === 'frame') {
    const title = row(box.title, 'prose', FRAME_TITLE, 'frame-title', { x: PAD, y: 14 })
    return { head: { ...blockOf([title], FRAME_HEAD), width: 0 }, foot: null }
  }
  return box.boxes.length > 0 ? setOuter(box, place) : { head: setLeaf(box), foot: null }
}

/** @param {Box} box @returns {Block} */
function setLeaf(box) {
  const { titleSize } = box
  if (titleSize !== undefined) {
    const title = row(box.title, 'title', titleSize, 'title', { x: PAD, y: 6 + titleSize })
    return blockOf([title], Math.round(16 + titleSize))
  }
  const title = row(box.title, 'title', TITLE, 'title', { x: PAD, y: 18 })
  const code = setCode(box.lines, CODE_WIDTH)
  const widest = Math.max(title.width, ...code.map(({ x, width }) => x - PAD + width))
  const proseWidth = Math.max(widest, box.kind === 'final' ? FINAL_PROSE_WIDTH : PROSE_WIDTH)
  const prose = wrap(box.description, 'prose', PROSE, proseWidth).map((text, index) =>
    row(text, 'prose', PROSE, 'prose', { x: PAD, y: 33 + index * ROW }),
  )
  const top = 30 + prose.length * ROW
  if (code.length === 0) return blockOf([title, ...prose], top)
  const rows = [title, ...prose, ...stack(code, top)]
  return { ...blockOf(rows, top + code.length * ROW + 8), ruleY: top }
}

/** @param {Box} box @param {Place} place @returns {BoxText} */
function setOuter(box, { isRegion, isMachine, hasFoot }) {
  const isLarge = isRegion || isMachine
  const y = isLarge ? 21 : 18
  const title = row(box.title, 'title', isLarge ? REGION_TITLE : TITLE, 'title', { x: PAD, y })
  if (isMachine) return { head: setMachine(box, title), foot: null }
  const x = PAD + title.width + 10
  const prose = row(box.description, 'prose', isRegion ? REGION_PROSE : PROSE, 'prose', { x, y })
  const bar = isRegion ? REGION_BAR : TITLE_BAR
  const code = setCode(box.lines, CODE_WIDTH)
  const titleOnly = { ...blockOf([title], bar), rows: [title, prose], ruleY: bar }
  if (code.length === 0) return { head: titleOnly, foot: null }
  if (hasFoot) return { head: titleOnly, foot: blockOf(stack(code, -4), code.length * ROW) }
  const rows = stack(code, bar + 1)
  const { width } = blockOf([title, ...rows], 0)
  return {
    head: { width, height: bar + code.length * ROW + 6, rows: [title, prose, ...rows], ruleY: bar },
    foot: null,
  }
}

/** @param {Box} box @param {Row} title @returns {Block} */
function setMachine(box, title) {
  const prose = wrap(box.description, 'prose', PROSE, MACHINE_PROSE_WIDTH).map((text, index) =>
    row(text, 'prose', PROSE, 'prose', { x: PAD, y: REGION_BAR + 15 + index * ROW }),
  )
  const code = stack(setCode(box.lines, CODE_WIDTH), REGION_BAR + 3 + prose.length * ROW)
  const height = REGION_BAR + 2 + (prose.length + code.length) * ROW
  return { ...blockOf([title, ...prose, ...code], height), ruleY: REGION_BAR }
}

/**
 * What is written on an arrow. What every line raises is said once, below them.
 * @param {readonly Line[]} lines
 * @returns {Block}
 */
export function setLabel(lines) {
  const [first] = lines
  const common = lines.every(({ raises }) => raises === first?.raises) ? (first?.raises ?? '') : ''
  const rows = lines.flatMap((line) => [
    ...setLine(line),
    ...(common === '' ? setRaised(line.raises, line) : []),
  ])
  const all = first && common !== '' ? [...rows, ...setRaised(common, summaryOf(first, lines))] : rows
  const placed = stack(all, 0).map((each) => ({ ...each, x: each.x - PAD + LABEL_PAD }))
  const width = Math.max(0, ...placed.map((each) => each.x + each.width)) + LABEL_PAD
  return { width: Math.ceil(width), height: placed.length * ROW + 6, rows: placed, ruleY: 0 }
}

/** @param {Line} line @returns {readonly Row[]} */
function setLine(line) {
  const spans = spansOf(line)
  const whole = codeRow(spans, line, 0)
  if (whole.width <= LABEL_WIDTH) return [whole]
  return spans.map((span, index) => codeRow([span], line, index === 0 ? 0 : INDENT))
}

/** @param {string} raises @param {Line} line @returns {readonly Row[]} */
function setRaised(raises, line) {
  return raises === '' ? [] : [codeRow([{ text: `⇒ ${raises}`, role: 'raised' }], line, 0)]
}

/** @param {Line} first @param {readonly Line[]} lines @returns {Line} */
function summaryOf(first, lines) {
  return { ...first, kind: 'raised', hint: `raises ${first.raises}`, ids: lines.flatMap(({ ids }) => ids) }
}

/** @param {Line} line @returns {readonly Span[]} */
function spansOf({ event, guard, actions }) {
  return [
    { text: event, role: 'event' },
    ...(guard === '' ? [] : [{ text: `[${guard}]`, role: 'guard' }]),
    ...(actions === '' ? [] : [{ text: `/ ${actions}`, role: 'actions' }]),
  ]
}

/** Lines broken between words, where they are wider than that. @param {readonly Line[]} lines @param {number} maxWidth */
function setCode(lines, maxWidth) {
  return lines.flatMap((line) => {
    const words = spansOf(line).flatMap(({ text, role }) =>
      wordsOf(text).map((word) => ({ text: word, role })),
    )
    /** @type {Span[][]} */
    const rows = []
    for (const word of words) {
      const last = rows.at(-1)
      const indent = rows.length > 1 ? INDENT : 0
      if (last && indent + codeRow([...last, word], line, 0).width <= maxWidth) last.push(word)
      else rows.push([word])
    }
    return rows.map((spans, index) => codeRow(spans, line, index === 0 ? 0 : INDENT))
  })
}

/** A sign stays on one row with what it is about. @param {string} text */
function wordsOf(text) {
  return text.replace(/(\/|⇒|after) /g, '$1\u00a0').split(' ')
}

/**
 * @param {string} text
 * @param {Face} face
 * @param {number} size
 * @param {string} role
 * @param {{ x: number, y: number }} at
 * @returns {Row}
 */
export function row(text, face, size, role, { x, y }) {
  return { x, y, width: widthOf(text, face, size), face, size, spans: [{ text, role }], line: null }
}

/** @param {readonly Span[]} spans @param {Line | null} line @param {number} indent @returns {Row} */
export function codeRow(spans, line, indent) {
  const width = widthOf(spans.map(({ text }) => text).join(' '), 'code', CODE)
  return { x: PAD + indent, y: 0, width, face: 'code', size: CODE, spans, line }
}

/** One row below the other. @param {readonly Row[]} rows @param {number} top @returns {readonly Row[]} */
function stack(rows, top) {
  return rows.map((each, index) => ({ ...each, y: top + 13 + index * ROW }))
}

/** @param {readonly Row[]} rows @param {number} height @returns {Block} */
function blockOf(rows, height) {
  const width = Math.max(...rows.map(({ x, width: own }) => x + own), 60) + PAD
  return { width: Math.ceil(width), height, rows, ruleY: 0 }
}
