/**
 * A protocol's table: what each type of frame is (K2).
 *
 * A table is a tree of choices. `by(path, cases)` looks at what stands at `path` in the frame; what it says picks the next choice or
 * the meaning. Written as one literal per protocol, compiled once, decided over the bytes of the head of a line.
 */
import {
  endOfContainer,
  endOfScalar,
  endOfString,
  endOfValue,
  findKey,
  findMember,
  firstElement,
  isArray,
  isString,
  isAt,
  isWord,
  nextElement,
} from './json-scan.js'
import { UNKNOWN } from './frame-meaning.js'
import type { Meaning } from './frame-meaning.js'

export type Entry = Meaning | Choice

export interface Choice {
  /** Keys joined by dots: `event.type`. `content[].type` looks at each element, and the first one with a case decides. */
  readonly path: string
  /** By what stands there, a string or a literal like `true`. A case that ends in `*` is for all that begin so. */
  readonly cases: Readonly<Record<string, Entry>>
  /** For a value without a case. */
  readonly other: Entry
  /** For a frame without the path. */
  readonly absent: Entry
}

/** A choice by what stands at `path`. What is not declared is unknown. */
export const by = (
  path: string,
  cases: Readonly<Record<string, Entry>>,
  { other = UNKNOWN, absent = UNKNOWN }: { readonly other?: Entry; readonly absent?: Entry } = {},
): Choice => ({ path, cases, other, absent })

/** Where a decision stands: at another choice, or at the meaning. One shape for both, which is what keeps the way there fast. */
interface Node {
  readonly choice: CompiledChoice | null
  readonly meaning: Meaning
}

interface Case {
  readonly word: Buffer
  readonly isPrefix: boolean
  readonly next: Node
}

interface Answer {
  readonly word: Buffer
  /** Null: there is no case for it. */
  readonly next: Node | null
}

/** A longer word is looked up each time. */
const WORD_BYTES_MAX = 64

/** Where the value ended that decided last: the next key is most often just behind it. -1: unknown. */
let decidedUpTo = -1
let headEnd = 0

class CompiledChoice {
  readonly #keys: readonly Buffer[]
  readonly #isTop: boolean
  readonly #elementKey: Buffer | null
  readonly #cases: readonly Case[]
  readonly #other: Node
  readonly #absent: Node
  /** What stood there last, and what it meant: frames of one type come in rows. */
  #last: Answer | null = null

  constructor({ path, cases, other, absent }: Choice) {
    const [outer = '', inner] = path.split('[].')
    this.#keys = outer.split('.').map((key) => Buffer.from(key))
    this.#elementKey = inner === undefined ? null : Buffer.from(inner)
    this.#isTop = this.#keys.length === 1 && inner === undefined
    this.#cases = Object.entries(cases).map(([text, entry]) => {
      const isPrefix = text.endsWith('*')
      return { word: Buffer.from(isPrefix ? text.slice(0, -1) : text), isPrefix, next: compile(entry) }
    })
    this.#other = compile(other)
    this.#absent = compile(absent)
  }

  pick(bytes: Buffer, start: number, end: number): Node {
    const at = this.#find(bytes, start, end)
    decidedUpTo = -1
    if (at < 0) return this.#absent
    if (this.#elementKey !== null) return this.#pickByElement(bytes, at, end, this.#elementKey)
    return this.#match(bytes, at, end) ?? this.#other
  }

  /** What stands at the path, for people; null when it is no string. */
  nameOf(bytes: Buffer, start: number, end: number): string | null {
    const at = this.#find(bytes, start, end)
    return at >= 0 && isString(bytes, at)
      ? bytes.toString('utf8', at + 1, endOfString(bytes, at + 1, end))
      : null
  }

  #find(bytes: Buffer, start: number, end: number): number {
    let at = start
    for (let depth = 0; depth < this.#keys.length; depth += 1) {
      const key = this.#keys[depth] as Buffer
      const isBehind = depth === 0 && decidedUpTo >= 0
      let found = isBehind ? findMember(bytes, decidedUpTo, end, key) : findKey(bytes, at, end, key)
      // Keys come in any order: it may stand before the one that decided last.
      if (found < 0 && isBehind) found = findKey(bytes, start, end, key)
      if (found < 0) return -1
      at = found
    }
    return at
  }

  #pickByElement(bytes: Buffer, at: number, end: number, key: Buffer): Node {
    if (!isArray(bytes, at)) return this.#absent
    for (let from = firstElement(bytes, at, end); from >= 0;) {
      const valueAt = findKey(bytes, from, end, key)
      const next = valueAt < 0 ? null : this.#match(bytes, valueAt, end)
      if (next !== null) return next
      from = nextElement(
        bytes,
        valueAt < 0 ? endOfValue(bytes, from, end) : endOfContainer(bytes, valueAt, end),
        end,
      )
    }
    return this.#other
  }

  #match(bytes: Buffer, at: number, end: number): Node | null {
    if (!isString(bytes, at)) return this.#caseFor(bytes, at, endOfScalar(bytes, at, end))
    const last = this.#last
    if (last !== null && isWord(bytes, at + 1, end, last.word)) {
      if (this.#isTop) decidedUpTo = nextElement(bytes, at + last.word.length + 2, end)
      headEnd = Math.max(headEnd, at + last.word.length + 2)
      return last.next
    }
    const to = endOfString(bytes, at + 1, end)
    const next = this.#caseFor(bytes, at + 1, to)
    if (to - at <= WORD_BYTES_MAX) this.#last = { word: Buffer.from(bytes.subarray(at + 1, to)), next }
    if (this.#isTop) decidedUpTo = nextElement(bytes, to + 1, end)
    return next
  }

  #caseFor(bytes: Buffer, from: number, to: number): Node | null {
    for (const { word, isPrefix, next } of this.#cases) {
      const hasLength = isPrefix ? to - from >= word.length : to - from === word.length
      if (hasLength && isAt(bytes, from, word)) return next
    }
    return null
  }
}

const compile = (entry: Entry): Node =>
  'cases' in entry
    ? { choice: new CompiledChoice(entry), meaning: UNKNOWN }
    : { choice: null, meaning: entry }

/** A head shorter than this is read again as fast as it is compared. */
const HEAD_BYTES_MIN = 40

export class FrameTable {
  readonly #root: Node
  /** The head that decided last, and what it meant: whatever follows it, the same head means the same. */
  #head = Buffer.alloc(0)
  #headMeaning: Meaning = UNKNOWN

  constructor(entry: Entry) {
    this.#root = compile(entry)
  }

  /** What the frame in `bytes[start, end)`, which begins with a brace, is. */
  meaningOf(bytes: Buffer, start: number, end: number): Meaning {
    if (this.#hasSameHead(bytes, start, end)) return this.#headMeaning
    decidedUpTo = -1
    headEnd = start
    let node = this.#root
    while (node.choice !== null) node = node.choice.pick(bytes, start, end)
    if (headEnd - start >= HEAD_BYTES_MIN) {
      this.#head = Buffer.from(bytes.subarray(start, headEnd))
      this.#headMeaning = node.meaning
    }
    return node.meaning
  }

  #hasSameHead(bytes: Buffer, start: number, end: number): boolean {
    const length = this.#head.length
    if (length === 0 || start + length > end) return false
    if (bytes[start + length - 12] !== this.#head[length - 12]) return false
    return bytes.compare(this.#head, 0, length, start, start + length) === 0
  }

  /** What an unknown frame calls itself: the values on the way to where the table had no more to say. */
  typeOf(bytes: Buffer, start: number, end: number): string {
    const names: string[] = []
    let node = this.#root
    while (node.choice !== null) {
      decidedUpTo = -1
      const name = node.choice.nameOf(bytes, start, end)
      if (name !== null) names.push(name)
      node = node.choice.pick(bytes, start, end)
    }
    return names.length === 0 ? 'no type' : names.join(':')
  }
}
