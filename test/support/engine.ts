/** An engine on a real store, closed after the test; and a fixture started as one of its runs. */
import { onTestFinished } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, EngineOptions, Run, RunSpec } from '../../src/index.js'
import { testDatabase } from './database.js'
import { fixtureCommand, withLedger } from './fixture.js'
import { aliveOf, readLedger } from './proc-reader.js'
import type { LedgerMember } from './proc-reader.js'
import { waitFor } from './wait-for.js'

/** Short ladders: what is tested is their order, not their length. */
export const quickStop = { termGraceMs: 300, killGraceMs: 5_000 }

/** What is tested above the process adapter must hold in each tier: `RUNWARDEN_TEST_TIER=cgroup` runs it in that one. */
export const TIER = (process.env['RUNWARDEN_TEST_TIER'] ?? 'group+marks') as 'cgroup' | 'group+marks'

/** The evidence of an empty tree that was launched in that tier, and of one that was taken over, or lived in a pane. */
export const EMPTY = TIER === 'cgroup' ? 'cgroup-empty' : 'tree-reaped'
export const EMPTY_ADOPTED = TIER === 'cgroup' ? 'cgroup-empty' : 'identity-gone'

export async function openTestEngine(given: EngineOptions = {}): Promise<Engine> {
  const options: EngineOptions = { containment: { prefer: TIER }, ...given }
  const isPlaced =
    options.kysely !== undefined || options.dialect !== undefined || options.database !== undefined
  const engine = await createEngine(isPlaced ? options : { database: await testDatabase(), ...options })
  onTestFinished(async () => {
    await engine.close({ runs: 'cancel', deadlineMs: 20_000 })
  }, 60_000)
  return engine
}

export interface StartedFixture {
  readonly run: Run
  readonly ledger: string
  /** What is alive of it, by an independent reader of /proc. */
  alive(): LedgerMember[]
  isReady(): boolean
  ready(): Promise<void>
}

export async function startFixture(
  engine: Engine,
  name: string,
  spec: Partial<RunSpec> & { readonly args?: readonly (string | number)[] } = {},
): Promise<StartedFixture> {
  const { args, env, ...rest } = spec
  const place = withLedger()
  const run = await engine.start({
    stop: quickStop,
    command: fixtureCommand(name, args),
    env: { ...process.env, ...place.env, ...env },
    ...rest,
  })
  const isReady = (): boolean => readLedger(place.ledger).readyAt !== undefined
  return {
    run,
    ledger: place.ledger,
    alive: () => aliveOf(readLedger(place.ledger)),
    isReady,
    ready: async () => {
      await waitFor(isReady, { deadlineMs: 30_000, what: `${name} is ready` })
    },
  }
}
