/** The engine may die at any moment of a stop: what it had recorded is finished from outside. */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { RunHistory } from '../../src/index.js'
import { cli, start, textOf } from '../cli/cli.js'
import { foldersLeftIn } from '../support/cgroups.js'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_KILL_ROUNDS'] ?? 20)
const AT_ONCE = 4
const GRACE_MS = 400

const SIGNAL_EFFECTS = { SIGTERM: 'process.terminate', SIGKILL: 'process.kill' } as const

/** INV-1: every signal that a process received has a transition that called for it, committed before it was sent. */
const expectExplained = (history: RunHistory, ledgerFile: string): void => {
  for (const { signal, at } of readLedger(ledgerFile).signals) {
    if (signal !== 'SIGTERM') continue
    const calls = history.transitions.filter(({ effects }) =>
      effects.some(({ kind }) => kind === SIGNAL_EFFECTS[signal]),
    )
    expect(
      calls.some((call) => call.at <= at),
      `${signal} at ${at} is explained`,
    ).toBe(true)
  }
}

describe('SIGKILL of the engine', () => {
  it(`INV-13: at ${ROUNDS} random moments of a stop, stop from outside confirms, nothing is left, the journal explains`, async () => {
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const folder = tempDir()
    const rounds = Array.from({ length: ROUNDS }, (_, round) => ({
      round,
      killAfterMs: random() * (GRACE_MS + 300),
    }))
    const play = async ({ round, killAfterMs }: { round: number; killAfterMs: number }): Promise<void> => {
      const what = `seed ${seed}, round ${round}, killed after ${Math.round(killAfterMs)} ms`
      const database = join(folder, `${round}.db`)
      const { ledger, env } = withLedger()
      const id = `run-${round}`
      const stopOptions = ['--term-grace', `${GRACE_MS}ms`]
      const runner = start(
        [
          'run',
          '--no-guardian',
          '--db',
          database,
          '--id',
          id,
          '--json',
          ...stopOptions,
          '--',
          ...fixtureCommand('stubborn-agent'),
        ],
        { env },
      )
      await waitFor(() => readLedger(ledger).readyAt !== undefined, {
        deadlineMs: 60_000,
        what: `${what}: the tree is up`,
      })
      // Through the handle: on a quick machine the runner is over before its moment comes, and its pid somebody else's.
      runner.kill('SIGINT')
      await new Promise((resolve) => setTimeout(resolve, killAfterMs))
      runner.kill('SIGKILL')
      await runner.ended
      const stopped = await cli(['stop', '--db', database, '--json', id])
      const receipt = JSON.parse(textOf(stopped)) as {
        status: string
        runs: { status: string; work: string }[]
      }
      const left = aliveOf(readLedger(ledger))
      expect(left, what).toEqual([])
      expect(['confirmed', 'nothing-to-stop'], `${what}: ${textOf(stopped)}${stopped.stderr}`).toContain(
        receipt.status,
      )
      expect(stopped.code, what).toBe(receipt.status === 'confirmed' ? 0 : 3)
      await using records = await openRecords({ database })
      const history = await records.history(id)
      expect(history.run, what).toMatchObject({ process: 'confirmed' })
      expect(['settled.cancelled', 'settled.interrupted']).toContain(history.run.work)
      expectExplained(history, ledger)
      expect(await foldersLeftIn(database), what).toEqual([])
      await endTree(ledger)
    }
    const work = async (): Promise<void> => {
      for (let next = rounds.pop(); next !== undefined; next = rounds.pop()) await play(next)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }, 600_000)
})
