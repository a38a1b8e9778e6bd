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
  firstElement,
  isArray,
  isAt,
  isString,
  nextElement,
} from './json-scan.js'
import { UNKNOWN } from './frame-meaning.js'
import type { Meaning } from './frame-meaning.js'
import { HeadMemo } from './head-memo.js'

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

/** How far the decision that is going on has read: what stands behind it has no say. */
let readUpTo = 0

class CompiledChoice {
  readonly #keys: readonly Buffer[]
  readonly #elementKey: Buffer | null
  readonly #cases: readonly Case[]
  readonly #other: Node
  readonly #absent: Node

  constructor({ path, cases, other, absent }: Choice) {
    const [outer = '', inner] = path.split('[].')
    this.#keys = outer.split('.').map((key) => Buffer.from(key))
    this.#elementKey = inner === undefined ? null : Buffer.from(inner)
    this.#cases = Object.entries(cases).map(([text, entry]) => {
      const isPrefix = text.endsWith('*')
      return { word: Buffer.from(isPrefix ? text.slice(0, -1) : text), isPrefix, next: compile(entry) }
    })
    this.#other = compile(other)
    this.#absent = compile(absent)
  }

  pick(bytes: Buffer, start: number, end: number): Node {
    const at = this.#find(bytes, start, end)
    if (at >= 0 && this.#elementKey === null) return this.#match(bytes, at, end) ?? this.#other
    readUpTo = end
    if (at < 0 || this.#elementKey === null || !isArray(bytes, at)) return this.#absent
    return this.#matchElement(bytes, at, end, this.#elementKey) ?? this.#other
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
    for (const key of this.#keys) {
      at = findKey(bytes, at, end, key)
      if (at < 0) return -1
    }
    return at
  }

  #matchElement(bytes: Buffer, start: number, end: number, key: Buffer): Node | null {
    for (let at = firstElement(bytes, start, end); at >= 0;) {
      const valueAt = findKey(bytes, at, end, key)
      const next = valueAt < 0 ? null : this.#match(bytes, valueAt, end)
      if (next !== null) return next
      const elementEnd = valueAt < 0 ? endOfValue(bytes, at, end) : endOfContainer(bytes, valueAt, end)
      at = nextElement(bytes, elementEnd, end)
    }
    return null
  }

  #match(bytes: Buffer, at: number, end: number): Node | null {
    const isText = isString(bytes, at)
    const from = isText ? at + 1 : at
    const to = isText ? endOfString(bytes, from, end) : endOfScalar(bytes, from, end)
    readUpTo = Math.max(readUpTo, to + 1)
    // A string without an end was cut: it may have said more.
    if (isText && to === end) return null
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

export class FrameTable {
  readonly #root: Node
  readonly #memo = new HeadMemo()

  constructor(entry: Entry) {
    this.#root = compile(entry)
  }

  /** What the frame in `bytes[start, end)`, which begins with a brace, is. */
  meaningOf(bytes: Buffer, start: number, end: number): Meaning {
    return this.#memo.recall(bytes, start, end) ?? this.#decide(bytes, start, end)
  }

  /** What an unknown frame calls itself: the values on the way to where the table had no more to say. */
  typeOf(bytes: Buffer, start: number, end: number): string {
    const names: string[] = []
    let node = this.#root
    while (node.choice !== null) {
      const name = node.choice.nameOf(bytes, start, end)
      if (name !== null) names.push(name)
      node = node.choice.pick(bytes, start, end)
    }
    return names.length === 0 ? 'no type' : names.join(':')
  }

  #decide(bytes: Buffer, start: number, end: number): Meaning {
    readUpTo = start
    let node = this.#root
    while (node.choice !== null) node = node.choice.pick(bytes, start, end)
    if (readUpTo < end) this.#memo.remember(bytes, start, readUpTo, node.meaning)
    return node.meaning
  }
}
