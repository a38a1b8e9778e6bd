/** Cgroups around what shows itself on a terminal: one of its own, or a pane. Skipped where this process may make none. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, Run, RunSpec } from '../../src/index.js'
import { allowMore, cgroupPathOf, isFrozen, noCgroup, pidsIn, tempCgroup } from '../support/cgroups.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import type { StartedFixture } from '../support/engine.js'
import { SLEEP, inPane, launched, surfaceOn } from '../support/in-pane.js'
import { aliveOf, readLedger, statOf } from '../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const DEADLINE = { deadlineMs: 30_000 }
const HELD = { containment: { atLeast: 'cgroup' } } as const

const recordOf = async (engine: Engine, run: Run) => {
  const execution = (await engine.history(run.id)).executions.at(-1)
  return { containment: execution?.containment, folder: execution?.marks?.cgroup ?? '/nowhere' }
}

const outputOf = async (run: Run): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const event of run.events({ output: 'bytes' }))
    if (event.type === 'bytes') chunks.push(event.chunk)
  return Buffer.concat(chunks).toString('latin1')
}

/** It is frozen and let go as a whole, and gone when the stop says so, with its cgroup. */
const expectHeld = async (started: StartedFixture, folder: string): Promise<void> => {
  expect(await started.run.pause()).toEqual({ status: 'frozen', running: [] })
  expect(isFrozen(folder)).toBe(true)
  await started.run.resume()
  expect(isFrozen(folder)).toBe(false)
  expect((await started.run.cancel()).status).toBe('confirmed')
  expect(started.alive()).toEqual([])
  expect(existsSync(folder)).toBe(false)
}

describe.skipIf(noCgroup !== null)('a terminal of its own', () => {
  const onTerminal = (engine: Engine, command: string[], spec: Partial<RunSpec> = {}): Promise<Run> =>
    engine.start({ command, stdio: 'pty', stop: quickStop, ...spec })

  it('L9, C2: the command is in its cgroup from its first instruction, and its terminal is its own', async () => {
    const engine = await openTestEngine(HELD)
    const script =
      'cat /proc/self/cgroup; test -t 0 && test -t 1 && test -t 2 && : </dev/tty && stty size; exit 3'
    const run = await onTerminal(engine, ['sh', '-c', script], { pty: { cols: 101, rows: 33 } })
    const text = await outputOf(run)
    const { containment, folder } = await recordOf(engine, run)
    expect(containment).toBe('cgroup')
    expect(text).toMatch(new RegExp(`^0::.*/${basename(folder)}\r$`, 'm'))
    expect(text).toMatch(/33 101\r\n$/)
    expect(await run.outcome).toMatchObject({ exitCode: 3 })
    expect((await run.gone).evidence).toMatchObject([{ kind: 'cgroup-empty' }])
    expect(existsSync(folder)).toBe(false)
  })

  it('L1: a command that is not there is told as such, and leaves no folder', async () => {
    const engine = await openTestEngine(HELD)
    const run = await onTerminal(engine, ['no-such-program'])
    expect(await run.outcome).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/cannot launch no-such-program: no such program/) as string,
    })
    expect(existsSync((await recordOf(engine, run)).folder)).toBe(false)
  })

  it('C5, O1: what sheds every mark on it is frozen with it, and gone when the stop says so', async () => {
    const engine = await openTestEngine(HELD)
    const started = await startFixture(engine, 'mark-shedding-daemon', { stdio: 'pty' })
    await started.ready()
    const { folder } = await recordOf(engine, started.run)
    await expectHeld(started, folder)
  })
})

describe.skipIf(noCgroup !== null || !hasTmux)('a pane', () => {
  if (!hasTmux) console.warn(NO_TMUX)

  it('P12, C2: its command is in a cgroup before it begins, the pane’s own shell is not, and the record says both', async () => {
    const engine = await openTestEngine(HELD)
    const tmux = testTmux()
    const run = await inPane(engine, tmux, ['sh', '-c', 'cat /proc/self/cgroup; exec sleep 600'])
    const output = outputOf(run)
    const { pid } = await launched(run)
    const { containment, folder } = await recordOf(engine, run)
    expect(containment).toBe('cgroup')
    await waitFor(() => statOf(pid)?.name === 'sleep', { ...DEADLINE, what: 'it has shown where it is' })
    expect(pidsIn(folder)).toEqual([pid])
    expect(engine.live()).toMatchObject([{ containment: 'cgroup' }])
    const receipt = await run.cancel()
    expect(receipt.runs).toMatchObject([{ status: 'confirmed', evidence: [{ kind: 'cgroup-empty' }] }])
    expect(await output).toMatch(new RegExp(`^0::.*/${basename(folder)}\r$`, 'm'))
    expect(existsSync(folder)).toBe(false)
    expect(() => tmux.panes()).toThrow(/no server|connecting/)
  })

  it('C5, O1: what sheds every mark in it is frozen with it, and gone when the stop says so', async () => {
    const engine = await openTestEngine(HELD)
    const tmux = testTmux()
    const started = await startFixture(engine, 'mark-shedding-daemon', { surface: surfaceOn(tmux) })
    await started.ready()
    const { folder } = await recordOf(engine, started.run)
    expect(pidsIn(folder).sort()).toEqual(
      started
        .alive()
        .map(({ pid }) => pid)
        .sort(),
    )
    await expectHeld(started, folder)
  })

  it('O1, P12: a paused run whose tmux server is killed stands still until it is resumed, and then ends and says why', async () => {
    const engine = await openTestEngine(HELD)
    const tmux = testTmux()
    const started = await startFixture(engine, 'heartbeat', { surface: surfaceOn(tmux) })
    await started.ready()
    const { folder } = await recordOf(engine, started.run)
    expect(await started.run.pause()).toEqual({ status: 'frozen', running: [] })
    tmux.run('kill-server')
    expect([isFrozen(folder), started.alive().length]).toEqual([true, 3])
    await started.run.resume()
    expect((await started.run.outcome).message).toMatch(/^the tmux server at .* ended, and %0 with it$/)
    expect((await started.run.gone).evidence).toMatchObject([{ kind: 'cgroup-empty' }])
    expect(started.alive()).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })

  it('C2: where its command cannot be brought into a cgroup, the record says pane, and a floor refuses it', async () => {
    const parent = tempCgroup('full')
    const open = async (floor: object): Promise<Engine> => {
      allowMore(parent, true)
      const engine = await openTestEngine({ containment: { ...floor, cgroup: { parent } } })
      allowMore(parent, false)
      return engine
    }
    const engine = await open({})
    const tmux = testTmux()
    const run = await inPane(engine, tmux, SLEEP)
    const { pid } = await launched(run)
    const { containment, folder } = await recordOf(engine, run)
    expect([containment, existsSync(folder)]).toEqual(['pane', false])
    expect(cgroupPathOf(pid)).not.toContain(basename(parent))
    expect((await run.cancel()).runs).toMatchObject([{ status: 'confirmed' }])
    expect((await run.gone).evidence).not.toMatchObject([{ kind: 'cgroup-empty' }])
    const demanding = await open({ atLeast: 'cgroup' })
    const refused = await inPane(demanding, tmux, SLEEP)
    expect(await refused.outcome).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(
        /cannot launch sleep in tmux: option containment\.atLeast "cgroup" cannot be had: EAGAIN/,
      ) as string,
    })
    await refused.gone
    expect(() => tmux.panes()).toThrow(/no server|connecting/)
  })

  it('R3, R2: a dead engine’s run in one is ended with its cgroup', async () => {
    const database = join(tempDir(), 'runs.db')
    const first = await createEngine({ database, ...HELD })
    onTestFinished(async () => {
      await first.close({ runs: 'cancel', deadlineMs: 10_000 })
    })
    const tmux = testTmux()
    const started = await startFixture(first, 'mark-shedding-daemon', { id: 'r1', surface: surfaceOn(tmux) })
    await started.ready()
    const { folder } = await recordOf(first, started.run)
    await first.close({ runs: 'leave' })
    const second = await openTestEngine({ database, containment: { prefer: 'group+marks' } })
    expect((await second.run('r1')?.gone)?.evidence).toMatchObject([{ kind: 'cgroup-empty' }])
    expect(aliveOf(readLedger(started.ledger))).toEqual([])
    await waitFor(() => !existsSync(folder), { ...DEADLINE, what: 'the folder is removed' })
    expect(() => tmux.panes()).toThrow(/no server|connecting/)
  })
})
