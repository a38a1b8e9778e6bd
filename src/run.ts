/** The handle on one run that a host holds. Everything it does goes through the engine's registry. */
import type { Outcome } from './machines/run/run.context.js'
import type { Clock } from './actors/ports.js'
import { pauseRun, resumeRun } from './actors/freezing.js'
import type { PauseAnswer } from './actors/freezing.js'
import type { StopReceipt } from './actors/stop-call.js'
import type { Gone, RunEvents } from './actors/run-events.js'
import type { RunActor } from './actors/run.actor.js'
import type { RunState } from './actors/run-state.js'
import { parseOptions, pauseOptionsSchema } from './options.js'
import type { PauseOptions, StopOptions } from './options.js'

/** Options of `cancel` and `interrupt`: those of a stop, without the mode and the fence. */
export type EndOptions = Omit<StopOptions, 'mode' | 'fence'>

export interface EventOptions {
  /** Whole lines (default), raw bytes as they come, or none. */
  readonly output?: 'lines' | 'bytes' | 'none'
}

export class Run {
  readonly #actor: RunActor
  readonly #clock: Clock
  readonly #end: (runId: string, mode: 'cancel' | 'interrupt', options: EndOptions) => Promise<StopReceipt>

  /** @internal */
  constructor(
    actor: RunActor,
    clock: Clock,
    end: (runId: string, mode: 'cancel' | 'interrupt', options: EndOptions) => Promise<StopReceipt>,
  ) {
    this.#actor = actor
    this.#clock = clock
    this.#end = end
  }

  get id(): string {
    return this.#actor.id
  }

  /** A plain snapshot of the three regions, and one word for people. */
  get state(): RunState {
    return this.#actor.state
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
    return this.#actor.events({ output: options.output ?? 'lines' })
  }

  /** Writes to the agent's stdin (`stdin: 'pipe'`). False when nothing reads there any more (L5). */
  write(chunk: string | Uint8Array): boolean {
    return this.#actor.process?.writeInput(chunk) ?? false
  }

  /** Ends the agent's stdin. */
  endInput(): void {
    this.#actor.process?.endInput()
  }

  /**
   * Freezes every process of the run (O1), in the user's name: only a resumption by the user lifts it. A run that is not launched yet is
   * frozen as soon as it is (O8). When `stop.pauseGraceMs` passes before it is resumed, the run is interrupted (O2). Repeated calls join.
   *
   * @returns how far the freeze is: proven, or incomplete with what still runs, or pending.
   * @throws `refused`, naming the reason: the run is being ended, or over; also when it ended or was resumed during the wait.
   *   `store-unavailable`: it could not be recorded, and nothing is frozen.
   */
  async pause(options: PauseOptions = {}): Promise<PauseAnswer> {
    const { timeoutMs } = parseOptions(pauseOptionsSchema, options, 'pause')
    return pauseRun(this.#actor, 'user', { clock: this.#clock, timeoutMs })
  }

  /**
   * Continues what `pause` or the presence of a person froze, whoever froze it (O4). Processes that had stopped by themselves stay so. A
   * run that is not paused is left as it is.
   *
   * @throws `refused`, naming the reason, when the run is being ended, or over: also when the grace window's end came first (O5).
   *   `store-unavailable`: it could not be recorded.
   */
  async resume(options: PauseOptions = {}): Promise<void> {
    const { timeoutMs } = parseOptions(pauseOptionsSchema, options, 'resume')
    await resumeRun(this.#actor, 'user', { clock: this.#clock, timeoutMs })
  }

  /** Ends the run for good. The intent is in force when the call returns its promise (P1). */
  cancel(options: EndOptions = {}): Promise<StopReceipt> {
    return this.#end(this.id, 'cancel', options)
  }

  /** Ends the run so that a later one may continue its work. */
  interrupt(options: EndOptions = {}): Promise<StopReceipt> {
    return this.#end(this.id, 'interrupt', options)
  }
}
