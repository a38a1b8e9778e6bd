/** Around the end of a pause's grace window, everything else that may happen: always exactly one outcome, and nothing left in time. */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createEngine, openRecords } from '../../src/index.js'
import type { Engine, Outcome, RunHistory } from '../../src/index.js'
import { endTree, kill } from '../support/end-tree.js'
import { startFixture } from '../support/engine.js'
import type { StartedFixture } from '../support/engine.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_PAUSE_ROUNDS'] ?? 50)
/** Each fourth round has the ladder's own length, the others declare a shorter one. */
const FIXED_EVERY = 4
const AT_ONCE = 6
const WINDOW_MS = 500
const KILL_GRACE_MS = 5_000
/** What a busy machine may need on top. */
const ROOM_MS = 5_000

const ACTS = ['resume', 'exit', 'cancel', 'close'] as const
type Act = (typeof ACTS)[number]

interface Round {
  readonly number: number
  readonly act: Act
  readonly offsetMs: number
  readonly termGraceMs: number | undefined
}

const sleepUntil = (atMs: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - performance.now())))

const perform = async (act: Act, engine: Engine, { run }: StartedFixture): Promise<void> => {
  if (act === 'resume') await run.resume().catch(() => undefined)
  if (act === 'cancel') await run.cancel()
  if (act === 'close') await engine.close()
  // Its group number stays its own until the leader is reaped, and then nobody is left to signal.
  if (act === 'exit' && run.pid !== undefined && !run.state.isConfirmed) kill({ pid: run.pid })
}

/** The outcome that the record calls for: what was recorded first decides, and a cancel is stronger than an interrupt. */
const expectedOf = ({ transitions }: RunHistory): Outcome['status'] => {
  if (transitions.some(({ event }) => event === 'run.cancel')) return 'cancelled'
  const isEnd = (event: string): boolean =>
    event === 'process.exited' || event === 'run.interrupt' || event.startsWith('xstate.after.pauseGrace')
  return transitions.find(({ event }) => isEnd(event))?.event === 'process.exited' ? 'failed' : 'interrupted'
}

const play = async (folder: string, round: Round, seed: number): Promise<string> => {
  const { number, act, offsetMs, termGraceMs } = round
  const what = `seed ${seed}, round ${number}: ${act} at ${Math.round(offsetMs)} ms after the window`
  const database = join(folder, `${number}.db`)
  const engine = await createEngine({ database })
  const started = await startFixture(engine, 'stubborn-pair', {
    stop: {
      killGraceMs: KILL_GRACE_MS,
      pauseGraceMs: WINDOW_MS,
      ...(termGraceMs === undefined ? {} : { termGraceMs }),
    },
  })
  await started.ready()
  const { run } = started
  let frozenAtMs = 0
  const watching = (async () => {
    for await (const event of run.events({ output: 'none' })) {
      if (event.type === 'transition' && event.event === 'run.pause') frozenAtMs = performance.now()
    }
  })()
  // In a window this short the proof of the freeze may come too late.
  const pausing = run.pause().catch(() => undefined)
  await waitFor(() => frozenAtMs > 0, { deadlineMs: 20_000, what: `${what}: the pause is on record` })
  await sleepUntil(frozenAtMs + WINDOW_MS + offsetMs)
  const actedAtMs = performance.now()
  await perform(act, engine, started)
  const hasResumed = act === 'resume' && run.state.process === 'alive'
  if (hasResumed) await run.cancel()
  const outcome = await run.outcome
  await run.gone
  const tookMs = performance.now() - Math.max(frozenAtMs + WINDOW_MS, actedAtMs)
  expect(tookMs, what).toBeLessThan((termGraceMs ?? 5_000) + KILL_GRACE_MS + ROOM_MS)
  expect(aliveOf(readLedger(started.ledger)), what).toEqual([])
  await pausing
  await engine.close()
  await watching
  await using records = await openRecords({ database })
  const history = await records.history(run.id)
  expect(history.run, what).toMatchObject({ process: 'confirmed', work: `settled.${outcome.status}` })
  const settled = history.transitions.filter(
    ({ from, to }) =>
      !JSON.stringify(from ?? '').includes('settled') && JSON.stringify(to).includes('settled'),
  )
  expect(settled, what).toHaveLength(1)
  expect(outcome.status, what).toBe(expectedOf(history))
  if (hasResumed) {
    // The resumption won: the window's end did nothing.
    expect(JSON.stringify(history.transitions), what).not.toContain('grace window passed')
  }
  return `${act}:${outcome.status}`
}

describe('the end of the grace window, on real processes', () => {
  it(`O5, O2, O6, O10: at ${ROUNDS} random offsets of resume, exit, cancel and close there is one outcome, and all are gone in time`, async () => {
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const folder = tempDir()
    const rounds = Array.from({ length: ROUNDS }, (_, number): Round => ({
      number,
      act: ACTS[number % ACTS.length] ?? 'resume',
      offsetMs: number % 3 === 0 ? random() * 20 - 10 : random() * 800 - 400,
      termGraceMs: number % FIXED_EVERY === 0 ? undefined : 300,
    }))
    const ends: string[] = []
    const work = async (): Promise<void> => {
      for (let next = rounds.pop(); next !== undefined; next = rounds.pop()) {
        ends.push(await play(folder, next, seed))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    const counts = new Map<string, number>()
    for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1)
    console.log([...counts].map(([end, count]) => `${count} × ${end}`).join(', '))
  }, 600_000)
})

describe('leftovers', () => {
  it('O2: none of a run whose window passed while nobody looked', async () => {
    const folder = tempDir()
    const engine = await createEngine({ database: join(folder, 'runs.db') })
    onTestFinished(async () => {
      await engine.close()
    })
    const started = await Promise.all(
      Array.from({ length: 5 }, () =>
        startFixture(engine, 'stubborn-pair', {
          stop: { pauseGraceMs: 100, termGraceMs: 200, killGraceMs: KILL_GRACE_MS },
        }),
      ),
    )
    await Promise.all(started.map((one) => one.ready()))
    await Promise.allSettled(started.map(({ run }) => run.pause()))
    await Promise.all(started.map(({ run }) => run.gone))
    for (const { ledger } of started) {
      expect(aliveOf(readLedger(ledger))).toEqual([])
      await endTree(ledger)
    }
  })
})
