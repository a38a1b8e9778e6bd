/**
 * What the frames of a session add up to, told to the sink.
 *
 * Owns: whether a turn is open, its tools and questions, how it stands, and what was unknown.
 * Does not own: what a frame means (the tables) and what a fact leads to (the run).
 * Invariants: K1 and K11 (outside of a turn nothing is progress, and a completion of another turn is dropped), K3, INV-11 (everything
 *   kept of what an agent says has a maximum).
 */
import type { OpenTool, ProtocolSink, RetryNotice, TurnResult } from '../../../actors/ports.js'
import type { Completion, Standing, ToolLook } from './frame-meaning.js'
import { OpenTools } from './open-tools.js'

/** More text than this of a result is in the log only: a result is stored with its run. */
const RESULT_CHARS_MAX = 64 * 1024
const QUESTIONS_MAX = 256
const UNKNOWN_TYPES_MAX = 64
const TYPE_CHARS_MAX = 80
const OTHERS = '(others)'

const cut = (text: string, charsMax: number): string =>
  text.length > charsMax ? `${text.slice(0, charsMax)}…` : text

const resultOf = (isOk: boolean, text: string | undefined): TurnResult =>
  text === undefined ? { isOk } : { isOk, text: cut(text, RESULT_CHARS_MAX) }

export class TurnFacts {
  readonly #sink: ProtocolSink
  readonly #tools = new OpenTools()
  readonly #questions = new Set<string>()
  readonly #unknown = new Map<string, number>()
  /** Until someone drives the session, its one turn is open from the start: the prompt is in the command. */
  #isTurnOpen = true
  /** Completions still to come: more than one when a turn was given up before it completed. The agent takes them in their order. */
  #owed = 1
  /** The agent works on the first of those that it owes. */
  #hasBegun = false
  /** This agent says when it takes up a prompt. */
  #tellsBegins = false
  #prompt: string | number | null = null
  #standing: Standing | null = null
  #isCancelAsked = false
  #isSignalled = false
  #hasPerson = true
  #hasMoved = false

  constructor(sink: ProtocolSink) {
    this.#sink = sink
  }

  get openTools(): readonly OpenTool[] {
    return this.#tools.open
  }

  get isTurnOpen(): boolean {
    return this.#isTurnOpen
  }

  /** How often each unknown type came. */
  get unknownFrames(): ReadonlyMap<string, number> {
    return this.#unknown
  }

  /** Prompts will come one by one: until the first, no turn is open. Without a person, nobody is asked: questions are refused. */
  drive({ hasPerson }: { readonly hasPerson: boolean }): void {
    this.#hasPerson = hasPerson
    this.#isTurnOpen = false
    this.#owed = 0
    this.#hasBegun = false
  }

  /** A prompt goes to the agent. `prompt` names it where the protocol's completions do. */
  dispatched(prompt: string | number | null): void {
    // K10: it was done with the turn that was closed without its completion. Where nothing else tells, none is awaited any more.
    if (this.#isSignalled && !this.#tellsBegins) this.#owed -= 1
    this.#clear()
    this.#isTurnOpen = true
    this.#prompt = prompt
    this.#owed += 1
  }

  /**
   * K11: the agent takes up a prompt, so it is over with the one before: what did not complete by now never will. What it takes up
   * before it was ever given a prompt is its greeting; what nobody asked for completes as a turn of its own.
   */
  began(): void {
    if (this.#owed === 0 && !this.#tellsBegins) return
    this.#tellsBegins = true
    if (this.#hasBegun && this.#owed > 1) this.#owed -= 1
    this.#owed = Math.max(1, this.#owed)
    this.#hasBegun = true
  }

  cancelAsked(): void {
    this.#isCancelAsked = true
  }

  progress(): void {
    if (this.#isTurnOpen) this.#hasMoved = true
  }

  /** Frames that come together are one piece of progress: the sink hears of it once, and before what else they say. */
  flush(): void {
    if (!this.#hasMoved) return
    this.#hasMoved = false
    this.#isSignalled = false
    this.#sink.progress()
  }

  /** K3: progress where a look shows something new. A frame of a kind that holds looks and shows none is work all the same. */
  tools(looks: readonly ToolLook[]): void {
    if (!this.#isTurnOpen) return
    const fresh = looks.filter((look) => this.#tools.see(look))
    if (looks.length === 0 || fresh.length > 0) this.#hasMoved = true
  }

  stands(standing: Standing): void {
    this.#standing = standing
    if (standing.isOk) this.progress()
  }

  asked(question: string): void {
    if (!this.#isTurnOpen) return
    this.progress()
    if (!this.#hasPerson || this.#questions.size >= QUESTIONS_MAX) return
    this.flush()
    this.#questions.add(question)
    if (this.#questions.size === 1) this.#sink.personAsked()
  }

  answered(question: string): void {
    if (this.#questions.delete(question) && this.#questions.size === 0) this.#sink.personAnswered()
  }

  retrying(notice: RetryNotice): void {
    this.#isSignalled = false
    this.#sink.retrying(notice)
  }

  signalled(): void {
    if (!this.#isTurnOpen) return
    this.flush()
    this.#isSignalled = true
    this.#sink.completionSignalled()
  }

  cancelAcknowledged(): void {
    if (this.#isCancelAsked) this.#sink.cancelAcknowledged()
  }

  completed({
    isOk = this.#standing?.isOk ?? true,
    text = this.#standing?.text,
    wasCancelled,
    prompt,
  }: Completion): void {
    const isNamed = prompt !== undefined && this.#prompt !== null
    this.#owed = Math.max(0, this.#owed - 1)
    this.#hasBegun = false
    // K11: it may complete a turn that was given up: by its name, or because one that was given up has yet to complete.
    if (!this.#isTurnOpen || (isNamed ? prompt !== this.#prompt : this.#owed > 0)) return
    this.flush()
    const isCancelled = wasCancelled === true || (this.#isCancelAsked && !isOk)
    this.#clear()
    this.#isTurnOpen = false
    if (isCancelled) this.#sink.cancelled()
    else this.#sink.completed(resultOf(isOk, text))
  }

  /** K10: there is no more output, and an agent that had said it was done has completed its turn, as it stood. */
  ended(): void {
    if (this.#isSignalled) this.completed({})
    this.flush()
  }

  /** Counted each time, reported the first. */
  unknown(givenType: string): void {
    const type = cut(givenType.replace(/[^\w .:/$()-]/g, '?'), TYPE_CHARS_MAX)
    const isRoom = this.#unknown.size < UNKNOWN_TYPES_MAX || this.#unknown.has(type)
    const name = isRoom ? type : OTHERS
    const count = this.#unknown.get(name) ?? 0
    this.#unknown.set(name, count + 1)
    if (count === 0) this.#sink.unknownFrame(name)
  }

  #clear(): void {
    this.#tools.clear()
    this.#questions.clear()
    this.#standing = null
    this.#isCancelAsked = false
    this.#isSignalled = false
    this.#prompt = null
  }
}
