/** Loading the cores: what holds on a busy machine holds. */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { onTestFinished } from 'vitest'
import { endTree } from './end-tree.js'
import { fixtureCommand, withLedger } from './fixture.js'
import { readLedger } from './proc-reader.js'
import { waitFor } from './wait-for.js'

/** Keeps `count` processes spinning until the test has finished, or until the returned function is called. */
export async function loadCores(count = availableParallelism()): Promise<() => Promise<void>> {
  const places = Array.from({ length: count }, withLedger)
  const endLoad = async () => {
    await Promise.all(places.map(({ ledger }) => endTree(ledger)))
  }
  onTestFinished(endLoad)

  const [program, ...args] = fixtureCommand('busy-loop')
  for (const { env } of places) {
    spawn(program, args, { stdio: 'ignore', detached: true, env: { ...process.env, ...env } })
  }
  const areSpinning = () => places.every(({ ledger }) => readLedger(ledger).readyAt !== undefined)
  await waitFor(areSpinning, { deadlineMs: 30_000, what: `${count} spinning processes` })
  return endLoad
}
