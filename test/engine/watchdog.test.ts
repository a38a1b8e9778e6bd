/** Watchdogs on real agents, with short limits: what silence leads to, and what is no silence. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, vi } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, Run, RunHistory, RunSpec, TransitionRecord } from '../../src/index.js'
import { engineOptionsSchema, openEngineOver, parseOptions } from '../../src/internal.js'
import { acp, claudeStreamJson, piJson } from '../../src/protocols.js'
import type { AcpOptions } from '../../src/protocols.js'
import { acpAgent, listenTo, scriptedAgent, sharedEngine, untilStands } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { endTree } from '../support/end-tree.js'
import { EMPTY, quickStop, startFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, identityOf, isAlive, readLedger } from '../support/proc-reader.js'
import { openSimulatedStore } from '../../src/testing/simulated-store.js'
import { waitFor } from '../support/wait-for.js'
import { canDropKill, hostWithoutKill } from '../support/without-kill.js'

// Most of them wait most of the time.
vi.setConfig({ maxConcurrency: 6, testTimeout: 60_000 })

const shared = sharedEngine()
const newPath = (): string => join(shared.folder, randomUUID())

const NEVER_STARTED = 'Agent produced no output since start'
const DELTA = { type: 'stream_event', event: { type: 'content_block_delta' } }
const RESULT = { type: 'result', subtype: 'success', is_error: false, result: 'done' }

/** Silence for which no limit was given is borne for ever. */
const limits = (given: NonNullable<Exclude<RunSpec['watchdog'], false>>): RunSpec['watchdog'] => ({
  neverStartedMs: false,
  advisoryMs: false,
  completionSignalMs: false,
  ...given,
})

/** An ACP agent whose session is open, and which was given nothing yet: how long it took to start is no silence. */
const startAcp = async (watchdog: RunSpec['watchdog'], options: AcpOptions = {}) => {
  const run = await shared.engine.start({
    command: acpAgent(),
    protocol: acp({ settleMs: 0, ...options }),
    watchdog,
    turnCancelMs: 300,
    stop: quickStop,
  })
  const told = listenTo(run, { output: 'frames' })
  await waitFor(() => told.of('frame').some(({ frame }) => JSON.stringify(frame).includes('sessionId')), {
    deadlineMs: 30_000,
    what: 'an open session',
  })
  return { run, told }
}

/** Claude's frames, one prompt after the other. */
const startScript = (engine: Engine, watchdog: RunSpec['watchdog'], ...steps: readonly Step[]) =>
  engine.start({
    command: scriptedAgent({ hear: 1 }, ...steps),
    protocol: claudeStreamJson({ input: 'stream-json' }),
    prompt: 'go',
    watchdog,
    stop: quickStop,
  })

const untilQuiet = (run: Run, ms: number) =>
  waitFor(() => (run.activity.quietMs ?? 0) > ms, { deadlineMs: 30_000, what: `${String(ms)} ms of silence` })

/** So long after the launch: for what stands still while a silence is not counted. */
const untilAged = (engine: Engine, run: Run, ms: number) =>
  waitFor(() => engine.live().some(({ runId, ageMs }) => runId === run.id && ageMs > ms), {
    deadlineMs: 30_000,
    what: `an age of ${String(ms)} ms`,
  })

/** A file that an agent waits for. */
const signal = (): { readonly file: string; give(): void } => {
  const file = newPath()
  return {
    file,
    give: () => {
      writeFileSync(file, '')
    },
  }
}

const named = ({ transitions }: RunHistory, event: string): readonly TransitionRecord[] =>
  transitions.filter((one) => one.event === event)

/** The outcome is on record before the tree is ended, by KILL, and once. */
const expectRecordFirst = (history: RunHistory, event: string, work: string): void => {
  const found = named(history, event)
  expect(found).toMatchObject([{ to: { work, process: 'kill-sent' } }])
  const kill = found[0]?.effects.find(({ kind }) => kind === 'process.kill')
  expect(kill?.startedAt).toBeGreaterThanOrEqual(found[0]?.at ?? NaN)
  const kills = history.transitions
    .flatMap((one) => one.effects)
    .filter(({ kind }) => kind === 'process.kill')
  expect(kills).toHaveLength(1)
}

describe.concurrent('never started', () => {
  it('K5, INV-1, INV-7: nothing since the prompt: the outcome is on record, the whole tree is killed, nothing else is tried', async () => {
    const { engine } = shared
    // What it prints is no frame: signs of life. All of it ignores TERM, and one leads its own session.
    const fixture = await startFixture(engine, 'stubborn-agent', {
      protocol: claudeStreamJson({ input: 'stream-json' }),
      watchdog: limits({ neverStartedMs: 1_000 }),
      fallback: { candidates: [{ command: ['true'] }] },
    })
    const { run } = fixture
    const told = listenTo(run)
    await fixture.ready()
    expect(fixture.alive()).toHaveLength(4)
    void run.prompt('go')
    expect(await run.outcome).toMatchObject({
      status: 'failed-never-started',
      reason: 'never-started',
      message: NEVER_STARTED,
      exitCode: null,
      signal: null,
    })
    await run.gone
    expect(fixture.alive()).toEqual([])
    await told.ended
    expect(told.of('notice')).toMatchObject([{ kind: 'terminal', text: NEVER_STARTED, generation: 2 }])
    const history = await engine.history(run.id)
    expect(history.notices).toMatchObject([{ kind: 'terminal', text: NEVER_STARTED }])
    expect(history.executions).toHaveLength(1)
    expectRecordFirst(history, 'watchdog.silent', 'settled.failed-never-started')
    // INV-3: what the killed process ended with is no part of it.
    expect(history.run.outcome).toMatchObject({ exitCode: null, signal: null })
  })

  it('K5: a later turn that is never begun ends the run too', async () => {
    const { engine } = shared
    const { run } = await startAcp(limits({ neverStartedMs: 3_000 }))
    expect(await run.prompt('answer')).toMatchObject({ generation: 2, status: 'completed' })
    const startedAt = performance.now()
    expect(await run.prompt('hang')).toMatchObject({
      generation: 3,
      status: 'abandoned',
      message: NEVER_STARTED,
    })
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(2_990)
    expect((await run.outcome).status).toBe('failed-never-started')
    await run.gone
    expect((await engine.history(run.id)).notices).toMatchObject([{ kind: 'terminal', generation: 3 }])
  })

  it('K5: signs of life for ever are no work: it ends at its time, exactly once', async () => {
    const { engine } = shared
    const heard: string[] = []
    engine.subscribe((event) => {
      if (event.type === 'notice' && event.runId === run.id) heard.push(event.text)
    })
    const { run, told } = await startAcp(limits({ neverStartedMs: 1_500 }))
    void run.prompt('usage')
    expect((await run.outcome).status).toBe('failed-never-started')
    expect((await run.cancel()).runs[0]).toMatchObject({ status: 'already-terminal' })
    await run.gone
    await told.ended
    expect(told.of('frame').length).toBeGreaterThan(10)
    const history = await engine.history(run.id)
    expectRecordFirst(history, 'watchdog.silent', 'settled.failed-never-started')
    expect(heard).toEqual([NEVER_STARTED])
    expect(history.notices).toHaveLength(1)
    expect(named(history, 'turn.progressed')).toEqual([])
  })

  it('K1: new input starts the silence anew, and is no sign that anything was begun', async () => {
    const { engine } = shared
    const run = await startScript(engine, limits({ neverStartedMs: 3_000 }), { stay: true })
    await untilStands(run, 'alive')
    await untilQuiet(run, 500)
    run.steer('more')
    const steeredAt = performance.now()
    expect((await run.outcome).status).toBe('failed-never-started')
    expect(performance.now() - steeredAt).toBeGreaterThanOrEqual(2_990)
  })

  it('INV-1: while its commit is under way nothing is killed', async () => {
    const database = newPath()
    const store = await openSimulatedStore(database)
    await using engine = await openEngineOver(store, parseOptions(engineOptionsSchema, { database }, 'test'))
    const run = await startScript(engine, limits({ neverStartedMs: 1_000 }), { stay: true })
    await untilStands(run, 'alive')
    const release = store.hold()
    const leader = identityOf(run.pid ?? NaN)
    await untilQuiet(run, 2_000)
    expect(run.state).toMatchObject({ work: 'open.accepted', process: 'alive', outcome: null })
    expect(leader && isAlive(leader)).toBe(true)
    release()
    expect((await run.outcome).status).toBe('failed-never-started')
    await run.gone
    expect(leader && isAlive(leader)).toBe(false)
  })

  it('K7: with the store locked nothing is killed and nothing settled; it is tried again', async () => {
    const database = newPath()
    await using engine = await createEngine({ database })
    const run = await startScript(engine, limits({ neverStartedMs: 1_000 }), { stay: true })
    await untilStands(run, 'alive')
    const other = new BetterSqlite3(database)
    other.exec('BEGIN EXCLUSIVE')
    const leader = identityOf(run.pid ?? NaN)
    await untilQuiet(run, 3_500)
    expect(run.state).toMatchObject({ work: 'open.accepted', process: 'alive', outcome: null })
    expect(leader && isAlive(leader)).toBe(true)
    other.exec('COMMIT')
    other.close()
    expect(await run.outcome).toMatchObject({ status: 'failed-never-started', message: NEVER_STARTED })
    await run.gone
    const history = await engine.history(run.id)
    expectRecordFirst(history, 'watchdog.silent', 'settled.failed-never-started')
    expect(history.notices).toHaveLength(1)
  })

  it('K4: progress between the look and its handling: nothing is killed', async () => {
    const database = newPath()
    const store = await openSimulatedStore(database)
    await using engine = await openEngineOver(store, parseOptions(engineOptionsSchema, { database }, 'test'))
    const go = signal()
    const run = await engine.start({
      command: scriptedAgent({ hear: 1 }, { until: go.file }, { say: DELTA }, { stay: true }),
      protocol: claudeStreamJson({ input: 'stream-json' }),
      prompt: 'go',
      watchdog: limits({ neverStartedMs: 3_000 }),
      turnCancelMs: 60_000,
    })
    const told = listenTo(run, { output: 'frames' })
    await untilStands(run, 'alive')
    const release = store.hold()
    // Something is on its way to the store: what the watchdog says waits behind it.
    void run.cancelTurn()
    await untilQuiet(run, 4_000)
    go.give()
    await told.until('frame')
    expect(run.activity.quietMs).toBeLessThan(3_000)
    release()
    await untilStands(run, 'open.active.progressing')
    expect(run.state.outcome).toBeNull()
    expect(named(await engine.history(run.id), 'watchdog.silent')).toEqual([])
    expect(told.of('notice')).toEqual([])
  })
})

const moduleAt = (path: string): string => JSON.stringify(new URL(`../../dist/${path}`, import.meta.url).href)

describe.concurrent('a teardown that hangs', () => {
  it('K6, INV-15: the outcome stands, the run is listed, and every stop that covers it reaches it', async ({
    skip,
    onTestFinished,
  }) => {
    if (!canDropKill()) skip('no setpriv, or not root')
    const { ledger, env } = withLedger()
    onTestFinished(() => endTree(ledger))
    const command = fixtureCommand('deep-tree')
    const source = `
      import { readFileSync } from 'node:fs'
      import { createEngine } from ${moduleAt('index.js')}
      import { claudeStreamJson } from ${moduleAt('protocols.js')}
      const engine = await createEngine({ database: ${JSON.stringify(newPath())}, containment: { prefer: 'group+marks' } })
      const run = await engine.start({
        id: 'r1', task: 't1', command: ${JSON.stringify(command)}, protocol: claudeStreamJson({ input: 'stream-json' }),
        watchdog: { neverStartedMs: 500 }, stop: { termGraceMs: 200, killGraceMs: 500 },
      })
      const isUp = () => { try { return readFileSync(process.env.FIXTURE_LEDGER, 'utf8').includes('"ready"') } catch { return false } }
      while (!isUp()) await new Promise((resolve) => setTimeout(resolve, 20))
      void run.prompt('go')
      const outcome = await run.outcome
      // Who is left is named a look later.
      while (run.state.process !== 'unconfirmed' || run.state.survivors.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
      const live = engine.live()
      const receipts = [
        await run.cancel({ reason: 'a person', timeoutMs: 2000 }),
        await engine.stop({ task: 't1' }, { timeoutMs: 2000 }),
        await engine.stop({ all: true }, { mode: 'terminate', timeoutMs: 2000 }),
      ]
      const isGone = await Promise.race([run.gone, Promise.resolve(false)])
      const { run: record, notices } = await engine.history('r1')
      const left = await engine.close({ deadlineMs: 300 })
      console.log(JSON.stringify({ outcome, live, receipts, isGone, record, notices, left }))
    `
    const { outcome, live, receipts, isGone, record, notices, left } = await hostWithoutKill(source, env)
    const [survivor, ...others] = aliveOf(readLedger(ledger))
    expect(others).toEqual([])
    expect(outcome).toMatchObject({ status: 'failed-never-started', message: NEVER_STARTED })
    expect(live).toMatchObject([{ runId: 'r1', headline: 'failed-never-started (unconfirmed)' }])
    const line = {
      runId: 'r1',
      status: 'unconfirmed',
      work: 'failed-never-started',
      survivors: [{ pid: survivor?.pid, startTicks: survivor?.startTicks, error: 'EPERM' }],
    }
    expect(receipts).toMatchObject(Array(3).fill({ status: 'unconfirmed', runs: [line] }))
    expect(isGone).toBe(false)
    expect(record).toMatchObject({ work: 'settled.failed-never-started', outcome })
    expect(notices).toHaveLength(1)
    expect(left).toEqual({ left: ['r1'] })
  })
})

describe.concurrent('the advisory', () => {
  it('K8: silence after progress is told once a turn, withdrawn by progress, and ends nothing', async () => {
    const { engine } = shared
    const [more, end] = [signal(), signal()]
    const run = await startScript(
      engine,
      limits({ neverStartedMs: 60_000, advisoryMs: 400 }),
      { say: DELTA },
      { until: more.file },
      { say: DELTA },
      { until: end.file },
      { say: RESULT },
      { hear: 1 },
      { say: DELTA },
      { stay: true },
    )
    const told = listenTo(run)
    const text = 'Still waiting for the agent'
    expect(await told.until('notice')).toMatchObject({ kind: 'advisory', text, generation: 1 })
    await untilQuiet(run, 1_300)
    expect(run.state).toMatchObject({ headline: 'stalled-advisory', process: 'alive' })
    more.give()
    await told.until('notice-withdrawn')
    expect(run.state.work).toBe('open.active.progressing')
    // Told once in this turn, however long it is silent again.
    await untilQuiet(run, 1_300)
    expect(told.of('notice')).toHaveLength(1)
    const next = run.prompt('again')
    end.give()
    expect(await told.until('notice', 2)).toMatchObject({ kind: 'advisory', text, generation: 2 })
    expect((await run.cancel()).status).toBe('confirmed')
    expect(await next).toMatchObject({ status: 'abandoned' })
    await told.ended
    // The turn's end takes it back too.
    expect(told.of('notice-withdrawn').map(({ generation }) => generation)).toEqual([1, 2])
    const history = await engine.history(run.id)
    expect(history.notices).toMatchObject([
      { kind: 'advisory', text, generation: 1, withdrawnAt: expect.any(Number) as number },
      { kind: 'advisory', text, generation: 2, withdrawnAt: expect.any(Number) as number },
    ])
    expect(named(history, 'watchdog.silent')).toHaveLength(2)
  })

  it.each([
    ['Bash', 'Bash'],
    ['rm -rf "$HOME"; \u001b[2J', 'a tool'],
  ])('K8: it names the open tool and none of its arguments: %j', async (name, shown) => {
    const { engine } = shared
    const input = { command: 'curl -H "Authorization: s3cret"' }
    const content = [{ type: 'tool_use', id: 'call-1', name, input }]
    const run = await startScript(
      engine,
      limits({ neverStartedMs: 60_000, advisoryMs: 400 }),
      { say: { type: 'assistant', message: { content } } },
      { stay: true },
    )
    const told = listenTo(run)
    expect(await told.until('notice')).toMatchObject({ text: `Still waiting on ${shown}` })
    const history = await engine.history(run.id)
    expect(history.notices).toMatchObject([{ text: `Still waiting on ${shown}` }])
    expect(JSON.stringify(history)).not.toMatch(/s3cret|rm -rf/)
  })

  it('K3: the same look at a tool again and again is no progress; new output is', async () => {
    const { engine } = shared
    const more = signal()
    const content = [{ type: 'tool_use', id: 'call-1', name: 'Bash', input: {} }]
    const look = (output: string) => ({
      type: 'tool_progress',
      tool_use_id: 'call-1',
      tool_name: 'Bash',
      output,
    })
    const run = await startScript(
      engine,
      limits({ neverStartedMs: 60_000, advisoryMs: 600 }),
      { say: { type: 'assistant', message: { content } } },
      { repeat: { frame: look('one'), everyMs: 20 } },
      { until: more.file },
      { say: look('one, two') },
      { stay: true },
    )
    const told = listenTo(run)
    expect(await told.until('notice')).toMatchObject({ text: 'Still waiting on Bash' })
    more.give()
    await told.until('notice-withdrawn')
    expect((await run.cancel()).status).toBe('confirmed')
  })
})

describe.concurrent('a prolonged stall', () => {
  it('K9: without an open tool it ends the run, record first, and once', async () => {
    const { engine } = shared
    const run = await startScript(
      engine,
      limits({ stalledMs: 700, stalledToolMs: 60_000, advisoryMs: 300 }),
      { say: DELTA },
      { child: ['sleep', '100'] },
      { stay: true },
    )
    const told = listenTo(run)
    expect(await run.outcome).toMatchObject({
      status: 'failed-stalled',
      reason: 'stalled',
      message: 'Agent stopped making progress',
    })
    await run.gone
    await told.ended
    const history = await engine.history(run.id)
    expectRecordFirst(history, 'watchdog.exhausted', 'settled.failed-stalled')
    expect(told.of('notice').map(({ kind }) => kind)).toEqual(['advisory', 'terminal'])
    expect(history.notices).toHaveLength(2)
    expect(told.of('turn-ended')).toMatchObject([{ status: 'abandoned' }])
  })

  it('K9: while a tool is open its own limit counts, and an idle tool runs into it', async () => {
    const { engine } = shared
    const { run } = await startAcp(limits({ stalledMs: 200, stalledToolMs: 1_500 }))
    void run.prompt('idleTool')
    await waitFor(() => run.activity.openTools.length > 0, { deadlineMs: 20_000, what: 'the tool to open' })
    const openAt = performance.now()
    expect((await run.outcome).status).toBe('failed-stalled')
    expect(performance.now() - openAt).toBeGreaterThan(1_000)
    await run.gone
    expectRecordFirst(await engine.history(run.id), 'watchdog.exhausted', 'settled.failed-stalled')
  })

  it('K9: a silent tool whose process works is left alone', async () => {
    const { run } = await startAcp(limits({ stalledMs: 200, stalledToolMs: 1_500 }))
    void run.prompt('busyTool')
    await untilQuiet(run, 5_000)
    expect(run.state).toMatchObject({ work: 'open.active.progressing', outcome: null })
    expect(await run.cancelTurn()).toMatchObject({ status: 'cancelled' })
  })

  it('K9: nothing counts while a person is asked; the answer starts the silence anew', async () => {
    const { engine } = shared
    let answer: (option: string) => void = () => undefined
    const { run, told } = await startAcp(
      limits({ neverStartedMs: 60_000, advisoryMs: 3_000, stalledMs: 3_000, stalledToolMs: 3_000 }),
      { onPermission: () => new Promise((resolve) => (answer = resolve)) },
    )
    const turn = run.prompt('permission')
    await waitFor(() => run.activity.isWaitingForPerson, { deadlineMs: 20_000, what: 'the question' })
    const { quietMs } = run.activity
    const { ageMs = NaN } = engine.live().find(({ runId }) => runId === run.id) ?? {}
    await untilAged(engine, run, ageMs + 3_500)
    expect(run.activity.quietMs).toBe(quietMs)
    expect(run.state).toMatchObject({ work: 'open.active.progressing', outcome: null })
    answer('yes')
    expect(await turn).toMatchObject({ status: 'completed' })
    expect(told.of('notice')).toEqual([])
  })
})

const ofPi = {
  start: { type: 'agent_start' },
  update: { type: 'message_update', assistantMessageEvent: { type: 'text_delta' } },
  end: { type: 'agent_end' },
  settled: { type: 'agent_settled' },
  retry: { type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 1, errorMessage: '429' },
}

describe.concurrent('completion without completion', () => {
  it('K10: an agent that says it is done and leaves the prompt open has its turn closed', async () => {
    const { engine } = shared
    const run = await engine.start({
      command: scriptedAgent(
        { hear: 1 },
        { say: ofPi.update },
        { say: ofPi.end },
        { hear: 1 },
        { say: ofPi.update },
        { say: ofPi.settled },
        { hearEnd: true },
      ),
      protocol: piJson({ mode: 'rpc' }),
      prompt: 'go',
      watchdog: limits({ completionSignalMs: 500 }),
    })
    const told = listenTo(run)
    expect(await told.until('turn-ended')).toMatchObject({ generation: 1, status: 'completed' })
    expect(run.state.work).toBe('open.ready')
    expect(await run.prompt('again')).toMatchObject({ generation: 2, status: 'completed' })
    expect(await run.finish()).toMatchObject({ status: 'completed', exitCode: 0 })
    await run.gone
    expect(named(await engine.history(run.id), 'watchdog.completion-silent')).toHaveLength(1)
  })

  it('K11, K10: what completes late, after its turn was closed, completes no other turn', async () => {
    const { engine } = shared
    const goOn = signal()
    const run = await engine.start({
      command: scriptedAgent(
        { hear: 1 },
        { say: ofPi.start },
        { say: ofPi.update },
        { say: ofPi.end },
        { hear: 1 },
        { say: ofPi.settled },
        { say: ofPi.start },
        { say: ofPi.update },
        { until: goOn.file },
        { say: ofPi.settled },
        { hearEnd: true },
      ),
      protocol: piJson({ mode: 'rpc' }),
      prompt: 'go',
      watchdog: limits({ completionSignalMs: 300 }),
    })
    const told = listenTo(run, { output: 'frames' })
    await told.until('turn-ended')
    const second = run.prompt('again')
    await told.until('frame', 6)
    await untilQuiet(run, 300)
    expect(run.state.work).toBe('open.active.progressing')
    goOn.give()
    expect(await second).toMatchObject({ generation: 2, status: 'completed' })
    expect(await run.finish()).toMatchObject({ status: 'completed', exitCode: 0 })
  })

  it('K10: a run for one prompt finishes by it, and its exit is the end', async () => {
    const { engine } = shared
    const leave = signal()
    const run = await engine.start({
      command: scriptedAgent({ say: ofPi.update }, { say: ofPi.end }, { until: leave.file }, { exit: 0 }),
      protocol: piJson(),
      watchdog: limits({ completionSignalMs: 300 }),
    })
    await untilStands(run, 'open.finishing')
    leave.give()
    expect(await run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
  })

  it.each([
    ['progress', ofPi.update],
    ['a retry', ofPi.retry],
  ])('K10: %s takes the signal back', async (_, frame) => {
    const { engine } = shared
    const run = await engine.start({
      command: scriptedAgent({ say: ofPi.update }, { say: ofPi.end }, { say: frame }, { stay: true }),
      protocol: piJson(),
      watchdog: limits({ completionSignalMs: 300 }),
    })
    const told = listenTo(run, { output: 'frames' })
    await told.until('frame', 3)
    await untilQuiet(run, 1_000)
    expect(run.state.work).toBe('open.active.progressing')
    expect(told.of('retrying')).toHaveLength(frame === ofPi.retry ? 1 : 0)
  })
})

describe.concurrent('long times', () => {
  it('K12: a limit over 2³¹ ms is borne for that long', async () => {
    const { engine } = shared
    const longMs = 2 ** 31 + 1_000
    const run = await startScript(
      engine,
      {
        neverStartedMs: longMs,
        advisoryMs: longMs,
        stalledMs: longMs,
        stalledToolMs: longMs,
        sleepGapMs: longMs,
      },
      { stay: true },
    )
    await untilStands(run, 'alive')
    await untilQuiet(run, 500)
    expect(run.state).toMatchObject({ work: 'open.accepted', outcome: null })
  })
})

describe.concurrent('an agent that does not leave', () => {
  it('K13, INV-11: its last word given, or its input closed, it is ended, and the result stands', async () => {
    const { engine } = shared
    const [printed, finished, failed] = await Promise.all([
      engine.start({
        command: scriptedAgent({ say: DELTA }, { say: RESULT }, { stay: true }),
        protocol: claudeStreamJson(),
        stop: quickStop,
      }),
      engine.start({
        command: acpAgent('stays'),
        protocol: acp({ settleMs: 0 }),
        prompt: 'answer',
        stop: quickStop,
      }),
      engine.start({
        command: scriptedAgent({ say: { ...RESULT, is_error: true, result: 'no' } }, { stay: true }),
        protocol: claudeStreamJson(),
        stop: quickStop,
      }),
    ])
    const finish = finished.finish()
    const message = 'completed; the process did not exit by itself'
    expect(await printed.outcome).toMatchObject({
      status: 'completed',
      reason: 'result',
      message,
      exitCode: null,
      result: { isOk: true, text: 'done' },
    })
    expect(await finish).toMatchObject({ status: 'completed', reason: 'result', message })
    expect(await failed.outcome).toMatchObject({
      status: 'failed',
      reason: 'result',
      result: { isOk: false, text: 'no' },
    })
    for (const run of [printed, finished, failed]) {
      expect((await run.gone).evidence).toMatchObject([{ kind: EMPTY }])
      expect(await run.outcome).toMatchObject({ exitCode: null, signal: null })
    }
  })
})

// Last and alone: whoever shares this process is blocked too.
describe('a blocked loop', () => {
  it('K12: while the loop was blocked nobody was silent', async () => {
    const { engine } = shared
    const run = await startScript(engine, limits({ neverStartedMs: 2_000, sleepGapMs: 300 }), { stay: true })
    await untilStands(run, 'alive')
    const startedAt = performance.now()
    // As when the machine sleeps: nothing of ours runs.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000)
    expect((await run.outcome).status).toBe('failed-never-started')
    expect(performance.now() - startedAt).toBeGreaterThan(3_000 + 1_000)
  })
})
