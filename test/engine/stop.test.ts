/** Stopping: the intent, the ladder, the receipt. Real processes, a real SQLite file. */
import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { EMPTY, TIER, openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { processesWith } from '../support/proc-reader.js'
import { waitFor } from '../support/wait-for.js'

const sleeper = ['sleep', '60']

describe('one run', () => {
  it('P1: the intent is in force when cancel returns its promise, before anything is awaited', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'exit-zero-on-term')
    await started.ready()
    const receipt = started.run.cancel({ reason: 'first' })
    // The exit that the TERM brings comes later than the intent: it is no completion.
    const { runs } = await receipt
    expect(runs).toMatchObject([{ status: 'confirmed', work: 'cancelled', repeated: false }])
    expect(await started.run.outcome).toMatchObject({ status: 'cancelled', exitCode: 0, reason: 'first' })
    expect(started.alive()).toEqual([])
  })

  it('P4: a cancel while the launch is in flight ends what was launched, at once', async () => {
    const engine = await openTestEngine()
    for (let round = 0; round < 10; round += 1) {
      const run = await engine.start({ command: sleeper, stop: quickStop })
      const receipt = await run.cancel()
      expect(receipt.status).toBe('confirmed')
      expect(await run.outcome).toMatchObject({ status: 'cancelled' })
      expect(engine.live()).toEqual([])
    }
  })

  it('P5: a cancel before any launch settles cancelled, and nothing is spawned', async () => {
    const engine = await openTestEngine()
    const starting = engine.start({ id: 'early', command: ['touch', '/proc/never'], stop: quickStop })
    const receipt = await engine.run('early')?.cancel()
    const run = await starting
    expect(receipt).toMatchObject({ status: 'confirmed', runs: [{ evidence: [{ kind: 'never-launched' }] }] })
    expect(await run.outcome).toMatchObject({ status: 'cancelled', exitCode: null, signal: null })
    const { executions, transitions } = await engine.history('early')
    expect(executions).toEqual([])
    expect(transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))).not.toContain(
      'process.launch',
    )
  })

  it('P6: a cancel after the natural end is answered already-terminal, and signals nothing', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({ command: ['sh', '-c', 'exit 7'] })
    const outcome = await run.outcome
    await run.gone
    const receipt = await run.cancel()
    expect(receipt).toMatchObject({
      status: 'nothing-to-stop',
      runs: [{ status: 'already-terminal', work: 'failed' }],
    })
    expect(await run.outcome).toBe(outcome)
    const { transitions } = await engine.history(run.id)
    expect(transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))).not.toContain(
      'process.terminate',
    )
  })

  it('P7: a second cancel joins the first kill, and keeps its time', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const [first, second] = await Promise.all([
      started.run.cancel({ reason: 'one' }),
      started.run.cancel({ reason: 'two' }),
    ])
    expect(first.runs[0]).toMatchObject({ status: 'confirmed', repeated: false })
    expect(second.runs[0]).toMatchObject({ status: 'confirmed', repeated: true })
    expect(second.runs[0]?.requestedAt).toBe(first.runs[0]?.requestedAt)
    const { transitions } = await engine.history(started.run.id)
    const kinds = transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))
    expect(kinds.filter((kind) => kind === 'process.kill')).toHaveLength(1)
    const third = await started.run.cancel()
    expect(third.runs[0]?.status).toBe('already-terminal')
  })

  it('K18: a forced stop upgrades a graceful one, and a graceful one never downgrades it', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term', {
      stop: { termGraceMs: 60_000, killGraceMs: 5_000 },
    })
    await started.ready()
    const graceful = started.run.cancel()
    await waitFor(() => started.run.state.process === 'term-sent', {
      deadlineMs: 10_000,
      what: 'TERM is sent',
    })
    const forced = started.run.cancel({ force: true })
    const again = started.run.interrupt()
    for (const receipt of await Promise.all([graceful, forced, again])) {
      expect(receipt.runs[0]?.status).toBe('confirmed')
    }
    expect((await started.run.outcome).status).toBe('cancelled')
    expect(started.alive()).toEqual([])
  })

  it('P2: an interrupt that becomes a cancel ends cancelled, with both times on record', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const [, receipt] = await Promise.all([
      started.run.interrupt({ reason: 'later' }),
      started.run.cancel({ reason: 'for good' }),
    ])
    expect(receipt.runs[0]).toMatchObject({ status: 'confirmed', work: 'cancelled' })
    const outcome = await started.run.outcome
    expect(outcome).toMatchObject({ status: 'cancelled', reason: 'for good' })
    expect(outcome.cancellation?.confirmedAt).toBeGreaterThanOrEqual(
      outcome.cancellation?.requestedAt ?? Infinity,
    )
  })

  it('P10: the cancellation record names who asked, why and when, and when it was confirmed', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({ command: sleeper, stop: quickStop })
    await run.cancel({ by: 'operator', reason: 'enough' })
    const { cancellation, ...outcome } = await run.outcome
    expect(outcome).toMatchObject({ status: 'cancelled', message: 'cancelled' })
    expect(cancellation).toMatchObject({ by: 'operator', reason: 'enough', termination: 'confirmed' })
    expect(cancellation?.confirmedAt).toBeGreaterThanOrEqual(cancellation?.requestedAt ?? Infinity)
  })

  it('P20: aborting the signal of a wait ends the wait only; the signal of a run cancels it', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const wait = new AbortController()
    const waiting = started.run.cancel({ signal: wait.signal })
    wait.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'refused' })
    expect((await started.run.outcome).status).toBe('cancelled')

    const life = new AbortController()
    const run = await engine.start({ command: sleeper, stop: quickStop, signal: life.signal })
    life.abort()
    expect((await run.outcome).cancellation?.by).toBe('signal')
  })

  it('P9, P11: a failure before progress starts the next candidate once the first tree is gone, and both are evidence', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({
      command: ['sh', '-c', 'sleep 60 & exit 3'],
      stop: quickStop,
      fallback: { candidates: [{ command: ['no-such-program'] }, { command: ['sh', '-c', 'echo done'] }] },
    })
    expect(await run.outcome).toMatchObject({ status: 'completed', attempt: 3 })
    const { evidence } = await run.gone
    expect(evidence.map(({ attempt, kind }) => [attempt, kind])).toEqual([
      [1, EMPTY],
      [2, 'never-launched'],
      [3, EMPTY],
    ])
    const { executions } = await engine.history(run.id)
    expect(executions).toHaveLength(3)
    // INV-8: each is confirmed before the next is launched.
    for (const [index, execution] of executions.entries()) {
      const next = executions[index + 1]
      if (next !== undefined) expect(execution.confirmedAt).toBeLessThanOrEqual(next.requestedAt ?? 0)
    }
  })
})

describe('scopes', () => {
  it('K14: a task is stopped whole, and only it; the receipt has a line for each run', async () => {
    const engine = await openTestEngine()
    const inTask = await Promise.all(
      [1, 2, 3].map((n) =>
        engine.start({ id: `in-${String(n)}`, task: 't7', command: sleeper, stop: quickStop }),
      ),
    )
    const outside = await engine.start({ task: 't8', command: sleeper, stop: quickStop })
    const receipt = await engine.stop({ task: 't7' }, { reason: 'task closed' })
    expect(receipt.status).toBe('confirmed')
    expect(receipt.lookup).toBe('complete')
    expect(receipt.runs.map(({ runId }) => runId).sort()).toEqual(inTask.map(({ id }) => id))
    expect(outside.state.headline).not.toBe('cancelled')
    expect(engine.live().map(({ runId }) => runId)).toEqual([outside.id])
    const byLabel = await engine.stop({ labels: { user: 'nobody' } })
    await expect(engine.stop({ labels: {} })).rejects.toMatchObject({ code: 'invalid-option' })
    expect(byLabel).toMatchObject({ status: 'nothing-to-stop', runs: [] })
  })

  it('K14, INV-3: settled work with a tree still there is terminated, and its outcome stands', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'leader-exits-child-stays', {
      stop: { termGraceMs: 60_000, killGraceMs: 5_000 },
      args: [],
    })
    const outcome = await started.run.outcome
    expect(outcome).toMatchObject({ status: 'completed', exitCode: 0 })
    const receipt = await engine.stop({ run: started.run.id }, { mode: 'terminate', force: true })
    expect(['confirmed', 'nothing-to-stop']).toContain(receipt.status)
    expect(receipt.runs[0]?.work).toBe('completed')
    expect(await started.run.outcome).toBe(outcome)
    expect(started.alive()).toEqual([])
  })

  it('K16: a fence refuses launches in the scope until the order settles', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term', { session: 's1' })
    await started.ready()
    const stopping = engine.stop({ session: 's1' })
    await expect(engine.start({ session: 's1', command: sleeper })).rejects.toMatchObject({
      code: 'scope-stopped',
    })
    const other = await engine.start({ session: 's2', command: ['true'] })
    expect((await stopping).status).toBe('confirmed')
    const after = await engine.start({ session: 's1', command: ['true'] })
    expect((await other.outcome).status).toBe('completed')
    expect((await after.outcome).status).toBe('completed')
  })

  it('K17: a launch that registers while a scope is being resolved does not escape it', async () => {
    const engine = await openTestEngine()
    for (let round = 0; round < 20; round += 1) {
      const task = `t${String(round)}`
      const starts = [1, 2, 3].map(() =>
        engine.start({ task, command: sleeper, stop: quickStop }).then(
          (run) => run,
          (error: unknown) => error as { code: string },
        ),
      )
      const receipt = await engine.stop({ task })
      for (const started of await Promise.all(starts)) {
        if ('code' in started) expect(started.code).toBe('scope-stopped')
        else expect((await started.outcome).status).toBe('cancelled')
      }
      expect(['confirmed', 'nothing-to-stop']).toContain(receipt.status)
      expect(engine.live()).toEqual([])
    }
  })

  it('K20: what is still running is a question with an answer', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'grandchild-ignores-term')
    await started.ready()
    const [live] = engine.live()
    expect(live).toMatchObject({
      runId: started.run.id,
      attempt: 1,
      containment: TIER,
      pid: started.run.pid,
    })
    expect(live?.rssBytes).toBeGreaterThan(0)
    expect(live?.ageMs).toBeGreaterThanOrEqual(0)
    await started.run.cancel()
    expect(engine.live()).toEqual([])
  })

  it('K15: a stop that names a run which is nowhere is refused whole', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({ id: 'here', command: sleeper, stop: quickStop })
    await expect(engine.stop({ run: ['here', 'nowhere'] })).rejects.toMatchObject({ code: 'unknown-run' })
    expect(run.state.intent).toBeNull()
    expect((await engine.stop({ run: ['here'] })).status).toBe('confirmed')
  })

  it('K15: an unknown run is an error, not a receipt; an order with nothing to do says so', async () => {
    const engine = await openTestEngine()
    await expect(engine.stop({ run: 'nowhere' })).rejects.toMatchObject({ code: 'unknown-run' })
    expect((await engine.stop({ all: true })).status).toBe('nothing-to-stop')
  })
})

describe('many runs', () => {
  it('K14, INV-5: 200 runs of two processes, one scope order: all confirmed, none left', async () => {
    const engine = await openTestEngine()
    const mark = randomUUID()
    const runs = await Promise.all(
      Array.from({ length: 200 }, () =>
        engine.start({
          task: 'many',
          env: { ...process.env, MANY: mark },
          command: ['sh', '-c', 'sleep 60 & wait'],
          stop: { termGraceMs: 2_000, killGraceMs: 10_000 },
        }),
      ),
    )
    await waitFor(() => engine.live().length === 200, { deadlineMs: 60_000, what: '200 live executions' })
    const receipt = await engine.stop({ task: 'many' }, { timeoutMs: 60_000 })
    expect(receipt.status).toBe('confirmed')
    expect(receipt.runs.filter(({ status }) => status === 'confirmed')).toHaveLength(200)
    expect(engine.live()).toEqual([])
    expect(processesWith(`MANY=${mark}`)).toEqual([])
    const outcomes = await Promise.all(runs.map((run) => run.outcome))
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['cancelled']))
  }, 180_000)
})
