/** Runs that are parts of others, and runs that are stopped and never cancelled. Real processes, a real store. */
import { describe, expect, it } from 'vitest'
import type { Engine, Run, RunSpec } from '../../src/index.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine, quickStop } from '../support/engine.js'
import { openSimulatedEngine } from '../support/simulated-engine.js'
import { busy } from '../../src/testing/simulated-store.js'
import { waitFor } from '../support/wait-for.js'

const sleeper = { command: ['sleep', '60'] as [string, string], stop: quickStop }
const within = (what: string) => ({ deadlineMs: 20_000, what })

const start = async (
  engine: Engine,
  id: string,
  parent?: string,
  more: Partial<RunSpec> = {},
): Promise<Run> => {
  const run = await engine.start({ ...sleeper, id, ...(parent === undefined ? {} : { parent }), ...more })
  await waitFor(() => run.state.process === 'alive', within(`${id} is launched`))
  return run
}

describe('the parts of a run', () => {
  it.each(['cancel', 'interrupt'] as const)(
    'P22: %s reaches them in one receipt: the parent, then its parts, the youngest first, level by level; and not those to be kept',
    async (mode) => {
      const engine = await openTestEngine()
      const parent = await start(engine, 'parent')
      await start(engine, 'older', 'parent')
      await start(engine, 'younger', 'parent')
      await start(engine, 'below', 'older')
      const kept = await start(engine, 'kept', 'parent', { onParentCancel: 'keep' })
      const underKept = await start(engine, 'under-kept', 'kept')
      const stranger = await start(engine, 'stranger')
      const receipt = await parent[mode]({ reason: 'enough' })
      expect(receipt.status).toBe('confirmed')
      expect(receipt.runs.map(({ runId }) => runId)).toEqual(['parent', 'younger', 'older', 'below'])
      const work = mode === 'cancel' ? 'cancelled' : 'interrupted'
      for (const line of receipt.runs)
        expect(line).toMatchObject({ status: 'confirmed', work, repeated: false })
      const { orders } = await engine.history('below')
      expect(orders).toMatchObject([{ orderId: receipt.orderId }])
      for (const run of [kept, underKept, stranger]) expect(run.state.process).toBe('alive')
    },
  )

  it('P22: those below a part that is done are reached all the same', async () => {
    const engine = await openTestEngine()
    await start(engine, 'parent')
    const short = await engine.start({ id: 'short', command: ['true'], parent: 'parent' })
    await short.gone
    await start(engine, 'below', 'short')
    const receipt = await engine.stop({ run: 'parent' })
    expect(receipt.runs.map(({ runId, status }) => [runId, status])).toEqual([
      ['parent', 'confirmed'],
      ['below', 'confirmed'],
    ])
  })

  it('P22, K17: one that is being started when its parent is cancelled joins the receipt', async () => {
    const engine = await openTestEngine()
    const parent = await start(engine, 'parent')
    const starting = engine.start({ ...sleeper, id: 'late', parent: 'parent' })
    const receipt = await parent.cancel()
    expect(receipt.runs.map(({ runId, status }) => [runId, status])).toEqual([
      ['parent', 'confirmed'],
      ['late', 'confirmed'],
    ])
    expect((await (await starting).outcome).status).toBe('cancelled')
    expect(engine.live()).toEqual([])
  })

  it('P22: what ended by itself has ended nothing, and a stop that names it afterwards reaches its parts', async () => {
    const database = await testDatabase()
    const engine = await openTestEngine({ database })
    const parent = await engine.start({ id: 'parent', command: ['true'] })
    await parent.gone
    const child = await start(engine, 'child', 'parent')
    expect(child.state.intent).toBeNull()
    const receipt = await engine.stop({ run: 'parent' }, { mode: 'cancel' })
    expect(new Map(receipt.runs.map(({ runId, status, work }) => [runId, `${status} ${work}`]))).toEqual(
      new Map([
        ['parent', 'already-terminal completed'],
        ['child', 'confirmed cancelled'],
      ]),
    )
    expect((await child.outcome).status).toBe('cancelled')
  })

  it('P22, K14: parts that other engines hold are in the receipt, and so are the parts of these', async () => {
    const database = await testDatabase()
    const [here, there] = [await openTestEngine({ database }), await openTestEngine({ database })]
    const parent = await start(here, 'parent')
    await start(there, 'away', 'parent')
    await start(here, 'back', 'away')
    await start(there, 'kept', 'parent', { onParentCancel: 'keep' })
    const receipt = await parent.cancel()
    expect(receipt.status).toBe('confirmed')
    expect(new Map(receipt.runs.map(({ runId, work }) => [runId, work]))).toEqual(
      new Map([
        ['parent', 'cancelled'],
        ['away', 'cancelled'],
        ['back', 'cancelled'],
      ]),
    )
    expect(there.run('kept')?.state.process).toBe('alive')
  })

  it('P22, K17: one is refused while its parent is being ended, and after; one of a run that is nowhere, too', async () => {
    const database = await testDatabase()
    const engine = await openTestEngine({ database })
    const parent = await start(engine, 'parent')
    const receipt = parent.cancel()
    await expect(engine.start({ ...sleeper, parent: 'parent' })).rejects.toMatchObject({
      code: 'scope-stopped',
      message: expect.stringContaining('option parent "parent"') as string,
    })
    await receipt
    await expect(engine.start({ ...sleeper, parent: 'parent' })).rejects.toMatchObject({
      code: 'scope-stopped',
    })
    const other = await openTestEngine({ database })
    await expect(other.start({ ...sleeper, parent: 'parent' })).rejects.toMatchObject({
      code: 'scope-stopped',
    })
    await expect(engine.start({ ...sleeper, parent: 'nobody' })).rejects.toMatchObject({
      code: 'unknown-run',
      message: expect.stringContaining('option parent "nobody"') as string,
    })
    expect(engine.live()).toEqual([])
  })

  it('P22: a pause of the parent is a pause of it alone', async () => {
    const engine = await openTestEngine()
    await start(engine, 'parent')
    const child = await start(engine, 'child', 'parent')
    expect((await engine.pause({ run: 'parent' })).runs.map(({ runId }) => runId)).toEqual(['parent'])
    expect(child.state.process).toBe('alive')
  })

  it('P22, K15: those held here are told at once when the store does not answer, and the receipt says what it could not look up', async () => {
    const world = await openSimulatedEngine()
    const parent = await world.start({ id: 'parent', stop: quickStop })
    await world.start({ id: 'child', parent: 'parent', stop: quickStop })
    const [, child] = world.processes.executions
    world.store.trouble = busy()
    const cancelling = parent.cancel()
    await world.clock.advance(4_000)
    expect(child?.signals[0]).toMatchObject({ signal: 'SIGTERM' })
    world.store.trouble = null
    const receipt = await world.drive(cancelling)
    expect(receipt.lookup).toBe('incomplete')
    expect(receipt.runs).toMatchObject([
      { runId: 'parent', status: 'confirmed' },
      { runId: 'child', status: 'confirmed' },
    ])
  })
})

describe('a persistent run', () => {
  const effectsOf = async (engine: Engine, run: Run): Promise<readonly string[]> =>
    (await engine.history(run.id)).transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))

  it('P16: refuses cancel and names stop; stop asks it first, and it ends by its own means', async () => {
    const engine = await openTestEngine()
    const run = await start(engine, 'r1', undefined, { command: ['cat'], stdin: 'pipe', persistent: true })
    await expect(run.cancel()).rejects.toMatchObject({
      code: 'refused',
      message: 'cancel: run r1 is persistent; use stop, which asks it to end',
    })
    expect(run.state).toMatchObject({ process: 'alive', intent: null })
    expect((await run.stop({ reason: 'over' })).runs).toMatchObject([
      { status: 'confirmed', work: 'interrupted' },
    ])
    expect(await run.outcome).toMatchObject({ status: 'interrupted', exitCode: 0, reason: 'over' })
    const effects = await effectsOf(engine, run)
    expect(effects).toContain('process.ask')
    expect(effects).not.toContain('process.terminate')
  })

  it('P16: one that does not end when it is asked is ended by the ladder', async () => {
    const engine = await openTestEngine()
    const run = await start(engine, 'r1', undefined, {
      persistent: true,
      stop: { ...quickStop, askGraceMs: 200 },
    })
    expect((await run.stop()).runs).toMatchObject([{ status: 'confirmed', work: 'interrupted' }])
    expect(await run.outcome).toMatchObject({ signal: 'SIGTERM' })
    expect(await effectsOf(engine, run)).toEqual(expect.arrayContaining(['process.ask', 'process.terminate']))
  })

  it('P16, K14: a stop by scope reaches it all the same, and the outcome says that it may be continued', async () => {
    const engine = await openTestEngine()
    const run = await start(engine, 'r1', undefined, { command: ['cat'], stdin: 'pipe', persistent: true })
    const receipt = await engine.stop({ all: true }, { mode: 'cancel' })
    expect(receipt.runs).toMatchObject([{ status: 'confirmed', work: 'interrupted' }])
    expect((await run.outcome).status).toBe('interrupted')
  })

  it('P16, P20: its signal stops it', async () => {
    const engine = await openTestEngine()
    const life = new AbortController()
    const run = await start(engine, 'r1', undefined, {
      command: ['cat'],
      stdin: 'pipe',
      persistent: true,
      signal: life.signal,
    })
    life.abort()
    expect(await run.outcome).toMatchObject({ status: 'interrupted', exitCode: 0 })
  })

  it('P16: an id that is nowhere is an error, and no receipt', async () => {
    const engine = await openTestEngine()
    await expect(engine.stop({ run: 'nobody' })).rejects.toMatchObject({ code: 'unknown-run' })
  })
})
