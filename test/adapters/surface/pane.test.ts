/** The pane adapter by itself: proving whose process it is, freezing, and launchers whose engine is gone. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { TreeFreeze } from '../../../src/actors/tree-freeze.js'
import { TreePursuit } from '../../../src/actors/tree-pursuit.js'
import { TreeReach } from '../../../src/actors/tree-reach.js'
import type { Execution, LaunchSpec, ProcessPort } from '../../../src/actors/ports.js'
import { systemClock } from '../../../src/adapters/clock/system-clock.js'
import { createProcessPort } from '../../../src/adapters/process/process-port.js'
import { withPanes } from '../../../src/adapters/surface/pane-port.js'
import { Rendezvous } from '../../../src/adapters/surface/rendezvous.js'
import { socketOf } from '../../../src/adapters/surface/tmux.js'
import { fixtureCommand, withLedger } from '../../support/fixture.js'
import { readLedger, statOf } from '../../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux } from '../../support/tmux.js'
import type { TestTmux } from '../../support/tmux.js'
import { tempDir, waitFor } from '../../support/wait-for.js'

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

beforeEach(({ skip }) => {
  if (!hasTmux) skip(NO_TMUX)
})

const specFor = (
  processes: ProcessPort,
  tmux: TestTmux,
  command: readonly string[],
  env = {},
): LaunchSpec => ({
  runId: 'it',
  attempt: 1,
  command,
  cwd: process.cwd(),
  env: { PATH: process.env['PATH'], ...env },
  stdin: 'ignore',
  marks: processes.mintMarks(),
  pane: { kind: 'tmux', socket: socketOf(tmux), session: 'it', isRetained: false },
})

const pursue = (execution: Execution) => {
  let tellGone = (): void => undefined
  const gone = new Promise<void>((resolve) => (tellGone = resolve))
  const reach = new TreeReach(execution, systemClock, silent, () => undefined)
  const freeze = new TreeFreeze(reach, { frozen: () => undefined, failed: () => undefined })
  const pursuit = new TreePursuit(reach, {
    mayBeGone: () => true,
    gone: tellGone,
    survived: () => undefined,
  })
  onTestFinished(async () => {
    freeze.end()
    pursuit.kill(10_000)
    await gone
  })
  return { freeze, pursuit, gone }
}

describe('a tree in a pane', () => {
  it('O1: it is frozen as a whole, tmux does not continue it, and it goes on when it is thawed', async () => {
    const processes = withPanes(createProcessPort('group+marks'))
    const tmux = testTmux()
    const place = withLedger()
    const beats = join(tempDir(), 'beats')
    const execution = await processes.launch(
      specFor(processes, tmux, fixtureCommand('heartbeat', [beats]), place.env),
    )
    const { freeze, pursuit, gone } = pursue(execution)
    await waitFor(() => readLedger(place.ledger).readyAt !== undefined, {
      deadlineMs: 30_000,
      what: 'it is up',
    })
    const states = (): (string | undefined)[] =>
      readLedger(place.ledger).members.map(({ pid }) => statOf(pid)?.state)
    await freeze.freeze({ isTakenUp: false })
    expect(states()).toEqual(['T', 'T', 'T'])
    // Each answer comes after the server has looked at its children.
    for (let round = 0; round < 20; round += 1) tmux.panes()
    expect(states()).toEqual(['T', 'T', 'T'])
    await freeze.thaw()
    await waitFor(() => !states().includes('T'), { deadlineMs: 10_000, what: 'it goes on' })
    await freeze.freeze({ isTakenUp: false })
    freeze.end()
    pursuit.terminate()
    await gone
    expect(() => tmux.panes()).toThrow(/no server|connecting/)
  })
})

describe('whose process it is', () => {
  const sleeper = (env: NodeJS.ProcessEnv): number => {
    const child = spawn('sleep', ['600'], { env, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child.pid ?? 0
  }

  it('P13: only one that bears the cookie and descends from the pane’s shell is accepted', async () => {
    const processes = createProcessPort('group+marks')
    const marks = processes.mintMarks()
    const ours = sleeper({ ...process.env, RUNWARDEN_COOKIE: `outer:${marks.cookie}` })
    const unmarked = sleeper(process.env)
    await waitFor(
      () => [ours, unmarked].every((pid) => readFileSync(`/proc/${String(pid)}/comm`, 'utf8') === 'sleep\n'),
      { deadlineMs: 10_000, what: 'two sleepers' },
    )
    expect(processes.claim(ours, process.pid, marks)).toMatchObject({
      leader: { pid: ours, startTicks: statOf(ours)?.startTicks },
      shell: { pid: process.pid },
    })
    expect(readFileSync(`/proc/${String(ours)}/limits`, 'latin1')).toMatch(
      new RegExp(`realtime timeout +${String(marks.limit)} +unlimited`),
    )
    expect(processes.claim(ours, ours, marks)).not.toBeNull()
    expect(processes.claim(unmarked, process.pid, marks)).toBeNull()
    expect(processes.claim(ours, unmarked, marks)).toBeNull()
    expect(processes.claim(ours, process.pid, processes.mintMarks())).toBeNull()
    expect(processes.claim(2 ** 22 + 1, process.pid, marks)).toBeNull()
  })
})

describe('a launcher whose engine is gone', () => {
  const launcherOf = (rendezvous: Rendezvous): string =>
    rendezvous.writeLauncher({ cookies: 'x', endMark: '', endsInShell: false })

  it('INV-13: it ends by itself, and so does its pane, whether it came before or after', async () => {
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', 'sleep', '600')
    const early = await Rendezvous.open()
    const heard = new Promise((resolve) => early.report.once('data', resolve))
    tmux.run('new-window', '-d', '-t', '=it:', '--', '/bin/sh', launcherOf(early))
    await heard
    expect(tmux.panes()).toHaveLength(2)
    early.abandon()
    await waitFor(() => tmux.panes().length === 1, { deadlineMs: 10_000, what: 'the first launcher is gone' })
    const late = await Rendezvous.open()
    const launcher = launcherOf(late)
    late.abandon()
    tmux.run('new-window', '-d', '-t', '=it:', '--', '/bin/sh', launcher)
    await waitFor(() => tmux.panes().length === 1, {
      deadlineMs: 10_000,
      what: 'the second launcher is gone',
    })
    expect(existsSync(late.folder)).toBe(false)
  })
})
