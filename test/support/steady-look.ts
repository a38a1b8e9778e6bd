/**
 * Looks that are given again while they fail: on a machine where others start processes, one that is in the middle of its exec cannot be
 * judged, and a look that meets it says so.
 */
import { codeOf } from '../../src/errors.js'
import { waitFor } from './wait-for.js'

export const steadily = async <T>(look: () => T | Promise<T>): Promise<T> => {
  const attempt = async (): Promise<{ readonly found: T } | null> => {
    try {
      return { found: await look() }
    } catch (error) {
      if (codeOf(error) === 'unreadable') return null
      throw error
    }
  }
  return (await waitFor(attempt, { deadlineMs: 10_000, what: 'a look that could be made' })).found
}

export const scanOf = <T>(execution: { scan(): Promise<T> }): Promise<T> => steadily(() => execution.scan())
