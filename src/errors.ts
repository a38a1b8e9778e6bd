/** The one error type of the library. Outcomes are returned, not thrown; this is for misuse and for broken invariants. */

export type RunwardenErrorCode =
  /** An option is unknown or has a value that cannot be used. */
  | 'invalid-option'
  /** The id is already used by another run in this store. */
  | 'run-exists'
  /** No run of that id is in the store. */
  | 'unknown-run'
  /** The id is already used by another job in this store. */
  | 'job-exists'
  /** No job of that id is in the store. */
  | 'unknown-job'
  /** The run or job is in a state in which the call makes no sense; the message says which. */
  | 'refused'
  /** The engine, or the list of jobs, is closing or closed. */
  | 'engine-closing'
  /** A stop order with a fence covers the launch. */
  | 'scope-stopped'
  /** The store cannot be opened, read or written; the message says why. */
  | 'store-unavailable'
  /** The store was written by a newer version of the library. */
  | 'store-too-new'
  /** The process table could not be read completely: nothing can be said of a tree (INV-5). */
  | 'unreadable'
  /** Something was found that the design says cannot be. A defect: please report it. */
  | 'invariant-broken'

export class RunwardenError extends Error {
  readonly code: RunwardenErrorCode

  constructor(code: RunwardenErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = 'RunwardenError'
    this.code = code
  }
}

/** Errors serialise to `{}`: what is worth keeping of one, as data. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const codeOf = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
