/**
 * The prompts of one run, in order: the one that the agent has, and those that wait for it.
 *
 * Owns: which prompt belongs to which generation, and who waits for its end. In memory only: prompts may hold secrets (L7).
 * Does not own: when a turn is open (the run chart), and how a prompt reaches the agent (the session).
 * Invariants: K11 (a prompt gets its generation with the transition that begins its turn), INV-11 (the queue has a maximum).
 */
import { RunwardenError } from '../errors.js'
import type { RunContext } from '../machines/run/run.context.js'
import type { Transition } from './actor-role.js'
import { isReadyIn, isTurnOpenIn, turnEndOf } from './turn-end.js'
import type { TurnEnd } from './turn-end.js'

export const PROMPTS_WAITING_MAX = 32

interface Prompt {
  readonly text: string
  readonly ended: Promise<TurnEnd>
  readonly end: (end: TurnEnd) => void
}

const newPrompt = (text: string): Prompt => {
  let end: Prompt['end'] = () => undefined
  const ended = new Promise<TurnEnd>((resolve) => {
    end = resolve
  })
  return { text, ended, end }
}

export interface TurnQueueOptions {
  /** Posts `turn.started`; true when it was taken. */
  readonly startTurn: () => Promise<boolean>
  /** Posts `run.finish`. */
  readonly finish: () => void
}

export class TurnQueue {
  readonly #options: TurnQueueOptions
  #waiting: Prompt[] = []
  #open: Prompt | null = null
  #lastEnded: Promise<TurnEnd> | null = null
  /** Of the turn begun last. A run of one turn whose result was not the end gives it to the next candidate (P9). */
  #text: string | null
  #generation = 1
  #isStarting = false
  #isFinishing = false
  #isReady = false

  constructor(options: TurnQueueOptions, firstPrompt: string | undefined) {
    this.#options = options
    this.#text = firstPrompt ?? null
    if (firstPrompt !== undefined) this.#open = newPrompt(firstPrompt)
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** The end of the open turn, once it has ended; null when none is open. */
  get ended(): Promise<TurnEnd> | null {
    return this.#open?.ended ?? null
  }

  /** How the turn that ended last did. */
  get lastEnded(): Promise<TurnEnd> | null {
    return this.#lastEnded
  }

  get isFinishing(): boolean {
    return this.#isFinishing
  }

  /** The prompt of the turn begun last, if that is its generation. */
  textOf(generation: number): string | null {
    return this.#generation === generation ? this.#text : null
  }

  /** @throws `refused` when too many wait already. */
  add(text: string): Promise<TurnEnd> {
    if (this.#waiting.length >= PROMPTS_WAITING_MAX) {
      throw new RunwardenError(
        'refused',
        `prompt: ${String(PROMPTS_WAITING_MAX)} prompts wait already; this one was not taken`,
      )
    }
    const prompt = newPrompt(text)
    this.#waiting.push(prompt)
    this.#advance()
    return prompt.ended
  }

  /** No further prompt: the run finishes when those that wait have had their turns. */
  finish(): void {
    this.#isFinishing = true
    this.#advance()
  }

  /** With every committed transition, before its effects are done. */
  follow(transition: Transition): void {
    const { event, after } = transition
    const { generation, intent, outcome } = after.context as RunContext
    const end = turnEndOf(transition)
    if (end !== null) {
      this.#open?.end(end)
      this.#lastEnded = this.ended
      this.#open = null
    }
    if (event.type === 'turn.started' && isTurnOpenIn(after)) {
      this.#open = this.#waiting.shift() ?? null
      this.#text = this.#open?.text ?? null
    }
    // The next candidate takes up the same prompt under a new number.
    this.#generation = generation
    this.#isReady = isReadyIn(after)
    if (intent !== null || outcome !== null) this.#abandon(outcome?.message ?? intent?.reason ?? '')
    else this.#advance()
  }

  /** Nothing will be heard of the run any more. */
  leave(): void {
    const message = 'the engine let go of the run'
    this.#isReady = false
    this.#open?.end({ generation: this.#generation, status: 'abandoned', message })
    this.#open = null
    this.#text = null
    this.#abandon(message)
  }

  #advance(): void {
    if (!this.#isReady || this.#isStarting) return
    if (this.#waiting.length > 0) {
      this.#isStarting = true
      void this.#options.startTurn().then((isTaken) => {
        this.#isStarting = false
        // One that could not be recorded waits for the next transition: asked again at once, it would be asked for ever.
        if (isTaken) this.#advance()
      })
    } else if (this.#isFinishing) {
      this.#isReady = false
      this.#options.finish()
    }
  }

  #abandon(message: string): void {
    for (const { end } of this.#waiting.splice(0)) {
      end({ generation: this.#generation, status: 'abandoned', message })
    }
  }
}
