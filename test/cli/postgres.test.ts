/** The command line over a store on a PostgreSQL server. */
import { readFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { schemaOn, usePostgres, whyNoPostgres } from '../support/postgres.js'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, runFixture, textOf, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const why = whyNoPostgres()

if (why !== null) {
  it('CLI: run, ps, show, logs and stop over a PostgreSQL server', ({ skip }) => skip(why))
} else {
  const server = usePostgres()

  /** With a password that nobody asks for, to see where it goes. */
  const withPassword = async (): Promise<string> => {
    const url = new URL(await schemaOn(server.url))
    url.password = 's3cret'
    return url.href
  }

  describe('over a PostgreSQL server', () => {
    it('CLI: run, ps, show, logs and stop find each other, by --db and by RUNWARDEN_DB', async () => {
      const db = await withPassword()
      const env = { XDG_STATE_HOME: folder() }
      const fromEnv = { env: { ...env, RUNWARDEN_DB: db } }
      const run = await runFixture('ignore-term', ['--db', db, '--id', 'going', '--term-grace', '300ms'], {
        env,
      })
      await until('it is listed', async () => textOf(await cli(['ps'], fromEnv)).includes('going'))
      const stopped = await cli(['stop', 'going', '--db', db, '--json'], { env })
      expect(jsonOf(stopped)).toMatchObject({
        status: 'confirmed',
        runs: [{ runId: 'going', status: 'confirmed' }],
      })
      expect((await run.ended).code).toBe(143)
      expect(run.alive()).toEqual([])
      expect(jsonOf(await cli(['show', 'going', '--json'], fromEnv))).toMatchObject({
        run: { work: 'settled.cancelled' },
      })
      const logs = await cli(['logs', 'going'], fromEnv)
      expect(logs.code).toBe(0)
    })

    it('L7: credentials that were typed are in no list of processes and in no error', async () => {
      const db = await withPassword()
      const run = await runFixture('exit-zero-on-term', ['--db', db], { env: { XDG_STATE_HOME: folder() } })
      expect(readFileSync(`/proc/${run.pid}/cmdline`, 'latin1')).not.toContain('s3cret')
      run.kill('SIGINT')
      await run.ended
      const wrong = new URL(db)
      wrong.pathname = '/nowhere'
      const failed = await cli(['ps', '--db', wrong.href, '--json'])
      expect(failed.code).toBe(74)
      expect(`${textOf(failed)}${failed.stderr}`).toMatch(/\/nowhere: the server has no such database/)
      expect(`${textOf(failed)}${failed.stderr}`).not.toContain('s3cret')
      const none = await cli(['ps', '--db', await withPassword()])
      expect(none.code).toBe(74)
      expect(none.stderr).toMatch(/there is no store in it yet/)
    })
  })
}
