/** What the verbs share: `--db`, `--json`, and reading a store that is there. */
import type { Command } from 'commander'
import type { Records } from '../index.js'
import { existingStore } from './store-path.js'

export interface SharedOptions {
  readonly db?: string
  readonly json?: boolean
}

const DB_HELP = 'the store: a file, or postgres://… (default: $RUNWARDEN_DB, else .runwarden/runs.db)'
const JSON_HELP = 'print JSON, for programs'

export const withSharedOptions = (command: Command): Command =>
  command.option('--db <store>', DB_HELP).option('--json', JSON_HELP)

export const verb = (program: Command, usage: string, summary: string): Command =>
  withSharedOptions(program.command(usage).summary(summary).description(summary))

/** Reads without an engine: nothing is recorded of the reader. */
export const readingStore = async (
  { db }: SharedOptions,
  read: (records: Records) => Promise<void>,
): Promise<void> => {
  const database = existingStore(db)
  // The library is loaded when it is needed: help and wrong usage are answered without it.
  const { openRecords } = await import('../index.js')
  await using records = await openRecords({ database })
  await read(records)
}

export const examples = (...lines: readonly string[]): string =>
  ['', 'Examples:', ...lines.map((line) => `  ${line}`)].join('\n')
