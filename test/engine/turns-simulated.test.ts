/** Turns and watchdogs of whole engines, on a simulated clock, over simulated processes and a real store. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { piJson } from '../../src/protocols.js'
import type { ProtocolSession, ProtocolSink } from '../../src/protocols.js'
import type { Run, RunEventOut, RunSpec } from '../../src/index.js'
import { conversational, line, single } from '../../src/testing/simulated-agent.js'
import { openSimulatedEngine, startSimulatedRun } from '../support/simulated-engine.js'
import type { SimulatedEngine, SimulatedRun } from '../support/simulated-engine.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { busy, openSimulatedStore } from '../../src/testing/simulated-store.js'

const S = 1_000
const watchdog = { neverStartedMs: 20 * S, advisoryMs: 30 * S, completionSignalMs: 60 * S, sleepGapMs: 5 * S }
const oneShot = (): Partial<RunSpec> => ({ protocol: single(), watchdog })
const talking = (): Partial<RunSpec> => ({ protocol: conversational(), watchdog, prompt: 'begin' })

const open = async (spec: Partial<RunSpec> = oneShot()): Promise<SimulatedEngine & { readonly run: Run }> => {
  const simulated = await openSimulatedEngine()
  return { ...simulated, run: await simulated.start(spec) }
}

/** One run without the engine around it: no public door pauses one. */
const alone = async (spec: Partial<RunSpec> = oneShot()): Promise<SimulatedRun> => {
  const store = await openSimulatedStore()
  const simulated = await startSimulatedRun(store, spec)
  onTestFinished(async () => {
    await simulated.end()
    await store.close()
  })
  return simulated
}

const noticesIn = (events: readonly RunEventOut[]): string[] =>
  events.flatMap((event) => {
    if (event.type === 'notice') return [`${event.kind}: ${event.text}`]
    return event.type === 'notice-withdrawn' ? ['withdrawn'] : []
  })

const signalsOf = ({ processes }: Pick<SimulatedEngine, 'processes'>): string[] =>
  processes.last.signals.map(({ signal }) => signal)

describe('never started', () => {
  it('K5: an agent that says nothing fails as never started, is recorded so, and killed after that', async () => {
    const world = await open()
    const { run, clock, store, processes, heard } = world
    await clock.advance(20 * S - 1)
    expect(run.state.headline).toBe('accepted')
    const release = store.hold()
    await clock.advance(1)
    expect(processes.last.signals).toEqual([])
    release()
    const outcome = await world.drive(run.outcome)
    expect(outcome).toMatchObject({
      status: 'failed-never-started',
      message: 'Agent produced no output since start',
    })
    await world.drive(run.gone)
    expect(signalsOf(world)).toEqual(['SIGKILL'])
    expect(noticesIn(heard)).toEqual(['terminal: Agent produced no output since start'])
    expect(heard.filter(({ type }) => type === 'settled')).toHaveLength(1)
  })

  it('K2, INV-9: keepalive and usage for ever are traffic: never started at its time, exactly once', async () => {
    const { run, clock, say, drive, heard } = await open()
    for (let second = 0; second < 19; second += 1) {
      await say('usage', { type: 'nova' }, { type: 'retry' })
      await clock.advance(S)
    }
    expect(run.state.isSettled).toBe(false)
    await clock.advance(S)
    expect(await drive(run.outcome)).toMatchObject({ status: 'failed-never-started' })
    expect(heard.filter((event) => event.type === 'unknown-frame')).toEqual([
      { type: 'unknown-frame', runId: run.id, frameType: 'nova' },
    ])
    expect(heard.filter(({ type }) => type === 'retrying')).toHaveLength(19)
    expect(noticesIn(heard)).toHaveLength(1)
  })

  it('K5: one event is enough, however little it is', async () => {
    const { run, clock, say } = await open()
    await clock.advance(20 * S - 1)
    await say('work')
    await clock.advance(100 * S)
    expect(run.state).toMatchObject({ isSettled: false, headline: 'stalled-advisory' })
  })

  it('K5: each turn of a conversation has its own time', async () => {
    const { run, clock, say, drive } = await open(talking())
    await say('work', 'done')
    expect(run.state.headline).toBe('ready')
    await clock.advance(100 * S)
    expect(run.state.headline).toBe('ready')
    const ended = run.prompt('again')
    await clock.advance(20 * S - 1)
    await say('usage')
    expect(run.state).toMatchObject({ headline: 'accepted', generation: 2 })
    await clock.advance(1)
    expect(await drive(run.outcome)).toMatchObject({ status: 'failed-never-started' })
    expect(await ended).toMatchObject({ generation: 2, status: 'abandoned' })
  })

  it('K5: between two turns nobody is silent, and nothing waits for it', async () => {
    const { run, clock, say } = await alone(talking())
    await say('work')
    expect(run.turns.activity.quietMs).toBe(0)
    await say('done')
    await clock.advance(S)
    expect(run.state.headline).toBe('ready')
    expect(run.turns.activity.quietMs).toBeNull()
    expect(clock.armed).toBe(0)
  })

  it('K5: the fallback is not tried: the outcome is terminal', async () => {
    const { run, processes, drive } = await open({
      ...oneShot(),
      fallback: { candidates: [{ command: ['other'] }] },
    })
    await drive(run.outcome)
    await drive(run.gone)
    expect(processes.executions).toHaveLength(1)
  })

  it('K5: a launch that hangs is never started too, and what it brings in the end is killed at once', async () => {
    const { start, processes, drive, clock } = await openSimulatedEngine()
    processes.behaviour = { launch: 'hangs' }
    const run = await start(oneShot())
    expect(await drive(run.outcome)).toMatchObject({ status: 'failed-never-started' })
    await clock.advance(60 * S)
    expect(run.state.isConfirmed).toBe(false)
    processes.goOn()
    await drive(run.gone)
    expect(processes.last.signals.map(({ signal }) => signal)).toEqual(['SIGKILL'])
  })

  it('K6: a teardown that fails leaves the outcome, is listed, and every stop reaches it', async () => {
    const { start, processes, drive, engine, clock } = await openSimulatedEngine()
    processes.behaviour = { diesOf: [] }
    const run = await start(oneShot())
    const outcome = await drive(run.outcome)
    await clock.advance(3 * S)
    expect(run.state).toMatchObject({ headline: 'failed-never-started (unconfirmed)' })
    expect(engine.live()).toMatchObject([{ runId: run.id, headline: 'failed-never-started (unconfirmed)' }])
    const receipt = await drive(engine.stop({ run: run.id }))
    expect(receipt).toMatchObject({ status: 'unconfirmed', runs: [{ runId: run.id, isLive: true }] })
    expect(receipt.runs[0]?.survivors).toMatchObject([{ name: 'agent' }])
    processes.last.diesOf = ['SIGKILL']
    const again = await drive(engine.stop({ run: run.id }))
    expect(again.runs).toMatchObject([{ work: 'failed-never-started' }])
    await drive(run.gone)
    expect(await run.outcome).toEqual(outcome)
    expect(engine.live()).toEqual([])
  })

  it('K7: while it cannot be recorded nothing is killed; it is as soon as it can', async () => {
    const world = await open()
    const { run, clock, store, drive } = world
    await clock.advance(10 * S)
    store.trouble = busy()
    await clock.advance(60 * S)
    expect(run.state.isSettled).toBe(false)
    expect(signalsOf(world)).toEqual([])
    store.trouble = null
    await clock.advance(3 * S)
    expect(await drive(run.outcome)).toMatchObject({ status: 'failed-never-started' })
    await drive(run.gone)
  })

  it('K7, K4: an agent that speaks while it cannot be recorded is not killed at all', async () => {
    const world = await open()
    const { run, clock, store, say } = world
    store.trouble = busy()
    await clock.advance(20 * S + 500)
    await say('work')
    store.trouble = null
    await clock.advance(10 * S)
    expect(run.state.headline).toBe('active')
    expect(signalsOf(world)).toEqual([])
  })

  it('K4: one event exactly between the look and its handling: refused, nothing killed', async () => {
    // Without an engine around it: what else is due in this moment would come between.
    const world = await alone()
    const { run, clock, processes } = world
    await clock.advance(20 * S - 1)
    const passing = clock.advance(1)
    // The watchdog has posted its fact, the mailbox has taken it, and the store has not seen it yet.
    for (let microtask = 0; microtask < 20; microtask += 1) await Promise.resolve()
    processes.last.say(line('work'))
    await passing
    expect(run.state.headline).toBe('active')
    expect(signalsOf(world)).toEqual([])
  })

  it('K4, K1: new input while the fact waits for the store makes it void', async () => {
    const { run, clock, store } = await open(talking())
    store.trouble = busy()
    await clock.advance(20 * S + 500)
    run.steer('go on')
    store.trouble = null
    await clock.advance(19 * S)
    expect(run.state.isSettled).toBe(false)
    await clock.advance(3 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started' })
  })

  it('K1: the time counts from the prompt that went out last, or from what was said to it meanwhile', async () => {
    const { run, clock, processes } = await open(talking())
    expect(processes.last.input.map((one) => JSON.parse(one) as unknown)).toMatchObject([
      { type: 'prompt', text: 'begin' },
    ])
    await clock.advance(19 * S)
    run.steer('please')
    await clock.advance(19 * S)
    run.steer('please')
    await clock.advance(19 * S)
    expect(run.state).toMatchObject({ headline: 'accepted' })
    await clock.advance(2 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started' })
  })

  it('K12: limits that are switched off are never told', async () => {
    for (const off of [false as const, { neverStartedMs: false as const, sleepGapMs: 60 * S }]) {
      const { run, clock } = await alone({ ...oneShot(), watchdog: off })
      await clock.advance(3_600 * S)
      expect(run.state.headline).toBe('accepted')
    }
  })

  it('K12: a limit over 2³¹ ms works', async () => {
    const days60 = 60 * 24 * 3_600 * S
    const { run, clock } = await alone({
      ...oneShot(),
      watchdog: { neverStartedMs: days60, sleepGapMs: days60 },
    })
    await clock.advance(days60 - 1)
    expect(run.state.headline).toBe('accepted')
    await clock.advance(1)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started' })
  })

  it('K12: the machine sleeps, the wall clock jumps: no stall', async () => {
    const { run, clock, say } = await open()
    await clock.advance(10 * S)
    await clock.jump(600 * S)
    clock.stepWall(600 * S)
    // What was left of a wait when the machine went to sleep counts.
    await clock.advance(4 * S)
    clock.stepWall(-7_200 * S)
    expect(run.state.headline).toBe('accepted')
    await say('work')
    await clock.advance(10 * S)
    await clock.jump(600 * S)
    await clock.advance(14 * S)
    expect(run.state.headline).toBe('active')
  })
})

describe('silence after progress', () => {
  it('K8: one notice a turn, nothing killed, withdrawn with the next progress; on record too', async () => {
    const world = await open()
    const { engine, run, clock, say, heard } = world
    await say('work')
    await clock.advance(30 * S)
    expect(run.state.headline).toBe('stalled-advisory')
    expect(noticesIn(heard)).toEqual(['advisory: Still waiting for the agent'])
    await clock.advance(120 * S)
    await say('work')
    expect(run.state.headline).toBe('active')
    expect(noticesIn(heard)).toEqual(['advisory: Still waiting for the agent', 'withdrawn'])
    await clock.advance(100 * S)
    await say('work', 'work')
    expect(noticesIn(heard)).toHaveLength(2)
    expect(signalsOf(world)).toEqual([])
    expect((await engine.history(run.id)).notices).toMatchObject([
      { kind: 'advisory', text: 'Still waiting for the agent', generation: 1 },
    ])
  })

  it('K8: the next turn has its own notice', async () => {
    const { run, clock, say, heard } = await open(talking())
    await say('work')
    await clock.advance(30 * S)
    await say('work', 'done')
    void run.prompt('again')
    await turns()
    await say('work')
    await clock.advance(30 * S)
    expect(heard.flatMap((event) => (event.type === 'notice' ? [event.generation] : []))).toEqual([1, 2])
  })

  it('K8: it names the tool that is open, and none of its arguments', async () => {
    const { clock, say, heard } = await open()
    await say('work', { type: 'tool-open', id: 'a', title: 'Bash' })
    await clock.advance(30 * S)
    await say({ type: 'tool-close', id: 'a' }, 'work')
    expect(noticesIn(heard)).toEqual(['advisory: Still waiting on Bash', 'withdrawn'])
    const other = await open()
    await other.say({ type: 'tool-open', id: 'a', title: 'curl -H "token: s3cr3t"' })
    await other.clock.advance(30 * S)
    expect(noticesIn(other.heard)).toEqual(['advisory: Still waiting on a tool'])
  })

  it('K8: silent and busy for twenty minutes after progress is an advisory at most', async () => {
    const world = await alone()
    const { run, clock, say, processes } = world
    await say('work')
    for (let minute = 0; minute < 20; minute += 1) {
      processes.last.burn(processes.last.identity.pid, 60 * S)
      await clock.advance(60 * S)
    }
    expect(run.state.headline).toBe('stalled-advisory')
    expect(signalsOf(world)).toEqual([])
  })

  it('K8, K7: an advisory that could not be recorded is raised once it can be', async () => {
    const { run, clock, say, store, heard } = await open()
    await say('work')
    store.trouble = busy()
    await clock.advance(60 * S)
    expect(noticesIn(heard)).toEqual([])
    store.trouble = null
    await clock.advance(3 * S)
    expect(noticesIn(heard)).toHaveLength(1)
    expect(run.state.headline).toBe('stalled-advisory')
  })

  it('K8: an advisory that progress overtakes on its way to the record is withdrawn after it', async () => {
    const { run, clock, say, store, heard, processes } = await open()
    await say('work')
    const release = store.hold()
    await clock.advance(30 * S)
    processes.last.say(line('work'))
    release()
    await clock.advance(10)
    expect(run.state.headline).toBe('active')
    expect(noticesIn(heard).slice(0, 2)).toEqual(['advisory: Still waiting for the agent', 'withdrawn'])
  })

  it.each([
    ['the turn completes', async ({ say }: SimulatedEngine) => say('done')],
    ['the run is cancelled', async (_: SimulatedEngine, run: Run) => void run.cancel()],
    ['the agent dies', async ({ processes }: SimulatedEngine) => processes.last.exit(1)],
  ])('K8: a notice that stands is withdrawn when %s', async (_, end) => {
    const world = await open()
    await world.say('work')
    await world.clock.advance(30 * S)
    await end(world, world.run)
    await world.clock.advance(100)
    expect(noticesIn(world.heard)).toEqual(['advisory: Still waiting for the agent', 'withdrawn'])
  })

  it('K3: the same look at a tool again and again is traffic; one that shows more is progress', async () => {
    const { run, clock, say } = await open()
    await say({ type: 'tool-open', id: 'a', title: 'Bash' })
    const look = (output: string) => say({ type: 'tool-update', id: 'a', output })
    for (let second = 0; second < 40; second += 1) {
      await look('1 %')
      await clock.advance(S)
    }
    expect(run.state.headline).toBe('stalled-advisory')
    await look('2 %')
    expect(run.state.headline).toBe('active')
  })
})

describe('a prolonged stall', () => {
  const limits = { ...watchdog, advisoryMs: 10 * S, stalledMs: 40 * S, stalledToolMs: 80 * S }
  const stalling = (): Partial<RunSpec> => ({ ...oneShot(), watchdog: limits })

  it('K9: without a tool: an advisory first, then the run fails as stalled and is killed', async () => {
    const world = await open(stalling())
    const { run, clock, say, heard, drive } = world
    await say('work')
    await clock.advance(40 * S - 1)
    expect(run.state.headline).toBe('stalled-advisory')
    await clock.advance(1)
    expect(await drive(run.outcome)).toMatchObject({
      status: 'failed-stalled',
      message: 'Agent stopped making progress',
    })
    await drive(run.gone)
    expect(signalsOf(world)).toEqual(['SIGKILL'])
    expect(noticesIn(heard)).toEqual([
      'advisory: Still waiting for the agent',
      'withdrawn',
      'terminal: Agent stopped making progress',
    ])
  })

  it('K9: with a tool it takes longer, and the tool that is at work never gets there', async () => {
    const { run, clock, say, processes } = await open(stalling())
    await say({ type: 'tool-open', id: 'a', title: 'Bash' })
    const pid = processes.last.spawn('make')
    for (let look = 0; look < 10; look += 1) {
      processes.last.burn(pid, 10 * S)
      await clock.advance(20 * S)
    }
    expect(run.state.headline).toBe('stalled-advisory')
    await clock.advance(100 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-stalled' })
  })

  it('K9: the CPU of the agent itself is no work of its tool', async () => {
    const { run, clock, say, processes } = await open(stalling())
    await say({ type: 'tool-open', id: 'a', title: 'Bash' })
    processes.last.spawn('make')
    for (let look = 0; look < 9; look += 1) {
      processes.last.burn(processes.last.identity.pid, 10 * S)
      await clock.advance(10 * S)
    }
    expect(run.state.outcome).toMatchObject({ status: 'failed-stalled' })
  })

  it('K9: a process table that cannot be read is no sign of work, and no fault', async () => {
    const { run, clock, say, processes, errors } = await open(stalling())
    await say({ type: 'tool-open', id: 'a', title: 'Bash' })
    processes.last.isReadable = false
    await clock.advance(81 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-stalled' })
    processes.last.isReadable = true
    expect(errors).toEqual([])
  })

  it('K9: new output of the tool is work', async () => {
    const { run, clock, say } = await open(stalling())
    await say({ type: 'tool-open', id: 'a', title: 'Bash' })
    for (let look = 0; look < 4; look += 1) {
      await clock.advance(70 * S)
      await say({ type: 'tool-update', id: 'a', output: String(look) })
    }
    expect(run.state.headline).toBe('active')
  })

  it('K9: nobody is stalled while a person is asked, and the answer begins a new time', async () => {
    const { run, clock, say, heard } = await open({ ...talking(), watchdog: limits })
    await say('work', { type: 'ask', id: 'q' })
    await clock.advance(2 * S)
    await say('usage')
    expect(run.activity).toMatchObject({ isWaitingForPerson: true, quietMs: 0 })
    await clock.advance(100 * S)
    expect(run.state.headline).toBe('active')
    // It is the person's silence, and the agent's stands still.
    expect(run.activity.quietMs).toBe(0)
    expect(noticesIn(heard)).toEqual([])
    await say({ type: 'answer', id: 'q' })
    await clock.advance(10 * S - 1)
    expect(noticesIn(heard)).toEqual([])
    await clock.advance(30 * S + 1)
    expect(run.state.outcome).toMatchObject({ status: 'failed-stalled' })
  })

  it('K1, K9: the answer is new input, also to a question that came on record late', async () => {
    const { run, clock, say, store } = await open({ ...talking(), watchdog: limits })
    store.trouble = busy()
    await say('work', { type: 'ask', id: 'q' })
    await clock.advance(7 * S)
    store.trouble = null
    await clock.advance(2 * S)
    expect(run.activity.isWaitingForPerson).toBe(true)
    await say({ type: 'answer', id: 'q' })
    expect(run.activity.quietMs).toBe(0)
    await clock.advance(10 * S - 1)
    expect(run.state.headline).toBe('active')
    await clock.advance(1)
    expect(run.state.headline).toBe('stalled-advisory')
  })

  it('K9: a question is enough to have started', async () => {
    const { run, clock, say } = await open(talking())
    await say({ type: 'ask', id: 'q' })
    await clock.advance(100 * S)
    await say({ type: 'answer', id: 'q' })
    await clock.advance(60 * S)
    expect(run.state.headline).toBe('stalled-advisory')
  })
})

describe('the end of a turn', () => {
  it('K10: an agent that said it is done and stays silent has its turn closed', async () => {
    const { run, clock, say } = await open(talking())
    await say('work', 'signal')
    await clock.advance(60 * S - 1)
    expect(run.state.work).toBe('open.active.stalled-advisory')
    await clock.advance(1)
    expect(run.state.headline).toBe('ready')
    const ended = run.prompt('next')
    await turns()
    // What it owes of the turn before completes nothing now.
    await say({ type: 'done', prompt: 'runwarden-1', text: 'first' })
    expect(run.state.headline).toBe('accepted')
    await say('work', { type: 'done', prompt: 'runwarden-2', text: 'second' })
    expect(await ended).toMatchObject({ generation: 2, status: 'completed', text: 'second' })
  })

  it.each(['work', 'retry'])('K10: %s after the signal takes it back', async (frame) => {
    const { run, clock, say } = await open(talking())
    await say('work', 'signal')
    await clock.advance(50 * S)
    await say(frame)
    await clock.advance(100 * S)
    expect(run.state.work).toMatch(/^open\.active/)
  })

  it('K10, INV-15: the final result is there and the process never exits: completed, and ended', async () => {
    const world = await open()
    const { run, say, drive } = world
    await say('work', { type: 'done', text: '42' })
    expect(run.state.headline).toBe('finishing')
    expect(world.processes.last.isInputEnded).toBe(true)
    expect(await drive(run.outcome)).toMatchObject({
      status: 'completed',
      result: { isOk: true, text: '42' },
      exitCode: null,
    })
    await drive(run.gone)
    expect(signalsOf(world)).toEqual(['SIGTERM'])
  })

  it('K11: each prompt has its own number, in order, and a completion of another one ends nothing', async () => {
    const { run, say, heard, drive } = await open(talking())
    const second = run.prompt('second')
    const third = run.prompt('third')
    await say('work', { type: 'done', prompt: 'runwarden-1', text: 'a' })
    await say({ type: 'done', prompt: 'runwarden-1' }, { type: 'done', prompt: 'runwarden-7' })
    expect(run.activity).toMatchObject({ generation: 2, promptsWaiting: 1, isTurnOpen: true })
    await say('work', { type: 'done', prompt: 'runwarden-2', text: 'b', isOk: false })
    expect(await second).toEqual({ generation: 2, status: 'failed', text: 'b' })
    const outcome = run.finish()
    await say('work', { type: 'done', prompt: 'runwarden-3', text: 'c' })
    expect(await third).toEqual({ generation: 3, status: 'completed', text: 'c' })
    expect(await drive(outcome)).toMatchObject({ status: 'completed', result: { text: 'c' } })
    expect(heard.flatMap((event) => (event.type === 'turn-ended' ? [event.generation] : []))).toEqual([
      1, 2, 3,
    ])
  })

  it('K13: a hung agent: asked, waited for, freed as cancelled; the process lives and takes the next prompt', async () => {
    const world = await open(talking())
    const { run, clock, processes, say } = world
    await say('work')
    const [first, second] = [run.cancelTurn(), run.cancelTurn()]
    await turns()
    expect(processes.last.input.filter((one) => one.includes('"cancel"'))).toHaveLength(1)
    await clock.advance(12 * S - 1)
    expect(run.state.headline).toBe('active')
    await clock.advance(1)
    expect(await first).toEqual({ generation: 1, status: 'cancelled' })
    expect(await second).toEqual({ generation: 1, status: 'cancelled' })
    expect(run.state.headline).toBe('ready')
    expect(await run.cancelTurn()).toBeNull()
    expect(processes.last.isAlive).toBe(true)
    const ended = run.prompt('next')
    await turns()
    await say({ type: 'done', prompt: 'runwarden-1', text: 'late' })
    expect(run.state.headline).toBe('accepted')
    await say('work', { type: 'done', prompt: 'runwarden-3', text: 'new' })
    expect(await ended).toEqual({ generation: 2, status: 'completed', text: 'new' })
    expect(signalsOf(world)).toEqual([])
  })

  it('K13: an agent that has heard has two seconds to return', async () => {
    const { run, clock, say } = await open(talking())
    await say('work')
    const ended = run.cancelTurn()
    await clock.advance(5 * S)
    await say('heard')
    await clock.advance(2 * S - 1)
    expect(run.state.headline).toBe('active')
    await clock.advance(1)
    expect(await ended).toEqual({ generation: 1, status: 'cancelled' })
  })

  it.each([
    ['cancelled', { type: 'cancelled' }, { status: 'cancelled' }],
    ['completed after all', { type: 'done', text: 'ok' }, { status: 'completed', text: 'ok' }],
  ])('K13: one that returns says how: %s', async (_, frame, end) => {
    const { run, say } = await open(talking())
    await say('work')
    const ended = run.cancelTurn()
    await turns()
    await say(frame)
    expect(await ended).toMatchObject(end)
    expect(run.state.headline).toBe('ready')
  })

  it('K13: a turn that no agent has yet is cancelled at once, and says so', async () => {
    const { start, processes, drive, say } = await openSimulatedEngine()
    processes.behaviour = { launch: 'hangs' }
    const run = await start(talking())
    expect(await drive(run.cancelTurn())).toEqual({ generation: 1, status: 'cancelled' })
    expect(run.state.headline).toBe('ready')
    const ended = run.prompt('second')
    processes.goOn()
    await turns()
    expect(processes.last.input.map((one) => JSON.parse(one) as unknown)).toMatchObject([{ text: 'second' }])
    await say('work', 'done')
    expect(await ended).toMatchObject({ generation: 2, status: 'completed' })
  })

  it('K13, K1: a turn that was freed without its agent cannot be steered', async () => {
    const { run, clock, say, processes } = await open(talking())
    await say('work')
    void run.cancelTurn()
    await turns()
    await clock.advance(12 * S)
    expect(run.state.headline).toBe('ready')
    expect(() => {
      run.steer('go on')
    }).toThrow(/no turn is open/)
    expect(processes.last.input.filter((one) => one.includes('steer'))).toEqual([])
  })

  it('K11, P9: a run for one prompt whose first candidate was never there has not had it', async () => {
    const { start, processes, say, drive } = await openSimulatedEngine()
    processes.next.push({ launch: new Error('not there') })
    const run = await start({
      protocol: conversational(),
      oneShot: true,
      fallback: { candidates: [{ command: ['other'] }] },
    })
    expect(run.state).toMatchObject({ headline: 'ready', attempt: 2, generation: 2 })
    const ended = run.prompt('the one')
    await expect(run.prompt('another')).rejects.toMatchObject({ code: 'refused' })
    await turns()
    await expect(run.prompt('another')).rejects.toMatchObject({ code: 'refused' })
    await say('work', { type: 'done', text: 'yes' })
    expect(await ended).toMatchObject({ status: 'completed', text: 'yes' })
    processes.last.exit(0)
    expect(await drive(run.outcome)).toMatchObject({ status: 'completed' })
  })

  it('K13, K8: a turn that is being cancelled is watched all the same', async () => {
    const { run, clock, say } = await open({ ...talking(), turnCancelMs: 60 * S })
    void run.cancelTurn()
    await clock.advance(20 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started' })
    await say('work')
  })
})

describe('other attempts, and the end of the agent', () => {
  it('K19, P9: what an ended attempt left in its pipe is no progress of the next one', async () => {
    const { run, clock, processes, heard } = await open({
      ...oneShot(),
      fallback: { candidates: [{ command: ['other'] }] },
    })
    const [first] = processes.executions
    first?.exit(1)
    await clock.advance(100)
    expect(processes.executions).toHaveLength(2)
    expect(run.state).toMatchObject({ attempt: 2, headline: 'accepted' })
    first?.say(line('work') + line({ type: 'ask', id: 'q' }) + line({ type: 'done' }))
    await turns()
    expect(run.state).toMatchObject({ attempt: 2, headline: 'accepted' })
    await clock.advance(20 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started', attempt: 2 })
    expect(heard.filter(({ type }) => type === 'settled')).toHaveLength(1)
  })

  it('K5, INV-8: while the leavings of an attempt are swept, nobody is waited for', async () => {
    const { run, clock, processes } = await alone({
      ...oneShot(),
      fallback: { candidates: [{ command: ['other'] }] },
    })
    const [first] = processes.executions
    if (first !== undefined) first.diesOf = []
    first?.spawn('left-over')
    first?.exit(1)
    await clock.advance(100 * S)
    expect(run.state).toMatchObject({ attempt: 2, work: 'open.accepted', process: 'unconfirmed' })
    if (first !== undefined) first.diesOf = ['SIGKILL']
    for (let second = 0; second < 200 && processes.executions.length === 1; second += 1)
      await clock.advance(S)
    expect(processes.executions).toHaveLength(2)
    expect(run.state).toMatchObject({ work: 'open.accepted', process: 'alive' })
    await clock.advance(20 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started' })
  })

  it('P9: a conversation goes on with the next candidate, which gets the open prompt', async () => {
    const { run, clock, processes, say } = await open({
      ...talking(),
      fallback: { candidates: [{ command: ['other'] }] },
    })
    processes.last.exit(1)
    await clock.advance(100)
    expect(processes.last.spec.command).toEqual(['other'])
    expect(processes.last.input.map((one) => JSON.parse(one) as unknown)).toMatchObject([{ text: 'begin' }])
    await say('work', 'done')
    expect(run.state).toMatchObject({ headline: 'ready', attempt: 2, generation: 2 })
  })

  it('L5: an agent that ends before it has its prompt ended by itself', async () => {
    const { start, processes, drive } = await openSimulatedEngine()
    processes.behaviour = { launch: 'hangs' }
    const run = await start(talking())
    processes.goOn()
    // Before the engine has heard that it is there.
    setImmediate(() => {
      processes.last.exit(3)
    })
    expect(await drive(run.outcome)).toMatchObject({ status: 'failed', exitCode: 3, reason: 'exit' })
  })

  it('K11: an agent that exits in a turn abandons it, whatever its exit code says', async () => {
    const { run, processes, say, drive } = await open(talking())
    const waiting = run.prompt('next')
    await say('work')
    processes.last.exit(0)
    expect(await drive(run.outcome)).toMatchObject({ status: 'failed', exitCode: 0 })
    expect(await waiting).toMatchObject({ status: 'abandoned' })
  })
})

describe('paused', () => {
  it('O7, INV-9: a pause for longer than every limit is no stall, and what was left is left after it', async () => {
    const { run, clock, say, post, processes } = await alone({
      ...oneShot(),
      watchdog: { ...watchdog, stalledMs: 60 * S },
    })
    await clock.advance(15 * S)
    await post({ type: 'run.pause', owner: 'user' })
    await clock.advance(800 * S)
    expect(processes.last.isFrozen).toBe(true)
    expect(run.state.headline).toBe('paused')
    await post({ type: 'run.resume', owner: 'user' })
    await clock.advance(5 * S - 1)
    expect(run.state.headline).toBe('accepted')
    await say('work')
    await clock.advance(29 * S)
    await post({ type: 'run.pause', owner: 'machine' })
    await clock.advance(800 * S)
    await post({ type: 'run.resume', owner: 'machine' })
    await clock.advance(S - 1)
    expect(run.state.headline).toBe('active')
    await clock.advance(1)
    expect(run.state.headline).toBe('stalled-advisory')
    await clock.advance(30 * S)
    expect(run.state.outcome).toMatchObject({ status: 'failed-stalled' })
  })

  it('O7, O8: a pause during the launch holds the clock before there is an agent', async () => {
    const store = await openSimulatedStore()
    const { run, clock, post, processes, end } = await startSimulatedRun(store, oneShot())
    onTestFinished(async () => {
      await end()
      await store.close()
    })
    await post({ type: 'run.pause', owner: 'user' })
    await clock.advance(100 * S)
    expect(run.state.headline).toBe('paused')
    expect(processes.last.isFrozen).toBe(true)
  })

  it('O7, K9: paused and asked at once: it is over when both are', async () => {
    const { run, clock, say, post } = await alone({ ...talking(), watchdog })
    await say('work', { type: 'ask', id: 'q' })
    await post({ type: 'run.pause', owner: 'user' })
    await clock.advance(100 * S)
    await say({ type: 'answer', id: 'q' })
    await clock.advance(100 * S)
    expect(run.state.headline).toBe('paused')
    await post({ type: 'run.resume', owner: 'user' })
    await clock.advance(30 * S - 1)
    expect(run.state.headline).toBe('active')
    await clock.advance(1)
    expect(run.state.headline).toBe('stalled-advisory')
  })

  it('O7, K11: a turn that begins in a pause has its whole time when it is over', async () => {
    const { run, clock, say, post } = await alone(talking())
    await say('work', 'done')
    await post({ type: 'run.pause', owner: 'user' })
    void run.turns.prompt('second')
    await clock.advance(100 * S)
    expect(run.state).toMatchObject({ headline: 'paused', work: 'open.accepted', generation: 2 })
    await post({ type: 'run.resume', owner: 'user' })
    await clock.advance(20 * S - 1)
    expect(run.state.headline).toBe('accepted')
    await clock.advance(1)
    expect(run.state.outcome).toMatchObject({ status: 'failed-never-started' })
  })
})

describe('a fact that the store can never take', () => {
  it.each(['process.launched', 'turn.progressed', 'turn.completed', 'process.exited'])(
    'F, INV-4: %s: its run ends with its tree, confirmed, and the others go on',
    async (event) => {
      const { start, store, processes, say, drive } = await openSimulatedEngine()
      const other = await start(oneShot())
      await say('work')
      store.refused = event
      const run = await start(oneShot())
      await say('work', 'done')
      processes.last.exit(0)
      expect(await drive(run.outcome)).toMatchObject({ status: 'failed', code: 'invariant-broken' })
      await drive(run.gone)
      expect(processes.last.size).toBe(0)
      expect(other.state.headline).toBe('active')
    },
  )
})

describe('an engine that leaves its runs', () => {
  it('O10: waits for nothing of their agents any more: no answer, no silence, no end of a turn', async () => {
    const asked: AbortSignal[] = []
    const { engine, run, clock, say, processes, drive } = await open({
      protocol: piJson({
        mode: 'rpc',
        onPermission: (_, { signal }) => {
          asked.push(signal)
          return new Promise(() => undefined)
        },
      }),
      prompt: 'begin',
      watchdog,
    })
    const waiting = run.prompt('next')
    await say({ type: 'extension_ui_request', id: 'q', method: 'confirm', title: 'May I?' })
    expect(run.activity.isWaitingForPerson).toBe(true)
    void run.cancelTurn()
    await say({ type: 'extension_ui_request', id: 'r', method: 'confirm', title: 'May I?' })
    const spoken = processes.last.input.length
    expect(await drive(engine.close({ runs: 'leave' }))).toEqual({ left: [run.id] })
    expect(asked.every(({ aborted }) => aborted)).toBe(true)
    expect(await waiting).toMatchObject({ status: 'abandoned' })
    expect(clock.armed).toBe(0)
    expect(processes.last.isAlive).toBe(true)
    expect(processes.last.input).toHaveLength(spoken)
  })
})

describe('a person who is asked', () => {
  it('O7: has the whole time for an answer, whatever part of it the agent was frozen', async () => {
    let isAwaited = true
    const { clock, say, post, processes } = await alone({
      protocol: piJson({
        mode: 'rpc',
        permissionTimeoutMs: 10 * S,
        onPermission: (_, { signal }) => {
          signal.addEventListener('abort', () => {
            isAwaited = false
          })
          return new Promise(() => undefined)
        },
      }),
      prompt: 'begin',
    })
    await say({ type: 'extension_ui_request', id: 'q', method: 'confirm', title: 'May I?' })
    await clock.advance(4 * S)
    await post({ type: 'run.pause', owner: 'user' })
    await clock.advance(100 * S)
    await post({ type: 'run.resume', owner: 'user' })
    await clock.advance(6 * S - 1)
    expect(isAwaited).toBe(true)
    await clock.advance(1)
    expect(isAwaited).toBe(false)
    expect(processes.last.input.at(-1)).toMatch(/"cancelled":true/)
  })
})

describe("a protocol of the host's own", () => {
  const broken = (parts: Partial<ProtocolSession> | null): RunSpec['protocol'] => ({
    name: 'broken',
    hasWatchdog: true,
    isInteractive: false,
    open: (_: ProtocolSink) => {
      if (parts === null) throw new Error('not today')
      return {
        openTools: [],
        unknownFrames: new Map(),
        push: () => undefined,
        end: () => undefined,
        ...parts,
      }
    },
  })

  it('F: one that cannot be opened fails its run, and no other', async () => {
    const { start, drive, say } = await openSimulatedEngine()
    const bad = await start({ protocol: broken(null) })
    expect(await drive(bad.outcome)).toMatchObject({
      status: 'failed',
      code: 'protocol-failed',
      message: 'protocol "broken" cannot be opened: not today',
    })
    await drive(bad.gone)
    const good = await start(oneShot())
    await say('work')
    expect(good.state.headline).toBe('active')
  })

  it('F: one that throws while it reads fails its run, and its tree is ended', async () => {
    const { start, drive, processes } = await openSimulatedEngine()
    const push = (): never => {
      throw new Error('what is this')
    }
    const run = await start({ protocol: broken({ push }) })
    processes.last.say('x\n')
    expect(await drive(run.outcome)).toMatchObject({
      status: 'failed',
      code: 'session-failed',
      message: 'the protocol failed in push: what is this',
    })
    await drive(run.gone)
    expect(processes.last.size).toBe(0)
  })
})
