/** Closing an engine: nothing hangs, nothing is forgotten. */
import { spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createEngine, openRecords } from '../../src/index.js'
import type { PresenceSource } from '../../src/presence-source.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { openBackdoor, testDatabase } from '../support/database.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { openSimulatedEngine } from '../support/simulated-engine.js'
import { waitFor } from '../support/wait-for.js'

describe('close', () => {
  it.each(['interrupt', 'cancel'] as const)(
    'O10: %s ends every run by the ladder, and the store says so',
    async (runs) => {
      const database = await testDatabase()
      const engine = await createEngine({ database })
      const started = await Promise.all(
        ['stubborn-agent', 'exit-zero-on-term'].map((name) => startFixture(engine, name)),
      )
      await Promise.all(started.map((one) => one.ready()))
      expect(await engine.close({ runs })).toEqual({ left: [] })
      for (const one of started) {
        expect(one.alive()).toEqual([])
        expect((await one.run.outcome).status).toBe(runs === 'cancel' ? 'cancelled' : 'interrupted')
      }
      await using records = await openRecords({ database })
      expect((await records.runs()).map(({ process }) => process)).toEqual(['confirmed', 'confirmed'])
    },
  )

  it('O10: what outlives the deadline is named, and close does not hang', async () => {
    const engine = await createEngine({ database: await testDatabase() })
    const started = await startFixture(engine, 'ignore-term', { stop: { termGraceMs: 60_000 } })
    await started.ready()
    onTestFinished(() => endTree(started.ledger))
    expect(await engine.close({ deadlineMs: 300 })).toEqual({ left: [started.run.id] })
    expect(started.alive()).toHaveLength(1)
  })

  it('O10: leave lets the processes run on, and a later engine stops them', async () => {
    const database = await testDatabase()
    const first = await createEngine({ database })
    const started = await startFixture(first, 'stubborn-agent')
    await started.ready()
    expect(await first.close({ runs: 'leave' })).toEqual({ left: [started.run.id] })
    expect(started.alive().length).toBeGreaterThan(1)
    const second = await openTestEngine({ database, recover: false })
    expect((await second.stop({ run: started.run.id })).runs[0]).toMatchObject({
      status: 'confirmed',
      evidence: [{ kind: expect.stringMatching(/^(identity-gone|cgroup-empty)$/) as string }],
    })
    expect(started.alive()).toEqual([])
  })

  it('S2: what was recorded nowhere but in the spool follows when the store answers, also after close', async () => {
    const database = await testDatabase()
    const engine = await createEngine({ database, commitDeadlineMs: 200 })
    const started = await startFixture(engine, 'ignore-term', { task: 't1' })
    await started.ready()
    const unlock = await (await openBackdoor(database)).lock()
    expect(await engine.close({ deadlineMs: 20_000 })).toEqual({ left: [] })
    expect(started.alive()).toEqual([])
    await unlock()
    await using records = await openRecords({ database })
    await waitFor(async () => (await records.history(started.run.id)).run.process === 'confirmed', {
      deadlineMs: 20_000,
      what: 'the rows follow',
    })
  })

  it('S2: an engine over a store that stays locked is refused in time, and says why', async () => {
    const database = await testDatabase()
    await (await createEngine({ database })).close()
    const unlock = await (await openBackdoor(database)).lock()
    onTestFinished(unlock)
    await expect(createEngine({ database, commitDeadlineMs: 200 })).rejects.toMatchObject({
      code: 'store-unavailable',
      message: expect.stringMatching(/lock/) as string,
    })
  })

  it('O10: launches during closing are refused, and close joins close', async () => {
    const engine = await createEngine({ database: ':memory:' })
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const closing = [engine.close(), engine.close({ runs: 'cancel' })]
    await expect(engine.start({ command: ['true'] })).rejects.toMatchObject({ code: 'engine-closing' })
    expect(await Promise.all(closing)).toEqual([{ left: [] }, { left: [] }])
  })

  it('P19, O10: a source of presence that cannot be told to stop keeps no run alive, and no later close from its answer', async () => {
    const warnings: string[] = []
    const warn = (_: unknown, message: string): void => void warnings.push(message)
    const logger = { debug: () => undefined, info: () => undefined, warn, error: warn }
    const engine = await openTestEngine({ logger })
    const started = await startFixture(engine, 'stubborn-agent')
    await started.ready()
    engine.presence.follow(() => () => {
      throw new Error('the bus is gone')
    })
    engine.presence.follow((() => new EventEmitter()) as unknown as PresenceSource)
    expect(await engine.close()).toEqual({ left: [] })
    expect(await engine.close()).toEqual({ left: [] })
    expect(started.alive()).toEqual([])
    expect((await started.run.outcome).status).toBe('interrupted')
    expect(warnings.filter((one) => one.includes('presence'))).toHaveLength(2)
  })

  it.each(['presence', 'store', 'record', 'end'] as const)(
    'O10, F: when the step %s of closing fails, the others are done, the runs are ended and close says so',
    async (step) => {
      const { engine, clock, store, processes, errors, start, drive } = await openSimulatedEngine()
      const run = await start({})
      const fail = (): never => {
        throw new Error('mine')
      }
      if (step === 'presence') vi.spyOn(engine.presence, 'close').mockImplementation(fail)
      if (step === 'record') store.refused = 'registry.close'
      if (step === 'end') store.refused = 'registry.emptied'
      if (step === 'store') store.failsToClose = true
      expect(await drive(engine.close())).toEqual({ left: [] })
      expect(await drive(engine.close())).toEqual({ left: [] })
      expect(processes.last.isAlive).toBe(false)
      expect((await run.outcome).status).toBe('interrupted')
      expect(errors.length).toBeGreaterThan(0)
      // Not by waiting for the deadline.
      expect(clock.monotonicMs()).toBeLessThan(15_000)
    },
  )

  it('O10, INV-11: a closing that cannot be recorded names what is left at its deadline', async () => {
    const { engine, store, processes, start, drive } = await openSimulatedEngine()
    processes.behaviour = { diesOf: [] }
    const run = await start({})
    store.refused = 'registry.close'
    expect(await drive(engine.close({ deadlineMs: 20_000 }))).toEqual({ left: [run.id] })
  })

  it('O10: await using closes, and the process of the host may end', async () => {
    const place = withLedger()
    const [program, ...args] = fixtureCommand('ignore-term')
    const source = `
      import { createEngine } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)}
      const engine = await createEngine({ database: ':memory:' })
      await engine.start({ command: ${JSON.stringify([program, ...args])}, stop: { termGraceMs: 100 } })
      const idle = await createEngine({ database: ':memory:' })
      await engine.close()
    `
    const host = spawn(process.execPath, ['--input-type=module', '-e', source], {
      env: { ...process.env, ...place.env },
      stdio: 'ignore',
    })
    // The second engine was never closed: its polls keep no process alive.
    const code = await new Promise((resolve) => host.once('exit', resolve))
    expect(code).toBe(0)
  })
})

describe('listeners', () => {
  it('F: a subscriber that throws hurts no run, and a run that ends leaves the engine', async () => {
    const engine = await openTestEngine()
    const seen: string[] = []
    engine.subscribe(() => {
      throw new Error('mine')
    })
    engine.subscribe(({ type }) => seen.push(type))
    const run = await engine.start({ command: ['true'], stop: quickStop })
    expect((await run.outcome).status).toBe('completed')
    await run.gone
    await waitFor(() => engine.run(run.id) === undefined, {
      deadlineMs: 5_000,
      what: 'the engine lets go of it',
    })
    expect(seen).toEqual(expect.arrayContaining(['transition', 'launched', 'settled', 'confirmed']))
  })

  it('P19: an async subscriber that rejects, and a logger that throws, hurt nobody', async () => {
    const fail = (): never => {
      throw new Error('mine')
    }
    const engine = await openTestEngine({ logger: { debug: fail, info: fail, warn: fail, error: fail } })
    engine.subscribe(() => Promise.reject(new Error('mine too')))
    engine.subscribe(fail)
    const run = await engine.start({ command: ['sleep', '60'], stop: quickStop })
    expect((await run.cancel()).status).toBe('confirmed')
  })

  it('INV-12: events end by themselves, with settled before confirmed, and a late listener is told the same', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({ command: ['sh', '-c', 'echo a; echo b >&2; exit 3'] })
    const typesOf = async (): Promise<string[]> => {
      const types: string[] = []
      for await (const { type } of run.events()) types.push(type)
      return types
    }
    const early = await typesOf()
    expect(early[0]).toBe('accepted')
    expect(early.filter((type) => type === 'settled')).toHaveLength(1)
    expect(early.indexOf('settled')).toBeLessThan(early.indexOf('confirmed'))
    expect(await typesOf()).toEqual(['accepted', 'launched', 'settled', 'confirmed'])
  })
})
