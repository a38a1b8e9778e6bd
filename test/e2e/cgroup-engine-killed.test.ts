/** SIGKILL of an engine that holds a run in a cgroup, from the launch on: the next engine ends what is in it, and removes it. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createEngine, openRecords } from '../../src/index.js'
import { noCgroup } from '../support/cgroups.js'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_KILL_ROUNDS'] ?? 12)
const AT_ONCE = 3
/** Long enough for a launch, a whole tree, and a freeze on a busy machine. */
const MOMENTS_MS = 900

const hostSource = (database: string): string => `
  import { createEngine } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)}
  const engine = await createEngine({ database: ${JSON.stringify(database)}, containment: { atLeast: 'cgroup' } })
  engine.subscribe((event) => { if (event.type === 'transition') console.log(event.process) })
  const stop = { termGraceMs: 300, killGraceMs: 5_000 }
  const run = await engine.start({ id: 'r1', command: ${JSON.stringify(fixtureCommand('mark-shedding-daemon'))}, stop })
  run.pause().catch(() => undefined)
  await run.gone
`

describe.skipIf(noCgroup !== null)('SIGKILL of an engine with a run in a cgroup', () => {
  it(`INV-13, R2, R3: over ${ROUNDS} random moments nothing is left of it, and no folder`, async () => {
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const folder = tempDir()
    const rounds = Array.from({ length: ROUNDS }, (_, round) => ({ round, afterMs: random() * MOMENTS_MS }))
    const play = async ({ round, afterMs }: { round: number; afterMs: number }): Promise<void> => {
      const what = `seed ${seed}, round ${round}, killed after ${Math.round(afterMs)} ms`
      const database = join(folder, `${round}.db`)
      const { ledger, env } = withLedger()
      const host = spawn(process.execPath, ['--input-type=module', '-e', hostSource(database)], {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let said = ''
      host.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
      const ended = new Promise((resolve) => host.once('close', resolve))
      await waitFor(() => said.includes('launching'), { deadlineMs: 60_000, what: `${what}: it launches` })
      await new Promise((resolve) => setTimeout(resolve, afterMs))
      host.kill('SIGKILL')
      await ended
      const records = await openRecords({ database })
      const cgroup = (await records.history('r1')).executions[0]?.marks?.cgroup ?? ''
      await records[Symbol.asyncDispose]()
      expect(cgroup, what).toMatch(/\/runwarden-\d+-/)
      const engine = await createEngine({ database, containment: { prefer: 'group+marks' } })
      const gone = await engine.run('r1')?.gone
      await engine.close()
      expect(gone?.evidence, what).toMatchObject([{ kind: 'cgroup-empty' }])
      expect(aliveOf(readLedger(ledger)), what).toEqual([])
      expect(existsSync(cgroup), what).toBe(false)
      await endTree(ledger)
    }
    const work = async (): Promise<void> => {
      for (let next = rounds.pop(); next !== undefined; next = rounds.pop()) await play(next)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }, 600_000)
})
