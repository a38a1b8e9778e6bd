/** How long an agent may be silent, and what its silence is called when that time has passed. */

/** How long silence is borne, in ms. Null: for ever. */
export interface WatchdogLimits {
  /** Nothing at all since the prompt (K5). */
  readonly neverStartedMs: number | null
  /** Silence after progress, until people are told (K8). */
  readonly advisoryMs: number | null
  /** Silence after progress without an open tool, until the run is ended (K9). */
  readonly stalledMs: number | null
  /** The same with an open tool. */
  readonly stalledToolMs: number | null
  /** Silence after the agent said that it is done, until its turn is closed (K10). */
  readonly completionSignalMs: number | null
  /** A look that comes this much too late did not watch the time in between: the machine slept, or the loop was blocked (K12). */
  readonly sleepGapMs: number
}

/** A deadline that can pass in silence: the chart's fact is `watchdog.…`. */
export type Silence = 'silent' | 'exhausted' | 'completion-silent'
