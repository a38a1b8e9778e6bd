/** The queue once more on a PostgreSQL server. */
import { onPostgres } from '../support/postgres.js'

onPostgres(async () => {
  await import('./door.test.js')
  await import('./follow.test.js')
  await import('./queue.test.js')
})
