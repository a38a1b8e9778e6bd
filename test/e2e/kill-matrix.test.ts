/** SIGKILL of the engine at every boundary of an effect, and at any moment, of every kind of run: whoever comes after it finishes it. */
import { describe, expect, it } from 'vitest'
import { createEngine } from '../../src/index.js'
import { guardiansOf } from '../support/host.js'
import { expectOver, kinds, startVictim } from '../support/killed-host.js'
import type { Victim } from '../support/killed-host.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { waitFor } from '../support/wait-for.js'

/** Every so many-th boundary, from a random one on; 1: every one. */
const STRIDE = Number(process.env['RUNWARDEN_KILL_STRIDE'] ?? 4)
const ROUNDS = Number(process.env['RUNWARDEN_KILL_ROUNDS'] ?? 20)
const AT_ONCE = 3
/** From the opening of the engine to the end of what it does, nearly; on a busy machine a part of it. */
const LIFE_MS = 500

const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
const random = seededRandom(seed)

const restart = async ({ database }: Victim): Promise<void> => {
  const engine = await createEngine({ database })
  const run = engine.run('r1')
  if (run !== undefined) await run.gone
  // Its last transition is on its way to the store when it is told.
  await engine.close({ runs: 'interrupt' })
}

const guarded = async ({ host }: Victim): Promise<void> => {
  const engineId = /engine (\S+)/.exec(host.text())?.[1]
  if (engineId === undefined) return
  await waitFor(() => guardiansOf(engineId).length === 0, {
    deadlineMs: 60_000,
    what: 'the guardian is done',
  })
}

/** How many engines were killed, and what became of their runs. */
const countsOf = (ends: readonly string[]): string => {
  const counts = new Map<string, number>()
  for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1)
  return `${String(ends.length)} kills; ${[...counts].map(([end, count]) => `${String(count)} ${end}`).join(', ')}`
}

const inParallel = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  const left = [...items]
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

describe('SIGKILL of the engine', () => {
  it.each(Object.keys(kinds))(
    'INV-13, R2, R4: at each boundary of a commit, a launch, a signal (%s): nothing is left, lost or doubled',
    async (name) => {
      let isThrough = false
      const ends: string[] = []
      let killAt = 1 + Math.floor(random() * STRIDE)
      const next = (): number | undefined => {
        if (isThrough) return undefined
        killAt += STRIDE
        return killAt - STRIDE
      }
      const worker = async (): Promise<void> => {
        for (let boundary = next(); boundary !== undefined; boundary = next()) {
          const what = `seed ${String(seed)}, ${name}, boundary ${String(boundary)}`
          const victim = startVictim(name, { killAt: boundary })
          await victim.host.ended
          if (victim.host.text().includes('done in')) isThrough = true
          await restart(victim)
          ends.push(await expectOver(victim, what))
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, worker))
      console.log(`kill matrix, seed ${String(seed)}, ${name}: ${countsOf(ends)}`)
    },
    900_000,
  )

  it('R4, O1: between the record of a resume and its first signal: the next engine continues what was stopped', async () => {
    const victim = startVictim('it is paused and resumed, and to be adopted', {
      killAt: Infinity,
      dieBefore: 'SIGCONT',
    })
    await victim.host.ended
    await restart(victim)
    await expectOver(victim, 'before SIGCONT')
  }, 120_000)

  it(`INV-13, R7: at ${String(ROUNDS)} random moments of any kind of run, with the next engine or with the guardian alone`, async () => {
    const names = Object.keys(kinds)
    const rounds = Array.from({ length: ROUNDS }, (_, round) => ({
      round,
      name: names[Math.floor(random() * names.length)] ?? '',
      afterMs: random() * LIFE_MS,
      guardian: round % 2 === 1,
    }))
    const ends: string[] = []
    await inParallel(rounds, async ({ round, name, afterMs, guardian }) => {
      const what = `seed ${String(seed)}, round ${String(round)}, ${name}, after ${afterMs.toFixed(0)} ms, ${guardian ? 'guardian' : 'restart'}`
      const victim = startVictim(name, { killAt: Infinity, guardian })
      await Promise.race([victim.host.ended, victim.host.says('engine ')])
      await Promise.race([victim.host.ended, new Promise((resolve) => setTimeout(resolve, afterMs))])
      await victim.host.killed()
      await (guardian ? guarded(victim) : restart(victim))
      ends.push(`${guardian ? 'guardian' : 'restart'}: ${await expectOver(victim, what)}`)
    })
    console.log(`kill matrix, seed ${String(seed)}, random moments: ${countsOf(ends)}`)
    expect(rounds).toHaveLength(ROUNDS)
  }, 900_000)
})
