/** The time of a frozen agent, on a clock that moves only when told to: what stands still, what goes on, and who wins at the last moment. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HostServices, Posted } from '../../src/actors/actor-role.js'
import type { Logger } from '../../src/actors/ports.js'
import { DurableActor, GroupCommit } from '../../src/internal.js'
import type { RunContext } from '../../src/machines/run/run.context.js'
import { standsStill } from '../../src/machines/run/run.timers.js'
import { SimulatedClock, turns } from '../../src/testing/simulated-clock.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { openSimulatedStore } from '../../src/testing/simulated-store.js'
import type { SimulatedStore } from '../../src/testing/simulated-store.js'
import type { RunPolicy } from '../../src/machines/run/run.context.js'
import { PlainRunRole } from '../support/plain-run-role.js'
import { plainPolicy } from '../support/policy.js'

const WINDOW_MS = 900_000
const LIMIT_MS = 3_600_000
const EXIT_GRACE_MS = 10_000

const policy = { ...plainPolicy, pauseGraceMs: WINDOW_MS, exitGraceMs: EXIT_GRACE_MS, timeoutMs: LIMIT_MS }

const nothing = (): void => undefined
const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

class FreezableRole extends PlainRunRole {
  readonly standsStill = standsStill
  faulted = (error: unknown): void => {
    throw error
  }
  disowned = nothing
}

interface Frozen {
  readonly clock: SimulatedClock
  readonly role: FreezableRole
  readonly actor: DurableActor
  readonly store: SimulatedStore
  readonly host: HostServices
  readonly process: () => string
  readonly work: () => string
  readonly context: () => RunContext
}

const viewOf = (actor: DurableActor) => ({
  process: (): string => (actor.snapshot.value as { process: string }).process,
  work: (): string => JSON.stringify((actor.snapshot.value as { work: unknown }).work),
  context: (): RunContext => actor.snapshot.context as RunContext,
})

const hostOver = (
  store: SimulatedStore,
  clock = new SimulatedClock(),
): HostServices & { clock: SimulatedClock } => ({
  engineId: 'e1',
  clock,
  commits: new GroupCommit(store, clock, silent),
  store,
  spool: null,
  logger: silent,
  commitDeadlineMs: 2_000,
})

/** A run that lives, over a store and on a clock that others may share. */
const alive = async (
  store: SimulatedStore,
  overrides: Partial<RunPolicy> = {},
  host = hostOver(store),
): Promise<Frozen> => {
  const role = new FreezableRole()
  const actor = new DurableActor(`r${String(Math.random()).slice(2)}`, role, host)
  await actor.begin({ policy: { ...policy, ...overrides } })
  await actor.post({ type: 'run.admitted' })
  await actor.post({ type: 'process.launched', attempt: 1 })
  return { clock: host.clock, role, actor, store, host, ...viewOf(actor) }
}

const openStore = async (): Promise<SimulatedStore> => {
  const store = await openSimulatedStore()
  onTestFinished(() => store.close())
  return store
}

const pause = (actor: DurableActor, owner = 'user'): Promise<Posted> =>
  actor.post({ type: 'run.pause', owner })
const resume = (actor: DurableActor, owner = 'user'): Promise<Posted> =>
  actor.post({ type: 'run.resume', owner })

describe('the end of the grace window', () => {
  it('O5, INV-11: against a resumption at the same instant exactly one wins, over 1 000 rounds', async () => {
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const store = await openStore()
    const wins = { resume: 0, expiry: 0 }
    const host = hostOver(store)
    const { clock } = host
    for (let batch = 0; batch < 20; batch += 1) {
      const runs = await Promise.all(Array.from({ length: 50 }, () => alive(store, {}, host)))
      await Promise.all(runs.map(({ actor }) => pause(actor)))
      // At the very instant the order of the two is that of the event loop: both orders are played.
      const plans = runs.map((run) => ({ run, atMs: Math.round(random() * 2) - 1, isFirst: random() < 0.5 }))
      const answers = new Map<Frozen, Promise<Posted>>()
      await clock.advance(WINDOW_MS - 2)
      for (const nowMs of [-1, 0, 1]) {
        const due = plans.filter(({ atMs }) => atMs === nowMs)
        const resumeAll = (isFirst: boolean): void => {
          for (const { run } of due.filter((plan) => plan.isFirst === isFirst)) {
            answers.set(run, resume(run.actor))
          }
        }
        resumeAll(true)
        const ticked = clock.advance(1)
        resumeAll(false)
        await ticked
      }
      await clock.advance(10)
      for (const run of runs) {
        const won = (await answers.get(run)) === 'applied' ? 'resume' : 'expiry'
        const effects = run.role.seen.flatMap(({ effects: all }) => all.map(({ type }) => type))
        const thaws = effects.filter((type) => type === 'process.thaw').length
        const terms = effects.filter((type) => type === 'process.terminate').length
        const what = `seed ${seed}, batch ${batch}`
        expect([thaws, terms], what).toEqual(won === 'resume' ? [1, 0] : [0, 1])
        expect(run.process(), what).toBe(won === 'resume' ? 'alive' : 'term-sent')
        expect(run.context().intent?.kind ?? null, what).toBe(won === 'expiry' ? 'interrupt' : null)
        wins[won] += 1
        run.actor.stop()
      }
    }
    expect(wins.resume).toBeGreaterThan(100)
    expect(wins.expiry).toBeGreaterThan(100)
  }, 240_000)

  it('O2: it is counted from the freeze, whatever the wall clock does, and across a take-over of its owner', async () => {
    const run = await alive(await openStore())
    await pause(run.actor, 'machine')
    run.clock.stepWall(10 * WINDOW_MS)
    await run.clock.advance(WINDOW_MS / 2)
    await pause(run.actor, 'user')
    expect(await resume(run.actor, 'machine')).toBe('ignored')
    run.clock.stepWall(-20 * WINDOW_MS)
    await run.clock.advance(WINDOW_MS / 2 - 1)
    expect(run.process()).toBe('frozen')
    await run.clock.advance(1)
    expect(run.process()).toBe('term-sent')
    await run.clock.advance(4_999)
    expect(run.process()).toBe('term-sent')
    await run.clock.advance(1)
    expect(run.process()).toBe('kill-sent')
  })
})

describe('the time of the agent', () => {
  it('O7, O15: its time limit stands still while frozen, over several freezes', async () => {
    const run = await alive(await openStore())
    await run.clock.advance(LIMIT_MS - 1_000)
    for (let round = 0; round < 5; round += 1) {
      await pause(run.actor)
      await run.clock.advance(WINDOW_MS - 1)
      run.clock.stepWall(round % 2 === 0 ? LIMIT_MS : -LIMIT_MS)
      await resume(run.actor)
      await run.clock.advance(100)
    }
    expect(run.context().intent).toBeNull()
    await run.clock.advance(499)
    expect(run.process()).toBe('alive')
    await run.clock.advance(1)
    expect(run.process()).toBe('term-sent')
    expect(run.context().intent).toMatchObject({
      kind: 'interrupt',
      by: 'engine',
      reason: `limit timeoutMs exceeded: more than ${LIMIT_MS} ms, frozen time left out`,
    })
  })

  it('O7, O15: a limit that passes while the pause is being recorded does not end a frozen run', async () => {
    const run = await alive(await openStore())
    await run.clock.advance(LIMIT_MS - 1)
    const release = run.store.hold()
    const paused = pause(run.actor)
    await run.clock.advance(5)
    release()
    expect(await paused).toBe('applied')
    await turns()
    await run.clock.advance(WINDOW_MS - 10)
    expect(run.process()).toBe('frozen')
    // What was left of it when the pause was taken.
    await resume(run.actor)
    expect(run.process()).toBe('alive')
    await run.clock.advance(1)
    expect(run.process()).toBe('term-sent')
  })

  it('O7: what the process has to exit in stands still, with what is left of it', async () => {
    const run = await alive(await openStore(), { timeoutMs: null })
    await run.actor.post({ type: 'turn.completed', attempt: 1, generation: 1, result: { isOk: true } })
    await run.clock.advance(EXIT_GRACE_MS - 1_000)
    await pause(run.actor)
    await run.clock.advance(WINDOW_MS - 1)
    expect(run.process()).toBe('frozen')
    await resume(run.actor)
    await run.clock.advance(999)
    expect(run.work()).toContain('finishing')
    await run.clock.advance(1)
    expect(run.work()).toContain('completed')
  })

  it('O7: a turn that is being cancelled is not freed while it cannot answer', async () => {
    const run = await alive(await openStore(), { timeoutMs: null, isInteractive: true })
    await run.actor.post({ type: 'turn.cancel' })
    await pause(run.actor)
    await run.clock.advance(WINDOW_MS - 1)
    expect(run.work()).not.toContain('ready')
    await resume(run.actor)
    await run.clock.advance(60_000)
    expect(run.work()).toContain('ready')
  })

  it('O15, INV-13: what is left of a limit survives the engine, frozen or not, also beyond 2³¹ ms', async () => {
    const limitMs = 2 ** 31 + 5_000
    const run = await alive(await openStore(), { timeoutMs: limitMs, pauseGraceMs: 2 ** 32 })
    await run.clock.advance(2 ** 31)
    await pause(run.actor)
    await run.clock.advance(2 ** 31)
    run.actor.stop()

    const stored = await run.store.loadActor('run', run.actor.id)
    const timers = await run.store.timersOf('run', [run.actor.id])
    if (stored === null) throw new Error('the run is not in the store')
    const role = new FreezableRole()
    const heir = new DurableActor(run.actor.id, role, run.host)
    // The machine was off for a day.
    run.clock.stepWall(86_400_000)
    heir.resume(stored, timers)
    const view = viewOf(heir)
    await run.clock.advance(1_000_000)
    expect(view.process()).toBe('frozen')
    await resume(heir)
    await run.clock.advance(4_999)
    expect(view.process()).toBe('alive')
    await run.clock.advance(1)
    expect(view.process()).toBe('term-sent')
    expect(view.context().intent?.reason).toContain(String(limitMs))
  })

  it('O15: a limit after the work has settled, or is being ended, changes nothing', async () => {
    const run = await alive(await openStore())
    await run.actor.post({ type: 'run.cancel', by: 'ada', reason: 'enough', force: false })
    expect(await run.actor.post({ type: 'limit.exceeded', limit: 'maxOutputBytes', max: 1 })).toBe('ignored')
    expect(run.context().intent).toMatchObject({ kind: 'cancel', by: 'ada' })
    expect(await run.store.timersOf('run', [run.actor.id])).toHaveLength(1)
    await run.clock.advance(LIMIT_MS)
    expect(run.context().intent).toMatchObject({ kind: 'cancel', by: 'ada' })
  })
})
