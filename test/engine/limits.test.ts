/** Limits of time and output, on real processes. */
import { describe, expect, it } from 'vitest'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

const sh = (script: string): [string, ...string[]] => ['sh', '-c', script]

describe('a time limit', () => {
  it('O15: interrupts the run by the same ladder, with a reason that names the limit and its value', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'stubborn-pair', { limits: { timeoutMs: 1_500 } })
    expect(await started.run.outcome).toMatchObject({
      status: 'interrupted',
      reason: 'limit timeoutMs exceeded: more than 1500 ms, frozen time left out',
      signal: 'SIGKILL',
    })
    await started.run.gone
    expect(started.alive()).toEqual([])
    const { transitions } = await engine.history(started.run.id)
    const effects = transitions.flatMap(({ effects: all }) => all.map(({ kind }) => kind))
    expect(effects).toEqual(expect.arrayContaining(['process.terminate', 'process.kill']))
  })

  it('O15: one beyond 2³¹ ms does not fire at once, and is gone with the run', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({ command: sh('sleep 0.3'), limits: { timeoutMs: 2 ** 31 + 1 } })
    expect((await run.outcome).status).toBe('completed')
  })

  it('O15: it is one for all attempts, and no attempt follows it', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({
      command: sh('exit 1'),
      stop: quickStop,
      limits: { timeoutMs: 4_000 },
      fallback: {
        candidates: [{ command: ['sleep', '60'] }, { command: ['true'] }],
      },
    })
    expect(await run.outcome).toMatchObject({ status: 'interrupted', attempt: 2 })
  })

  it('O7, O15: the time that a run is frozen is not counted, what is left of it is', async () => {
    const engine = await openTestEngine()
    const spec = { command: ['sleep', '60'], stop: quickStop, limits: { timeoutMs: 1_500 } }
    const paused = await engine.start(spec)
    expect((await paused.pause()).status).toBe('frozen')
    // Begun later, and over: more than the limit has passed for both.
    const other = await engine.start(spec)
    expect((await other.outcome).status).toBe('interrupted')
    expect(paused.state).toMatchObject({ process: 'frozen', intent: null })
    await paused.resume()
    expect(paused.state).toMatchObject({ process: 'alive', intent: null })
    expect((await paused.outcome).reason).toContain('limit timeoutMs exceeded')
  })
})

describe('an output limit', () => {
  it('O15: counts the bytes of both streams, and one byte more than it interrupts', async () => {
    const engine = await openTestEngine()
    const script = (more: string) => sh(`printf 12345; printf 67890 >&2; ${more} exec sleep 30`)
    const [within, beyond] = await Promise.all(
      ['', 'printf x;'].map((more) =>
        engine.start({ command: script(more), stop: quickStop, limits: { maxOutputBytes: 10 } }),
      ),
    )
    expect(await beyond?.outcome).toMatchObject({
      status: 'interrupted',
      reason: 'limit maxOutputBytes exceeded: more than 10 bytes of output',
    })
    expect(within?.state).toMatchObject({ intent: null, isSettled: false })
    await within?.cancel()
  })

  it('O15: a flood is ended soon, and what ended well before its output was read has its own outcome', async () => {
    const engine = await openTestEngine()
    const flood = await startFixture(engine, 'flood', { limits: { maxOutputBytes: 100_000 } })
    expect(await flood.run.outcome).toMatchObject({ status: 'interrupted' })
    const quick = await engine.start({ command: sh('printf 12345'), limits: { maxOutputBytes: 1 } })
    const { status } = await quick.outcome
    expect(['completed', 'interrupted']).toContain(status)
    await quick.gone
    expect((await quick.outcome).status).toBe(status)
  })

  it('O15: together with a cancel the cancel stands', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'flood', { limits: { maxOutputBytes: 1 } })
    const receipt = await started.run.cancel({ reason: 'enough' })
    expect(receipt.runs[0]?.status).toBe('confirmed')
    expect(await started.run.outcome).toMatchObject({ status: 'cancelled', reason: 'enough' })
  })

  it.each([
    [{ timeoutMs: 0 }, /limits\.timeoutMs must be at least 1, got 0/],
    [{ timeoutMs: 1.5 }, /whole number/],
    [{ maxOutputBytes: 0 }, /limits\.maxOutputBytes must be at least 1/],
    [{ cpuMs: 5 }, /unknown option limits\.cpuMs/],
  ])('O15: %j is refused by name', async (limits, message) => {
    const engine = await openTestEngine()
    await expect(engine.start({ command: ['true'], limits } as never)).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(message) as string,
    })
    await waitFor(() => engine.live().length === 0, { deadlineMs: 5_000, what: 'nothing was launched' })
  })
})
