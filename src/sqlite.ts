/** For hosts that bring their own database: the schema as Kysely migrations. */
export { SCHEMA_VERSION, migrations } from './adapters/store/migrations.js'
