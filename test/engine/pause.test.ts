/** Pausing and resuming runs, on real processes. */
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Engine, Run, TransitionRecord } from '../../src/index.js'
import { beatsAgain, beatsOf } from '../support/beats.js'
import { endTree } from '../support/end-tree.js'
import { EMPTY, openTestEngine, quickStop, startFixture } from '../support/engine.js'
import type { StartedFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, identityOf, isAlive, readLedger, signalsOf, statOf } from '../support/proc-reader.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const DEADLINE = { deadlineMs: 30_000 }
/** Who is stopped by a signal shows it in his state; the freezer of a cgroup leaves that as it is. */
const BY_SIGNAL = { containment: { prefer: 'group+marks' } } as const
const FROZEN = { status: 'frozen', running: [] }

const statesOf = (started: StartedFixture): string[] =>
  started.alive().map(({ pid }) => statOf(pid)?.state ?? 'gone')

const effectsOf = (transitions: readonly TransitionRecord[]): string[] =>
  transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))

const transitionsOf = async (engine: Engine, run: Run): Promise<readonly TransitionRecord[]> =>
  (await engine.history(run.id)).transitions

/** A second tree whose beats tell the time in which the first one is looked at. */
const startMetronome = async (engine: Engine): Promise<() => Promise<void>> => {
  const metronome = await startFixture(engine, 'forking-heartbeat')
  await metronome.ready()
  return () => beatsAgain(metronome.ledger, ['leader', 'child'], 8)
}

/** On a busy machine a short window may pass before the freeze is proven: then the call is told that. */
const pauseShortly = async (run: Run): Promise<void> => {
  await run.pause().catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'refused' })
  })
}

describe('a freeze', () => {
  it.each([
    ['heartbeat', ['leader', 'child', 'grandchild']],
    ['forking-heartbeat', ['leader', 'child']],
  ] as const)(
    'O1: no process of %s beats between the freeze that was confirmed and the thaw, and all go on after it',
    async (name, roles) => {
      const engine = await openTestEngine()
      const tick = await startMetronome(engine)
      const started = await startFixture(engine, name)
      await started.ready()
      await beatsAgain(started.ledger, roles)
      for (let round = 0; round < 3; round += 1) {
        expect(await started.run.pause()).toEqual(FROZEN)
        const before = beatsOf(started.ledger).length
        expect(started.run.state).toMatchObject({
          process: 'frozen',
          headline: 'paused',
          freeze: { owner: 'user', status: 'frozen', running: [] },
        })
        await tick()
        expect(beatsOf(started.ledger)).toHaveLength(before)
        await started.run.resume()
        expect(started.run.state).toMatchObject({ process: 'alive', freeze: null })
        await beatsAgain(started.ledger, roles)
      }
      expect((await started.run.cancel()).status).toBe('confirmed')
      expect(started.alive()).toEqual([])
    },
  )

  it('O1, INV-1: the freeze is on record before the first process is stopped, and its proof after the last', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'heartbeat')
    const { run } = started
    await started.ready()
    await run.pause()
    await run.resume()
    const transitions = await transitionsOf(engine, run)
    const [pause, frozen, resume] = ['run.pause', 'process.frozen', 'run.resume'].map((event) =>
      transitions.find((transition) => transition.event === event),
    )
    expect(pause?.effects.map(({ kind }) => kind)).toEqual(['process.freeze'])
    expect(resume?.effects.map(({ kind }) => kind)).toEqual(['process.thaw'])
    // What its output says may be recorded in between.
    const revs = [pause, frozen, resume].map((transition) => transition?.rev ?? NaN)
    expect(revs).toEqual([...revs].sort((one, other) => one - other))
    expect(new Set(revs).size).toBe(3)
  })

  it('O1: a shell that watches its jobs does not notice that one of them stood still', async (context) => {
    if (spawnSync('bash', ['--version']).status !== 0) context.skip('no bash')
    const engine = await openTestEngine()
    // With job control a shell goes on with its script when a job in the foreground is stopped.
    const script = 'set -m; bash -c "echo up; read line; exit 3"; echo "code $?"'
    const run = await engine.start({ command: ['bash', '-c', script], stdin: 'pipe', stop: quickStop })
    const lines: string[] = []
    for await (const event of run.events()) {
      if (event.type !== 'output') continue
      lines.push(event.line)
      if (event.line !== 'up') continue
      for (let round = 0; round < 5; round += 1) {
        expect(await run.pause()).toEqual(FROZEN)
        await run.resume()
      }
      run.write('go on\n')
    }
    expect(lines).toEqual(['up', 'code 3'])
    expect((await run.outcome).status).toBe('completed')
  })

  it('O1: who had stopped by itself stays stopped at the resumption, and dies of the stop', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'stopped-grandchild')
    await started.ready()
    const [grandchild] = started.alive().filter(({ role }) => role === 'grandchild')
    const state = (): string | undefined => statOf(grandchild?.pid ?? 0)?.state
    await waitFor(() => state() === 'T', { ...DEADLINE, what: 'the grandchild has stopped itself' })
    expect(await started.run.pause()).toEqual(FROZEN)
    await started.run.resume()
    await waitFor(() => statesOf(started).filter((one) => one === 'T').length === 1, {
      ...DEADLINE,
      what: 'the others go on',
    })
    expect(state()).toBe('T')
    expect((await started.run.cancel()).status).toBe('confirmed')
    expect(started.alive()).toEqual([])
  })

  it('O1: a member that someone else continues is stopped again', async () => {
    const engine = await openTestEngine(BY_SIGNAL)
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    await started.run.pause()
    for (const { pid } of started.alive()) process.kill(pid, 'SIGCONT')
    await waitFor(() => signalsOf(readLedger(started.ledger), 'grandchild').includes('SIGCONT'), {
      ...DEADLINE,
      what: 'the grandchild went on',
    })
    await waitFor(() => statesOf(started).every((state) => state === 'T'), {
      ...DEADLINE,
      what: 'all are stopped again',
    })
    expect(started.run.state.freeze?.status).toBe('frozen')
  })

  it('O1: a fork storm stands still, or is said not to; and can be ended from there', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'fork-storm')
    await started.ready()
    const { status, running } = await started.run.pause()
    if (status === 'frozen') {
      const tick = await startMetronome(engine)
      const entries = readLedger(started.ledger).members.length
      await tick()
      expect(readLedger(started.ledger).members).toHaveLength(entries)
    } else {
      expect(status).toBe('incomplete')
      expect(running.length).toBeGreaterThan(0)
    }
    expect((await started.run.cancel()).status).toBe('confirmed')
    expect(started.alive()).toEqual([])
  })

  it('O1: a process whose first thread has ended stands still too', async (context) => {
    if (spawnSync('python3', ['--version']).status !== 0) context.skip('no python3')
    const engine = await openTestEngine()
    const source = [
      'import ctypes, os, threading, time',
      'def beat():',
      '  for i in range(2000):',
      '    print(i, flush=True)',
      '    time.sleep(0.02)',
      '  os._exit(0)',
      'threading.Thread(target=beat).start()',
      'ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)',
    ].join('\n')
    const run = await engine.start({ command: ['python3', '-c', source], stop: quickStop })
    const lines: string[] = []
    const listening = (async () => {
      for await (const event of run.events()) if (event.type === 'output') lines.push(event.line)
    })()
    await waitFor(() => lines.length > 3, { ...DEADLINE, what: 'it beats' })
    const tick = await startMetronome(engine)
    expect(await run.pause()).toEqual(FROZEN)
    // What was written before may still be in the pipe.
    await tick()
    const before = lines.length
    await tick()
    expect(lines).toHaveLength(before)
    await run.resume()
    await waitFor(() => lines.length > before, { ...DEADLINE, what: 'it beats again' })
    await run.cancel()
    await listening
  })
})

describe('a freeze between a fork and its exec', () => {
  it('O1: a shell that starts one program after the other stands still, wherever in a vfork it is met', async () => {
    const engine = await openTestEngine(BY_SIGNAL)
    const command = ['sh', '-c', 'while :; do /bin/true; git --version >/dev/null; done']
    const run = await engine.start({ command, stop: quickStop })
    await waitFor(() => run.state.process === 'alive', { ...DEADLINE, what: 'it is launched' })
    for (let round = 0; round < 25; round += 1) {
      expect(await run.pause({ timeoutMs: 60_000 })).toEqual(FROZEN)
      expect(statOf(run.pid ?? 0)?.state).toBe('T')
      await run.resume()
      // Not always at the same place.
      await turns(round * 20)
    }
    expect((await run.cancel()).status).toBe('confirmed')
  })

  it('O1, INV-5: a child that never gets to its exec is named, and so is the parent that waits for it', async (context) => {
    if (spawnSync('python3', ['--version']).status !== 0) context.skip('no python3')
    const engine = await openTestEngine(BY_SIGNAL)
    // The flag of vfork alone: the parent waits, and the child has its memory to itself.
    const source = [
      'import ctypes, os, time',
      'print("up", flush=True)',
      'number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]',
      'ctypes.CDLL(None).syscall(number, 0x4000 | 17, 0, 0, 0, 0)',
      'time.sleep(600)',
    ].join('\n')
    const run = await engine.start({ command: ['python3', '-c', source], stop: quickStop })
    const pid = (): number => run.pid ?? 0
    await waitFor(() => statOf(pid())?.state === 'D', { ...DEADLINE, what: 'the parent waits' })
    const { status, running } = await run.pause({ timeoutMs: 60_000 })
    expect(status).toBe('incomplete')
    expect(running).toHaveLength(2)
    expect(running[0]).toMatchObject({ pid: pid(), state: 'D' })
    expect((await run.cancel()).status).toBe('confirmed')
  })
})

/** Root without the right to signal other users' processes. */
const canDropKill = (): boolean =>
  process.getuid?.() === 0 &&
  spawnSync('setpriv', ['--bounding-set=-kill', '--inh-caps=-kill', 'true']).status === 0

describe('a freeze that is not complete', () => {
  it('O1, INV-5: a member that may not be stopped is named, the state says so, the others stand still', async (context) => {
    if (!canDropKill()) context.skip('no setpriv, or not root')
    const { ledger, env } = withLedger()
    onTestFinished(() => endTree(ledger))
    const source = `
      import { createEngine } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)}
      import { readFileSync } from 'node:fs'
      const engine = await createEngine({ database: ':memory:', containment: { prefer: 'group+marks' } })
      const run = await engine.start({ command: ${JSON.stringify(fixtureCommand('deep-tree'))}, stop: { termGraceMs: 100, killGraceMs: 300 } })
      const read = () => { try { return readFileSync(process.env.FIXTURE_LEDGER, 'utf8') } catch { return '' } }
      while (!read().includes('"ready"')) await new Promise((resolve) => setTimeout(resolve, 20))
      const answer = await run.pause()
      const state = run.state
      const pids = read().split('\\n').filter((line) => line.includes('startTicks')).map((line) => JSON.parse(line).pid)
      const states = pids.map((pid) => readFileSync('/proc/' + pid + '/stat', 'latin1').split(') ')[1][0])
      await run.resume()
      const after = run.state
      console.log(JSON.stringify({ answer, state, states, after }))
      await engine.close({ deadlineMs: 1500 })
      process.exit()
    `
    const host = spawn(
      'setpriv',
      ['--bounding-set=-kill', '--inh-caps=-kill', process.execPath, '--input-type=module', '-e', source],
      { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    let text = ''
    host.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await new Promise((resolve) => host.once('close', resolve))
    const { answer, state, states, after } = JSON.parse(text) as Record<string, never>
    const [, , , deepest] = readLedger(ledger).members
    expect(answer).toMatchObject({
      status: 'incomplete',
      running: [{ pid: deepest?.pid, startTicks: deepest?.startTicks, error: 'EPERM' }],
    })
    expect(state).toMatchObject({
      headline: 'paused (incomplete)',
      freeze: { owner: 'user', status: 'incomplete', running: [{ pid: deepest?.pid }] },
      lastError: `EPERM for pid ${deepest?.pid ?? 0}`,
    })
    expect(states).toEqual(['T', 'T', 'T', 'S'])
    expect(after).toMatchObject({ process: 'alive', freeze: null })
  }, 60_000)
})

describe('the grace window', () => {
  it.each([
    ['no ask step', {}],
    ['an ask step, which is left out', { askGraceMs: 60_000 }],
  ])('O2: a pause that outlives it is an interrupt, TERM and KILL (%s)', async (_what, ask) => {
    const engine = await openTestEngine()
    const stop = { termGraceMs: 300, killGraceMs: 5_000, pauseGraceMs: 400, ...ask }
    const started = await startFixture(engine, 'stubborn-pair', { stop })
    await started.ready()
    await pauseShortly(started.run)
    expect(await started.run.outcome).toMatchObject({
      status: 'interrupted',
      reason: 'grace window passed while paused',
      signal: 'SIGKILL',
    })
    await started.run.gone
    expect(started.alive()).toEqual([])
    const effects = effectsOf(await transitionsOf(engine, started.run))
    expect(effects.filter((kind) => kind.startsWith('process.'))).toEqual([
      'process.launch',
      'process.freeze',
      'process.terminate',
      'process.kill',
      'process.release',
    ])
  })

  it('O3: without a declaration of its own, 5 000 ms lie between TERM and KILL, and then it is over', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'stubborn-pair', { stop: { pauseGraceMs: 200 } })
    await started.ready()
    await pauseShortly(started.run)
    await started.run.gone
    const transitions = await transitionsOf(engine, started.run)
    const at = (effect: string): number =>
      transitions.find(({ effects }) => effects.some(({ kind }) => kind === effect))?.at ?? 0
    const gone = transitions.at(-1)?.at ?? Infinity
    expect(at('process.kill') - at('process.terminate')).toBeGreaterThanOrEqual(4_990)
    expect(at('process.terminate') - at('process.freeze')).toBeGreaterThanOrEqual(190)
    // Window, 5 s and the kill's grace, with room for a busy machine.
    expect(gone - at('process.freeze')).toBeLessThan(200 + 5_000 + 2_000 + 3_000)
    expect(started.alive()).toEqual([])
  })

  it('O3: a grace that the driver declares is recorded with its reason', async () => {
    const database = join(tempDir(), 'runs.db')
    const engine = await openTestEngine({ database })
    const stop = { termGraceMs: 60_000, termGraceReason: 'it writes its session on TERM' }
    const run = await engine.start({ command: ['true'], stop })
    await run.gone
    const file = new BetterSqlite3(database, { readonly: true })
    onTestFinished(() => void file.close())
    const row = file.prepare('select snapshot from runwarden_run').get() as { snapshot: string }
    expect((JSON.parse(row.snapshot) as { context: { policy: unknown } }).context.policy).toMatchObject(stop)
    await expect(
      engine.start({ command: ['true'], stop: { termGraceReason: 'because' } }),
    ).rejects.toMatchObject({ code: 'invalid-option' })
  })
})

describe('who may pause and resume', () => {
  it('O4: between TERM and KILL both are refused, naming the reason', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'stubborn-pair', {
      stop: { termGraceMs: 60_000, killGraceMs: 5_000, pauseGraceMs: 1_000 },
    })
    await started.ready()
    await pauseShortly(started.run)
    await waitFor(() => started.run.state.process === 'term-sent', { ...DEADLINE, what: 'TERM is sent' })
    const why = /run .*being ended \(term-sent\) by interrupt: grace window passed while paused/
    for (const command of [started.run.pause(), started.run.resume()]) {
      await expect(command).rejects.toMatchObject({
        code: 'refused',
        message: expect.stringMatching(why) as string,
      })
    }
    expect(started.run.state.process).toBe('term-sent')
    await started.run.cancel({ force: true })
    await expect(started.run.pause()).rejects.toMatchObject({
      code: 'refused',
      message: expect.stringContaining('settled: cancelled') as string,
    })
  })

  it('O4: repeated pauses join, and so do resumptions; after close both are refused', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    const { run } = started
    expect(await Promise.all([run.pause(), run.pause(), run.pause()])).toEqual([FROZEN, FROZEN, FROZEN])
    expect(await run.pause()).toEqual(FROZEN)
    await Promise.all([run.resume(), run.resume()])
    await run.resume()
    const events = (await transitionsOf(engine, run)).map(({ event }) => event)
    expect(events.filter((event) => event === 'run.pause')).toHaveLength(1)
    expect(events.filter((event) => event === 'run.resume')).toHaveLength(1)
    await engine.close()
    await expect(run.pause()).rejects.toMatchObject({ code: 'engine-closing' })
    await expect(run.resume()).rejects.toMatchObject({ code: 'engine-closing' })
  })

  it('O4: pauses and resumptions in a heap end as the last one said', async () => {
    const engine = await openTestEngine(BY_SIGNAL)
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    const { run } = started
    const heap = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? run.pause() : run.resume()))
    await Promise.allSettled(heap)
    expect(run.state).toMatchObject({ process: 'alive', freeze: null })
    await beatsAgain(started.ledger, ['leader', 'child', 'grandchild'])
    await Promise.allSettled([run.resume(), run.pause(), run.resume(), run.pause()])
    expect(await run.pause()).toEqual(FROZEN)
    expect(statesOf(started)).toEqual(['T', 'T', 'T'])
  })

  it('O1, INV-11: a store that does not answer freezes nothing, and the caller is told in time', async () => {
    const database = join(tempDir(), 'runs.db')
    const engine = await openTestEngine({ database })
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    const other = new BetterSqlite3(database)
    onTestFinished(() => void other.close())
    other.exec('BEGIN EXCLUSIVE')
    await expect(started.run.pause({ timeoutMs: 20_000 })).rejects.toMatchObject({
      code: 'store-unavailable',
    })
    expect(statesOf(started)).not.toContain('T')
    other.exec('COMMIT')
    await waitFor(async () => (await started.run.pause()).status === 'frozen', {
      ...DEADLINE,
      what: 'the store answers',
    })
  })
})

describe('a store that others write to', () => {
  it('O1, O4: is waited for by a pause and a resumption, as by any other commit', async () => {
    const database = join(tempDir(), 'runs.db')
    let busy = 0
    const note = (_: unknown, message: string): void => {
      if (message.includes('did not take a commit')) busy += 1
    }
    const logger = { debug: () => undefined, info: () => undefined, warn: note, error: () => undefined }
    // The machine may be slow to give it back.
    const engine = await openTestEngine({ database, logger, commitDeadlineMs: 20_000 })
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    const other = new BetterSqlite3(database)
    onTestFinished(() => void other.close())
    const whileBusy = async <T>(command: () => Promise<T>): Promise<T> => {
      other.exec('BEGIN IMMEDIATE')
      const answer = command()
      const upTo = busy + 2
      await waitFor(() => busy >= upTo, { ...DEADLINE, what: 'it was busy twice' })
      other.exec('COMMIT')
      return answer
    }
    expect(await whileBusy(() => started.run.pause({ timeoutMs: 60_000 }))).toEqual(FROZEN)
    await whileBusy(() => started.run.resume({ timeoutMs: 60_000 }))
    await beatsAgain(started.ledger, ['leader', 'child', 'grandchild'])
  })
})

describe('ends while paused', () => {
  it('O6: a process that someone else kills in a frozen tree is its natural end, and the rest is swept', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    await started.run.pause()
    process.kill(started.run.pid ?? 0, 'SIGKILL')
    expect(await started.run.outcome).toMatchObject({
      status: 'failed',
      signal: 'SIGKILL',
      message: 'ended by signal SIGKILL',
    })
    expect((await started.run.gone).evidence).toMatchObject([{ kind: EMPTY }])
    expect(started.alive()).toEqual([])
  })

  it('O6: after the window an exit keeps its code, and the outcome is interrupted', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'exit-zero-on-term', { stop: { pauseGraceMs: 200 } })
    await started.ready()
    await pauseShortly(started.run)
    expect(await started.run.outcome).toMatchObject({ status: 'interrupted', exitCode: 0, signal: null })
  })

  it('O6: an agent that is paused and cancelled with an ask step is thawed, asked, and may end well', async () => {
    const engine = await openTestEngine()
    const command = ['sh', '-c', 'echo up; cat; echo saved; exit 5']
    const stop = { ...quickStop, askGraceMs: 20_000 }
    const run = await engine.start({ command, stdin: 'pipe', stop })
    for await (const event of run.events()) if (event.type === 'output') break
    expect(await run.pause()).toEqual(FROZEN)
    const outputs = run.events()
    expect((await run.cancel()).status).toBe('confirmed')
    expect(await run.outcome).toMatchObject({ status: 'cancelled', exitCode: 5 })
    const lines: string[] = []
    for await (const event of outputs) if (event.type === 'output') lines.push(event.line)
    expect(lines).toContain('saved')
  })

  it('O10: paused runs are ended by close, thawed before their TERM; twice at once is once', async () => {
    const engine = await openTestEngine()
    const started = await Promise.all(
      ['heartbeat', 'exit-zero-on-term', 'stubborn-pair'].map((name) => startFixture(engine, name)),
    )
    await Promise.all(started.map((one) => one.ready()))
    await Promise.all(started.map(({ run }) => run.pause()))
    expect(await Promise.all([engine.close(), engine.close({ runs: 'cancel' })])).toEqual([
      { left: [] },
      { left: [] },
    ])
    expect(started.flatMap((one) => one.alive())).toEqual([])
    const outcomes = await Promise.all(started.map(({ run }) => run.outcome))
    expect(outcomes.map(({ status, exitCode }) => [status, exitCode])).toEqual([
      ['interrupted', null],
      ['interrupted', 0],
      ['interrupted', null],
    ])
  })

  it('O10: a paused run that is left goes on without an engine', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'heartbeat')
    onTestFinished(() => endTree(started.ledger))
    await started.ready()
    await started.run.pause()
    expect(await engine.close({ runs: 'leave' })).toEqual({ left: [started.run.id] })
    await beatsAgain(started.ledger, ['leader', 'child', 'grandchild'])
  })

  it('O10: close while a pause and a launch are under way leaves nothing', async () => {
    const engine = await openTestEngine()
    const places = Array.from({ length: 4 }, withLedger)
    const runs = await Promise.all(
      places.map(({ env }) =>
        engine.start({
          command: fixtureCommand('stubborn-pair'),
          env: { ...process.env, ...env },
          stop: quickStop,
        }),
      ),
    )
    const pauses = Promise.allSettled(runs.map((run) => run.pause()))
    expect(await engine.close()).toEqual({ left: [] })
    await pauses
    for (const run of runs) expect((await run.outcome).status).toBe('interrupted')
    for (const { ledger } of places) expect(aliveOf(readLedger(ledger))).toEqual([])
  })
})

describe('a launch that is to be paused', () => {
  it('O8: is frozen as soon as it is there', async () => {
    const engine = await openTestEngine(BY_SIGNAL)
    const place = withLedger()
    const run = await engine.start({
      command: fixtureCommand('heartbeat'),
      env: { ...process.env, ...place.env },
      stop: quickStop,
    })
    expect(await run.pause()).toEqual(FROZEN)
    const identity = identityOf(run.pid ?? 0)
    expect(statOf(run.pid ?? 0)?.state).toBe('T')
    const events = (await transitionsOf(engine, run)).map(({ event }) => event)
    expect(events.indexOf('run.pause')).toBeLessThan(events.indexOf('process.launched'))
    // It was stopped before it could do anything.
    expect(readLedger(place.ledger).readyAt).toBeUndefined()
    await run.resume()
    await waitFor(() => readLedger(place.ledger).readyAt !== undefined, { ...DEADLINE, what: 'it comes up' })
    expect(identity !== undefined && isAlive(identity)).toBe(true)
  })

  it('O8: a fallback is frozen as its predecessor was', async () => {
    const engine = await openTestEngine()
    const place = withLedger()
    const run = await engine.start({
      command: ['/no/such/program'],
      env: { ...process.env, ...place.env },
      stop: quickStop,
      fallback: { candidates: [{ command: fixtureCommand('heartbeat') }] },
    })
    expect(await run.pause()).toEqual(FROZEN)
    expect(run.state).toMatchObject({ attempt: 2, process: 'frozen' })
    expect(readLedger(place.ledger).readyAt).toBeUndefined()
  })
})
