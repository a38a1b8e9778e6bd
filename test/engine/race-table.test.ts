/**
 * The race table once more, on real processes: the cancel comes in the tick in which a point was recorded, or while a point that a fixture
 * holds open has not come. Some cells have stood elsewhere for long: launch starts (P5), kill pending (P7) and interrupting (P2) in
 * stop.test.ts, kill failed (P8) in unconfirmed.test.ts; race-table-simulated.test.ts has them all.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Engine, Run, RunHistory, RunSpec, StopReceipt } from '../../src/index.js'
import { openBackdoor, testDatabase } from '../support/database.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const other = { candidates: [{ command: ['true'] as [string] }] }

/** Starts a run that is cancelled in the tick in which the event is on record. */
const cancelledAt = async (
  engine: Engine,
  event: string,
  spec: RunSpec,
): Promise<{ readonly run: Run; readonly receipt: StopReceipt }> => {
  const cancelled = new Promise<StopReceipt>((resolve, reject) => {
    const stopListening = engine.subscribe((heard) => {
      if (heard.type !== 'transition' || heard.event !== event) return
      stopListening()
      engine.run(heard.runId)?.cancel({ reason: 'enough' }).then(resolve, reject)
    })
  })
  const run = await engine.start({ stop: quickStop, ...spec })
  return { run, receipt: await cancelled }
}

const effectsOf = ({ transitions }: RunHistory): readonly string[] =>
  transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))
const launchesOf = (history: RunHistory): number =>
  effectsOf(history).filter((kind) => kind === 'process.launch').length

const CANCELLED = { status: 'confirmed', work: 'cancelled' }

describe('launch', () => {
  const sleeper: RunSpec = { command: ['sleep', '60'], fallback: other }
  const missing: RunSpec = { command: ['no-such-program'] }

  it.each([
    ['P4: while it is in flight: ended at once when it is there', 'run.admitted', sleeper],
    ['P1: once it has succeeded: the normal ladder', 'process.launched', sleeper],
    [
      'P4, INV-7: before it fails, candidates left: cancelled',
      'run.admitted',
      { ...missing, fallback: other },
    ],
    [
      'P2, INV-7: after it failed, candidates left: cancelled',
      'process.launch-failed',
      { ...missing, fallback: other },
    ],
    ['P4: before it fails, none left: cancelled', 'run.admitted', missing],
  ])('%s', async (_, event, spec) => {
    const engine = await openTestEngine()
    const { run, receipt } = await cancelledAt(engine, event, spec)
    expect(receipt.runs).toMatchObject([CANCELLED])
    expect(await run.outcome).toMatchObject({ status: 'cancelled', reason: 'enough' })
    await run.gone
    expect(engine.live()).toEqual([])
    expect(launchesOf(await engine.history(run.id))).toBe(1)
  })

  it('P6: after it failed, none left: already-terminal', async () => {
    const engine = await openTestEngine()
    const { run, receipt } = await cancelledAt(engine, 'process.launch-failed', missing)
    expect(receipt).toMatchObject({
      status: 'nothing-to-stop',
      runs: [{ status: 'already-terminal', work: 'failed' }],
    })
    expect(await run.outcome).toMatchObject({ status: 'failed', code: 'ENOENT' })
  })
})

describe('exit', () => {
  /** Deaf to TERM; exits with 3 when it is told to. */
  const held = (): { readonly spec: RunSpec; readonly go: () => void } => {
    const goFile = join(tempDir(), 'go')
    const script = 'trap "" TERM; while [ ! -e "$1" ]; do sleep 0.02; done; exit 3'
    return {
      spec: {
        command: ['sh', '-c', script, 'sh', goFile],
        stop: { termGraceMs: 60_000, killGraceMs: 5_000 },
      },
      go: () => {
        writeFileSync(goFile, '')
      },
    }
  }
  const isTermSent = (run: Run) => () => run.state.process === 'term-sent'
  const noFallback = { ...other, when: () => false }

  it.each([
    ['P3, P10: not fallback-eligible, before it: cancelled, the exit code kept', noFallback],
    ['P2, INV-7: fallback-eligible, before it: cancelled, the exit code kept', other],
  ])('%s', async (_, fallback) => {
    const engine = await openTestEngine()
    const { spec, go } = held()
    const run = await engine.start({ ...spec, fallback })
    await waitFor(() => run.state.process === 'alive', { deadlineMs: 20_000, what: 'it is launched' })
    const receipt = run.cancel()
    await waitFor(isTermSent(run), { deadlineMs: 20_000, what: 'TERM is sent' })
    go()
    expect((await receipt).runs).toMatchObject([CANCELLED])
    expect(await run.outcome).toMatchObject({ status: 'cancelled', exitCode: 3 })
    expect(launchesOf(await engine.history(run.id))).toBe(1)
  })

  it('P3, P6: not fallback-eligible, after it: already-terminal, and no signal is sent', async () => {
    const engine = await openTestEngine()
    const { spec, go } = held()
    go()
    const { run, receipt } = await cancelledAt(engine, 'process.exited', { ...spec, fallback: noFallback })
    expect(receipt.runs).toMatchObject([{ status: 'already-terminal', work: 'failed' }])
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 3 })
    await run.gone
    const effects = effectsOf(await engine.history(run.id))
    expect(effects.filter((kind) => ['process.terminate', 'process.kill'].includes(kind))).toEqual([])
  })

  it('P2, INV-7: fallback-eligible, after it: cancelled, and there is no next candidate', async () => {
    const engine = await openTestEngine()
    const { spec, go } = held()
    go()
    const { run, receipt } = await cancelledAt(engine, 'process.exited', { ...spec, fallback: other })
    expect(receipt.runs).toMatchObject([CANCELLED])
    expect(await run.outcome).toMatchObject({ status: 'cancelled' })
    expect(launchesOf(await engine.history(run.id))).toBe(1)
  })
})

describe('leader gone, members left', () => {
  it('INV-5: before: the ladder goes on, and it is cancelled when the tree is empty', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'exits-on-term-child-ignores')
    await started.ready()
    const receipt = await started.run.cancel()
    expect(receipt.runs).toMatchObject([CANCELLED])
    expect(started.alive()).toEqual([])
    expect(await started.run.outcome).toMatchObject({ status: 'cancelled', exitCode: 0 })
    expect(effectsOf(await engine.history(started.run.id))).toContain('process.kill')
  })

  it('INV-3, L2: after: the outcome stays natural, and the answer waits for the sweep', async () => {
    const engine = await openTestEngine()
    const { ledger, env } = withLedger()
    const { run, receipt } = await cancelledAt(engine, 'process.exited', {
      command: fixtureCommand('leader-exits-child-stays'),
      env: { ...process.env, ...env },
    })
    expect(receipt.runs).toMatchObject([{ status: 'already-terminal', work: 'completed', isLive: true }])
    expect(aliveOf(readLedger(ledger))).toEqual([])
    expect(await run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
  })
})

describe('settled', () => {
  it.each(['finalizing', 'delivering'] as const)('P6, P17: %s: already-terminal', async (state) => {
    const answer = { finalize: (): void => undefined, deliver: (): void => undefined }
    const hook = (name: 'finalize' | 'deliver') => () =>
      new Promise<void>((resolve) => (answer[name] = resolve))
    const engine = await openTestEngine({
      delivery: { finalize: hook('finalize'), deliver: hook('deliver') },
    })
    const run = await engine.start({ command: ['true'] })
    const reaches = (delivery: string) =>
      waitFor(
        () => {
          if (delivery === 'delivering') answer.finalize()
          return run.state.delivery === delivery
        },
        { deadlineMs: 20_000, what: `it is ${delivery}` },
      )
    await reaches(state)
    expect((await run.cancel()).runs).toMatchObject([{ status: 'already-terminal', work: 'completed' }])
    expect(run.state.delivery).toBe(state)
    await reaches('delivering')
    await waitFor(
      () => {
        answer.deliver()
        return run.state.delivery === 'delivered'
      },
      { deadlineMs: 20_000, what: 'it is delivered' },
    )
    expect(await run.outcome).toMatchObject({ status: 'completed' })
  })

  it('K6, INV-15: never-started, teardown going: already-terminal for the work, and the answer waits for the teardown', async () => {
    const engine = await openTestEngine()
    const { ledger, env } = withLedger()
    const { run, receipt } = await cancelledAt(engine, 'watchdog.silent', {
      command: fixtureCommand('stubborn-agent'),
      env: { ...process.env, ...env },
      watchdog: { neverStartedMs: 1_000 },
      // It prints a few lines, and none of them is read as progress.
      protocol: { name: 'mute', hasWatchdog: true, isInteractive: false, open: () => mute },
    })
    expect(receipt.runs).toMatchObject([
      { status: 'already-terminal', work: 'failed-never-started', isLive: true },
    ])
    expect(receipt.runs[0]?.confirmedAt).toBeGreaterThanOrEqual(receipt.requestedAt)
    expect(aliveOf(readLedger(ledger))).toEqual([])
    expect(await run.outcome).toMatchObject({ status: 'failed-never-started' })
  })
})

const mute = {
  openTools: [],
  unknownFrames: new Map<string, number>(),
  push: () => undefined,
  end: () => undefined,
}

describe('engine closing', () => {
  it.each([
    ['O10: before: the ladder goes as ordered', true],
    ['O10: after: it joins, and is the stronger one', false],
  ])('%s', async (_, isBefore) => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const first = isBefore ? started.run.cancel() : engine.close()
    await waitFor(() => started.run.state.process === 'term-sent', {
      deadlineMs: 20_000,
      what: 'TERM is sent',
    })
    const second = isBefore ? engine.close() : started.run.cancel()
    const [cancelling, closing] = isBefore ? [first, second] : [second, first]
    expect(((await cancelling) as StopReceipt).runs).toMatchObject([CANCELLED])
    expect(await closing).toEqual({ left: [] })
    expect(await started.run.outcome).toMatchObject({ status: 'cancelled' })
    expect(started.alive()).toEqual([])
  })
})

describe('engine died', () => {
  const dist = new URL('../../dist/index.js', import.meta.url).href

  /** A host that cancels when it is told to, and dies when that is on record. */
  const startHost = async () => {
    const database = await testDatabase()
    const { ledger, env } = withLedger()
    onTestFinished(() => endTree(ledger))
    const source = `
      import { createEngine } from ${JSON.stringify(dist)}
      const engine = await createEngine({ database: ${JSON.stringify(database)}, commitDeadlineMs: 60_000 })
      const run = await engine.start({
        id: 'r1', command: ${JSON.stringify(fixtureCommand('ignore-term'))}, stop: { termGraceMs: 300, killGraceMs: 5_000 },
      })
      engine.subscribe(({ type, event }) => {
        if (type === 'transition' && event === 'run.cancel') process.kill(process.pid, 'SIGKILL')
      })
      process.stdin.once('data', () => {
        void run.cancel({ reason: 'enough' }).finally(() => console.log('answered'))
        console.log('asked')
      })
    `
    const host = spawn(process.execPath, ['--input-type=module', '-e', source], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const said: string[] = []
    host.stdout.on('data', (chunk: Buffer) => said.push(chunk.toString()))
    const ended = once(host, 'exit')
    onTestFinished(async () => {
      host.kill('SIGKILL')
      await ended
    })
    await waitFor(() => readLedger(ledger).readyAt !== undefined, {
      deadlineMs: 60_000,
      what: 'the tree is up',
    })
    return { database, ledger, host, said, ended }
  }

  it("INV-13, P2: after the intent's commit: recovery finishes it", async () => {
    const { database, ledger, host, said, ended } = await startHost()
    host.stdin.write('go\n')
    await ended
    const engine = await openTestEngine({ database })
    const run = engine.run('r1')
    expect(await run?.outcome).toMatchObject({ status: 'cancelled', reason: 'enough' })
    expect(aliveOf(readLedger(ledger))).toEqual([])
    expect(said.join('')).not.toContain('answered')
  }, 120_000)

  it('INV-13, INV-1: before the commit: as if no cancel was asked, and the caller never got an answer', async () => {
    const { database, ledger, host, said, ended } = await startHost()
    const unlock = await (await openBackdoor(database)).lock()
    host.stdin.write('go\n')
    await waitFor(() => said.join('').includes('asked'), {
      deadlineMs: 60_000,
      what: 'the cancel is asked for',
    })
    // INV-1: nobody was signalled.
    expect(readLedger(ledger).signals).toEqual([])
    host.kill('SIGKILL')
    await ended
    await unlock()
    const engine = await openTestEngine({ database })
    const outcome = await engine.run('r1')?.outcome
    expect(outcome).toMatchObject({ status: 'interrupted', reason: 'the engine that ran it died' })
    expect(outcome).not.toHaveProperty('cancellation')
    expect(aliveOf(readLedger(ledger))).toEqual([])
    expect(said.join('')).not.toContain('answered')
  }, 120_000)
})
