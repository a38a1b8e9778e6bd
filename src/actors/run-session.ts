/**
 * The conversation with the agent of one attempt: its protocol session, wired to the run.
 *
 * Owns: which turn the agent was last given, and the order of handshake and prompts.
 * Does not own: what frames mean (the protocol), and what a fact leads to (the run chart).
 * Messages in: bytes of the agent; launched, dispatch, abort, steer.
 * Messages out: `turn.completed`, `turn.cancelled`, `turn.cancel-acknowledged`, `person.asked`, `person.answered`, `session.failed`;
 *   progress to the progress clock.
 * Invariants: INV-10 and K19 (a fact carries the attempt and the turn that it was seen in; what an ended attempt or turn still says is
 *   not progress of the next one), F (a protocol of the host's own making may throw: that ends its attempt, and nothing else).
 */
import { messageOf } from '../errors.js'
import { FreezableClock } from './freezable-clock.js'
import type {
  Cancel,
  Clock,
  OpenTool,
  OutputStream,
  Protocol,
  ProtocolReply,
  ProtocolSession,
  ProtocolSink,
  RetryNotice,
} from './ports.js'
import type { ProgressClock } from './progress-clock.js'
import type { RunMessage } from './run.actor.js'

/** L5: an agent that ends before it was spoken to has ended by itself; its exit says more than a broken pipe. */
const EXIT_WAIT_MS = 1_000
const MESSAGE_CHARS_MAX = 1_000

/** What is told to those who listen now, and never recorded. */
export type SessionNews =
  | ({ readonly type: 'retrying' } & RetryNotice)
  /** A type of frame that the protocol does not know, told once (K2). */
  | { readonly type: 'unknown-frame'; readonly frameType: string }

export interface RunSessionOptions {
  readonly attempt: number
  /** The turn that is open when the attempt begins. */
  readonly generation: number
  readonly protocol: Protocol
  readonly maxLineBytes: number
  readonly clock: Clock
  readonly progress: ProgressClock
  readonly post: (message: RunMessage) => void
  readonly tell: (news: SessionNews) => void
  readonly wantsLines: () => boolean
  readonly onLine: (stream: OutputStream, text: string, isTruncated: boolean) => void
  readonly promptOf: (generation: number) => string | null
}

/** The agent's end of the conversation, once there is a process. */
export interface Correspondent {
  readonly cwd: string
  write(chunk: string | Uint8Array): boolean
  hasExited(): boolean
}

export class RunSession {
  readonly #options: RunSessionOptions
  readonly #session: ProtocolSession
  readonly #clock: FreezableClock
  #agent: Correspondent | null = null
  /** The turn whose facts the agent's frames are. */
  #generation: number
  #due: number | null = null
  #given: number | null = null
  #isReady = false
  #hasFailed = false
  #stopWaiting: Cancel = () => undefined
  #isOver = false

  constructor(options: RunSessionOptions) {
    this.#options = options
    this.#generation = options.generation
    this.#clock = new FreezableClock(options.clock)
    this.#session = options.protocol.open(this.#sink(), { maxLineBytes: options.maxLineBytes })
  }

  get openTools(): readonly OpenTool[] {
    return this.#try('openTools', () => this.#session.openTools, [])
  }

  get unknownFrames(): ReadonlyMap<string, number> {
    return this.#try('unknownFrames', () => this.#session.unknownFrames, new Map<string, number>())
  }

  push(stream: OutputStream, chunk: Buffer): void {
    this.#try('push', () => this.#session.push(stream, chunk), undefined)
  }

  end(): void {
    this.#isOver = true
    this.#stopWaiting()
    this.#try('end', () => this.#session.end(), undefined)
  }

  /** O7: what the agent is waited for stands still while it is frozen. */
  setFrozen(isFrozen: boolean): void {
    this.#clock.setFrozen(isFrozen)
  }

  /** The agent runs: whatever must be said before a prompt is said now. */
  async begin(agent: Correspondent): Promise<void> {
    this.#agent = agent
    const io = {
      write: (chunk: string | Uint8Array) => agent.write(chunk),
      cwd: agent.cwd,
      clock: this.#clock,
    }
    this.#isReady = await this.#speak(() => this.#session.start?.(io))
    await this.#dispatchDue()
  }

  /** Gives the agent the prompt of a turn, once it can be spoken to. Repeated calls change nothing. */
  async dispatch(generation: number): Promise<void> {
    if (generation === this.#given) return
    this.#due = generation
    await this.#dispatchDue()
  }

  /** K13: asks the agent to end the turn. What it does not answer, the run's own timer ends. */
  abort(generation: number): void {
    if (this.#due === generation) {
      // The agent has not been given this turn yet.
      this.#due = null
      this.#options.post({ type: 'turn.cancelled', attempt: this.#options.attempt, generation })
    } else if (this.#given === generation) {
      this.#cancelTurn()
    }
  }

  /** The agent is asked to end: it need not finish its turn first. */
  askToEnd(): void {
    this.#due = null
    if (this.#isReady) this.#cancelTurn()
  }

  /** False when there is no turn to steer, or the agent knows no such thing. */
  steer(text: string): boolean {
    if (!this.#try('steer', () => this.#session.steer?.(text) === true, false)) return false
    this.#options.progress.restart()
    return true
  }

  #cancelTurn(): void {
    this.#try('cancelTurn', () => this.#session.cancelTurn?.(), undefined)
  }

  async #dispatchDue(): Promise<void> {
    const { attempt, progress, promptOf } = this.#options
    const generation = this.#due
    if (!this.#isReady || this.#isOver || generation === null) return
    this.#due = null
    const text = promptOf(generation)
    if (text === null) return
    this.#generation = generation
    this.#given = generation
    // K1: the prompt goes out; before it is written, so that an answer to it counts.
    progress.begin(attempt, generation)
    await this.#speak(() => this.#session.prompt?.(text))
  }

  #try<T>(what: keyof ProtocolSession, call: () => T, otherwise: T): T {
    try {
      return call()
    } catch (error) {
      this.#fail(`the protocol failed in ${what}: ${messageOf(error)}`)
      return otherwise
    }
  }

  /** False when it could not be said: then the attempt has failed. */
  async #speak(say: () => Promise<ProtocolReply> | undefined): Promise<boolean> {
    let problem: string | null = null
    try {
      const reply = await say()
      if (reply?.isOk === false) problem = reply.message
    } catch (error) {
      problem = messageOf(error)
    }
    if (problem !== null) this.#fail(`the agent cannot be spoken to: ${problem}`)
    return problem === null
  }

  /** Once, and not of an attempt that is over: there is nothing more to be said of it. */
  #fail(message: string): void {
    if (this.#hasFailed || this.#isOver) return
    this.#hasFailed = true
    const { attempt, clock, post } = this.#options
    this.#stopWaiting = clock.after(EXIT_WAIT_MS, () => {
      if (this.#agent?.hasExited() === true) return
      post({
        type: 'session.failed',
        attempt,
        message: message.slice(0, MESSAGE_CHARS_MAX),
        isFallbackEligible: false,
      })
    })
  }

  #sink(): ProtocolSink {
    const { attempt, progress, post, tell, wantsLines, onLine } = this.#options
    const turn = () => ({ attempt, generation: this.#generation })
    // K11, K19: the clock of another turn is not moved by what was said in this one.
    const isWatched = () => progress.isWatching(turn())
    return {
      progress: () => {
        if (isWatched()) progress.progress()
      },
      completed: (result) => {
        post({ type: 'turn.completed', ...turn(), result })
      },
      cancelled: () => {
        post({ type: 'turn.cancelled', ...turn() })
      },
      cancelAcknowledged: () => {
        post({ type: 'turn.cancel-acknowledged', ...turn() })
      },
      completionSignalled: () => {
        if (isWatched()) progress.signalled()
      },
      retrying: (notice) => {
        if (isWatched()) progress.unsignalled()
        tell({ type: 'retrying', ...notice })
      },
      personAsked: () => {
        // K2: a question is work; the clock must know of it, as the chart does.
        if (isWatched()) progress.progress()
        post({ type: 'person.asked', ...turn() })
      },
      personAnswered: () => {
        post({ type: 'person.answered', ...turn() })
      },
      unknownFrame: (frameType) => {
        tell({ type: 'unknown-frame', frameType })
      },
      wantsLines,
      line: onLine,
    }
  }
}
