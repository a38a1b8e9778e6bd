/** Runs the migrations over a database that the library was given the path of, and tells the version of any. */
import { Migrator, sql } from 'kysely'
import { codeOf, messageOf } from '../../errors.js'
import { isPostgres } from './dialect.js'
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

/** Where new tables go. Kysely's migrator would take a table of its name in any schema for its own. */
const currentSchema = async (db: Db): Promise<string | undefined> => {
  if (!isPostgres(db)) return undefined
  const { rows } = await sql<{ name: string | null }>`select current_schema() as name`.execute(db)
  return rows[0]?.name ?? undefined
}

/** `isInTransaction`: the caller holds one, and the lock with it. */
export const migrate = async (
  db: Db,
  { isInTransaction }: { readonly isInTransaction: boolean },
): Promise<void> => {
  const schema = await currentSchema(db)
  const migrator = new Migrator({
    db,
    ...(schema === undefined ? {} : { migrationTableSchema: schema }),
    provider: { getMigrations: () => Promise.resolve({ ...migrations }) },
    disableTransactions: isInTransaction,
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
  })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error as Error
}
