/** Runs that outlive their engine: adopted by the next one, or kept. Real engines, killed or upgraded; real files. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, EngineOptions, Run, RunSpec } from '../../src/index.js'
import { acp, claudeStreamJson } from '../../src/protocols.js'
import { cli } from '../cli/cli.js'
import { openTestEngine } from '../support/engine.js'
import { guardiansOf, startHost } from '../support/host.js'
import type { Host } from '../support/host.js'
import { statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const until = <T>(what: string, condition: () => T | Promise<T>) =>
  waitFor(condition, { deadlineMs: 60_000, what })

/** Counts aloud, one line every few ms, until the file is there; then says what it is told to say at last, and ends with 3. */
const COUNTER = `
  const { existsSync } = require('node:fs')
  const [end, last] = process.argv.slice(1)
  let n = 0
  const timer = setInterval(() => {
    process.stdout.write('n ' + (n += 1) + '\\n')
    if (n % 10 === 0) process.stderr.write('e ' + n + '\\n')
    if (!existsSync(end)) return
    clearInterval(timer)
    process.stdout.write(last)
    process.exitCode = 3
  }, 5)`

interface Place {
  readonly database: string
  readonly end: string
  readonly spec: RunSpec
}

const placeOf = (last = 'the end', spec: Partial<RunSpec> = {}): Place => {
  const folder = tempDir()
  const end = join(folder, 'end')
  return {
    database: join(folder, 'runs.db'),
    end,
    spec: {
      id: 'r1',
      command: [process.execPath, '-e', COUNTER, end, last],
      stop: { termGraceMs: 300 },
      onRecover: 'adopt',
      ...spec,
    },
  }
}

const RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"done and dusted"}\n'

/** A host that starts the run and prints its lines; it closes and leaves it when told to. */
const hostOf = async (
  { database, spec, end }: Place,
  protocol = 'lines',
  guardian = false,
): Promise<Host> => {
  const library = JSON.stringify(new URL('../../dist/protocols.js', import.meta.url).href)
  const host = startHost(
    `import { ${protocol} } from ${library}
     const engine = await createEngine({ database: ${JSON.stringify(database)}, guardian: ${String(guardian)} })
     say('engine ' + engine.id + ' ')
     const run = await engine.start({ ...${JSON.stringify(spec)}, protocol: ${protocol}() })
     told('close').then(async () => { await engine.close({ runs: 'leave' }); say('closed'); process.exit(0) })
     for await (const event of run.events({ output: 'lines' })) {
       if (event.type === 'output') say(event.stream + ' ' + event.line)
       if (event.type === 'launched') say('pid ' + event.pid + ' ')
     }`,
  )
  onTestFinished(() => {
    writeFileSync(end, '')
  })
  await host.says('stdout n 20\n')
  return host
}

/** In whichever tier the host found. */
const GONE = expect.stringMatching(/^(identity-gone|cgroup-empty)$/) as string

/** Gone, or a zombie that nobody has reaped yet. */
const isGone = (pid: number): boolean => ['Z', 'X', undefined].includes(statOf(pid)?.state)

const pidIn = (host: Host): number => Number(/pid (\d+)/.exec(host.text())?.[1])
const numbersIn = (text: string): number[] => [...text.matchAll(/\bn (\d+)/g)].map(([, n]) => Number(n))
const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1)

const linesOf = (run: Run): { readonly lines: string[]; readonly ended: Promise<void> } => {
  const lines: string[] = []
  const read = async (): Promise<void> => {
    for await (const event of run.events({ output: 'lines' }))
      if (event.type === 'output' && 'line' in event && event.stream === 'stdout') lines.push(event.line)
  }
  return { lines, ended: read() }
}

const heldBy = (engine: Engine): Run => {
  const run = engine.run('r1')
  if (run === undefined) throw new Error('the run is not held')
  return run
}

const open = (place: Place, options: EngineOptions = {}): Promise<Engine> =>
  openTestEngine({ database: place.database, ...options })

const logOf = async (engine: Engine): Promise<string> => {
  let text = ''
  for await (const piece of engine.logs('r1'))
    if (piece.kind === 'chunk' && piece.stream === 'stdout') text += piece.bytes.toString('utf8')
  return text
}

describe('R10: adopted', () => {
  it('R10, R3: an engine is replaced under a working agent, and no line is lost or repeated', async () => {
    const place = placeOf()
    const host = await hostOf(place)
    host.tell('close')
    await host.says('closed')
    await host.ended
    const engine = await open(place)
    const run = heldBy(engine)
    expect(run.state).toMatchObject({ process: 'alive', intent: null })
    const { lines, ended } = linesOf(run)
    await until('it counts on', () => lines.length > 20)
    writeFileSync(place.end, '')
    const outcome = await run.outcome
    await ended
    expect(outcome).toMatchObject({ status: 'lost', exitCode: null })
    expect((await run.gone).evidence).toMatchObject([{ kind: GONE }])
    const heard = [...numbersIn(host.text()), ...numbersIn(lines.join('\n'))]
    expect(heard).toEqual(upTo(heard.length))
    expect(lines.at(-1), 'a last line without a newline').toBe('the end')
    const logged = await logOf(engine)
    expect(numbersIn(logged)).toEqual(upTo(heard.length))
    expect(logged.endsWith('the end')).toBe(true)
  }, 120_000)

  it('R10, INV-13: an engine is killed; the next one reads on, and the log has every line once', async () => {
    const place = placeOf()
    const host = await hostOf(place)
    await host.killed()
    const engine = await open(place)
    const run = heldBy(engine)
    const { lines, ended } = linesOf(run)
    await until('it counts on', () => lines.length > 20)
    writeFileSync(place.end, '')
    await run.gone
    await ended
    const logged = numbersIn(await logOf(engine))
    expect(logged).toEqual(upTo(logged.length))
    const heard = new Set([...numbersIn(host.text()), ...numbersIn(lines.join('\n'))])
    expect([...heard].sort((a, b) => a - b)).toEqual(logged)
  }, 120_000)

  it('R3: what the agent said of its work is the outcome of an adopted run, whose exit nobody saw', async () => {
    const place = placeOf(RESULT)
    const host = await hostOf(place, 'claudeStreamJson')
    await host.killed()
    const engine = await open(place)
    const run = heldBy(engine)
    writeFileSync(place.end, '')
    expect(await run.outcome).toMatchObject({
      status: 'completed',
      exitCode: null,
      result: { isOk: true, text: 'done and dusted' },
    })
    expect((await run.gone).evidence).toMatchObject([{ kind: GONE }])
  }, 120_000)

  it('R3, INV-13: a result that was written while no engine was there counts all the same', async () => {
    const place = placeOf(RESULT)
    const host = await hostOf(place, 'claudeStreamJson')
    const pid = pidIn(host)
    await host.killed()
    writeFileSync(place.end, '')
    await until('the agent is over', () => isGone(pid))
    const engine = await open(place)
    const { run } = await until('it is settled', async () => {
      const history = await engine.history('r1')
      return history.run.process === 'confirmed' && history
    })
    expect(run.outcome).toMatchObject({ status: 'completed', result: { text: 'done and dusted' } })
  }, 120_000)

  it('R3, L2: what an adopted leader leaves behind is swept, and its outcome does not wait for that', async () => {
    const end = join(tempDir(), 'leavings')
    const place = placeOf(RESULT)
    const leaving = `sh -c 'trap "" TERM; echo $$ > ${end}; sleep 1000 & wait; wait' >/dev/null 2>&1 &`
    const script = `${leaving} exec "$0" -e "$1" "$2" "$3"`
    const command = ['sh', '-c', script, process.execPath, COUNTER, place.end, RESULT]
    const host = await hostOf({ ...place, spec: { ...place.spec, command } }, 'claudeStreamJson')
    await host.killed()
    const engine = await open(place)
    const run = heldBy(engine)
    expect(run.state.process).toBe('alive')
    writeFileSync(place.end, '')
    expect(await run.outcome).toMatchObject({ status: 'completed', exitCode: null, signal: null })
    expect((await run.gone).evidence).toMatchObject([{ kind: GONE }])
    expect(isGone(Number(readFileSync(end, 'utf8')))).toBe(true)
    const { transitions } = await engine.history('r1')
    expect(transitions.map(({ to }) => to.process)).toContain('term-sent')
  }, 120_000)

  it('R3: a run in a terminal, in a pane, or with candidates of other protocols is refused by name', async () => {
    const engine = await openTestEngine()
    const refused = (spec: Partial<RunSpec>, text: string) =>
      expect(engine.start({ command: ['true'], onRecover: 'adopt', ...spec })).rejects.toMatchObject({
        code: 'invalid-option',
        message: expect.stringContaining(text) as string,
      })
    await refused({ stdio: 'pty' }, 'option stdio "pty"')
    await refused({ surface: { kind: 'tmux' } }, 'option surface')
    const candidates = [{ command: ['true'], protocol: claudeStreamJson() }]
    await refused({ fallback: { candidates } }, 'option fallback')
  }, 60_000)

  it('R10: an adopted run is stopped like any other, also from another process', async () => {
    const place = placeOf()
    const host = await hostOf(place)
    const pid = pidIn(host)
    await host.killed()
    const engine = await open(place)
    const stopped = await cli(['stop', '--db', place.database, 'r1', '--json'])
    expect(stopped.code, stopped.stderr).toBe(0)
    expect(await heldOutcome(engine)).toMatchObject({ status: 'cancelled' })
    expect(isGone(pid)).toBe(true)
  }, 120_000)

  it('R10, L2: with its own engine it is a run like any other: exit code, the whole output, text on stdin', async () => {
    const place = placeOf('', { onRecover: 'adopt' })
    const engine = await open(place)
    const script = `
      let text = ''
      process.stdin.on('data', (chunk) => (text += chunk)).on('end', () => {
        for (let n = 1; n <= 2000; n += 1) process.stdout.write('n ' + n + '\\n')
        process.stdout.write('got ' + text)
        process.exitCode = 3
      })`
    const run = await engine.start({
      ...place.spec,
      command: [process.execPath, '-e', script],
      stdin: { text: 'something' },
    })
    const { lines, ended } = linesOf(run)
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 3 })
    expect((await run.gone).evidence).toMatchObject([{ kind: 'tree-reaped' }])
    await ended
    expect(numbersIn(lines.join('\n'))).toEqual(upTo(2000))
    expect(lines.at(-1)).toBe('got something')
    expect(existsSync(join(`${place.database}-logs`, 'r1', '1', 'stdin')), 'L7').toBe(false)
  }, 60_000)

  it('R10: what cannot outlive its engine is refused by name', async () => {
    const engine = await openTestEngine({ onRecover: 'keep' })
    const message = (text: string) => ({
      code: 'invalid-option',
      message: expect.stringContaining(text) as string,
    })
    const command = ['true']
    await expect(engine.start({ command, stdin: 'pipe' })).rejects.toMatchObject(
      message('"keep" cannot be had'),
    )
    await expect(engine.start({ command, protocol: acp() })).rejects.toMatchObject(message('"acp"'))
    const bare = await openTestEngine({ logs: false })
    await expect(bare.start({ command, onRecover: 'adopt' })).rejects.toMatchObject(message('logs'))
  })
})

const heldOutcome = (engine: Engine) =>
  until('the outcome', async () => (await engine.history('r1')).run.outcome)

describe('R3: kept', () => {
  it('R3, R7: closing, recovery and the guardian leave a kept run alone; a stop from anywhere ends it', async () => {
    const place = placeOf('', { onRecover: 'keep' })
    const first = await createEngine({ database: place.database })
    const run = await first.start(place.spec)
    await until('it runs', () => run.pid !== undefined && run.state.process === 'alive')
    const pid = run.pid ?? 0
    expect(await first.close({ runs: 'cancel' })).toEqual({ left: ['r1'] })
    const engine = await open(place)
    expect(engine.run('r1')).toBeUndefined()
    expect(isGone(pid)).toBe(false)
    const stopped = await cli(['stop', '--db', place.database, 'r1', '--json'])
    expect(stopped.code, stopped.stderr).toBe(0)
    expect(isGone(pid)).toBe(true)
  }, 120_000)

  it('R7: a guardian leaves it alone', async () => {
    const place = placeOf('', { onRecover: 'keep' })
    const host = await hostOf(place, 'lines', true)
    const engineId = /engine (\S+)/.exec(host.text())?.[1] ?? ''
    await host.killed()
    await until('the guardian is done', () => guardiansOf(engineId).length === 0)
    expect(isGone(pidIn(host))).toBe(false)
    const engine = await open(place)
    expect((await engine.stop({ run: 'r1' })).status).toBe('confirmed')
  }, 120_000)

  it('R3: a kept run that is gone when an engine opens does not stay open for ever', async () => {
    const place = placeOf('', { onRecover: 'keep' })
    const host = await hostOf(place)
    await host.killed()
    writeFileSync(place.end, '')
    await until('the agent is over', () => isGone(pidIn(host)))
    const engine = await open(place)
    expect(await heldOutcome(engine)).toMatchObject({ status: 'lost' })
  }, 120_000)
})
