/** Heartbeats as evidence that a tree runs, or stands still, and as a clock for how long that was looked at. */
import { readFileSync } from 'node:fs'
import { waitFor } from './wait-for.js'

export interface Beat {
  readonly pid: number
  readonly role: string
}

/** Of the fixtures `heartbeat` and `forking-heartbeat`, by the file of their ledger. */
export const beatsOf = (ledger: string): readonly Beat[] => {
  try {
    const lines = readFileSync(`${ledger}.beats`, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Beat)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** Resolves once every role has beaten again, that many times. */
export const beatsAgain = async (ledger: string, roles: readonly string[], times = 3): Promise<void> => {
  const count = (role: string): number => beatsOf(ledger).filter((beat) => beat.role === role).length
  const before = new Map(roles.map((role) => [role, count(role)]))
  await waitFor(() => roles.every((role) => count(role) >= (before.get(role) ?? 0) + times), {
    deadlineMs: 30_000,
    what: `beats of ${roles.join(', ')}`,
  })
}
