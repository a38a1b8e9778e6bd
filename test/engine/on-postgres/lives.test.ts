/** What becomes of runs that live and what they deliver, once more on a PostgreSQL server. */
import { onPostgres } from '../../support/postgres.js'

onPostgres(async () => {
  await import('../delivery.test.js')
  await import('../launch.test.js')
  await import('../parts.test.js')
  await import('../turns.test.js')
  await import('../watchdog.test.js')
})
