/** Ending fixture processes by their identity: what the tests use where the library is not what they test. */
import { writeFileSync } from 'node:fs'
import { aliveOf, isAlive, processesWith, readLedger } from './proc-reader.js'
import type { Identity } from './proc-reader.js'
import { waitFor } from './wait-for.js'
import type { WaitOptions } from './wait-for.js'

/** KILLs every process of a ledger until none is left. */
export async function endTree(ledgerFile: string, deadlineMs = 10_000): Promise<void> {
  forbidNewLinks(ledgerFile)
  // The ledger knows the scrubbed, the environment those who have not entered yet.
  const look = () => [...aliveOf(readLedger(ledgerFile)), ...processesWith(`FIXTURE_LEDGER=${ledgerFile}`)]
  await killUntilEmpty(look, { deadlineMs, what: `every process in ${ledgerFile} is gone` })
}

/** A link of a fork storm that is born after this goes at once: in mid-exec it has no environment to be found by. */
export function forbidNewLinks(ledgerFile: string): void {
  writeFileSync(`${ledgerFile}.end`, '')
}

/** KILLs what `look` finds, by verified identity, until it finds nothing. */
export async function killUntilEmpty(look: () => readonly Identity[], options: WaitOptions): Promise<void> {
  let wasEmpty = false
  await waitFor(() => {
    const found = look()
    found.filter(isAlive).forEach(kill)
    // One empty look is no proof under a fork storm: a link may have been born behind the reader.
    const isProven = found.length === 0 && wasEmpty
    wasEmpty = found.length === 0
    return isProven
  }, options)
}

/** KILLs a process that may be gone since somebody looked. */
export function kill({ pid }: { readonly pid: number }): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    // ESRCH: gone since the look, as wanted. EPERM: the deadline says that it is still there.
    if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
