/** A person in front of the machine: runs stand still while there is one. */
import { EventEmitter, on, once } from 'node:events'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Run } from '../../src/index.js'
import { followSource } from '../../src/presence-source.js'
import type { PresenceSource } from '../../src/presence-source.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { SimulatedClock, turns } from '../../src/testing/simulated-clock.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const DEADLINE = { deadlineMs: 30_000 }
const frozenBy = (owner: string) => ({ process: 'frozen', freeze: { owner, status: 'frozen' } })
const sleeper = { command: ['sleep', '60'], stop: quickStop }

const launched = async (run: Run): Promise<Run> => {
  await waitFor(() => run.state.process === 'alive', { ...DEADLINE, what: `${run.id} is launched` })
  return run
}

describe('presence', () => {
  it('O16: in use freezes every run that is not in the foreground, idle resumes those', async () => {
    const engine = await openTestEngine()
    const [one, two, front] = await Promise.all([
      engine.start(sleeper),
      engine.start(sleeper),
      engine.start({ ...sleeper, foreground: true }),
    ])
    await Promise.all([one, two, front].map(launched))
    const receipt = await engine.presence.inUse()
    expect(receipt).toMatchObject({ isInUse: true })
    expect(new Map(receipt.runs.map(({ runId, status }) => [runId, status]))).toEqual(
      new Map([
        [one.id, 'frozen'],
        [two.id, 'frozen'],
      ]),
    )
    expect(one.state).toMatchObject(frozenBy('machine'))
    expect(front.state.process).toBe('alive')
    const back = await engine.presence.idle()
    expect(back.runs.map(({ status }) => status)).toEqual(['resumed', 'resumed'])
    expect([one.state.process, two.state.process]).toEqual(['alive', 'alive'])
  })

  it("O16, O4: what a user paused stays paused, also if it took over the machine's freeze; what he resumed stays so", async () => {
    const engine = await openTestEngine()
    const [mine, taken, freed] = await Promise.all(
      [sleeper, sleeper, sleeper].map((spec) => engine.start(spec)),
    )
    if (mine === undefined || taken === undefined || freed === undefined) throw new Error('not started')
    await Promise.all([mine, taken, freed].map(launched))
    await mine.pause()
    await engine.presence.inUse()
    expect([mine, taken, freed].map(({ state }) => state.freeze?.owner)).toEqual([
      'user',
      'machine',
      'machine',
    ])
    await taken.pause()
    await freed.resume()
    // Said again, it is nothing new: what the user wants stands.
    await engine.presence.inUse()
    expect(freed.state.process).toBe('alive')
    const { runs } = await engine.presence.idle()
    expect(new Map(runs.map(({ runId, status }) => [runId, status]))).toEqual(
      new Map([
        [mine.id, 'held'],
        [taken.id, 'held'],
        [freed.id, 'resumed'],
      ]),
    )
    expect(mine.state).toMatchObject(frozenBy('user'))
    expect(taken.state).toMatchObject(frozenBy('user'))
    await taken.resume()
    expect(taken.state.process).toBe('alive')
  })

  it('O16, O8: a run that is started while in use is frozen before it can do anything', async () => {
    const engine = await openTestEngine()
    await engine.presence.inUse()
    const started = await startFixture(engine, 'heartbeat')
    const front = await engine.start({ command: ['sh', '-c', 'exit 0'], foreground: true })
    expect((await front.outcome).status).toBe('completed')
    await waitFor(() => started.run.state.freeze?.status === 'frozen', { ...DEADLINE, what: 'it is frozen' })
    expect(started.isReady()).toBe(false)
    expect(started.run.state).toMatchObject(frozenBy('machine'))
    const events = (await engine.history(started.run.id)).transitions.map(({ event }) => event)
    expect(events.indexOf('run.pause')).toBeLessThan(events.indexOf('run.admitted'))
    await engine.presence.idle()
    await started.ready()
  })

  it('O16: repeated reports join, and a flurry of them ends as the last one said', async () => {
    const engine = await openTestEngine()
    const run = await launched(await engine.start(sleeper))
    const { presence } = engine
    const receipts = await Promise.all([presence.inUse(), presence.inUse(), presence.inUse()])
    expect(receipts[1]).toBe(receipts[0])
    expect(receipts[2]).toBe(receipts[0])
    const flurry = Array.from({ length: 21 }, (_, index) =>
      index % 2 === 0 ? presence.idle() : presence.inUse(),
    )
    await Promise.all(flurry)
    expect(presence.isInUse).toBe(false)
    expect(run.state).toMatchObject({ process: 'alive', freeze: null })
    const starting = [presence.inUse(), engine.start(sleeper)] as const
    const late = await starting[1]
    await waitFor(() => late.state.freeze?.status === 'frozen', {
      ...DEADLINE,
      what: 'the late one is frozen',
    })
  })

  it('O16: touches no run of another engine over the same store', async () => {
    const database = join(tempDir(), 'runs.db')
    const [ours, theirs] = await Promise.all([openTestEngine({ database }), openTestEngine({ database })])
    const run = await launched(await theirs.start(sleeper))
    expect(await ours.presence.inUse()).toEqual({ isInUse: true, runs: [] })
    expect(run.state.process).toBe('alive')
  })

  it('O16: after close it is refused, and close while in use ends what is frozen', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    await engine.presence.inUse()
    expect(await engine.close()).toEqual({ left: [] })
    expect(started.alive()).toEqual([])
    await expect(engine.presence.idle()).rejects.toMatchObject({ code: 'engine-closing' })
    await expect(engine.presence.inUse()).rejects.toMatchObject({ code: 'engine-closing' })
    expect(() => engine.presence.follow(() => undefined)).toThrow(/closing or closed/)
  })

  it('O16: what could not be recorded is told again, without being asked', async () => {
    const database = join(tempDir(), 'runs.db')
    const engine = await openTestEngine({ database })
    const run = await launched(await engine.start(sleeper))
    const other = new BetterSqlite3(database)
    onTestFinished(() => void other.close())
    other.exec('BEGIN EXCLUSIVE')
    const { runs } = await engine.presence.inUse()
    expect(runs).toMatchObject([{ runId: run.id, status: 'unrecorded' }])
    expect(run.state.process).toBe('alive')
    other.exec('COMMIT')
    await waitFor(() => run.state.freeze?.status === 'frozen', {
      ...DEADLINE,
      what: 'it is frozen after all',
    })
    await engine.presence.idle()
    expect(run.state.process).toBe('alive')
  })

  it('O16: a run that outlives its window in use is interrupted', async () => {
    const engine = await openTestEngine()
    const run = await launched(await engine.start({ ...sleeper, stop: { ...quickStop, pauseGraceMs: 300 } }))
    await engine.presence.inUse()
    expect(await run.outcome).toMatchObject({
      status: 'interrupted',
      reason: 'grace window passed while paused',
    })
    expect((await engine.presence.idle()).runs).toEqual([])
  })
})

describe('a host that reports', () => {
  it('O16: is followed by its events: in use at once, idle once it has lasted', async () => {
    const engine = await openTestEngine()
    const run = await launched(await engine.start(sleeper))
    const screen = new EventEmitter()
    const stop = engine.presence.follow(
      (report) => {
        screen.on('person', report)
        return () => screen.off('person', report)
      },
      { idleAfterMs: 50 },
    )
    screen.emit('person', true)
    await waitFor(() => run.state.freeze?.status === 'frozen', { ...DEADLINE, what: 'it is frozen' })
    screen.emit('person', false)
    await waitFor(() => run.state.process === 'alive', { ...DEADLINE, what: 'it goes on' })
    stop()
    expect(screen.listenerCount('person')).toBe(0)
    screen.emit('person', true)
    expect(engine.presence.isInUse).toBe(false)
  })

  it('O16: is followed as an async iterable, whose end counts as idle', async () => {
    const engine = await openTestEngine()
    const run = await launched(await engine.start(sleeper))
    const screen = new EventEmitter()
    const ended = new AbortController()
    const reports = async function* (): AsyncGenerator<boolean> {
      try {
        for await (const [isInUse] of on(screen, 'person', { signal: ended.signal })) yield isInUse as boolean
      } finally {
        screen.emit('over')
      }
    }
    const over = once(screen, 'over')
    engine.presence.follow(reports(), { idleAfterMs: 20 })
    await turns()
    screen.emit('person', true)
    await waitFor(() => run.state.freeze?.status === 'frozen', { ...DEADLINE, what: 'it is frozen' })
    // The source fails: nobody would ever report that the person left.
    ended.abort()
    await over
    await waitFor(() => run.state.process === 'alive', { ...DEADLINE, what: 'it goes on' })
  })

  const followed = (source: PresenceSource) => {
    const clock = new SimulatedClock()
    const reports: boolean[] = []
    const failures: unknown[] = []
    const faults: unknown[] = []
    const stop = followSource(source, {
      clock,
      idleAfterMs: 30_000,
      report: (isInUse) => reports.push(isInUse),
      failed: (error) => failures.push(error),
      misbehaved: (error) => faults.push(error),
    })
    return { clock, reports, failures, faults, stop }
  }

  it('O16: a person who pauses to think starts nothing, and reports of idle in a row do not put it off', async () => {
    let report: (isInUse: boolean) => void = () => undefined
    const { clock, reports } = followed((listener) => {
      report = listener
      return undefined
    })
    report(true)
    report(false)
    await clock.advance(29_999)
    report(true)
    report(false)
    await clock.advance(29_000)
    report(false)
    await clock.advance(999)
    expect(reports).toEqual([true, true])
    await clock.advance(1)
    expect(reports).toEqual([true, true, false])
  })

  it('F, O16: a source that throws when it is asked, or later, is idle, and said so once', async () => {
    const thrown = followed(() => {
      throw new Error('no screen')
    })
    const brokenIterable = followed(
      (async function* () {
        yield true
        await turns(1)
        throw new Error('lost')
      })(),
    )
    for (const { clock } of [thrown, brokenIterable]) {
      await turns()
      await clock.advance(30_000)
    }
    expect(thrown).toMatchObject({ reports: [false], failures: [{ message: 'no screen' }] })
    expect(brokenIterable).toMatchObject({ reports: [true, false], failures: [{ message: 'lost' }] })
  })

  it('P19, O16: whatever a source gives to unsubscribe with, stopping never throws, and its fault is told once', async () => {
    const broken = (): never => {
      throw new Error('the bus is gone')
    }
    const never = (): Promise<never> => new Promise(() => undefined)
    const iterable = (end: unknown): unknown => ({
      [Symbol.asyncIterator]: () => ({ next: never, return: end }),
    })
    const sources: [unknown, string | null][] = [
      [() => new EventEmitter(), 'it returned no function to unsubscribe with'],
      [() => () => broken(), 'the bus is gone'],
      [() => () => Promise.reject(new Error('the bus is gone')), 'the bus is gone'],
      [() => Promise.resolve(), 'it returned no function to unsubscribe with'],
      [() => undefined, null],
      [iterable(broken), 'the bus is gone'],
      [iterable(() => 5), null],
      [iterable(5), 'is not a function'],
      [iterable(undefined), null],
      [iterable(never), null],
      [iterable(() => Promise.reject(new Error('the bus is gone'))), 'the bus is gone'],
    ]
    for (const [source, fault] of sources) {
      const { stop, faults } = followed(source as PresenceSource)
      stop()
      stop()
      await turns()
      const told = fault === null ? [] : [{ message: expect.stringContaining(fault) as string }]
      expect(faults).toMatchObject(told)
    }
  })

  it('P19, O16: a report that is no boolean is not taken for one, and said so once', async () => {
    let report: (isInUse: unknown) => void = () => undefined
    const { clock, reports, faults } = followed((listener) => {
      report = listener as typeof report
      return undefined
    })
    for (const odd of ['yes', NaN, null, undefined, {}, 1, 0]) report(odd)
    await clock.advance(60_000)
    expect(reports).toEqual([])
    expect(faults).toMatchObject([{ message: 'it reported a string, which is neither true nor false' }])
  })

  it('P19, O16: what is no source is refused at the door', async () => {
    const engine = await openTestEngine()
    for (const source of [5, null, undefined, {}, 'screen', Promise.resolve()]) {
      expect(() => engine.presence.follow(source as PresenceSource)).toThrow(
        /presence\.follow: option source must be a function or an async iterable, got/,
      )
    }
  })
})
