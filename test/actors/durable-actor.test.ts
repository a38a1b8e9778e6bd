/** The write-ahead host, over the real charts and a real SQLite store whose commits can be held or refused. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Logger } from '../../src/actors/ports.js'
import type { EngineRow } from '../../src/actors/store.ports.js'
import { GroupCommit, DurableActor } from '../../src/internal.js'
import type { HostServices } from '../../src/actors/actor-role.js'
import { initialRunContext } from '../../src/machines/run/run.context.js'
import type { RunContext, RunPolicy } from '../../src/machines/run/run.context.js'
import { SimulatedClock, turns } from '../../src/testing/simulated-clock.js'
import { busy, openSimulatedStore } from '../../src/testing/simulated-store.js'
import type { SimulatedStore } from '../../src/testing/simulated-store.js'
import { PlainRunRole } from '../support/plain-run-role.js'
import { plainPolicy } from '../support/policy.js'

const policy = { ...plainPolicy, askGraceMs: 1_000 }

const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

class TestRole extends PlainRunRole {
  readonly faults: unknown[] = []
  isDisowned = false
  faulted = (error: unknown): void => void this.faults.push(error)
  disowned = (): void => {
    this.isDisowned = true
  }

  get effects(): string[] {
    return this.seen.flatMap(({ effects }) => effects.map(({ type }) => type))
  }
}

interface World {
  readonly store: SimulatedStore
  readonly clock: SimulatedClock
  readonly host: HostServices
  readonly role: TestRole
  readonly actor: DurableActor
}

const engine = (id: string): EngineRow => ({
  id,
  identity: { pid: 1, startTicks: 1, bootId: 'b', pidNamespace: 'p' },
  hostId: 'h',
  version: '0',
  startedAt: 0,
  heartbeatAt: 0,
  closedAt: null,
})

const begin = async (overrides: Partial<RunPolicy> = {}, store?: SimulatedStore): Promise<World> => {
  const opened = store ?? (await openSimulatedStore())
  onTestFinished(() => opened.close())
  const clock = new SimulatedClock()
  const commits = new GroupCommit(opened, clock, silent)
  const host: HostServices = {
    engineId: engine('e1').id,
    clock,
    commits,
    store: opened,
    spool: null,
    logger: silent,
    commitDeadlineMs: 2_000,
  }
  const role = new TestRole()
  const actor = new DurableActor(`r${String(Math.random()).slice(2)}`, role, host)
  await actor.begin({ policy: { ...policy, ...overrides } })
  return { store: opened, clock, host, role, actor }
}

/** What a watchdog sees of a run that has done nothing yet. */
const current = { attempt: 1, generation: 1, epoch: 0 }

const order = { by: 'test', reason: 'because', force: false }

/** Drives a run to `alive`. */
const launched = async (world: World): Promise<World> => {
  await world.actor.post({ type: 'run.admitted' })
  await world.actor.post({ type: 'process.launched', attempt: 1 })
  return world
}

describe('record before act', () => {
  it('INV-1: no effect starts before the commit of its transition has returned', async () => {
    const { store, actor, role } = await begin()
    const release = store.hold()
    const posted = actor.post({ type: 'run.admitted' })
    await turns()
    expect(role.effects).not.toContain('process.launch')
    release()
    expect(await posted).toBe('applied')
    expect(role.effects).toContain('process.launch')
  })

  it('INV-1: snapshot, journal, timers and effects of a transition are in the store together', async () => {
    const { store, actor } = await launched(await begin())
    await actor.post({ type: 'run.cancel', ...order })
    const stored = await store.loadActor('run', actor.id)
    const journal = await store.transitionsOf('run', actor.id)
    expect(stored?.rev).toBe(journal.at(-1)?.rev)
    expect(journal.at(-1)).toMatchObject({ event: 'run.cancel', effects: [{ kind: 'process.terminate' }] })
    expect(await store.timersOf('run', [actor.id])).toMatchObject([
      { delayMs: 5_000, id: expect.stringContaining('termGrace') as string },
    ])
    expect(await store.pendingEffectsOf('run', [actor.id])).toContainEqual(
      expect.objectContaining({ kind: 'process.terminate' }),
    )
  })

  it('INV-1: an event that means nothing writes nothing', async () => {
    const { store, actor } = await launched(await begin())
    const before = store.committed.length
    expect(await actor.post({ type: 'process.gone', attempt: 9, evidence: 'tree-reaped' })).toBe('ignored')
    expect(store.committed).toHaveLength(before)
  })
})

describe('the mailbox', () => {
  it('P1: intents overtake facts that wait', async () => {
    const { store, actor, role } = await launched(await begin())
    const release = store.hold()
    const progressed = actor.post({ type: 'turn.progressed', attempt: 1, generation: 1 })
    const exited = actor.post({
      type: 'process.exited',
      attempt: 1,
      exitCode: 0,
      signal: null,
      isTreeEmpty: true,
      evidence: 'tree-reaped',
      isFallbackEligible: false,
    })
    const cancelled = actor.post({ type: 'run.cancel', ...order })
    release()
    await Promise.all([progressed, exited, cancelled])
    expect(role.seen.map(({ event }) => event.type).slice(-3)).toEqual([
      'turn.progressed',
      'run.cancel',
      'process.exited',
    ])
    expect((actor.snapshot.context as RunContext).outcome).toMatchObject({ status: 'cancelled', exitCode: 0 })
  })

  it('INV-10: events of the chart itself are refused at the door', async () => {
    const { actor } = await begin()
    expect(() => actor.post({ type: 'xstate.after.termGrace.run.process.term-sent' })).toThrow(
      /may not come from outside/,
    )
  })
})

describe('timers', () => {
  it('INV-10: a timer that was cancelled while its event waited in the mailbox is stale', async () => {
    const { store, clock, actor } = await launched(await begin())
    await actor.post({ type: 'run.cancel', ...order })
    const release = store.hold()
    const gone = actor.post({ type: 'process.gone', attempt: 1, evidence: 'tree-reaped' })
    // The grace passes while the fact that makes it meaningless is being committed.
    const passing = clock.advance(5_000)
    release()
    await Promise.all([gone, passing])
    expect(actor.snapshot.value).toMatchObject({ process: 'confirmed' })
    expect((await store.transitionsOf('run', actor.id)).map(({ event }) => event)).not.toContain(
      'xstate.after.termGrace.run.process.term-sent',
    )
    expect(await store.timersOf('run', [actor.id])).toEqual([])
  })

  it('K12: a limit over 2³¹ ms is kept, and not fired early', async () => {
    const days60 = 60 * 24 * 3_600_000
    const { clock, actor } = await launched(await begin({ pauseGraceMs: days60 }))
    await actor.post({ type: 'run.pause', owner: 'user' })
    await clock.advance(days60 - 1)
    expect(actor.snapshot.value).toMatchObject({ process: 'frozen' })
    await clock.advance(2)
    expect(actor.snapshot.value).toMatchObject({ process: 'term-sent', work: { open: 'interrupting' } })
  })

  it('R3: after a restart a timer waits for what is left of it, whatever the wall clock did', async () => {
    const world = await launched(await begin())
    await world.actor.post({ type: 'run.cancel', ...order })
    await world.clock.advance(3_000)
    const stored = await world.store.loadActor('run', world.actor.id)
    const timers = await world.store.timersOf('run', [world.actor.id])
    world.actor.stop()
    const again = new DurableActor(world.actor.id, new TestRole(), world.host)
    again.resume(stored ?? { snapshot: '', rev: 0 }, timers)
    await world.clock.advance(1_900)
    expect(again.snapshot.value).toMatchObject({ process: 'term-sent' })
    await world.clock.advance(200)
    expect(again.snapshot.value).toMatchObject({ process: 'kill-sent' })
  })
})

describe('a store in trouble', () => {
  it('S2: an intent goes ahead of a store that does not answer, in order, and the rows follow', async () => {
    const { store, clock, actor, role } = await launched(await begin())
    store.trouble = busy()
    const cancelled = actor.post({ type: 'run.cancel', ...order })
    await clock.advance(1_900)
    expect(role.effects).not.toContain('process.terminate')
    await clock.advance(200)
    expect(await cancelled).toBe('applied')
    expect(role.effects).toContain('process.terminate')
    await clock.advance(5_000)
    expect(actor.snapshot.value).toMatchObject({ process: 'kill-sent' })
    store.trouble = null
    await clock.advance(2_000)
    const journal = await store.transitionsOf('run', actor.id)
    expect(journal.map(({ event }) => event).slice(-3)).toEqual([
      'run.cancel',
      'xstate.after.termGrace.run.process.term-sent',
      'xstate.after.killGrace.run.process.kill-sent',
    ])
  })

  it('K7: a classification that cannot be recorded kills nothing, and the fact is dropped', async () => {
    const { store, clock, actor, role } = await launched(await begin())
    store.trouble = busy()
    const silence = actor.post({ type: 'watchdog.silent', seen: current, current })
    await clock.advance(10)
    expect(await silence).toBe('unrecorded')
    expect(role.effects).not.toContain('process.kill')
    store.trouble = null
    await clock.advance(2_000)
    expect(actor.snapshot.value).toMatchObject({ work: { open: 'accepted' }, process: 'alive' })
    expect(await actor.post({ type: 'watchdog.silent', seen: current, current })).toBe('applied')
    expect(role.effects).toContain('process.kill')
  })

  it('K4: a classification that is no longer so when the store can take it is dropped', async () => {
    const { store, clock, actor, role } = await launched(await begin())
    const stamp = { attempt: 1, generation: 1, epoch: 0 }
    store.trouble = busy()
    const progressed = actor.post({ type: 'turn.cancel' })
    await clock.advance(10)
    let isSilent = true
    const silence = actor.post({ type: 'watchdog.silent', seen: stamp, current: stamp }, () => isSilent)
    await clock.advance(1)
    // The frame comes while the fact waits for the store, as long as that may be.
    isSilent = false
    store.trouble = null
    await clock.advance(2_000)
    expect(await progressed).toBe('applied')
    expect(await silence).toBe('ignored')
    expect(role.effects).not.toContain('process.kill')
  })

  it('K4: so is one that was still so when it was taken, and not when it went to the store', async () => {
    const { actor, role } = await launched(await begin())
    const stamp = { attempt: 1, generation: 1, epoch: 0 }
    let isSilent = true
    const silence = actor.post({ type: 'watchdog.silent', seen: stamp, current: stamp }, () => isSilent)
    isSilent = false
    expect(await silence).toBe('unrecorded')
    expect(actor.snapshot.value).toMatchObject({ work: { open: 'accepted' }, process: 'alive' })
    expect(role.effects).not.toContain('process.kill')
    expect(await actor.post({ type: 'turn.progressed', attempt: 1, generation: 1 })).toBe('applied')
  })

  it('INV-13, K7: a guess whose commit was not answered is kept until the store has said, and is then acted upon, once', async () => {
    const { store, clock, actor, role } = await launched(await begin())
    store.answersToLose = 1
    const silence = actor.post({ type: 'watchdog.silent', seen: current, current })
    await turns()
    expect(role.effects).not.toContain('process.kill')
    await clock.advance(100)
    expect(await silence).toBe('applied')
    expect(role.effects.filter((type) => type === 'process.kill')).toHaveLength(1)
    const journal = await store.transitionsOf('run', actor.id)
    expect(journal.filter(({ event }) => event === 'watchdog.silent')).toHaveLength(1)
  })

  it('INV-13: an intent behind a guess that may be on record is not lost behind it: both go ahead, in order', async () => {
    const { store, clock, actor, role } = await launched(await begin())
    store.answersToLose = 1
    const silence = actor.post({ type: 'watchdog.silent', seen: current, current })
    await turns()
    store.trouble = busy()
    const stopped = actor.post({ type: 'run.terminate', ...order })
    await clock.advance(2_100)
    expect(await silence).toBe('applied')
    expect(role.effects).toContain('process.kill')
    store.trouble = null
    await clock.advance(2_000)
    await stopped
    const journal = await store.transitionsOf('run', actor.id)
    expect(journal.map(({ rev }) => rev)).toEqual(journal.map((_, index) => index))
    expect(journal.filter(({ event }) => event === 'watchdog.silent')).toHaveLength(1)
    expect((await store.loadActor('run', actor.id))?.rev).toBe(actor.rev)
  })

  it('K7: a guess that is certainly not on record is dropped for an intent, at once', async () => {
    const world = await launched(await begin())
    const { store, clock, actor, role, host } = world
    store.trouble = busy()
    // Another's write fails first, so that the guess waits for the next attempt.
    void new DurableActor('other', new TestRole(), host).begin({ policy }).catch(() => undefined)
    await turns()
    const silence = actor.post({ type: 'watchdog.silent', seen: current, current })
    await turns()
    const cancelled = actor.post({ type: 'run.cancel', ...order })
    expect(await silence).toBe('unrecorded')
    store.trouble = null
    await clock.advance(100)
    expect(await cancelled).toBe('applied')
    expect(role.effects).not.toContain('process.kill')
    expect((actor.snapshot.context as RunContext).intent).toMatchObject({ kind: 'cancel' })
  })

  it('INV-11: a beginning that is not answered has its deadline, and says so if it is on record after that', async () => {
    const { store, clock, host } = await begin()
    let recordedLate = 0
    const late = new DurableActor('late', new TestRole(), host)
    store.answersToLose = 1
    const beginning = late.begin({ policy }, () => (recordedLate += 1))
    await turns()
    store.trouble = busy()
    const refused = expect(beginning).rejects.toMatchObject({ code: 'store-unavailable' })
    await clock.advance(3_100)
    await refused
    expect(recordedLate).toBe(0)
    store.trouble = null
    await clock.advance(2_000)
    expect(recordedLate).toBe(1)
    expect(await store.loadActor('run', 'late')).not.toBeNull()
  })

  it('S3: a write with a stale owner changes nothing, and the actor lets go', async () => {
    const { store, actor, role } = await launched(await begin())
    expect(await store.takeOver([actor.id], 'e1', 'e2')).toEqual([actor.id])
    expect(await actor.post({ type: 'run.cancel', ...order })).toBe('disowned')
    expect(role.isDisowned).toBe(true)
    expect(role.effects).not.toContain('process.terminate')
    expect((await store.loadActor('run', actor.id))?.owner).toBe('e2')
  })

  it('S3: of two takers only one gets the run', async () => {
    const { store, actor } = await begin()
    const taken = await Promise.all(['a', 'b', 'c'].map((to) => store.takeOver([actor.id], 'e1', to)))
    expect(taken.flat()).toHaveLength(1)
  })

  it('F: a write that the store can never take fails alone; the others go on', async () => {
    const world = await begin()
    const bad = new DurableActor(
      'bad',
      Object.assign(new TestRole(), { describe: () => undefined as unknown as string }),
      world.host,
    )
    const [refused, applied] = await Promise.allSettled([
      bad.begin({ policy }),
      world.actor.post({ type: 'run.admitted' }),
    ])
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'invariant-broken' } })
    expect(applied).toMatchObject({ status: 'fulfilled', value: 'applied' })
  })
})

describe('group commit', () => {
  it('INV-1: transitions that many actors have ready in one tick share a transaction', async () => {
    const first = await begin()
    const worlds = [first, ...(await Promise.all(Array.from({ length: 9 }, () => begin({}, first.store))))]
    const shared = first.host
    const actors = worlds.map(
      () => new DurableActor(`g${String(Math.random()).slice(2)}`, new TestRole(), shared),
    )
    const before = first.store.committed.length
    await Promise.all(actors.map((actor) => actor.begin({ policy })))
    expect(first.store.committed.length - before).toBe(1)
    expect(first.store.committed.at(-1)).toHaveLength(10)
  })
})

it('INV-3: the context that a run begins with has no outcome, no intent and no evidence', () => {
  expect(initialRunContext({ policy })).toMatchObject({
    outcome: null,
    intent: null,
    evidence: [],
    attempt: 1,
  })
})
