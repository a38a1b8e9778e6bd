/** The engine's suites that lean most on the store, once more: each test over a schema of its own on a PostgreSQL server. RUNWARDEN_TEST_DATABASE runs any of the others there. */
import { beforeAll, describe, it } from 'vitest'
import { usePostgres, whyNoPostgres } from '../support/postgres.js'

const why = whyNoPostgres()

if (why === null) {
  const server = usePostgres()
  beforeAll(() => {
    process.env['RUNWARDEN_TEST_DATABASE'] = server.url
  })
  describe('S5: on PostgreSQL', async () => {
    await import('./close.test.js')
    await import('./recovery.test.js')
    await import('./stop.test.js')
  })
} else {
  it('S5: the same suites pass on PostgreSQL', ({ skip }) => skip(why))
}
