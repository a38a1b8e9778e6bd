/** The handle on one run that a host holds. Everything it does goes through the engine's registry. */
import type { Outcome } from './machines/run/run.context.js'
import type { Clock } from './actors/ports.js'
import { pauseRun, resumeRun } from './actors/freezing.js'
import type { PauseAnswer } from './actors/freezing.js'
import type { StopReceipt } from './actors/stop-call.js'
import type { Gone, OutputForm, RunEvents } from './actors/run-events.js'
import type { RunActor } from './actors/run.actor.js'
import type { RunState } from './actors/run-state.js'
import type { RunActivity } from './actors/run-turns.js'
import type { TurnEnd } from './actors/turn-end.js'
import { parseOptions } from './option-types.js'
import { RunwardenError } from './errors.js'
import { eventOptionsSchema, pauseOptionsSchema } from './options.js'
import type { PauseOptions, StopOptions } from './options.js'
import { chunkSchema, turnInputSchema } from './run-spec.js'
import { terminalSizeSchema } from './terminal-options.js'

/** Options of `cancel` and `interrupt`: those of a stop, without the mode and the fence. */
export type EndOptions = Omit<StopOptions, 'mode' | 'fence'>

export interface EventOptions {
  /** Whole lines (default), raw bytes as they come, frames of JSON parsed, or none. */
  readonly output?: OutputForm
}

/** What the handles of one engine share. */
interface RunHost {
  readonly clock: Clock
  readonly end: (runId: string, mode: 'cancel' | 'interrupt', options: EndOptions) => Promise<StopReceipt>
  /** Throws `engine-closing` from the call of `close` on. */
  readonly assertOpen: (verb: string) => void
}

export class Run {
  readonly #actor: RunActor
  readonly #host: RunHost

  /** @internal */
  constructor(actor: RunActor, host: RunHost) {
    this.#actor = actor
    this.#host = host
  }

  get id(): string {
    return this.#actor.id
  }

  /** A plain snapshot of the three regions, and one word for people. */
  get state(): RunState {
    return this.#actor.state
  }

  /** What the agent is at: its turn, how long it has been silent, its open tools. For people; it changes with every frame. */
  get activity(): RunActivity {
    return this.#actor.turns.activity
  }

  /** The leader's process id, once there is one. A number, not an identity: never signal it. */
  get pid(): number | undefined {
    return this.#actor.process?.identity?.pid
  }

  /** The one outcome. Never rejects; a run that ends badly says so in `status`. */
  get outcome(): Promise<Outcome> {
    return this.#actor.outcome
  }

  /** Resolves when every process of every attempt is proven gone (P11). Stays pending while survivors are named and retried. */
  get gone(): Promise<Gone> {
    return this.#actor.gone
  }

  /**
   * What happens from now on, in order; ends by itself when the run is settled, confirmed and delivered. A listener that comes late is
   * told what it missed from the state. One that reads too slowly loses output, counted in a `dropped` event, and nothing else (L3).
   */
  events(options: EventOptions = {}): RunEvents {
    const { output } = parseOptions(eventOptionsSchema, options, 'events')
    return this.#actor.events({ output })
  }

  /** Writes to the agent's stdin (`stdin: 'pipe'`). False when nothing reads there any more (L5). */
  write(chunk: string | Uint8Array): boolean {
    const { stdin } = parseOptions(chunkSchema, { stdin: chunk }, 'write')
    return this.#actor.process?.writeInput(stdin) ?? false
  }

  /** Ends the agent's stdin. */
  endInput(): void {
    this.#actor.process?.endInput()
  }

  /**
   * Gives the agent a prompt, after those that wait already; at most 32 wait. Prompts are kept in memory only.
   *
   * @returns how its turn ended. A run that ends first abandons it; it never rejects for that.
   * @throws `invalid-option`; `refused` when the protocol takes no prompts, the run is over or being ended, told to finish, for one
   *   prompt only, or has too many waiting. The prompt was not taken then (K11).
   */
  async prompt(text: string): Promise<TurnEnd> {
    return this.#actor.turns.prompt(parseOptions(turnInputSchema, { prompt: text }, 'prompt').prompt)
  }

  /**
   * More input for the open turn. The silence of the agent counts anew from here (K1).
   *
   * @throws `refused` when no turn is open, or the agent takes no input while it works.
   */
  steer(text: string): void {
    this.#actor.turns.steer(parseOptions(turnInputSchema, { prompt: text }, 'steer').prompt)
  }

  /**
   * Ends the open turn and not the run: the agent is asked, and the turn is freed without it when it does not answer in `turnCancelMs`
   * and 2 000 ms (K13). Calls join; prompts that wait have their turns then. A run for one turn ends as `interrupted`.
   *
   * @returns how the turn ended, which may be its completion; null when none was open.
   * @throws `refused` when the protocol takes no prompts, or the run is over or being ended.
   */
  async cancelTurn(): Promise<TurnEnd | null> {
    return this.#actor.turns.cancelTurn()
  }

  /**
   * No further prompt: when those that wait have had their turns, the agent's input is closed and the run completes with its exit. An
   * agent that does not exit is ended; what its last turn said stands.
   *
   * @throws `refused` when the protocol takes no prompts, or the run is over or being ended.
   */
  async finish(): Promise<Outcome> {
    this.#actor.turns.finish()
    return this.outcome
  }

  /**
   * Freezes every process of the run (O1), in the user's name: only a resumption by the user lifts it. A run that is not launched yet is
   * frozen as soon as it is (O8). When `stop.pauseGraceMs` passes before it is resumed, the run is interrupted (O2). Repeated calls join.
   *
   * @returns how far the freeze is: proven, or incomplete with what still runs, or pending.
   * @throws `refused`, naming the reason: the run is being ended, or over; also when it ended or was resumed during the wait.
   *   `engine-closing`, from the call of `close` on. `store-unavailable`: it could not be recorded within the engine's
   *   `commitDeadlineMs`, and nothing is frozen.
   */
  async pause(options: PauseOptions = {}): Promise<PauseAnswer> {
    const { timeoutMs } = parseOptions(pauseOptionsSchema, options, 'pause')
    this.#host.assertOpen('pause')
    return pauseRun(this.#actor, 'user', { clock: this.#host.clock, timeoutMs })
  }

  /**
   * Continues what `pause` or the presence of a person froze, whoever froze it (O4). Processes that had stopped by themselves stay so. A
   * run that is not paused is left as it is.
   *
   * @throws `refused`, naming the reason, when the run is being ended, or over: also when the grace window's end came first (O5).
   *   `engine-closing`, from the call of `close` on. `store-unavailable`: it could not be recorded.
   */
  async resume(options: PauseOptions = {}): Promise<void> {
    const { timeoutMs } = parseOptions(pauseOptionsSchema, options, 'resume')
    this.#host.assertOpen('resume')
    await resumeRun(this.#actor, 'user', { clock: this.#host.clock, timeoutMs })
  }

  /**
   * Tells the command's terminal its new size (L9). False when the terminal is not there yet, or any more.
   *
   * @throws `refused` where the run was not started with `stdio: 'pty'` by this engine; `invalid-option`.
   */
  resize(cols: number, rows: number): boolean {
    const size = parseOptions(terminalSizeSchema, { cols, rows }, 'resize')
    if (this.#actor.environment.candidates?.some(({ terminal }) => terminal !== undefined) !== true)
      throw new RunwardenError('refused', `resize: run ${this.id} has no terminal here`)
    return this.#actor.process?.resize(size) ?? false
  }

  /**
   * Ends the run for good, and its children with it. The intent is in force when the call returns its promise (P1).
   *
   * @throws `refused` for a persistent run, which is stopped and not cancelled (P16).
   */
  async cancel(options: EndOptions = {}): Promise<StopReceipt> {
    if (this.#actor.policy.isPersistent)
      throw new RunwardenError(
        'refused',
        `cancel: run ${this.id} is persistent; use stop, which asks it to end`,
      )
    return this.#host.end(this.id, 'cancel', options)
  }

  /** Ends the run as `interrupt` does: a persistent one, and one with `stop.askGraceMs`, is asked through its protocol first (P16). */
  stop(options: EndOptions = {}): Promise<StopReceipt> {
    return this.#host.end(this.id, 'interrupt', options)
  }

  /** Ends the run so that a later one may continue its work. */
  interrupt(options: EndOptions = {}): Promise<StopReceipt> {
    return this.#host.end(this.id, 'interrupt', options)
  }
}
