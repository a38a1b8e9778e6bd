/** Runs the migrations over a database that the library was given the path of, and tells the version of any. */
import { Migrator } from 'kysely'
import { migrations } from './migrations.js'
import type { Db } from './schema.js'

const MIGRATION_TABLE = 'runwarden_migration'

/** 0 where there is no schema yet. */
export const readSchemaVersion = async (db: Db): Promise<number> => {
  const tables = await db.introspection.getTables()
  if (!tables.some(({ name }) => name === 'runwarden_meta')) return 0
  const row = await db
    .selectFrom('runwarden_meta')
    .select('value')
    .where('name', '=', 'schema-version')
    .executeTakeFirst()
  return Number(row?.value ?? 0)
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
