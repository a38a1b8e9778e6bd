/**
 * The turns of one run: what the agent is asked, whether it works on it, and how it is spoken to.
 *
 * Owns: the queue of prompts, the progress clock, and the session of the current attempt; which of them a transition concerns.
 * Does not own: the decisions about turns (the run chart).
 * Messages in: prompt, steer, cancelTurn, finish from the host; the effects `turn.dispatch` and `turn.abort`; every committed transition.
 * Messages out: `turn.started`, `turn.cancel`, `turn.progressed`, `watchdog.…`, `run.finish`, and what the session posts.
 * Invariants: INV-9 (the clock runs while a turn is open, and stands still while the tree is frozen or a person is asked), K4.
 */
import { RunwardenError } from '../errors.js'
import type { RunContext } from '../machines/run/run.context.js'
import type { Transition } from './actor-role.js'
import type { Clock, OpenTool } from './ports.js'
import { ProgressClock } from './progress-clock.js'
import type { RunActor } from './run.actor.js'
import { RunSession } from './run-session.js'
import type { SessionNews } from './run-session.js'
import { isTurnOpenAt, isTurnOpenIn } from './turn-end.js'
import type { TurnEnd } from './turn-end.js'
import { TurnQueue } from './turn-queue.js'

const TITLE_CHARS_MAX = 80

/** What an agent is at, for people. */
export interface RunActivity {
  readonly generation: number
  readonly isTurnOpen: boolean
  /** How long the open turn has been silent; null while none is watched. */
  readonly quietMs: number | null
  readonly lastProgressAt: number | null
  /** Open top-level tool calls, oldest first; titles are names, never arguments. */
  readonly openTools: readonly OpenTool[]
  readonly isWaitingForPerson: boolean
  readonly promptsWaiting: number
  /** How often each type of frame came that the protocol does not know (K2). */
  readonly unknownFrames: Readonly<Record<string, number>>
}

/** What the agent's session tells, as often as the agent likes: it may be dropped, and is never recorded. */
export type RunNews = { readonly runId: string } & SessionNews

/** K8: shown to people, on terminals too: no control characters, and not without end. */
const shown = (title: string): string => title.replace(/\p{C}/gu, '?').slice(0, TITLE_CHARS_MAX)

export class RunTurns {
  readonly progress: ProgressClock
  readonly #run: RunActor
  readonly #clock: Clock
  readonly #queue: TurnQueue
  readonly #listeners = new Set<(news: RunNews) => void>()
  #session: RunSession | null = null
  #hasLeft = false

  constructor(run: RunActor, clock: Clock) {
    this.#run = run
    this.#clock = clock
    this.progress = new ProgressClock(clock, run.environment.watchdog, {
      progressed: ({ attempt, generation }) => {
        void run.post({ type: 'turn.progressed', attempt, generation })
      },
      passed: async (silence, stamp) => {
        const tool = silence === 'silent' ? this.#openTools[0]?.title : undefined
        const fact = { type: `watchdog.${silence}`, seen: stamp, current: stamp } as const
        const isStill = (): boolean => this.progress.isStill(silence, stamp)
        return (await run.post(tool === undefined ? fact : { ...fact, tool }, isStill)) === 'applied'
      },
      hasOpenTool: () => (this.#session?.openTools.length ?? 0) > 0,
      cpuUsedMs: async () => (await run.process?.cpuUsedMs()) ?? null,
    })
    this.#queue = new TurnQueue(
      {
        startTurn: async () => (await run.post({ type: 'turn.started' })) === 'applied',
        finish: () => void run.post({ type: 'run.finish' }),
      },
      run.environment.prompt,
    )
  }

  get activity(): RunActivity {
    const { context, state } = this.#run
    const isTurnOpen = isTurnOpenAt(state.work)
    return {
      generation: context.generation,
      isTurnOpen,
      quietMs: this.progress.quietMs,
      lastProgressAt: this.progress.lastProgressAt,
      // K13: a turn that was freed without its agent has none.
      openTools: isTurnOpen ? this.#openTools : [],
      isWaitingForPerson: context.openQuestions > 0,
      promptsWaiting: this.#queue.waiting,
      unknownFrames: Object.fromEntries(this.#session?.unknownFrames ?? []),
    }
  }

  get #openTools(): readonly OpenTool[] {
    return (this.#session?.openTools ?? []).map(({ id, title }) => ({ id, title: shown(title) }))
  }

  /** What sessions tell and nobody records. */
  onNews(listener: (news: RunNews) => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** The session of an attempt; it takes the place of the one before. */
  newSession(attempt: number): RunSession {
    const { environment, output, context } = this.#run
    this.#session = new RunSession({
      attempt,
      generation: context.generation,
      protocol: environment.protocol,
      maxLineBytes: environment.maxLineBytes,
      clock: this.#clock,
      progress: this.progress,
      post: (message) => void this.#run.post(message),
      tell: (news) => {
        for (const listener of [...this.#listeners]) listener({ runId: this.#run.id, ...news })
      },
      wantsLines: () => output.wantsLines,
      onLine: (stream, text, isTruncated) => {
        output.line(stream, text, isTruncated)
      },
      promptOf: (generation) => this.#queue.textOf(generation),
    })
    return this.#session
  }

  // ── what the host asks for ───────────────────────────────────────────────────────────────────

  /** @throws `refused`, saying why this run takes no prompt now. */
  prompt(text: string): Promise<TurnEnd> {
    this.#assertDriven('prompt')
    const { isInteractive, hasPrompt } = this.#run.policy
    const { attempt, generation } = this.#run.context
    // Each attempt has moved the generation, and so has each turn that was begun.
    const hadPrompt = hasPrompt || generation > attempt || this.#queue.waiting > 0
    if (!isInteractive && hadPrompt)
      this.#refuse('prompt: the run is for one prompt (oneShot), and has had it')
    if (this.#queue.isFinishing) this.#refuse('prompt: the run was told to finish')
    return this.#queue.add(text)
  }

  /** @throws `refused` where there is no turn to steer, or the agent knows no such thing. */
  steer(text: string): void {
    this.#assertDriven('steer')
    if (!isTurnOpenAt(this.#run.state.work) || this.#session?.steer(text) !== true)
      this.#refuse('steer: no turn is open, or the agent takes no input while it works')
  }

  /** K13: joined by whoever asks meanwhile. Null when no turn is open. */
  async cancelTurn(): Promise<TurnEnd | null> {
    this.#assertDriven('cancelTurn')
    const open = this.#queue.ended
    const reply = await this.#run.post({ type: 'turn.cancel' })
    if (open !== null || reply !== 'applied') return open
    // A prompt given just before has its turn by now, and may have had it: nobody was there to be asked.
    return this.#queue.ended ?? this.#queue.lastEnded
  }

  finish(): void {
    this.#assertDriven('finish')
    this.#queue.finish()
  }

  // ── what the run chart calls for ─────────────────────────────────────────────────────────────

  dispatch(generation: number): Promise<void> {
    return this.#session?.dispatch(generation) ?? Promise.resolve()
  }

  abort(generation: number): void {
    this.#session?.abort(generation)
  }

  askToEnd(): void {
    this.#session?.askToEnd()
  }

  /** An attempt is launched: where a turn is open, its silence counts from here. */
  launching(attempt: number): void {
    const { context, state } = this.#run
    if (isTurnOpenAt(state.work)) this.progress.begin(attempt, context.generation)
  }

  /** With every committed transition, before its effects are done. */
  follow(transition: Transition): void {
    this.#queue.follow(transition)
    this.#followClock(transition)
    const { event, after } = transition
    const { freeze, intent } = after.context as RunContext
    this.#session?.setFrozen(freeze !== null)
    if (event.type === 'process.launched' && intent === null && this.#run.policy.isDriven) this.#begin()
  }

  /** This engine lets go of the run: nobody will hear of its turns here. */
  leave(): void {
    this.#hasLeft = true
    this.progress.rest()
    this.#queue.leave()
  }

  #begin(): void {
    const { process: processActor, environment, context } = this.#run
    const cwd = environment.candidates?.[context.executionAttempt - 1]?.cwd
    if (processActor === null || cwd === undefined) return
    void this.#session?.begin({
      cwd,
      write: (chunk) => processActor.writeInput(chunk),
      hasExited: () => processActor.hasExited,
    })
  }

  #followClock({ before, after }: Transition): void {
    const was = before?.context as RunContext | undefined
    const { attempt, executionAttempt, generation, freeze, openQuestions } = after.context as RunContext
    // Between two attempts nobody has the turn: what is left of the last one is swept, and `launching` begins anew.
    if (!isTurnOpenIn(after) || executionAttempt !== attempt) this.progress.rest()
    else if (generation !== was?.generation) this.progress.begin(attempt, generation)
    if (freeze === null) this.progress.release('frozen')
    else this.progress.hold('frozen')
    if (openQuestions > 0) {
      this.progress.hold('person')
    } else if ((was?.openQuestions ?? 0) > 0) {
      this.progress.release('person')
      // K1: the answer is new input.
      if (isTurnOpenIn(after)) this.progress.restart()
    }
  }

  #assertDriven(verb: string): void {
    const { policy, state, isEndWanted, environment } = this.#run
    if (!policy.isDriven)
      this.#refuse(
        `${verb}: the run speaks ${JSON.stringify(environment.protocol.name)}, which takes no prompts`,
      )
    if (this.#hasLeft) this.#refuse(`${verb}: this engine has let go of the run`)
    if (state.isSettled || isEndWanted)
      this.#refuse(`${verb}: the run is over or being ended (${state.headline})`)
  }

  #refuse(message: string): never {
    throw new RunwardenError('refused', message)
  }
}
