/**
 * The last word on leaks: a suite that leaves a process behind fails, whatever its tests believed.
 *
 * Owns: the folder of the suite's ledgers, and the id by which everything that the suite starts can be recognised.
 * Does not own: the processes of other suites on this machine. Only a verified identity of this one is killed.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forbidNewLinks, killUntilEmpty } from './end-tree.js'
import { aliveOf, processesWith, readLedger } from './proc-reader.js'
import type { Identity } from './proc-reader.js'
import { waitFor } from './wait-for.js'

/** A process that was killed just before the end may need a moment to go, and a guardian the time of a ladder. */
const SETTLE_MS = 5_000
const KILL_DEADLINE_MS = 5_000

interface Leftover extends Identity {
  readonly story: string
}

interface Suite {
  readonly id: string
  readonly ledgers: string
}

let suite: Suite | undefined

export function setup(): void {
  suite = { id: randomUUID(), ledgers: mkdtempSync(join(tmpdir(), 'runwarden-ledgers-')) }
  process.env['RUNWARDEN_TEST_SUITE'] = suite.id
  process.env['RUNWARDEN_TEST_LEDGERS'] = suite.ledgers
}

export async function teardown(): Promise<void> {
  if (suite === undefined) return
  const leftovers = await settledLeftovers(suite)
  const fate = await killLeftovers(suite)
  rmSync(suite.ledgers, { recursive: true, force: true })
  if (leftovers.length === 0) return
  // Vitest prints what a teardown throws, and still exits 0.
  process.exitCode = 1
  const stories = leftovers.map(({ pid, story }) => `  pid ${pid}: ${story}`)
  throw new Error(`processes outlived their tests (${fate}):\n${stories.join('\n')}`)
}

/** What is left once everything that was already dying has gone. */
async function settledLeftovers(of: Suite): Promise<Leftover[]> {
  const endsAt = performance.now() + SETTLE_MS
  const isSettled = () => leftoversOf(of).length === 0 || performance.now() >= endsAt
  await waitFor(isSettled, { deadlineMs: 2 * SETTLE_MS, what: 'the settling of the last processes' })
  return leftoversOf(of)
}

async function killLeftovers(of: Suite): Promise<string> {
  ledgersIn(of).forEach(forbidNewLinks)
  const options = { deadlineMs: KILL_DEADLINE_MS, what: 'the leftovers of the suite are gone' }
  return killUntilEmpty(() => leftoversOf(of), options).then(
    () => 'now killed',
    // The message has to come out also where one may not be killed: the leftovers are the news.
    (error: unknown) => `not all killed: ${String(error)}`,
  )
}

function leftoversOf({ id, ledgers }: Suite): Leftover[] {
  const entered = ledgersIn({ id, ledgers })
    .flatMap((file) => aliveOf(readLedger(file)))
    .map((member) => ({ ...member, story: `${member.role} of fixture ${member.fixture ?? 'unknown'}` }))
  const bearers = [
    ...processesWith(`FIXTURE_LEDGER=${ledgers}/`),
    ...processesWith(`RUNWARDEN_TEST_SUITE=${id}`, 'RUNWARDEN_COOKIE='),
    ...processesWith(`RUNWARDEN_TEST_SUITE=${id}`, 'RUNWARDEN_GUARDIAN_OF='),
  ].map((stat) => ({ ...stat, story: `${commandOf(stat)}, which bears this suite's environment` }))
  // By pid, the ledger's better story last.
  return [...new Map([...bearers, ...entered].map((leftover) => [leftover.pid, leftover])).values()]
}

/** What it was called with says more than its name; a zombie has the name only. */
function commandOf({ pid, name }: { readonly pid: number; readonly name: string }): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() || name
  } catch {
    return name
  }
}

function ledgersIn({ ledgers }: Suite): string[] {
  return readdirSync(ledgers)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => join(ledgers, name))
}
