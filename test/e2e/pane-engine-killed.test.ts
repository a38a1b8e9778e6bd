/** The engine may die at any moment of a launch in a pane: what had begun is found and ended, what had not never begins. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cli, start, textOf } from '../cli/cli.js'
import { foldersLeftIn } from '../support/cgroups.js'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_KILL_ROUNDS'] ?? 16)
const AT_ONCE = 2
/** From the first sign of the pane's folder to well after the launch. */
const SPAN_MS = 600

describe('SIGKILL of the engine', () => {
  it(`INV-13, R2, P12: at ${String(ROUNDS)} random moments of a launch in a pane: after a stop neither process nor pane is left`, async ({
    skip,
    onTestFinished,
  }) => {
    if (!hasTmux) skip(NO_TMUX)
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const folder = tempDir()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'agents', '--', 'sleep', '3600')
    const kinds = new Set<string>()
    const play = async (round: number, killAfterMs: number): Promise<void> => {
      const what = `seed ${String(seed)}, round ${String(round)}, killed after ${String(Math.round(killAfterMs))} ms`
      const scratch = join(folder, `tmp-${String(round)}`)
      mkdirSync(scratch)
      const database = join(folder, `${String(round)}.db`)
      const { ledger, env } = withLedger()
      onTestFinished(() => endTree(ledger))
      const where = ['--db', database, '--id', 'it', '--tmux=agents', '--tmux-socket', tmux.socketName]
      const engine = start(['run', ...where, '--', ...fixtureCommand('setsid-grandchild')], {
        env: { ...env, TMPDIR: scratch },
      })
      await waitFor(() => readdirSync(scratch).some((name) => name.startsWith('runwarden-pane-')), {
        deadlineMs: 60_000,
        what: `${what}: the launch has begun (${engine.text()})`,
      })
      await new Promise((resolve) => setTimeout(resolve, killAfterMs))
      engine.kill('SIGKILL')
      await engine.ended
      const hadBegun = existsSync(ledger)
      const stopped = await cli(['stop', '--db', database, '--json', 'it'])
      // 3: nothing to stop, where the recovery that comes first found it lost, and all of it gone.
      expect([0, 3], `${what}: ${textOf(stopped)}${stopped.stderr}`).toContain(stopped.code)
      expect(aliveOf(readLedger(ledger)), what).toEqual([])
      expect(await foldersLeftIn(database), what).toEqual([])
      const { status } = JSON.parse(textOf(stopped)) as { status: string }
      kinds.add(`${status}, ${hadBegun ? 'begun' : 'not begun'}`)
    }
    const rounds = Array.from({ length: ROUNDS }, (_, round) => [round, random() * SPAN_MS] as const)
    const work = async (): Promise<void> => {
      for (let next = rounds.pop(); next !== undefined; next = rounds.pop()) await play(...next)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    // A launcher that was on its way ends by itself.
    await waitFor(() => tmux.panes().length === 1, { deadlineMs: 20_000, what: 'the last launcher is gone' })
    for (const kind of kinds) expect(kind).toMatch(/^(confirmed|nothing-to-stop), (not )?begun$/)
  }, 300_000)
})
