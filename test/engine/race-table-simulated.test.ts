/**
 * The answer to a cancel, by when it is recorded: each point of a run's life, with the cancel before it and after it.
 *
 * A scheduler places the cancel at four moments around a point: recorded before it, on its way to the store when the point comes, the
 * reverse, and in the tick in which the point was recorded. The journal must show that it was so. Simulated clock and processes, a real
 * store in memory; race-table.test.ts does it again on real processes.
 */
import { describe, expect, it } from 'vitest'
import type { Delivery, Run, RunHistory, RunSpec, StopReceipt } from '../../src/index.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { single } from '../../src/testing/simulated-agent.js'
import { openSimulatedEngine } from '../support/simulated-engine.js'
import type { SimulatedEngine } from '../support/simulated-engine.js'
import type { Behaviour } from '../../src/testing/simulated-execution.js'

const S = 1_000
const stop = { termGraceMs: 5 * S, killGraceMs: 2 * S }
const other = { candidates: [{ command: ['other'] as [string] }] }
const notThere = new Error('not there')

const BEFORE = ['is recorded before it', 'is on its way to the store when it comes'] as const
const AFTER = [
  'comes while it is on its way to the store',
  'comes in the tick in which it was recorded',
] as const
type Placement = (typeof BEFORE)[number] | (typeof AFTER)[number]

interface Point {
  /** The event that it is recorded as. */
  readonly event: string
  readonly comes: (world: SimulatedEngine) => void
}

/** Places a cancel of the run around a point. */
const place = async (
  world: SimulatedEngine,
  run: Run,
  point: Point,
  placement: Placement,
): Promise<StopReceipt> => {
  const { engine, store } = world
  const cancel = (): Promise<StopReceipt> => run.cancel({ reason: 'enough', by: 'tester' })
  const answers: Promise<StopReceipt>[] = []
  if (placement === BEFORE[0]) {
    answers.push(cancel())
    await turns()
    point.comes(world)
  } else if (placement === BEFORE[1]) {
    const release = store.hold()
    answers.push(cancel())
    point.comes(world)
    await turns()
    release()
  } else if (placement === AFTER[0]) {
    const release = store.hold()
    point.comes(world)
    await turns()
    answers.push(cancel())
    release()
  } else {
    const stopListening = engine.subscribe((event) => {
      if (event.type !== 'transition' || event.event !== point.event || answers.length > 0) return
      answers.push(cancel())
    })
    point.comes(world)
    await turns()
    stopListening()
  }
  await turns()
  expect(answers).toHaveLength(1)
  return world.drive(answers[0] as Promise<StopReceipt>)
}

const eventsOf = ({ transitions }: RunHistory): readonly string[] => transitions.map(({ event }) => event)
const effectsOf = ({ transitions }: RunHistory): readonly string[] =>
  transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))

/** The order that the cell is about is the order on record. */
const expectPlaced = (history: RunHistory, { event }: Point, isBefore: boolean): void => {
  const events = eventsOf(history)
  const cancelled = events.indexOf('run.cancel')
  const came = events.indexOf(event)
  if (isBefore) {
    expect(cancelled, 'the cancel is on record').toBeGreaterThan(-1)
    if (came > -1) expect(cancelled, `before ${event}`).toBeLessThan(came)
  } else {
    expect(came, `${event} is on record`).toBeGreaterThan(-1)
    // One that found everything over leaves no trace in the run.
    if (cancelled > -1) expect(came, 'before the cancel').toBeLessThan(cancelled)
  }
}

interface Cell {
  readonly outcome: Readonly<Record<string, unknown>>
  readonly line: Readonly<Record<string, unknown>>
  readonly signals?: 'none'
}

interface Row {
  readonly name: string
  readonly rules: { readonly before: string; readonly after: string }
  readonly spec?: Partial<RunSpec>
  readonly behaviours?: readonly Behaviour[]
  /** Brings the run to where the point is next. */
  readonly until?: (world: SimulatedEngine) => Promise<void> | void
  readonly point: Point
  readonly before: Cell
  readonly after: Cell
  /** How many processes there ever were. */
  readonly launches: number
}

const cancelled = (more: Cell['outcome'] = {}): Cell => ({
  outcome: {
    status: 'cancelled',
    reason: 'enough',
    cancellation: { by: 'tester', termination: 'confirmed' },
    ...more,
  },
  line: { status: 'confirmed', work: 'cancelled', repeated: false },
})
const natural = (outcome: Cell['outcome'], more: Partial<Cell> = {}): Cell => ({
  outcome,
  line: { status: 'already-terminal', work: outcome['status'] },
  ...more,
})

const goOn = ({ processes }: SimulatedEngine): void => {
  processes.goOn()
}
const exits =
  (exitCode: number) =>
  ({ processes }: SimulatedEngine): void => {
    processes.last.exit(exitCode)
  }
/** It does not end of a TERM, so that its own exit comes after one. */
const deaf = { diesOf: ['SIGKILL'] } as const

const rows: readonly Row[] = [
  {
    name: 'launch succeeds',
    rules: { before: 'P4', after: 'P1' },
    spec: { fallback: other },
    behaviours: [{ launch: 'hangs' }],
    point: { event: 'process.launched', comes: goOn },
    before: cancelled({ signal: 'SIGTERM' }),
    after: cancelled({ signal: 'SIGTERM' }),
    launches: 1,
  },
  {
    name: 'launch fails, candidates left',
    rules: { before: 'P4, INV-7', after: 'P2, INV-7' },
    spec: { fallback: other },
    behaviours: [{ launch: 'hangs', thenFails: notThere }],
    point: { event: 'process.launch-failed', comes: goOn },
    before: cancelled({ exitCode: null }),
    after: cancelled({ exitCode: null }),
    launches: 0,
  },
  {
    name: 'launch fails, none left',
    rules: { before: 'P4', after: 'P6' },
    behaviours: [{ launch: 'hangs', thenFails: notThere }],
    point: { event: 'process.launch-failed', comes: goOn },
    before: cancelled({ exitCode: null }),
    after: natural({ status: 'failed', code: 'launch-failed' }),
    launches: 0,
  },
  {
    name: 'process exits well',
    rules: { before: 'P3', after: 'P3, P6' },
    behaviours: [deaf],
    point: { event: 'process.exited', comes: exits(0) },
    before: cancelled({ exitCode: 0 }),
    after: natural({ status: 'completed', exitCode: 0 }, { signals: 'none' }),
    launches: 1,
  },
  {
    name: 'process exits, not fallback-eligible',
    rules: { before: 'P3, P10', after: 'P3, P6' },
    spec: { fallback: { ...other, when: () => false } },
    behaviours: [deaf],
    point: { event: 'process.exited', comes: exits(3) },
    before: cancelled({ exitCode: 3 }),
    after: natural({ status: 'failed', exitCode: 3 }, { signals: 'none' }),
    launches: 1,
  },
  {
    name: 'process exits, fallback-eligible',
    rules: { before: 'P2, INV-7', after: 'P2, INV-7' },
    spec: { fallback: other },
    behaviours: [deaf],
    point: { event: 'process.exited', comes: exits(3) },
    before: cancelled({ exitCode: 3 }),
    after: cancelled(),
    launches: 1,
  },
  {
    name: 'leader gone, members left',
    rules: { before: 'INV-5, P3', after: 'INV-3, L2' },
    behaviours: [deaf],
    until: ({ processes }) => void processes.last.spawn('child'),
    point: { event: 'process.exited', comes: exits(0) },
    before: cancelled({ exitCode: 0 }),
    after: natural({ status: 'completed', exitCode: 0 }),
    launches: 1,
  },
  {
    name: 'never-started is settled, teardown going',
    rules: { before: 'K5', after: 'K6, INV-15' },
    spec: { protocol: single(), watchdog: { neverStartedMs: 10 * S } },
    behaviours: [deaf],
    until: ({ clock }) => clock.advance(10 * S - 1),
    point: { event: 'watchdog.silent', comes: ({ clock }) => void clock.advance(1) },
    before: cancelled({ signal: 'SIGKILL' }),
    after: natural({ status: 'failed-never-started', message: 'Agent produced no output since start' }),
    launches: 1,
  },
]

interface PlacedCell {
  readonly placement: Placement
  readonly cell: Cell
  readonly rules: string
  readonly isBefore: boolean
}

const cellsOf = ({ before, after, rules }: Row): readonly PlacedCell[] => [
  ...BEFORE.map((placement) => ({ placement, cell: before, rules: rules.before, isBefore: true })),
  ...AFTER.map((placement) => ({ placement, cell: after, rules: rules.after, isBefore: false })),
]

const play = async (row: Row, { cell, placement, isBefore }: PlacedCell): Promise<void> => {
  const deliveries: Delivery[] = []
  const world = await openSimulatedEngine({
    delivery: { deliver: (delivery) => void deliveries.push(delivery) },
  })
  await world.clock.advance(1)
  world.processes.next.push(...(row.behaviours ?? []))
  const run = await world.start({ stop, ...row.spec })
  await row.until?.(world)
  const receipt = await place(world, run, row.point, placement)
  expect(receipt.runs).toMatchObject([cell.line])
  expect(await world.drive(run.outcome)).toMatchObject(cell.outcome)
  // P10: a cancel that came too late is in the outcome nowhere.
  if (cell.outcome['status'] !== 'cancelled') expect(run.state.outcome).not.toHaveProperty('cancellation')
  await world.drive(run.gone)
  await turns()
  const { processes } = world
  expect(processes.executions, 'processes ever').toHaveLength(row.launches)
  for (const { size, signals } of processes.executions) {
    expect(size, 'members left').toBe(0)
    if (cell.signals === 'none') expect(signals).toEqual([])
  }
  // A finished outcome stays, and so does the answer.
  await world.clock.advance(60 * S)
  expect(await run.outcome).toMatchObject(cell.outcome)
  expect(deliveries).toMatchObject([{ deliveryId: `${run.id}/result`, outcome: cell.outcome }])
  expect(world.errors).toEqual([])
  expectPlaced(await world.engine.history(run.id), row.point, isBefore)
}

for (const row of rows) {
  describe(row.name, () => {
    for (const cell of cellsOf(row)) it(`${cell.rules}: the cancel ${cell.placement}`, () => play(row, cell))
  })
}

describe('leader gone, members left', () => {
  it('INV-5: before: the ladder goes on, and the run is cancelled only when the tree is empty', async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop })
    world.processes.last.diesOf = ['SIGKILL']
    world.processes.last.spawn('child')
    const receipt = run.cancel()
    await turns()
    world.processes.last.exit(0)
    await world.clock.advance(5 * S - 100)
    expect(run.state).toMatchObject({ work: 'open.cancel-requested', process: 'term-sent' })
    expect((await world.drive(receipt)).status).toBe('confirmed')
    expect(effectsOf(await world.engine.history(run.id))).toContain('process.kill')
  })

  it('INV-3, L2: after: the outcome stays natural, the sweep goes on, and the answer waits for it', async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop })
    world.processes.last.diesOf = ['SIGKILL']
    world.processes.last.spawn('child')
    world.processes.last.exit(0)
    await turns()
    expect(run.state.outcome).toMatchObject({ status: 'completed' })
    const receipt = await world.drive(run.cancel())
    expect(receipt.runs).toMatchObject([{ status: 'already-terminal', work: 'completed', isLive: true }])
    expect(receipt.runs[0]?.confirmedAt).toBeGreaterThanOrEqual(receipt.requestedAt)
    expect(world.processes.last.size).toBe(0)
  })
})

describe('launch starts', () => {
  const begin = ({ engine }: SimulatedEngine) => {
    const starting = engine.start({ id: 'r1', command: ['agent'], env: {}, stop, fallback: other })
    const run = engine.run('r1')
    if (run === undefined) throw new Error('it is not held')
    return { starting, run }
  }

  it.each(['in the same tick', 'while the run is being recorded'])(
    'P5: the cancel comes before, %s: nothing is spawned, confirmed by never-launched',
    async (when) => {
      const world = await openSimulatedEngine()
      const release = when.startsWith('while') ? world.store.hold() : undefined
      const { starting, run } = begin(world)
      if (release !== undefined) await turns()
      const cancelling = run.cancel()
      release?.()
      await starting
      const receipt = await world.drive(cancelling)
      expect(receipt.runs).toMatchObject([
        { status: 'confirmed', work: 'cancelled', evidence: [{ kind: 'never-launched' }] },
      ])
      expect(world.processes.executions).toEqual([])
      expect(effectsOf(await world.engine.history('r1'))).not.toContain('process.launch')
    },
  )

  it('P4, INV-7: the cancel comes while the launch is being recorded: there is no process, or it is ended at once', async () => {
    const world = await openSimulatedEngine()
    const { starting, run } = begin(world)
    const held: (() => void)[] = []
    world.engine.subscribe(({ type }) => {
      if (type === 'transition' && held.length === 0) held.push(world.store.hold())
    })
    await starting
    await turns()
    const receipt = run.cancel()
    held[0]?.()
    await turns()
    expect((await world.drive(receipt)).runs).toMatchObject([{ status: 'confirmed', work: 'cancelled' }])
    expect(effectsOf(await world.engine.history('r1'))).toContain('process.launch')
    expect(world.processes.executions.filter(({ size }) => size > 0)).toEqual([])
    expect(world.processes.executions.length).toBeLessThan(2)
  })

  it('P4: the cancel comes after: requested, and ended at once when it is there', async () => {
    const world = await openSimulatedEngine()
    world.processes.next.push({ launch: 'hangs' })
    const run = await world.start({ stop, fallback: other })
    const receipt = await world.drive(run.cancel({ timeoutMs: 3 * S }))
    expect(receipt).toMatchObject({ status: 'requested', runs: [{ status: 'requested', work: 'open' }] })
    await world.clock.advance(60 * S)
    expect(run.state).toMatchObject({ work: 'open.cancel-requested', process: 'launching' })
    world.processes.goOn()
    expect(await world.drive(run.outcome)).toMatchObject({ status: 'cancelled', signal: 'SIGTERM' })
    expect(world.processes.executions).toHaveLength(1)
    // INV-11: what was answered stays.
    expect(receipt).toMatchObject({ status: 'requested', runs: [{ status: 'requested' }] })
  })
})

describe('finalizing and delivering', () => {
  const open = async () => {
    const answers: { finalize: () => void; deliver: () => void } = {
      finalize: () => undefined,
      deliver: () => undefined,
    }
    const counts = { finalize: 0, deliver: 0 }
    const hook = (name: 'finalize' | 'deliver') => (): Promise<void> => {
      counts[name] += 1
      return new Promise((resolve) => (answers[name] = resolve))
    }
    const world = await openSimulatedEngine({
      delivery: { finalize: hook('finalize'), deliver: hook('deliver') },
    })
    await world.clock.advance(1)
    const run = await world.start({ stop })
    return { world, run, answers, counts }
  }

  it('P3: the cancel is recorded before: as settled, and finalized and delivered as cancelled', async () => {
    const { world, run, answers, counts } = await open()
    expect((await world.drive(run.cancel())).runs).toMatchObject([{ status: 'confirmed' }])
    expect(run.state).toMatchObject({ delivery: 'finalizing', outcome: { status: 'cancelled' } })
    answers.finalize()
    await turns()
    answers.deliver()
    await turns()
    expect(run.state.delivery).toBe('delivered')
    expect(counts).toEqual({ finalize: 1, deliver: 1 })
  })

  it.each(['finalizing', 'delivering'])(
    'P6, P17: the cancel comes while it is %s: already-terminal',
    async (state) => {
      const { world, run, answers, counts } = await open()
      world.processes.last.exit(0)
      await turns()
      if (state === 'delivering') answers.finalize()
      await turns()
      expect(run.state.delivery).toBe(state)
      const receipt = await world.drive(run.cancel({ force: true }))
      expect(receipt).toMatchObject({
        status: 'nothing-to-stop',
        runs: [{ status: 'already-terminal', work: 'completed' }],
      })
      expect(run.state.delivery).toBe(state)
      answers.finalize()
      await turns()
      answers.deliver()
      await turns()
      expect(run.state).toMatchObject({ delivery: 'delivered', outcome: { status: 'completed' } })
      expect(counts).toEqual({ finalize: 1, deliver: 1 })
      expect(world.processes.last.signals).toEqual([])
    },
  )
})

describe('the kill', () => {
  it('P7: is pending: another cancel joins it', async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop })
    world.processes.last.diesOf = []
    const first = run.cancel({ reason: 'one' })
    await world.clock.advance(6 * S)
    expect(run.state.process).toBe('kill-sent')
    const second = run.cancel({ reason: 'two' })
    await turns()
    world.processes.last.diesOf = ['SIGKILL']
    const lines = (await world.drive(Promise.all([first, second]))).map(({ runs }) => runs[0])
    expect(lines).toMatchObject([
      { status: 'confirmed', repeated: false },
      { status: 'confirmed', repeated: true, requestedAt: lines[0]?.requestedAt },
    ])
    expect(await run.outcome).toMatchObject({ reason: 'one' })
    const effects = effectsOf(await world.engine.history(run.id))
    expect(effects.filter((kind) => kind === 'process.kill')).toHaveLength(1)
  })

  it('P8: has failed: another cancel kills anew, and keeps the first requestedAt', async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop })
    world.processes.last.diesOf = []
    const first = await world.drive(run.cancel({ reason: 'one' }))
    expect(first).toMatchObject({ status: 'unconfirmed', runs: [{ survivors: [{ name: 'agent' }] }] })
    await world.clock.advance(100)
    expect(run.state.process).toBe('unconfirmed')
    world.processes.last.diesOf = ['SIGKILL']
    const second = run.cancel({ reason: 'two' })
    await turns()
    expect(run.state.process).not.toBe('unconfirmed')
    expect((await world.drive(second)).runs).toMatchObject([
      { status: 'confirmed', repeated: true, requestedAt: first.runs[0]?.requestedAt },
    ])
    expect(first.status).toBe('unconfirmed')
    expect((await run.outcome).cancellation).toMatchObject({
      reason: 'one',
      requestedAt: first.runs[0]?.requestedAt,
    })
  })

  it('P8: has failed, and the process goes by itself later: cancelled', async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop, fallback: other })
    world.processes.last.diesOf = []
    expect((await world.drive(run.cancel())).status).toBe('unconfirmed')
    world.processes.last.exit(9)
    expect(await world.drive(run.outcome)).toMatchObject({ status: 'cancelled', exitCode: 9 })
    expect(world.processes.executions).toHaveLength(1)
  })
})

describe('never-started is settled, teardown going', () => {
  it("K6, INV-15: after: the receipt carries the teardown's status at its deadline, and waits for it", async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop, protocol: single(), watchdog: { neverStartedMs: 10 * S } })
    world.processes.last.diesOf = []
    await world.clock.advance(10 * S)
    expect(run.state).toMatchObject({ outcome: { status: 'failed-never-started' }, process: 'kill-sent' })
    const first = await world.drive(run.cancel())
    expect(first).toMatchObject({
      status: 'unconfirmed',
      runs: [{ status: 'unconfirmed', work: 'failed-never-started', survivors: [{ name: 'agent' }] }],
    })
    world.processes.last.diesOf = ['SIGKILL']
    const second = await world.drive(run.cancel())
    expect(second.runs).toMatchObject([
      { status: 'already-terminal', work: 'failed-never-started', isLive: true },
    ])
    expect(await run.outcome).toMatchObject({ status: 'failed-never-started' })
  })
})

describe('interrupting', () => {
  it('P2: after: becomes cancelled, and the time of the interrupt is kept', async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop })
    world.processes.last.diesOf = ['SIGKILL']
    const interrupted = run.interrupt({ reason: 'later' })
    await world.clock.advance(S)
    const cancelling = run.cancel({ reason: 'for good' })
    const [first, second] = await world.drive(Promise.all([interrupted, cancelling]))
    expect([first, second].map(({ runs }) => runs[0])).toMatchObject([
      { status: 'confirmed', work: 'cancelled', requestedAt: first.requestedAt },
      { status: 'confirmed', work: 'cancelled', requestedAt: second.requestedAt, repeated: false },
    ])
    expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: 'for good' })
    expect(
      effectsOf(await world.engine.history(run.id)).filter((kind) => kind === 'process.terminate'),
    ).toHaveLength(1)
  })
})

describe('engine closing', () => {
  const open = async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ stop })
    world.processes.last.diesOf = ['SIGKILL']
    return { world, run }
  }
  const kills = ({ processes }: SimulatedEngine): number =>
    processes.last.signals.filter(({ signal }) => signal === 'SIGKILL').length

  it('O10: the cancel is recorded before: the ladder goes as ordered', async () => {
    const { world, run } = await open()
    const cancelling = run.cancel()
    await turns()
    const closing = world.engine.close()
    expect((await world.drive(cancelling)).runs).toMatchObject([{ status: 'confirmed', work: 'cancelled' }])
    expect(await world.drive(closing)).toEqual({ left: [] })
    expect(kills(world)).toBe(1)
  })

  it('O10: the cancel comes after: it joins, and is the stronger one', async () => {
    const { world, run } = await open()
    const closing = world.engine.close({ runs: 'interrupt' })
    await turns()
    const cancelling = run.cancel()
    expect((await world.drive(cancelling)).runs).toMatchObject([{ status: 'confirmed', work: 'cancelled' }])
    expect(await world.drive(closing)).toEqual({ left: [] })
    expect(kills(world)).toBe(1)
    expect(await run.outcome).toMatchObject({ status: 'cancelled' })
    await expect(run.cancel()).rejects.toMatchObject({ code: 'engine-closing' })
  })
})

describe('engine died', () => {
  const open = async () => {
    const world = await openSimulatedEngine()
    const run = await world.start({ id: 'r1', stop, fallback: other })
    world.processes.last.diesOf = ['SIGKILL']
    return { world, run }
  }

  it("INV-13, P2: after the intent's commit: recovery finishes it", async () => {
    const { world, run } = await open()
    let isAnswered = false
    world.engine.subscribe((event) => {
      if (event.type === 'transition' && event.event === 'run.cancel') world.crash()
    })
    void run.cancel({ reason: 'enough' }).finally(() => (isAnswered = true))
    await turns()
    const next = await openSimulatedEngine({ after: world })
    const recovered = next.engine.run('r1')
    if (recovered === undefined) throw new Error('it was not taken over')
    expect(await next.drive(recovered.outcome)).toMatchObject({ status: 'cancelled', reason: 'enough' })
    expect(world.processes.executions).toHaveLength(1)
    expect(world.processes.last.size).toBe(0)
    expect(isAnswered).toBe(false)
  })

  it('INV-13, INV-1: before the commit: as if no cancel was asked, and the caller never got an answer', async () => {
    const { world, run } = await open()
    let isAnswered = false
    world.store.hold()
    void run.cancel({ reason: 'enough' }).finally(() => (isAnswered = true))
    await turns()
    world.crash()
    // INV-1: nothing was done about it.
    expect(world.processes.last.signals).toEqual([])
    const next = await openSimulatedEngine({ after: world })
    const recovered = next.engine.run('r1')
    if (recovered === undefined) throw new Error('it was not taken over')
    const outcome = await next.drive(recovered.outcome)
    expect(outcome).toMatchObject({ status: 'interrupted', reason: 'the engine that ran it died' })
    expect(outcome).not.toHaveProperty('cancellation')
    expect(isAnswered).toBe(false)
  })
})
