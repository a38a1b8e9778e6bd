/** How runs in tmux panes end, and what is left of their panes. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Engine } from '../../src/index.js'
import { EMPTY_ADOPTED, openTestEngine, startFixture } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { SLEEP, inPane, launched, surfaceOn } from '../support/in-pane.js'
import { identityOf, isAlive, readLedger, statOf } from '../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'
import { tempDir, waitFor } from '../support/wait-for.js'

beforeEach(({ skip }) => {
  if (!hasTmux) skip(NO_TMUX)
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
    expect(receipt.runs).toMatchObject([{ status: 'confirmed', evidence: [{ kind: EMPTY_ADOPTED }] }])
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
      { status: 'confirmed', evidence: [{ kind: EMPTY_ADOPTED }] },
    ])
    expect(leader !== undefined && isAlive(leader)).toBe(false)
  })

  it('P12, C5: what left the session of a pane that was closed by hand is ended too, before the run is called gone', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const started = await startFixture(engine, 'setsid-grandchild', { surface: surfaceOn(tmux) })
    await started.ready()
    tmux.run('kill-pane', '-t', '%1')
    expect((await started.run.outcome).message).toMatch(/^pane %1 of .* was closed$/)
    expect((await started.run.gone).evidence).toMatchObject([{ kind: EMPTY_ADOPTED }])
    expect(started.alive()).toEqual([])
  })

  it('P2, INV-3: closed by hand while it is cancelled, in either order: one outcome, and a receipt that is true', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    for (let round = 0; round < 16; round += 1) {
      const run = await inPane(engine, tmux, ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.01; done'])
      const command = await launched(run)
      const close = (): unknown => tmux.run('kill-pane', '-t', command.paneId)
      if (round % 2 === 0) close()
      const cancelling = run.cancel()
      if (round % 2 === 1)
        await Promise.resolve()
          .then(close)
          .catch(() => undefined)
      const [line] = (await cancelling).runs
      expect(command.isAlive(), `round ${String(round)}`).toBe(false)
      expect(tmux.panes()).toHaveLength(1)
      const { status, message } = await run.outcome
      if (line?.status === 'confirmed') expect(status).toBe('cancelled')
      else {
        expect([line?.status, status]).toEqual(['already-terminal', 'failed'])
        expect(message).toMatch(/was closed$/)
      }
    }
  }, 60_000)

  it('P4: a cancel during the launch leaves neither command nor pane, at whatever moment it comes', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const place = tempDir()
    const receipts = await Promise.all(
      Array.from({ length: 12 }, async (_, index) => {
        const mark = join(place, String(index))
        const run = await inPane(engine, tmux, ['sh', '-c', `echo $$ >${mark}; exec sleep 600`])
        // Each some turns of the event loop later than the one before.
        for (let turn = 0; turn < index * 4; turn += 1) await new Promise((resolve) => setImmediate(resolve))
        return run.cancel()
      }),
    )
    for (const { runs } of receipts) expect(runs).toMatchObject([{ status: 'confirmed', work: 'cancelled' }])
    expect(tmux.panes()).toHaveLength(1)
    for (const name of readdirSync(place)) {
      const pid = Number(readFileSync(join(place, name), 'utf8'))
      expect(statOf(pid), `the command of ${name}`).toBeUndefined()
    }
  }, 60_000)

  it('P12: when the server is killed, the failure names it', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP)
    await launched(run)
    tmux.pid()
    tmux.run('kill-server')
    expect((await run.outcome).message).toMatch(/^the tmux server at .* ended, and %0 with it$/)
    expect((await run.gone).evidence).toMatchObject([{ kind: EMPTY_ADOPTED }])
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

describe('two runs for one pane', () => {
  it('P12: one has it, the other is told, and nothing of either is typed into the other', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', '/bin/sh', '-i')
    await waitFor(() => tmux.text('%0').includes('$'), { deadlineMs: 20_000, what: 'the prompt' })
    const surface = surfaceOn(tmux, { pane: '%0' })
    const started = await Promise.all([1, 2, 3].map(() => inPane(engine, tmux, ['cat'], { surface })))
    const [first, ...refused] = await Promise.all(
      started.map(async (run) => [run, await launched(run).catch(() => null)] as const),
    ).then((all) => all.sort(([, one], [, other]) => Number(one === null) - Number(other === null)))
    expect(first?.[1]).not.toBeNull()
    expect(tmux.text('%0').match(/\/bin\/sh '/g)).toHaveLength(1)
    for (const [run] of refused)
      expect((await run.outcome).message).toBe(
        'cannot launch cat in tmux: pane %0 is not at the prompt of a shell',
      )
    let shown = ''
    void (async () => {
      for await (const event of first?.[0].events({ output: 'bytes' }) ?? [])
        if (event.type === 'bytes') shown += Buffer.from(event.chunk).toString('utf8')
    })()
    first?.[0].write('only this\n')
    await waitFor(() => shown.includes('only this\r\nonly this'), { deadlineMs: 20_000, what: 'its echo' })
    expect(shown).toBe('only this\r\nonly this\r\n')
    expect((await first?.[0].cancel())?.status).toBe('confirmed')
  }, 60_000)
})

describe('the next candidate', () => {
  it.each(['a new pane', 'a pane that was there'])(
    'P9, INV-8: in %s it begins when the last one is gone',
    async (where) => {
      const engine = await openTestEngine()
      const tmux = testTmux()
      tmux.run('new-session', '-d', '-s', 'it', '--', '/bin/sh', '-i')
      await waitFor(() => tmux.text('%0').includes('$'), { deadlineMs: 20_000, what: 'the prompt' })
      const run = await inPane(engine, tmux, ['sh', '-c', 'exit 3'], {
        surface: surfaceOn(tmux, where === 'a new pane' ? {} : { pane: '%0' }),
        fallback: {
          candidates: [{ command: ['sh', '-c', 'exit 4'] }, { command: ['sh', '-c', 'echo third'] }],
        },
      })
      expect(await run.outcome).toMatchObject({ status: 'completed', attempt: 3 })
      expect((await run.gone).evidence).toMatchObject([
        { attempt: 1, kind: EMPTY_ADOPTED },
        { attempt: 2, kind: EMPTY_ADOPTED },
        { attempt: 3, kind: EMPTY_ADOPTED },
      ])
      expect(tmux.panes()).toMatchObject([{ id: '%0' }])
    },
  )
})

const sleeperOf = (shell: number) => {
  const children = readFileSync(`/proc/${String(shell)}/task/${String(shell)}/children`, 'utf8')
    .trim()
    .split(' ')
  return children.map((pid) => identityOf(Number(pid))).find((identity) => identity !== undefined)
}

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
    expect(gone?.evidence).toMatchObject([{ kind: EMPTY_ADOPTED }])
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
