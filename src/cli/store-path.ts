/** Where the store is: `--db`, else $RUNWARDEN_DB, else `.runwarden/runs.db` below the current folder. A file, or `postgres://…`. */
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CliError } from './errors.js'

const DEFAULT_PATH = join('.runwarden', 'runs.db')

const isServer = (store: string): boolean => /^postgres(?:ql)?:\/\//i.test(store)

/** L7: what is typed here can be read by every user of the machine in its list of processes. */
export const hideCredentials = (argv: readonly string[]): void => {
  if (argv.some((word) => /^(?:--db=)?postgres(?:ql)?:\/\/.*(?:@|password=)/i.test(word)))
    process.title = 'runwarden'
}

const storePath = (db: string | undefined): string => {
  const { RUNWARDEN_DB } = process.env
  const [option, given] = db === undefined ? ['RUNWARDEN_DB', RUNWARDEN_DB] : ['--db', db]
  if (given === undefined || (given === '' && db === undefined)) return resolve(DEFAULT_PATH)
  if (given === '') throw new CliError('invalid-option', `option ${option} must not be empty`)
  if (isServer(given)) return given
  if (/^[a-z]+:\/\//i.test(given)) {
    const scheme = given.slice(0, given.indexOf(':'))
    throw new CliError(
      'invalid-option',
      `option ${option} must be a file or begin with postgres://: ${scheme} is not known`,
    )
  }
  // Absolute: the store keeps the places of its logs, and another command may read them from another folder.
  return given === ':memory:' ? given : resolve(given)
}

/** The store of a verb that only makes sense where one is already. Throws `store-unavailable`; makes nothing. */
export const existingStore = (db: string | undefined): string => {
  const path = storePath(db)
  // Whether a server has one is said by who opens it.
  if (isServer(path)) return path
  if (path !== ':memory:' && existsSync(path)) return path
  throw new CliError(
    'store-unavailable',
    `database ${path}: there is no store (\`runwarden run\` makes one; --db or RUNWARDEN_DB names another)`,
  )
}

/** The store of `run`: the default folder is made, for its owner's eyes only; a folder that was named must be there. */
export const newOrExistingStore = (db: string | undefined): string => {
  const path = storePath(db)
  if (path !== resolve(DEFAULT_PATH) || existsSync(dirname(path))) return path
  try {
    mkdirSync(dirname(path), { mode: 0o700 })
  } catch (error) {
    // Another `run` made it in this moment, or the folder cannot be written: opening the store says which.
    if (!existsSync(dirname(path))) {
      const why = error instanceof Error ? error.message : String(error)
      throw new CliError('store-unavailable', `folder ${dirname(path)}: it cannot be made (${why})`)
    }
  }
  return path
}
