/** What an engine needs of its guardian. */

/** Ends the runs of this engine when it dies (R7). */
export interface GuardianPort {
  /** Called in the tick of each run's start, before anything of it is recorded; does something the first time. */
  arm(): void
  /** The engine closes. `hasLeft`: some of its runs are not proven gone, and were not to be left. */
  dismiss(state: { readonly hasLeft: boolean }): void
}
