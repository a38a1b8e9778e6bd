/** The handle on one run that a host holds. Everything it does goes through the engine's registry. */
import type { Outcome } from './machines/run/run.context.js'
import type { StopReceipt } from './actors/stop-call.js'
import type { Gone, RunEvents } from './actors/run-events.js'
import type { RunActor } from './actors/run.actor.js'
import type { RunState } from './actors/run-state.js'
import { RunwardenError } from './errors.js'
import { parseOptions } from './options.js'
import { terminalSizeSchema } from './terminal-options.js'
import type { StopOptions } from './options.js'

/** Options of `cancel` and `interrupt`: those of a stop, without the mode and the fence. */
export type EndOptions = Omit<StopOptions, 'mode' | 'fence'>

export interface EventOptions {
  /** Whole lines (default), raw bytes as they come, or none. */
  readonly output?: 'lines' | 'bytes' | 'none'
}

export class Run {
  readonly #actor: RunActor
  readonly #end: (runId: string, mode: 'cancel' | 'interrupt', options: EndOptions) => Promise<StopReceipt>

  /** @internal */
  constructor(
    actor: RunActor,
    end: (runId: string, mode: 'cancel' | 'interrupt', options: EndOptions) => Promise<StopReceipt>,
  ) {
    this.#actor = actor
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

  /** Ends the run for good. The intent is in force when the call returns its promise (P1). */
  cancel(options: EndOptions = {}): Promise<StopReceipt> {
    return this.#end(this.id, 'cancel', options)
  }

  /** Ends the run so that a later one may continue its work. */
  interrupt(options: EndOptions = {}): Promise<StopReceipt> {
    return this.#end(this.id, 'interrupt', options)
  }
}
