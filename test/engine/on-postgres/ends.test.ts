/** How runs end, once more on a PostgreSQL server: `RUNWARDEN_TEST_DATABASE` runs any of the other suites there. */
import { onPostgres } from '../../support/postgres.js'

onPostgres(async () => {
  await import('../close.test.js')
  await import('../recovery.test.js')
  await import('../stop.test.js')
  await import('../race-table.test.js')
})
