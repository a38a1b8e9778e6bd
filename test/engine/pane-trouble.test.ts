/** A tmux that does not answer, or says no: every answer comes in time, and none says more than is known. */
import { execFileSync } from 'node:child_process'
import { existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { EMPTY_ADOPTED, openTestEngine } from '../support/engine.js'
import { SLEEP, inPane, launched } from '../support/in-pane.js'
import { identityOf, isAlive } from '../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux, troubledTmux } from '../support/tmux.js'
import { tempDir, waitFor } from '../support/wait-for.js'

beforeEach(({ skip }) => {
  if (!hasTmux) skip(NO_TMUX)
})

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
    const run = await inPane(engine, tmux, SLEEP, { stop: { termGraceMs: 200, killGraceMs: 2_000 } })
    const { pid } = await launched(run)
    const leader = identityOf(pid)
    tmux.pid()
    tmux.signal('SIGSTOP')
    const from = performance.now()
    const receipt = await run.cancel({ timeoutMs: 30_000 })
    expect(performance.now() - from).toBeLessThan(15_000)
    expect(receipt.runs, JSON.stringify(receipt)).toMatchObject([
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

  it('P14: a pane listing that never answers: unconfirmed at the deadline, naming the pane; when it answers, what was said stays said', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const trouble = troubledTmux()
    const run = await inPane(engine, tmux, SLEEP, { stop: { termGraceMs: 200, killGraceMs: 2_000 } })
    const command = await launched(run)
    trouble.hangs('list-panes')
    const from = performance.now()
    const receipt = await run.cancel({ timeoutMs: 30_000 })
    expect(performance.now() - from).toBeLessThan(15_000)
    expect(receipt.runs, JSON.stringify(receipt)).toMatchObject([
      {
        status: 'unconfirmed',
        survivors: [],
        error: expect.stringMatching(/pane %1 of .* is not proven closed.*did not answer/) as string,
      },
    ])
    expect(trouble.asked('list-panes')).toBeGreaterThan(0)
    expect(command.isAlive()).toBe(false)
    const said = JSON.stringify(receipt)
    trouble.heals()
    // Nobody asks again: it is tried while the tree is watched.
    expect((await run.gone).evidence).toMatchObject([{ kind: EMPTY_ADOPTED }])
    expect(tmux.panes()).toHaveLength(1)
    expect(JSON.stringify(receipt)).toBe(said)
  }, 60_000)

  it('P14, INV-15: a command that ends meanwhile has its outcome at once; the run is open until its pane is proven closed', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const trouble = troubledTmux()
    const go = join(tempDir(), 'go')
    const script = `until [ -e ${go} ]; do sleep 0.02; done; echo done; exit 4`
    const run = await inPane(engine, tmux, ['sh', '-c', script], {
      stop: { termGraceMs: 100, killGraceMs: 500 },
    })
    await launched(run)
    trouble.hangs('list-panes')
    writeFileSync(go, '')
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 4 })
    await waitFor(() => run.state.process === 'unconfirmed', { deadlineMs: 20_000, what: 'unconfirmed' })
    expect(run.state.lastError).toMatch(/pane %1 of .* is not proven closed/)
    trouble.heals()
    await run.gone
    expect(await run.outcome).toMatchObject({ status: 'failed', exitCode: 4 })
  }, 60_000)

  it('P14: an engine that closes names the run at its deadline; the next one opens at once, and ends it when it can be asked', async () => {
    const database = join(tempDir(), 'runs.db')
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const trouble = troubledTmux()
    const first = await openTestEngine({ database })
    const run = await inPane(first, tmux, SLEEP, { stop: { termGraceMs: 200, killGraceMs: 60_000 } })
    const command = await launched(run)
    trouble.hangs('list-panes')
    const from = performance.now()
    expect(await first.close({ runs: 'cancel', deadlineMs: 1_000 })).toEqual({ left: [run.id] })
    const second = await openTestEngine({ database })
    expect(performance.now() - from).toBeLessThan(15_000)
    expect(command.isAlive()).toBe(false)
    const taken = second.run(run.id)
    expect(taken?.state.isSettled).toBe(false)
    trouble.heals()
    expect((await taken?.gone)?.evidence).toMatchObject([{ kind: EMPTY_ADOPTED }])
    expect((await taken?.outcome)?.status).toBe('cancelled')
    expect(tmux.panes()).toHaveLength(1)
  }, 60_000)

  it('P14: what tmux says it has connected and has not: the launch fails, and neither command nor pane is there', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const trouble = troubledTmux()
    trouble.isIgnored('pipe-pane')
    const trace = join(tempDir(), 'trace')
    const run = await inPane(engine, tmux, ['touch', trace])
    expect(await run.outcome).toMatchObject({
      reason: 'launch-failed',
      message: 'cannot launch touch in tmux: tmux did not connect the output within 10000 ms',
    })
    await waitFor(() => tmux.panes().length === 1, { deadlineMs: 20_000, what: 'the pane is gone' })
    expect(existsSync(trace)).toBe(false)
  }, 60_000)
})

describe('a tmux that says no', () => {
  it('P12: an error of the closing is of no account where the pane is absent', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP)
    const trouble = troubledTmux()
    const run = await inPane(engine, tmux, SLEEP)
    await launched(run)
    trouble.fails('kill-pane', { message: 'no such thing', isDone: true })
    expect((await run.cancel()).status).toBe('confirmed')
    expect(trouble.asked('kill-pane')).toBeGreaterThan(0)
    expect(tmux.panes()).toHaveLength(1)
  })

  it('P12: where the pane is there, its error and the pane are both said; a stop after that closes it', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    // A pane whose process has ended goes by itself, unless it is told to stay.
    tmux.run('new-session', '-d', '-s', 'it', '--', ...SLEEP, ';', 'set-option', '-g', 'remain-on-exit', 'on')
    const trouble = troubledTmux()
    const run = await inPane(engine, tmux, SLEEP, { stop: { termGraceMs: 200, killGraceMs: 3_000 } })
    await launched(run)
    trouble.fails('kill-pane', { message: 'the server said no', isDone: false })
    expect((await run.cancel({ timeoutMs: 30_000 })).runs).toMatchObject([
      {
        status: 'unconfirmed',
        error: expect.stringMatching(
          /pane %1 of .* is not proven closed: the server said no; it is still there$/,
        ) as string,
      },
    ])
    trouble.heals()
    expect((await run.cancel()).status).toBe('confirmed')
    expect(tmux.panes()).toHaveLength(1)
  }, 60_000)

  it('P12: without tmux the launch fails and says so', async () => {
    const engine = await openTestEngine()
    const tmux = testTmux()
    const folder = tempDir()
    symlinkSync(
      execFileSync('/bin/sh', ['-c', 'command -v mkfifo'], { encoding: 'utf8' }).trim(),
      join(folder, 'mkfifo'),
    )
    const env = { ...process.env }
    vi.stubEnv('PATH', folder)
    onTestFinished(() => {
      vi.unstubAllEnvs()
    })
    const run = await inPane(engine, tmux, ['true'], { env })
    expect((await run.outcome).message).toBe('cannot launch true in tmux: tmux is not installed')
  })
})
