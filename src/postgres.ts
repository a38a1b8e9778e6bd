/** For hosts that bring their own PostgreSQL: the schema as Kysely migrations. `database: 'postgres://…'` needs none of it. */
export { SCHEMA_VERSION, migrations } from './adapters/store/migrations.js'
