/** Launching: what is refused at the door, what fails as an outcome, what every process bears. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { RunSpec } from '../../src/index.js'
import { openJobs } from '../../src/jobs.js'
import { testDatabase } from '../support/database.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { readLedger, statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

describe('at the door', () => {
  const file = (): string => {
    const path = join(tempDir(), 'a-file')
    writeFileSync(path, '')
    return path
  }
  it.each<[string, () => unknown, RegExp]>([
    ['an unknown option', () => ({ command: ['true'], colour: 1 }), /unknown option colour/],
    [
      'an unknown nested option',
      () => ({ command: ['true'], stop: { termGrace: 1 } }),
      /unknown option stop\.termGrace/,
    ],
    [
      'a label that a record has by itself',
      () => ({ command: ['true'], labels: { constructor: 'x' } }),
      /labels must be a record without the names/,
    ],
    ['an empty command', () => ({ command: [] }), /command must name a program/],
    ['an empty program', () => ({ command: [''] }), /command must name a program/],
    [
      'a NUL byte in an argument',
      () => ({ command: ['echo', 'a\0b'] }),
      /command\.1 must not hold a NUL byte/,
    ],
    [
      'a missing cwd',
      () => ({ command: ['true'], cwd: '/no/such/folder' }),
      /cwd does not exist, got "\/no\/such\/folder"/,
    ],
    ['a cwd that is a file', () => ({ command: ['true'], cwd: file() }), /cwd is not a folder/],
    [
      'a negative grace',
      () => ({ command: ['true'], stop: { termGraceMs: -5 } }),
      /stop\.termGraceMs must not be negative, got -5/,
    ],
    [
      'a grace that is no number',
      () => ({ command: ['true'], stop: { killGraceMs: '5s' } }),
      /stop\.killGraceMs must be number, got "5s"/,
    ],
    [
      'an id that could leave its folder',
      () => ({ command: ['true'], id: '../x' }),
      /id must be 1 to 128 letters.*got "\.\.\/x"/,
    ],
  ])('L1: %s is refused by name, and nothing is recorded', async (_what, spec, message) => {
    const engine = await openTestEngine()
    const starting = engine.start(spec() as RunSpec)
    await expect(starting).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(message) as string,
    })
    expect(await engine.runs()).toEqual([])
  })

  it('L7: what is secret is repeated in no error, wherever it stands', async () => {
    const engine = await openTestEngine()
    const queue = await openJobs(engine)
    const env = { TOKEN: 'hunter2\0' }
    const run = await engine.start({ command: ['sleep', '100'] })
    const asked = [
      engine.start({ command: ['true'], env }),
      engine.start({ command: ['true', 'hunter2\0'] }),
      engine.start({ command: ['true'], fallback: { candidates: [{ command: ['true'], env }] } }),
      queue.addAll([{ command: ['true'] }, { command: ['true'], env: { set: env } }]),
      run.prompt({ text: 'hunter2' } as unknown as string),
      run.prompt('hunter2'.repeat(1_000_000)),
    ]
    for (const one of asked)
      await expect(one).rejects.toMatchObject({
        code: 'invalid-option',
        message: expect.not.stringContaining('hunter2') as string,
      })
    await run.cancel()
  })

  it('L8: an id already used is refused, also when two calls race, and is free again if nothing was recorded', async () => {
    const engine = await openTestEngine()
    const raced = await Promise.allSettled(
      [1, 2, 3].map(() => engine.start({ id: 'one', command: ['true'] })),
    )
    expect(raced.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of raced)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'run-exists' })
    await engine.run('one')?.gone
    await expect(engine.start({ id: 'one', command: ['true'] })).rejects.toMatchObject({ code: 'run-exists' })
    await expect(engine.start({ id: 'two', command: [] })).rejects.toMatchObject({ code: 'invalid-option' })
    expect((await (await engine.start({ id: 'two', command: ['true'] })).outcome).status).toBe('completed')
  })

  it('L8: two engines over one store never begin one id twice', async () => {
    const database = await testDatabase()
    const engines = await Promise.all([openTestEngine({ database }), openTestEngine({ database })])
    for (let round = 0; round < 10; round += 1) {
      const id = `r${String(round)}`
      const raced = await Promise.allSettled(engines.map((engine) => engine.start({ id, command: ['true'] })))
      expect(raced.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    }
  })

  it('O10: a closed engine refuses everything by name', async () => {
    const engine = await createEngine({ database: ':memory:' })
    await Promise.all([engine.close(), engine.close()])
    await expect(engine.start({ command: ['true'] })).rejects.toMatchObject({ code: 'engine-closing' })
    await expect(engine.stop({ all: true })).rejects.toMatchObject({ code: 'engine-closing' })
  })
})

describe('failed launches', () => {
  const script = (mode: number): string => {
    const path = join(tempDir(), 'script')
    writeFileSync(path, '#!/no/such/interpreter\n', { mode })
    return path
  }
  it.each<[string, () => string[], RegExp]>([
    [
      'a program that is not there',
      () => ['no-such-program'],
      /cannot launch no-such-program: no such program \(ENOENT\)/,
    ],
    ['a program without the right to run', () => [script(0o600)], /permission denied \(EACCES\)/],
    ['a program whose interpreter is missing', () => [script(0o700)], /no such program \(ENOENT\)/],
    ['too long an argument', () => ['echo', 'x'.repeat(4_000_000)], /too long \(E2BIG\)/],
  ])('L1: %s is an outcome that names the command and the cause', async (_what, command, message) => {
    const engine = await openTestEngine()
    const run = await engine.start({ command: command() })
    const outcome = await run.outcome
    expect(outcome).toMatchObject({ status: 'failed', reason: 'launch-failed', exitCode: null })
    expect(outcome.message).toMatch(message)
    expect((await run.gone).evidence).toMatchObject([{ kind: 'never-launched' }])
  })
})

describe('what a process bears', () => {
  it('C1: each execution leads its own session and group, never the one of the engine', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const pid = started.run.pid ?? 0
    expect(statOf(pid)).toMatchObject({ group: pid, session: pid })
    expect(statOf(process.pid)?.group).not.toBe(pid)
  })

  it('R2: the execution row with its marks is on record before the spawn, the identity after it', async () => {
    const engine = await openTestEngine()
    const started = await startFixture(engine, 'ignore-term')
    await started.ready()
    const { executions, transitions } = await engine.history(started.run.id)
    const launch = transitions.find(({ event }) => event === 'run.admitted')
    const effect = launch?.effects.find(({ kind }) => kind === 'process.launch')
    expect(effect?.startedAt).toBeGreaterThanOrEqual(launch?.at ?? Infinity)
    const [execution] = executions
    expect(execution?.marks?.cookie).toMatch(/^[0-9a-f]{32}$/)
    const [leader] = readLedger(started.ledger).members
    expect(execution?.identity).toMatchObject({ pid: leader?.pid, startTicks: leader?.startTicks })
  })

  it('L7: arguments and environment are nowhere in the store', async () => {
    const database = await testDatabase()
    const engine = await openTestEngine({ database, logs: false })
    const run = await engine.start({
      command: ['true', 'secret-argument'],
      env: { PATH: process.env['PATH'], TOKEN: 'secret-value' },
    })
    await run.gone
    const record = JSON.stringify([await engine.history(run.id), await engine.runs()])
    expect(record).not.toContain('secret-argument')
    expect(record).not.toContain('secret-value')
  })
})

describe('stdin', () => {
  it('L5: an agent that ends before reading its input: its exit code is the outcome, the engine is unhurt', async () => {
    const engine = await openTestEngine()
    const flood = Readable.from(
      (function* () {
        for (let block = 0; block < 64; block += 1) yield Buffer.alloc(1024 * 1024)
      })(),
    )
    const started = await startFixture(engine, 'exit-before-stdin', { stdin: flood })
    expect(await started.run.outcome).toMatchObject({ status: 'failed', exitCode: 7 })
    const next = await engine.start({ command: ['true'] })
    expect((await next.outcome).status).toBe('completed')
  })

  it('L1: text, a stream and later writes reach the agent', async () => {
    const engine = await openTestEngine()
    const answers: string[] = []
    const collect = async (
      spec: Partial<RunSpec>,
      feed?: (write: (text: string) => boolean, end: () => void) => void,
    ): Promise<void> => {
      const run = await engine.start({ command: ['cat'], stop: quickStop, ...spec })
      if (feed !== undefined) {
        await waitFor(() => run.pid !== undefined, { deadlineMs: 10_000, what: 'the agent is there' })
        feed(
          (text) => run.write(text),
          () => {
            run.endInput()
          },
        )
      }
      for await (const event of run.events()) if (event.type === 'output') answers.push(event.line)
    }
    await collect({ stdin: 'plain text' })
    await collect({ stdin: { text: 'pipe' } })
    await collect({ stdin: Readable.from(['a ', 'stream']) })
    await collect({ stdin: 'pipe' }, (write, end) => {
      write('written later')
      end()
    })
    expect(answers).toEqual(['plain text', 'pipe', 'a stream', 'written later'])
  })
})
