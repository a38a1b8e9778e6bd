/** Starting hostile programs, and the ledger by which they are found again. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fixtureNamed } from '../fixtures/catalogue.js'

export interface LedgerPlace {
  readonly ledger: string
  /** To be merged into the environment of the fixture. */
  readonly env: { readonly FIXTURE_LEDGER: string; readonly FIXTURE_NODE: string }
}

const folder = fileURLToPath(new URL('../fixtures/', import.meta.url))

/** The argv that starts a fixture of the catalogue, with its usual arguments or others. */
export function fixtureCommand(name: string, args?: readonly (string | number)[]): [string, ...string[]] {
  const fixture = fixtureNamed(name)
  const program = fixture.file.endsWith('.sh') ? '/bin/sh' : process.execPath
  return [program, join(folder, fixture.file), ...(args ?? fixture.args).map(String)]
}

/** A fresh ledger in the folder that is searched for leftovers when the suite ends. */
export function withLedger(): LedgerPlace {
  const ledgers = process.env['RUNWARDEN_TEST_LEDGERS']
  if (ledgers === undefined) {
    throw new Error('no ledger folder: run this test with test/support/leftovers.global-setup.ts')
  }
  const ledger = join(ledgers, `${randomUUID()}.jsonl`)
  return { ledger, env: { FIXTURE_LEDGER: ledger, FIXTURE_NODE: process.execPath } }
}
