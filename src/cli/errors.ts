/** What goes wrong on the command line before, or beside, what the library says. */
import type { RunwardenError, RunwardenErrorCode } from '../index.js'

export class CliError extends Error {
  /** As the library's: programs read them from one list. */
  readonly code: RunwardenErrorCode

  constructor(code: RunwardenErrorCode, message: string) {
    super(message)
    this.name = 'CliError'
    this.code = code
  }
}

/** By name: to say that an option is wrong the library need not be loaded. */
export const isCoded = (error: unknown): error is CliError | RunwardenError =>
  error instanceof Error && (error.name === 'CliError' || error.name === 'RunwardenError')
