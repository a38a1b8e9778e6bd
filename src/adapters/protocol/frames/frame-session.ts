/**
 * The session of a protocol that speaks in frames: one JSON object a line on stdout. Stderr is text.
 *
 * Owns: the way of a byte to a fact: line, frame, meaning, fact. Only what the meaning needs is decoded.
 * Does not own: what frames mean (the table), and what they add up to (the facts).
 */
import type { OpenTool, OutputStream, ProtocolSession, ProtocolSink } from '../../../actors/ports.js'
import { PROGRESS, TRAFFIC } from './frame-meaning.js'
import type { Meaning } from './frame-meaning.js'
import type { FrameTable } from './frame-table.js'
import { endOfValue, firstElement, isArray, isObject, nextElement, skipSpace } from './json-scan.js'
import { parseFrame } from './json-value.js'
import { LineStreams } from '../line-streams.js'
import type { LineLimits } from '../line-streams.js'
import { TurnFacts } from './turn-facts.js'

const BYTE_ORDER_MARK = 0xef
const NO_FRAME = '(no frame)'

export class FrameSession implements ProtocolSession {
  readonly facts: TurnFacts
  /** Is given every frame that is addressed to the library that speaks the protocol. */
  onAddressed: ((frame: unknown) => void) | null = null
  readonly #table: FrameTable
  readonly #streams: LineStreams

  constructor(table: FrameTable, sink: ProtocolSink, limits: LineLimits) {
    this.#table = table
    this.facts = new TurnFacts(sink)
    this.#streams = new LineStreams(sink, limits, (stream, bytes, start, end) => {
      if (stream === 'stdout') this.#take(bytes, start, end)
    })
  }

  get openTools(): readonly OpenTool[] {
    return this.facts.openTools
  }

  get unknownFrames(): ReadonlyMap<string, number> {
    return this.facts.unknownFrames
  }

  push(stream: OutputStream, chunk: Buffer): void {
    this.#streams.push(stream, chunk)
    this.facts.flush()
  }

  end(): void {
    this.#streams.end()
    this.facts.ended()
  }

  #take(bytes: Buffer, start: number, end: number): void {
    const at = skipSpace(bytes, bytes[start] === BYTE_ORDER_MARK ? start + 3 : start, end)
    if (at >= end) return
    if (isObject(bytes, at)) this.#apply(this.#table.meaningOf(bytes, at, end), bytes, at, end)
    else if (isArray(bytes, at)) this.#takeBatch(bytes, at, end)
    else this.facts.unknown(NO_FRAME)
  }

  /** A JSON-RPC batch: its members are frames like any other. */
  #takeBatch(bytes: Buffer, start: number, end: number): void {
    for (let from = firstElement(bytes, start, end); from >= 0;) {
      const to = endOfValue(bytes, from, end)
      if (isObject(bytes, from)) this.#apply(this.#table.meaningOf(bytes, from, to), bytes, from, to)
      else this.facts.unknown(NO_FRAME)
      from = nextElement(bytes, to, end)
    }
  }

  #apply(meaning: Meaning, bytes: Buffer, start: number, end: number): void {
    if (meaning === PROGRESS) this.facts.progress()
    else if (meaning !== TRAFFIC) this.#read(meaning, bytes, start, end)
  }

  #read(meaning: Meaning, bytes: Buffer, start: number, end: number): void {
    if (meaning.is === 'unknown') this.facts.unknown(this.#table.typeOf(bytes, start, end))
    if (!('read' in meaning) && meaning.isAddressed !== true) {
      applyMeaning(this.facts, meaning, null)
      return
    }
    const frame = parseFrame(bytes.toString('utf8', start, end))
    applyMeaning(this.facts, meaning, frame)
    if (meaning.isAddressed === true) this.onAddressed?.(frame)
  }
}

/** The one place where a meaning becomes a fact. */
const applyMeaning = (facts: TurnFacts, meaning: Meaning, frame: unknown): void => {
  switch (meaning.is) {
    case 'traffic':
    case 'user-echo':
    case 'unknown':
      return
    case 'progress':
      facts.progress()
      return
    case 'turn-began':
      facts.began()
      return
    case 'completion-signal':
      facts.signalled()
      return
    case 'cancel-acknowledged':
      facts.cancelAcknowledged()
      return
    case 'completion': {
      const read = meaning.read(frame)
      if (read !== null) facts.completed(read)
      return
    }
    case 'standing': {
      const read = meaning.read(frame)
      if (read !== null) facts.stands(read)
      return
    }
    case 'retry-notice': {
      const read = meaning.read(frame)
      if (read !== null) facts.retrying(read)
      return
    }
    case 'tool-opened':
      facts.tools(meaning.read(frame).map(({ id, title }) => ({ id, title, isClosed: false, parts: {} })))
      return
    case 'tool-updated': {
      const read = meaning.read(frame)
      if (read !== null) facts.tools([read])
      return
    }
    case 'tool-closed':
      facts.tools(meaning.read(frame).map((id) => ({ id, isClosed: true, parts: {} })))
      return
    case 'person-asked': {
      const read = meaning.read(frame)
      if (read?.tool != null) facts.tools([read.tool])
      if (read !== null) facts.asked(read.id)
      return
    }
    case 'person-answered': {
      const read = meaning.read(frame)
      if (read !== null) facts.answered(read)
    }
  }
}
