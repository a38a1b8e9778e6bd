/** Runs in tmux panes: how they begin, what they give, and what is left when they end. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Engine, Run, RunSpec } from '../../src/index.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { loadCores } from '../support/load.js'
import { identityOf, isAlive, readLedger, statOf } from '../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'
import type { TestTmux } from '../support/tmux.js'
import { tempDir, waitFor } from '../support/wait-for.js'

type Surface = NonNullable<RunSpec['surface']>

const surfaceOn = (tmux: TestTmux, rest: Partial<Surface> = {}): Surface => ({
  kind: 'tmux',
  socketName: tmux.socketName,
  ...(rest.pane === undefined ? { session: 'it' } : {}),
  ...rest,
})

const inPane = (
  engine: Engine,
  tmux: TestTmux,
  command: readonly string[],
  { surface, ...spec }: Partial<RunSpec> = {},
): Promise<Run> =>
  engine.start({ command: [...command], stop: quickStop, surface: surfaceOn(tmux, surface), ...spec })

const outputOf = async (run: Run): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const event of run.events({ output: 'bytes' }))
    if (event.type === 'bytes') chunks.push(event.chunk)
  return Buffer.concat(chunks).toString('latin1')
}

const launched = async (run: Run): Promise<{ readonly paneId: string; readonly pid: number }> => {
  for await (const event of run.events({ output: 'none' })) {
    if (event.type === 'launched') return { paneId: event.pane?.paneId ?? '', pid: event.pid }
    if (event.type === 'settled') throw new Error(event.outcome.message)
  }
  throw new Error('the run ended before it was launched')
}

const SLEEP = ['sleep', '600']

beforeEach(({ skip }) => {
  if (!hasTmux) skip(NO_TMUX)
})

describe('at the door', () => {
  it.each<[string, object, RegExp]>([
    ['another kind of surface', { surface: { kind: 'screen' } }, /surface\.kind must be tmux, got "screen"/],
    [
      'a session that tmux would rename',
      { surface: { kind: 'tmux', session: 'a.b' } },
      /surface\.session must be 1 to 64/,
    ],
    [
      'a pane that is no id',
      { surface: { kind: 'tmux', pane: 'it:0.0' } },
      /surface\.pane must be a pane id like %5/,
    ],
    [
      'a pane and a session',
      { surface: { kind: 'tmux', pane: '%1', session: 'x' } },
      /surface\.pane excludes session/,
    ],
    [
      'a pane that is there, to be closed',
      { surface: { kind: 'tmux', pane: '%1', retained: false } },
      /surface\.retained must be true/,
    ],
    [
      'two sockets',
      { surface: { kind: 'tmux', socketName: 'a', socketPath: 'b' } },
      /surface\.socketPath excludes/,
    ],
    ['a terminal in a terminal', { stdio: 'pty', surface: { kind: 'tmux' } }, /surface excludes stdio "pty"/],
    ['text as its input', { stdin: 'text', surface: { kind: 'tmux' } }, /stdin must be "pipe" or "ignore"/],
  ])('P12: %s is refused by name', async (_what, spec, message) => {
    const engine = await openTestEngine()
    const starting = engine.start({ command: ['true'], ...spec })
    await expect(starting).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(message) as string,
    })
  })
})

describe('a new pane', () => {
  it('P12: the command runs there in its own environment and folder, and what it shows is its output', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const folder = tempDir()
    const script =
      'pwd; echo "$A $TERM"; [ -n "$TMUX" ] && echo "in $TMUX_PANE"; ls -m /proc/self/fd; exit 3'
    const env = { PATH: process.env['PATH'], A: `it's "a" $b \\ c`, TERM: 'mine', 'no.name': 'x', UID: 'y' }
    const run = await inPane(engine, tmux, ['sh', '-c', script], { cwd: folder, env })
    const [pwd, variables, pane, files] = (await outputOf(run)).split('\r\n')
    expect([pwd, variables, pane]).toEqual([
      folder,
      `it's "a" $b \\ c tmux-256color`.replace('tmux-256color', variables?.split(' ').at(-1) ?? ''),
      'in %0',
    ])
    expect(variables).not.toContain('mine')
    // The last is its own, for the look.
    expect(files).toBe('0, 1, 2, 3')
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 3, signal: null })
    expect((await run.gone).evidence).toMatchObject([{ kind: 'identity-gone' }])
  })

  it('P13: the process on record is the command, a descendant of the pane’s shell, and bears both marks', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP)
    const { paneId, pid } = await launched(run)
    const [pane] = tmux.panes()
    const [execution] = (await engine.history(run.id)).executions
    expect(execution).toMatchObject({
      containment: 'pane',
      identity: { ...identityOf(pid) },
      pane: { place: { paneId, server: { pid: tmux.pid() }, shell: { pid: pane?.pid } } },
    })
    await waitFor(() => readFileSync(`/proc/${String(pid)}/comm`, 'utf8') === 'sleep\n', {
      deadlineMs: 10_000,
      what: 'the command',
    })
    expect(statOf(pid)?.parentPid).toBe(pane?.pid)
    const marks = execution?.marks
    expect(readFileSync(`/proc/${String(pid)}/environ`, 'latin1')).toContain(`=${String(marks?.cookie)}`)
    expect(readFileSync(`/proc/${String(pid)}/limits`, 'latin1')).toMatch(
      new RegExp(`realtime timeout +${String(marks?.limit)}`),
    )
  })

  it('L7: neither its arguments nor its environment are in an argument list, a file or the record', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const env = { PATH: process.env['PATH'], TOKEN: 'secret-value' }
    const run = await inPane(engine, tmux, ['sh', '-c', 'sleep 600', 'secret-argument'], { env })
    const { paneId } = await launched(run)
    const shown = tmux.run('display-message', '-p', '-t', paneId, '#{pane_start_command}')
    const [pane] = tmux.panes()
    const record = JSON.stringify([
      shown,
      readFileSync(`/proc/${String(pane?.pid)}/cmdline`, 'latin1'),
      tmux.run('show-environment', '-g'),
      await engine.history(run.id),
    ])
    expect(record).not.toMatch(/secret-(argument|value)/)
    expect(
      readdirSync('/tmp').filter((name) => name.startsWith('runwarden-pane-') && shown.includes(name)),
    ).toEqual([])
  })

  it('P12: a name that is a tmux format is only a name', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const trap = join(tempDir(), 'trap')
    const name = `#(touch ${trap})#{pid}`
    const run = await inPane(engine, tmux, SLEEP, { surface: { kind: 'tmux', window: name, title: name } })
    const { paneId } = await launched(run)
    expect(tmux.run('display-message', '-p', '-t', paneId, '#{pane_title}')).toBe(name)
    expect(tmux.run('display-message', '-p', '-t', paneId, '#{window_name}')).toBe(name)
    await run.cancel()
    expect(existsSync(trap)).toBe(false)
  })

  it('L2: output is whole, without a trace of ours, and a signal is told as one, eight times at once', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    await loadCores(2)
    const heard = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const end = index % 2 === 0 ? `exit ${String(index)}` : 'kill -KILL $$'
        const run = await inPane(engine, tmux, ['sh', '-c', `echo begin; seq 100; printf end; ${end}`])
        return [await outputOf(run), await run.outcome] as const
      }),
    )
    const numbers = Array.from({ length: 100 }, (_, index) => `${String(index + 1)}\r\n`).join('')
    for (const [index, [output, outcome]] of heard.entries()) {
      expect(output).toBe(`begin\r\n${numbers}end`)
      const { exitCode, signal } = outcome
      expect([exitCode, signal]).toEqual(index % 2 === 0 ? [index, null] : [null, 'SIGKILL'])
    }
  }, 120_000)

  it('P12: what is written is typed, however much, and the end of the file too', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, ['sh', '-c', 'stty -echo; echo ready; cat; echo over'])
    let shown = ''
    void (async () => {
      for await (const event of run.events({ output: 'bytes' }))
        if (event.type === 'bytes') shown += Buffer.from(event.chunk).toString('utf8')
    })()
    await waitFor(() => shown.includes('ready'), { deadlineMs: 20_000, what: 'it reads' })
    const lines = Array.from({ length: 200 }, (_, index) => `line ${String(index)} ‘é’ $x;\n`)
    for (const line of lines.slice(0, 3)) expect(run.write(line)).toBe(true)
    expect(run.write(lines.slice(3).join(''))).toBe(true)
    expect(run.write('x'.repeat(2_000_000))).toBe(false)
    run.endInput()
    expect(await run.outcome).toMatchObject({ status: 'completed' })
    await run.gone
    expect(shown).toBe(`ready\r\n${lines.join('').replaceAll('\n', '\r\n')}over\r\n`)
    expect(run.write('late')).toBe(false)
    expect(() => run.resize(80, 24)).toThrow(/has no terminal here/)
  }, 60_000)

  it('L1: what cannot be launched is said by name, and no pane is made', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, ['no-such-program'])
    expect(await run.outcome).toMatchObject({
      reason: 'launch-failed',
      message: 'cannot launch no-such-program: no such program (ENOENT)',
    })
    expect(() => tmux.panes()).toThrow(/error connecting|no server/)
    const lost = await inPane(engine, tmux, ['true'], { surface: { kind: 'tmux', pane: '%7' } })
    expect((await lost.outcome).message).toMatch(/cannot launch true in tmux: .*(no server|connecting)/)
  })
})

describe('the end of an ordinary pane', () => {
  it('P12: a cancel ends the tree and closes the pane, and no other', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const other = tmux.panes()
    const run = await inPane(engine, tmux, SLEEP)
    const { pid } = await launched(run)
    const leader = identityOf(pid)
    const receipt = await run.cancel()
    expect(receipt.runs).toMatchObject([{ status: 'confirmed', evidence: [{ kind: 'identity-gone' }] }])
    expect(tmux.panes()).toEqual(other)
    expect(leader !== undefined && isAlive(leader)).toBe(false)
    expect(await run.outcome).toMatchObject({ status: 'cancelled', signal: 'SIGTERM' })
  })

  it('P12: a pane that was moved, in a session that was renamed, is still found', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'other', '--', ...SLEEP)
    const run = await inPane(engine, tmux, SLEEP)
    const { paneId } = await launched(run)
    tmux.run('rename-session', '-t', 'it', 'new-name')
    tmux.run('join-pane', '-d', '-s', paneId, '-t', 'other:')
    expect(tmux.panes().find(({ id }) => id === paneId)?.session).toBe('other')
    expect((await run.cancel()).status).toBe('confirmed')
    expect(tmux.panes()).toMatchObject([{ id: '%0' }])
  })

  it('P12: a dead pane that tmux was told to keep is closed as well', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP, ';', 'set-option', '-g', 'remain-on-exit', 'on')
    const run = await inPane(engine, tmux, ['true'])
    expect(await run.outcome).toMatchObject({ status: 'completed' })
    await run.gone
    expect(tmux.panes()).toHaveLength(1)
  })

  it('P2: a pane closed by hand is a failure that names it; nothing of the run is left', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const run = await inPane(engine, tmux, ['sh', '-c', 'echo working; exec sleep 600'])
    const { paneId } = await launched(run)
    await waitFor(() => run.state.headline === 'active', { deadlineMs: 10_000, what: 'progress' })
    tmux.run('kill-pane', '-t', paneId)
    expect(await run.outcome).toMatchObject({
      status: 'failed',
      exitCode: null,
      signal: null,
      message: expect.stringMatching(
        new RegExp(`^pane ${paneId} of the tmux server at .*${tmux.socketName} was closed$`),
      ) as string,
    })
    expect((await run.gone).survivors).toEqual([])
  })

  it('P2: a pane closed by hand after the intent starts no other candidate', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const trace = join(tempDir(), 'trace')
    const run = await inPane(engine, tmux, ['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done'], {
      fallback: { candidates: [{ command: ['touch', trace] }] },
      stop: { termGraceMs: 60_000, killGraceMs: 5_000 },
    })
    const { paneId } = await launched(run)
    const cancelling = run.cancel()
    await waitFor(() => run.state.process === 'term-sent', { deadlineMs: 10_000, what: 'TERM is sent' })
    tmux.run('kill-pane', '-t', paneId)
    expect((await cancelling).status).toBe('confirmed')
    expect((await run.outcome).status).toBe('cancelled')
    expect(existsSync(trace)).toBe(false)
  })

  it('P12, INV-5: a command that outlives its closed pane is alive for us, and is ended by its identity', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const run = await inPane(engine, tmux, ['sh', '-c', 'trap "" HUP; while :; do sleep 1; done'])
    const { paneId, pid } = await launched(run)
    await waitFor(() => ignoresHangup(pid), { deadlineMs: 10_000, what: 'it ignores HUP' })
    tmux.run('kill-pane', '-t', paneId)
    const leader = identityOf(pid)
    await waitFor(() => !tmux.panes().some(({ id }) => id === paneId), {
      deadlineMs: 10_000,
      what: 'the pane is gone',
    })
    expect(leader !== undefined && isAlive(leader)).toBe(true)
    expect(run.state.isSettled).toBe(false)
    expect((await run.cancel()).runs).toMatchObject([
      { status: 'confirmed', evidence: [{ kind: 'identity-gone' }] },
    ])
    expect(leader !== undefined && isAlive(leader)).toBe(false)
  })

  it('P12: when the server is killed, the failure names it', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP)
    await launched(run)
    tmux.pid()
    tmux.run('kill-server')
    expect((await run.outcome).message).toMatch(/^the tmux server at .* ended, and %0 with it$/)
    expect((await run.gone).evidence).toMatchObject([{ kind: 'identity-gone' }])
  })

  it('R6: a pane that was given another process is not ours, and is left alone', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP)
    const { paneId } = await launched(run)
    tmux.run('respawn-pane', '-k', '-t', paneId, '--', ...SLEEP)
    const [stranger] = tmux.panes()
    expect((await run.outcome).message).toMatch(/was given another process$/)
    await run.gone
    expect(tmux.panes()).toEqual([stranger])
    expect(statOf(stranger?.pid ?? 0)?.state).not.toBe('Z')
  })
})

const ignoresHangup = (pid: number): boolean => {
  const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1]
  return (Number.parseInt(ignored ?? '0', 16) & 1) === 1
}

describe('a retained pane', () => {
  it('P12: a new one stays open with a shell; only the command and its tree are ended', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const place = withLedger()
    const [program, ...args] = fixtureCommand('stubborn-agent')
    const run = await inPane(engine, tmux, [program, ...args], {
      env: { ...process.env, ...place.env },
      surface: { kind: 'tmux', retained: true },
    })
    const { paneId } = await launched(run)
    await waitFor(() => readLedger(place.ledger).readyAt !== undefined, {
      deadlineMs: 20_000,
      what: 'it is up',
    })
    expect((await run.cancel()).status).toBe('confirmed')
    tmux.run('send-keys', '-t', paneId, 'echo "still $((40 + 2))"', 'Enter')
    await waitFor(() => tmux.text(paneId).includes('still 42'), {
      deadlineMs: 20_000,
      what: 'the shell answers',
    })
    expect(tmux.run('display-message', '-p', '-t', paneId, '#{pane_pipe}')).toBe('0')
  }, 60_000)

  it('P12, INV-14: one that was there runs the command by its shell, and everything else in it is left alone', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'mine', '--', '/bin/sh', '-i')
    const [pane] = tmux.panes()
    const id = pane?.id ?? ''
    await waitFor(() => tmux.text(id).includes('$'), { deadlineMs: 20_000, what: 'the prompt' })
    tmux.run('send-keys', '-t', id, 'sleep 601 &', 'Enter')
    await waitFor(() => sleeperOf(pane?.pid ?? 0), { deadlineMs: 20_000, what: 'a job of the shell' })
    const job = sleeperOf(pane?.pid ?? 0)
    const run = await inPane(engine, tmux, ['sh', '-c', 'echo in the pane; sleep 600'], {
      surface: { kind: 'tmux', pane: id },
    })
    await launched(run)
    await waitFor(() => run.state.headline === 'active', { deadlineMs: 10_000, what: 'progress' })
    const second = await inPane(engine, tmux, ['true'], { surface: { kind: 'tmux', pane: id } })
    expect((await second.outcome).message).toBe(
      `cannot launch true in tmux: pane ${id} is not at the prompt of a shell`,
    )
    expect((await run.cancel()).status).toBe('confirmed')
    expect(job !== undefined && isAlive(job)).toBe(true)
    tmux.run('send-keys', '-t', id, 'echo "still $((40 + 2))"', 'Enter')
    await waitFor(() => tmux.text(id).includes('still 42'), { deadlineMs: 20_000, what: 'the shell answers' })
    const third = await inPane(engine, tmux, ['sh', '-c', 'exit 7'], { surface: { kind: 'tmux', pane: id } })
    expect(await third.outcome).toMatchObject({ exitCode: 7 })
    await third.gone
    expect(tmux.panes()).toEqual([pane])
  }, 60_000)
})

const sleeperOf = (shell: number) => {
  const children = readFileSync(`/proc/${String(shell)}/task/${String(shell)}/children`, 'utf8')
    .trim()
    .split(' ')
  return children.map((pid) => identityOf(Number(pid))).find((identity) => identity !== undefined)
}

describe('a tmux that does not answer', () => {
  it('P14: a launch fails at its deadline, and nothing of it starts later', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    tmux.pid()
    tmux.signal('SIGSTOP')
    const trace = join(tempDir(), 'trace')
    const run = await inPane(engine, tmux, ['touch', trace])
    expect(await run.outcome).toMatchObject({
      reason: 'launch-failed',
      message: expect.stringMatching(/^cannot launch touch in tmux: tmux did not answer/) as string,
    })
    tmux.signal('SIGCONT')
    await waitFor(() => tmux.panes().length === 1, {
      deadlineMs: 20_000,
      what: 'what was asked for late is gone',
    })
    expect(existsSync(trace)).toBe(false)
  }, 60_000)

  it('P14, P15: a stop answers unconfirmed in time, naming the pane; later answers flip nothing, and the next stop looks afresh', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP, { stop: { termGraceMs: 200, killGraceMs: 1_500 } })
    const { pid } = await launched(run)
    const leader = identityOf(pid)
    tmux.pid()
    tmux.signal('SIGSTOP')
    const from = performance.now()
    const receipt = await run.cancel({ timeoutMs: 30_000 })
    expect(performance.now() - from).toBeLessThan(15_000)
    expect(receipt.runs).toMatchObject([
      {
        status: 'unconfirmed',
        survivors: [],
        error: expect.stringMatching(/pane %0 of .* is not proven closed.*did not answer/) as string,
      },
    ])
    expect(leader !== undefined && isAlive(leader)).toBe(false)
    expect(run.state.isSettled).toBe(false)
    const before = JSON.stringify(receipt)
    tmux.signal('SIGCONT')
    expect((await run.cancel()).runs).toMatchObject([{ status: 'confirmed', repeated: true }])
    expect(await run.outcome).toMatchObject({ status: 'cancelled' })
    expect(JSON.stringify(receipt)).toBe(before)
  }, 60_000)
})

describe('another engine', () => {
  const leave = async (engine: Engine): Promise<void> => {
    await engine.close({ runs: 'leave', deadlineMs: 1_000 })
  }

  it('R3, P12: takes a run in a pane over by its record: tree and pane are gone', async () => {
    const database = join(tempDir(), 'runs.db')
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const first = await openTestEngine({ database })
    const started = await startFixture(first, 'setsid-grandchild', { surface: surfaceOn(tmux) })
    await started.ready()
    await leave(first)
    expect(started.alive()).toHaveLength(3)
    const second = await openTestEngine({ database })
    const gone = await second.run(started.run.id)?.gone
    expect(gone?.evidence).toMatchObject([{ kind: 'identity-gone' }])
    expect(started.alive()).toEqual([])
    expect(tmux.panes()).toHaveLength(1)
  })

  it('R6, P13: a pane of a server that came later is not the run’s, although it has its id', async () => {
    const database = join(tempDir(), 'runs.db')
    const tmux = testTmux()
    const first = await openTestEngine({ database })
    const run = await inPane(first, tmux, SLEEP)
    const { paneId } = await launched(run)
    await leave(first)
    const server = identityOf(tmux.pid())
    tmux.run('kill-server')
    await waitFor(() => server === undefined || !isAlive(server), {
      deadlineMs: 10_000,
      what: 'the server is gone',
    })
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const stranger = tmux.panes()
    expect(stranger).toMatchObject([{ id: paneId }])
    const second = await openTestEngine({ database })
    await second.run(run.id)?.gone
    expect(tmux.panes()).toEqual(stranger)
  })

  it('P12: leaves a retained pane open', async () => {
    const database = join(tempDir(), 'runs.db')
    const tmux = testTmux()
    const first = await openTestEngine({ database })
    const run = await inPane(first, tmux, SLEEP, { surface: { kind: 'tmux', retained: true } })
    const { pid } = await launched(run)
    const leader = identityOf(pid)
    await leave(first)
    const second = await openTestEngine({ database })
    await second.run(run.id)?.gone
    expect(leader !== undefined && isAlive(leader)).toBe(false)
    expect(tmux.panes()).toMatchObject([{ isDead: false }])
  })
})
