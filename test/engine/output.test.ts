/** Output: bounded, complete in the log, and never in the way of a stop. */
import { describe, expect, it } from 'vitest'
import type { RunEventOut } from '../../src/index.js'
import { testDatabase } from '../support/database.js'
import { kill } from '../support/end-tree.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'

const MIB = 1024 * 1024

const collect = async (events: AsyncIterable<RunEventOut>): Promise<RunEventOut[]> => {
  const all: RunEventOut[] = []
  for await (const event of events) all.push(event)
  return all
}

describe('draining', () => {
  it('L2: the outcome is decided on exit, and a pipe that the sweep empties is read to its end', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'background-sleeper', {
      stop: { termGraceMs: 30_000, killGraceMs: 5_000 },
    })
    const events = collect(started.run.events())
    expect(await started.run.outcome).toMatchObject({ status: 'completed', exitCode: 0 })
    await started.run.gone
    expect((await events).find(({ type }) => type === 'output-ended')).toMatchObject({ isCut: false })
    expect(started.alive()).toEqual([])
  })

  it('L2: a pipe that someone outside the tree holds is cut, and noted', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'mark-shedding-daemon', { output: { drainMs: 200 } })
    await started.ready()
    const events = collect(started.run.events())
    await started.run.cancel()
    const ended = (await events).find(({ type }) => type === 'output-ended')
    expect(ended).toMatchObject({ type: 'output-ended' })
    started.alive().forEach(kill)
  })
})

describe('lines', () => {
  it('L3: a line of 20 MiB is truncated and marked, and the later ones are whole', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'long-line', { output: { maxLineBytes: MIB } })
    const lines = (await collect(started.run.events())).filter((event) => event.type === 'output')
    const long = lines.filter(({ isTruncated }) => isTruncated)
    expect(long).toHaveLength(1)
    expect(long[0]?.line).toHaveLength(MIB)
    expect(lines.at(-1)).toMatchObject({ isTruncated: false })
    expect(lines.length).toBeGreaterThan(2)
  })

  it('L3: a listener that does not read loses output, counted, and holds up nothing', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({
      command: ['sh', '-c', 'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done'],
    })
    const slow = run.events()
    expect((await run.outcome).status).toBe('completed')
    await run.gone
    const events = await collect(slow)
    const dropped = events
      .filter((event) => event.type === 'dropped')
      .reduce((sum, { count }) => sum + count, 0)
    const got = events.filter(({ type }) => type === 'output').length
    expect(got + dropped).toBe(20_000)
    expect(dropped).toBeGreaterThan(0)
    expect(events.some(({ type }) => type === 'settled')).toBe(true)
  })
})

describe('a flood', () => {
  it('L6: a flooding child delays neither the stop nor the timers, and memory stays bounded', async () => {
    const database = await testDatabase()
    const engine = await openTestEngine({ database, logs: { maxBytes: 4 * MIB } })
    const started = await startFixture(engine, 'flood')
    const before = process.memoryUsage().rss
    let bytes = 0
    const counting = (async () => {
      for await (const event of started.run.events({ output: 'bytes' }))
        if (event.type === 'bytes') bytes += event.chunk.length
    })()
    await waitFor(() => bytes > 64 * MIB, { deadlineMs: 60_000, what: '64 MiB of output' })
    const receipt = await started.run.cancel({ timeoutMs: 30_000 })
    expect(receipt.status).toBe('confirmed')
    await counting
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * MIB)
    let logged = 0
    let hasGap = false
    for await (const piece of engine.logs(started.run.id)) {
      if (piece.kind === 'gap') hasGap = true
      else logged += piece.bytes.length
    }
    // L4: capped, the newest kept, and the gap is marked.
    expect(hasGap).toBe(true)
    expect(logged).toBeLessThan(24 * MIB)
    expect(logged).toBeGreaterThan(0)
  }, 120_000)
})

describe('the log', () => {
  it('L4: an id that was pruned begins a log of its own', async () => {
    const engine = await openTestEngine()
    const logOf = async (word: string): Promise<string> => {
      const run = await engine.start({ id: 'again', command: ['echo', word] })
      await collect(run.events())
      let text = ''
      for await (const piece of engine.logs('again'))
        if (piece.kind === 'chunk') text += piece.bytes.toString()
      return text
    }
    expect(await logOf('one')).toBe('one\n')
    expect(await engine.prune({ settledBefore: Date.now() + 1_000 })).toBe(1)
    expect(await logOf('two')).toBe('two\n')
  })

  it('L4: it holds every byte in order with its stream, and can be followed to the end', async () => {
    const engine = await openTestEngine()
    const run = await engine.start({
      command: ['sh', '-c', 'echo one; sleep 0.1; echo two >&2; sleep 0.1; printf three; sleep 1'],
      stop: quickStop,
    })
    const followed: string[] = []
    await waitFor(() => run.pid !== undefined, { deadlineMs: 10_000, what: 'the launch' })
    for await (const piece of engine.logs(run.id, { follow: true })) {
      if (piece.kind === 'chunk') followed.push(`${piece.stream} ${piece.bytes.toString()}`)
    }
    expect(followed).toEqual(['stdout one\n', 'stderr two\n', 'stdout three'])
    expect(run.state.isConfirmed).toBe(true)
    await expect(engine.logs('nowhere').next()).rejects.toMatchObject({ code: 'unknown-run' })
  })

  it.each(['/proc/nowhere', '/dev/null'])(
    'L4: a folder that cannot be made (%s) costs the log and not the run',
    async (directory) => {
      const engine = await openTestEngine({ logs: { directory } })
      const run = await engine.start({ command: ['echo', 'still'] })
      const lines = (await collect(run.events()))
        .filter((event) => event.type === 'output')
        .map(({ line }) => line)
      expect(lines).toEqual(['still'])
      expect((await run.outcome).status).toBe('completed')
    },
  )
})
