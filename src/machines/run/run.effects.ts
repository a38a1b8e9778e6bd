/**
 * The effects a run transition may call for, and what the run actor must do with each (the contract).
 *
 * Every effect is committed with the transition that called for it and done after that commit (INV-1), under the key `run:rev:index`.
 * Each is idempotent: after a crash it is done again with the same key (R4), except `process.launch`, which is never done twice (R2).
 */
export interface RunEffects {
  /** Ask the registry whether the next attempt may launch; it answers `run.admitted`, or an intent. */
  'admission.request': { readonly attempt: number }
  /** Start the attempt's candidate with the marks of its execution row. Answer `process.launched` or `process.launch-failed`. */
  'process.launch': { readonly attempt: number }
  /** Ask the agent to end by its own means (protocol, stdin). No answer is waited for. */
  'process.ask': { readonly attempt: number }
  /** TERM, then CONT, to every member of the tree; again to members that appear later. Answer `process.gone` when empty. */
  'process.terminate': { readonly attempt: number }
  /** KILL every member until the tree is empty or `deadlineMs` passes. Answer `process.gone` or `process.survived`. */
  'process.kill': { readonly attempt: number; readonly deadlineMs: number }
  /** Stop every member until none runs. */
  'process.freeze': { readonly attempt: number }
  /** Continue every member. */
  'process.thaw': { readonly attempt: number }
  /** The tree is proven gone: let go of its resources. */
  'process.release': { readonly attempt: number }
  /** Give the queued prompt of this generation to the agent. */
  'turn.dispatch': { readonly attempt: number; readonly generation: number }
  /** Ask the agent, through its protocol, to end the open turn. */
  'turn.abort': { readonly attempt: number; readonly generation: number }
  'notice.raise': {
    readonly kind: 'advisory' | 'terminal'
    readonly text: string
    readonly generation: number
  }
  'notice.withdraw': { readonly kind: 'advisory'; readonly generation: number }
  /** Run the host's finalize hook. Answer `delivery.finalized`. */
  'delivery.finalize': { readonly attempt: number }
  /** Give the outcome to the host. Answer `delivery.acknowledged` or `delivery.failed`. */
  'delivery.deliver': { readonly attempt: number }
}

export type RunEffect = {
  [K in keyof RunEffects]: { readonly type: K; readonly params: RunEffects[K] }
}[keyof RunEffects]
