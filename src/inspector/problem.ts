/** What went wrong, as the page is told of it. */
import { RunwardenError } from '../index.js'

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** `otherwise`: the code of what is no error of the library. */
export const problemOf = (
  error: unknown,
  otherwise: string,
): { readonly code: string; readonly message: string } => ({
  code: error instanceof RunwardenError ? error.code : otherwise,
  message: messageOf(error),
})
