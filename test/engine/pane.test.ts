/** Runs in tmux panes: how they begin, and what they give. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Run } from '../../src/index.js'
import { acp } from '../../src/protocols.js'
import { beatsAgain, beatsOf } from '../support/beats.js'
import { EMPTY_ADOPTED, TIER, openTestEngine, startFixture } from '../support/engine.js'
import { SLEEP, inPane, launched, surfaceOn } from '../support/in-pane.js'
import { loadCores } from '../support/load.js'
import { identityOf, statOf } from '../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const outputOf = async (run: Run): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const event of run.events({ output: 'bytes' }))
    if (event.type === 'bytes') chunks.push(event.chunk)
  return Buffer.concat(chunks).toString('latin1')
}

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
    [
      'a protocol that speaks through pipes',
      { protocol: acp(), surface: { kind: 'tmux' } },
      /surface cannot be had with protocol "acp"/,
    ],
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
    const script = 'pwd; echo "$A $TERM"; [ -n "$TMUX" ] && echo "in $TMUX_PANE"; ls -m /proc/self/fd; exit 3'
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
    expect((await run.gone).evidence).toMatchObject([{ kind: EMPTY_ADOPTED }])
  })

  it('P13: the process on record is the command, a descendant of the pane’s shell, and bears both marks', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP)
    const { paneId, pid } = await launched(run)
    const [pane] = tmux.panes()
    const [execution] = (await engine.history(run.id)).executions
    expect(execution).toMatchObject({
      containment: TIER === 'cgroup' ? 'cgroup' : 'pane',
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

describe('a pause', () => {
  const FROZEN = { status: 'frozen', running: [] }

  it.each(['a new pane', 'a pane that was there'])(
    'O1, P12: in %s the tree stands still whatever is typed, tmux does not continue it, and it goes on',
    async (where) => {
      const engine = await openTestEngine()
      const tmux = testTmux()
      tmux.run('new-session', '-d', '-s', 'it', '--', '/bin/sh', '-i')
      await waitFor(() => tmux.text('%0').includes('$'), { deadlineMs: 20_000, what: 'the prompt' })
      const metronome = await startFixture(engine, 'forking-heartbeat')
      await metronome.ready()
      const surface = surfaceOn(tmux, where === 'a new pane' ? {} : { pane: '%0' })
      const started = await startFixture(engine, 'heartbeat', { surface })
      const roles = ['leader', 'child', 'grandchild']
      await started.ready()
      for (let round = 0; round < 2; round += 1) {
        await beatsAgain(started.ledger, roles)
        expect(await started.run.pause()).toEqual(FROZEN)
        const before = beatsOf(started.ledger).length
        expect(started.run.write('typed\n')).toBe(true)
        await beatsAgain(metronome.ledger, ['leader', 'child'], 8)
        expect(beatsOf(started.ledger)).toHaveLength(before)
        await started.run.resume()
      }
      await beatsAgain(started.ledger, roles)
      await started.run.pause()
      expect((await started.run.cancel()).status).toBe('confirmed')
      expect(started.alive()).toEqual([])
      expect(tmux.panes()).toMatchObject([{ id: '%0' }])
    },
    60_000,
  )

  it('O1, P12: a paused run whose tmux server is killed ends, and says why', async () => {
    const engine = await openTestEngine({ containment: { prefer: 'group+marks' } })
    const tmux = testTmux()
    const started = await startFixture(engine, 'heartbeat', { surface: surfaceOn(tmux) })
    await started.ready()
    expect(await started.run.pause()).toEqual(FROZEN)
    tmux.pid()
    tmux.run('kill-server')
    await waitFor(() => started.alive().every(({ role }) => role !== 'leader'), {
      deadlineMs: 20_000,
      what: 'the hang-up',
    })
    expect((await started.run.outcome).message).toMatch(/^the tmux server at .* ended, and %0 with it$/)
    await started.run.gone
    expect(started.alive()).toEqual([])
  }, 60_000)
})
