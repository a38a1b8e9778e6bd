/** Runs the migrations over a database that the library was given the path of, and tells the version of any. */
import { Migrator } from 'kysely'
import { codeOf, messageOf } from '../../errors.js'
import { migrations } from './migrations.js'
import type { Db } from './schema.js'

const MIGRATION_TABLE = 'runwarden_migration'

const UNDEFINED_TABLE = '42P01'

const isMissingTable = (error: unknown): boolean =>
  codeOf(error) === UNDEFINED_TABLE || messageOf(error).startsWith('no such table')

/** 0 where there is no schema yet. Asked of the table itself: a list of tables would also name those of other schemas. */
export const readSchemaVersion = async (db: Db): Promise<number> => {
  try {
    const row = await db
      .selectFrom('runwarden_meta')
      .select('value')
      .where('name', '=', 'schema-version')
      .executeTakeFirst()
    return Number(row?.value ?? 0)
  } catch (error) {
    if (isMissingTable(error)) return 0
    throw error
  }
}

/** `isInTransaction`: the caller holds one, and the lock with it. */
export const migrate = async (
  db: Db,
  { isInTransaction }: { readonly isInTransaction: boolean },
): Promise<void> => {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: () => Promise.resolve({ ...migrations }) },
    disableTransactions: isInTransaction,
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
  })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error as Error
}
