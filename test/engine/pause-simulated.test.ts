/** Pausing and resuming on a simulated clock: what takes how long, and what the store and an end make of it. */
import { describe, expect, it } from 'vitest'
import type { Run, RunSpec } from '../../src/index.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { openSimulatedEngine } from '../support/simulated-engine.js'
import type { SimulatedEngine } from '../support/simulated-engine.js'
import { busy } from '../../src/testing/simulated-store.js'

const FROZEN = { status: 'frozen', running: [] }

interface Open extends SimulatedEngine {
  readonly run: Run
  /** Kinds of the signals that reached anyone, in order. */
  readonly signals: () => string[]
}

const open = async (spec: Partial<RunSpec> = {}): Promise<Open> => {
  const simulated = await openSimulatedEngine()
  const run = await simulated.start(spec)
  const signals = (): string[] => simulated.processes.last.signals.map(({ signal }) => signal)
  return { ...simulated, run, signals }
}

/** How the promise ended, without anyone waiting for it. */
const noted = (promise: Promise<unknown>): { readonly ended: unknown } => {
  const note: { ended: unknown } = { ended: 'pending' }
  promise.then(
    (value) => (note.ended = value ?? 'done'),
    (error: unknown) => (note.ended = error),
  )
  return note
}

const eventsOf = async ({ engine, run }: Open): Promise<readonly { event: string; at: number }[]> =>
  (await engine.history(run.id)).transitions

describe('a freeze, on the simulated clock', () => {
  it('O1: is said after two looks at a tree in which nothing runs, and holds against what comes and goes on', async () => {
    const here = await open()
    const { run, clock, drive, processes } = here
    const tree = processes.last
    const child = tree.spawn('child')
    expect(await drive(run.pause())).toEqual(FROZEN)
    expect(tree.isFrozen).toBe(true)
    // A look long after: who was born behind the look, and whom someone continued, are stopped.
    const late = tree.spawn('late')
    const members = await tree.scan()
    tree.signal(
      'SIGCONT',
      members.filter(({ pid }) => pid === child),
    )
    await clock.advance(4_100)
    expect(tree.isFrozen).toBe(true)
    expect(tree.signals.at(-1)).toEqual({ signal: 'SIGSTOP', pid: late })
    await drive(run.resume())
    expect(here.signals().filter((signal) => signal === 'SIGCONT')).toHaveLength(1 + 3)
    const events = (await eventsOf(here)).map(({ event }) => event)
    expect(events.filter((event) => /pause|resume|frozen/.test(event))).toEqual([
      'run.pause',
      'process.frozen',
      'run.resume',
    ])
  })

  it('O1, INV-5: who waits in the kernel is named after 2 s, and frozen only once it was seen stopped', async () => {
    const here = await open()
    const { run, clock, drive, processes } = here
    const tree = processes.last
    const pid = tree.spawn('writer')
    tree.waitInKernel(pid)
    const answer = noted(run.pause())
    await clock.advance(1_999)
    expect(answer.ended).toBe('pending')
    await clock.advance(200)
    expect(answer.ended).toMatchObject({ status: 'incomplete', running: [{ pid, state: 'D' }] })
    expect(run.state).toMatchObject({ headline: 'paused (incomplete)', freeze: { status: 'incomplete' } })
    tree.wake(pid)
    await clock.advance(4_100)
    expect(run.state).toMatchObject({ headline: 'paused', freeze: { status: 'frozen', running: [] } })
    await drive(run.resume())
  })

  it('O3: 5 000 ms lie between the TERM and the KILL of a pause that outlived its window, to the millisecond', async () => {
    const here = await open({ stop: { pauseGraceMs: 60_000 } })
    const { run, clock, drive, processes } = here
    processes.last.diesOf = ['SIGKILL']
    expect(await drive(run.pause())).toEqual(FROZEN)
    const pausedAt = (await eventsOf(here)).find(({ event }) => event === 'run.pause')?.at ?? NaN
    await clock.advance(pausedAt + 60_000 - clock.wallMs() - 1)
    expect(here.signals()).not.toContain('SIGTERM')
    await clock.advance(1)
    // Whoever is stopped hears its TERM.
    expect(here.signals().slice(-2)).toEqual(['SIGTERM', 'SIGCONT'])
    await clock.advance(4_999)
    expect(here.signals()).not.toContain('SIGKILL')
    await clock.advance(1)
    expect(here.signals().at(-1)).toBe('SIGKILL')
    await drive(run.gone)
    expect(await run.outcome).toMatchObject({
      status: 'interrupted',
      reason: 'grace window passed while paused',
    })
    expect(clock.wallMs() - pausedAt).toBeLessThan(60_000 + 5_000 + 2_000)
  })

  it('O4: the user is stronger than the machine, and in the ladder both are refused, naming the reason', async () => {
    const { engine, run, clock, drive, processes } = await open({ stop: { pauseGraceMs: 60_000 } })
    processes.last.diesOf = ['SIGKILL']
    await drive(engine.presence.inUse())
    expect(run.state.freeze).toMatchObject({ owner: 'machine', status: 'frozen' })
    expect(await drive(run.pause())).toEqual(FROZEN)
    expect(run.state.freeze?.owner).toBe('user')
    expect((await drive(engine.presence.idle())).runs).toMatchObject([{ status: 'held' }])
    await drive(run.resume())
    expect(run.state.freeze).toBeNull()
    await drive(run.pause())
    await clock.advance(60_000)
    expect(run.state.process).toBe('term-sent')
    const why = /being ended \(term-sent\) by interrupt: grace window passed while paused/
    for (const command of [() => run.pause(), () => run.resume()])
      await expect(drive<unknown>(command())).rejects.toMatchObject({
        code: 'refused',
        message: expect.stringMatching(why) as string,
      })
    expect(run.state.process).toBe('term-sent')
  })
})

describe('a store that is away, on the simulated clock', () => {
  it('O1, O4: for less than the commit deadline costs a pause and a resumption nothing, and nothing is done before the record', async () => {
    const { run, clock, store, signals, drive } = await open()
    for (const [command, done] of [
      [() => run.pause(), 'SIGSTOP'],
      [() => run.resume(), 'SIGCONT'],
    ] as const) {
      const before = signals().length
      store.trouble = busy()
      const answer: Promise<unknown> = command()
      await clock.advance(1_500)
      expect(signals()).toHaveLength(before)
      store.trouble = null
      await drive(answer)
      expect(signals()[before]).toBe(done)
    }
    expect(run.state).toMatchObject({ process: 'alive', freeze: null })
  })

  it('O1, INV-11: for longer gives them up at the commit deadline, and what was given up does not come later', async () => {
    const { run, clock, store, signals, drive } = await open()
    store.trouble = busy()
    const answer = noted(run.pause({ timeoutMs: 60_000 }))
    await clock.advance(1_900)
    expect(answer.ended).toBe('pending')
    await clock.advance(1_200)
    expect(answer.ended).toMatchObject({ code: 'store-unavailable' })
    store.trouble = null
    await clock.advance(10_000)
    expect(signals()).toEqual([])
    expect(run.state.freeze).toBeNull()
    expect(await drive(run.pause())).toEqual(FROZEN)
  })

  it.each([
    ['between two attempts', false],
    ['during one', true],
  ])(
    'P1, O4: a cancel that comes %s is in force at once, and the pause is given up for it',
    async (_when, isHeld) => {
      const { run, clock, store, signals, drive } = await open()
      const release = isHeld ? store.hold() : () => undefined
      if (!isHeld) store.trouble = busy()
      const answer = noted(run.pause())
      await clock.advance(isHeld ? 0 : 300)
      const cancelled = run.cancel({ reason: 'enough' })
      await turns()
      store.trouble = busy()
      release()
      await turns()
      expect(answer.ended).toMatchObject({
        code: 'refused',
        message: expect.stringContaining('being ended (alive) by cancel') as string,
      })
      await clock.advance(100)
      expect(signals()).toEqual(['SIGTERM'])
      store.trouble = null
      expect((await drive(cancelled)).status).toBe('confirmed')
    },
  )
})

describe('an end that is asked for behind a pause, in the same tick', () => {
  it.each([
    ['cancel', ({ run }: Open) => run.cancel({ reason: 'enough' }), 'cancel: enough'],
    ['interrupt', ({ run }: Open) => run.interrupt({ reason: 'enough' }), 'interrupt: enough'],
    ['close', ({ engine }: Open) => engine.close(), 'interrupt: engine closing'],
  ])('O4, P1: %s: both are refused because it is being ended', async (how, end, why) => {
    // Nobody is told of a closing before it is on record: a resumption that came first is done.
    for (const isPaused of how === 'close' ? [false] : [false, true]) {
      const here = await open()
      const { run, drive, engine } = here
      if (isPaused) await drive(run.pause())
      const commands = isPaused
        ? [run.resume(), engine.resume({ run: run.id })]
        : [run.pause(), engine.pause({ run: run.id })]
      const ended: Promise<unknown> = end(here)
      const answers = await drive(Promise.allSettled(commands))
      const message = expect.stringMatching(new RegExp(`being ended .* by ${why}`)) as string
      expect(answers).toMatchObject([
        { reason: { code: 'refused', message } },
        { value: { status: 'refused', runs: [{ status: 'refused', error: message }] } },
      ])
      await drive(ended)
    }
  })
})

describe('an engine that is closing', () => {
  it('O10, O4: pauses and resumes nothing from the call of close on', async () => {
    const here = await open()
    const { run, engine, drive, store, signals } = here
    here.processes.last.diesOf = ['SIGKILL']
    const release = store.hold()
    const closing = engine.close({ deadlineMs: 20_000 })
    for (const command of [() => run.pause(), () => run.resume(), () => engine.pause({ all: true })])
      await expect(command()).rejects.toMatchObject({ code: 'engine-closing' })
    release()
    await drive(closing)
    for (const command of [() => run.pause(), () => run.resume()])
      await expect(command()).rejects.toMatchObject({ code: 'engine-closing' })
    expect(signals()).not.toContain('SIGSTOP')
  })

  it('O10: leaves nothing frozen by a pause that was still on its way to the store', async () => {
    const { run, engine, clock, drive, store, processes } = await open()
    store.trouble = busy()
    const pausing = noted(run.pause())
    await clock.advance(200)
    const closing = engine.close({ runs: 'leave' })
    await clock.advance(200)
    store.trouble = null
    expect(await drive(closing)).toEqual({ left: [run.id] })
    await clock.advance(10_000)
    expect(pausing.ended).not.toBe('pending')
    expect(processes.last.isFrozen).toBe(false)
    processes.last.exit()
  })
})
