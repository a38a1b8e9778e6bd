/** The pane adapter by itself: proving whose process it is, freezing, and launchers whose engine is gone. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { TreeFreeze } from '../../../src/actors/tree-freeze.js'
import { TreePursuit } from '../../../src/actors/tree-pursuit.js'
import { TreeReach } from '../../../src/actors/tree-reach.js'
import type { Execution, LaunchSpec, ProcessPort } from '../../../src/actors/ports.js'
import { systemClock } from '../../../src/adapters/clock/system-clock.js'
import { createProcessPort } from '../../../src/adapters/process/process-port.js'
import { passOnTo } from '../../../src/adapters/surface/pane-output.js'
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
    await freeze.freeze()
    expect(states()).toEqual(['T', 'T', 'T'])
    // Each answer comes after the server has looked at its children.
    for (let round = 0; round < 20; round += 1) tmux.panes()
    expect(states()).toEqual(['T', 'T', 'T'])
    await freeze.thaw()
    await waitFor(() => !states().includes('T'), { deadlineMs: 10_000, what: 'it goes on' })
    await freeze.freeze()
    freeze.end()
    pursuit.terminate()
    await gone
    expect(() => tmux.panes()).toThrow(/no server|connecting/)
  })
})

describe('a tree found on record', () => {
  const ignoring = (what: string): string[] => [
    'sh',
    '-c',
    `trap "" ${what}; echo up; while :; do sleep 0.1; done`,
  ]

  const launchedOn = async (tmux: TestTmux, command: readonly string[], isRetained = false) => {
    const processes = withPanes(createProcessPort('group+marks'))
    const spec = specFor(processes, tmux, command)
    const pane = { kind: 'tmux', socket: socketOf(tmux), session: 'it', isRetained } as const
    const first = await processes.launch({ ...spec, pane })
    const shown = new Promise((resolve) => {
      first.onOutput(resolve)
    })
    await shown
    const { identity } = first
    if (identity === null || first.pane === undefined) throw new Error('it has no identity')
    const { runId, attempt, marks } = spec
    const record = { runId, attempt, marks, containment: 'pane', launchedAt: null } as const
    return { processes, first, identity, pane: first.pane, record }
  }

  it('R2, P12: its pane is found by its tag where the engine died before it could record which one it was', async () => {
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', 'sleep', '600')
    const { processes, identity, pane, record } = await launchedOn(tmux, ignoring('TERM'))
    const found = await processes.adopt({ ...record, identity: null, pane: { ...pane, place: null } })
    expect(found.identity).toEqual(identity)
    const { pursuit, gone } = pursue(found)
    expect(tmux.panes()).toHaveLength(2)
    pursuit.kill(10_000)
    await gone
    expect(tmux.panes()).toHaveLength(1)
    expect(await processes.lookUp(identity)).toBe('gone')
    expect(found.emptyEvidence).toBe('identity-gone')
  })

  it('P13: an identity of another namespace is not signalled; an ordinary pane is closed, and only its absence confirms', async () => {
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', 'sleep', '600')
    const { processes, identity, pane, record } = await launchedOn(tmux, ignoring('TERM'))
    const elsewhere = { ...identity, pidNamespace: 'pid:[1]' }
    const found = await processes.adopt({ ...record, identity: elsewhere, pane })
    await expect(found.scan()).rejects.toMatchObject({ code: 'refused' })
    const { pursuit, gone } = pursue(found)
    pursuit.terminate()
    expect(await processes.lookUp(identity)).toBe('alive')
    expect(tmux.panes()).toHaveLength(2)
    pursuit.kill(10_000)
    await gone
    expect(tmux.panes()).toHaveLength(1)
    expect(found.emptyEvidence).toBe('pane-absent')
  })

  it('P13: in a retained pane such an identity is never called gone, nor signalled, while the pane is there', async () => {
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', 'sleep', '600')
    const { processes, first, identity, pane, record } = await launchedOn(tmux, ignoring('TERM'), true)
    const elsewhere = { ...identity, pidNamespace: 'pid:[1]' }
    const found = await processes.adopt({ ...record, identity: elsewhere, pane })
    const said: string[] = []
    const reach = new TreeReach(found, systemClock, silent, () => undefined)
    const survived = new Promise<string | undefined>((resolve) => {
      const pursuit = new TreePursuit(reach, {
        mayBeGone: () => true,
        gone: () => said.push('gone'),
        survived: (_, error) => {
          resolve(error)
        },
      })
      onTestFinished(() => {
        pursuit.end()
      })
      pursuit.kill(300)
    })
    expect(await survived).toBe('the process tree could not be read')
    expect(said).toEqual([])
    expect(await processes.lookUp(identity)).toBe('alive')
    expect(tmux.panes()).toHaveLength(2)
    const { pursuit, gone } = pursue(first)
    pursuit.kill(10_000)
    await gone
  })

  it('R6: after a restart of the machine its numbers name nothing: nothing is signalled, no pane is touched', async () => {
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', 'sleep', '600')
    const { processes, first, identity, pane, record } = await launchedOn(tmux, ignoring('TERM'))
    const bootId = '00000000-0000-0000-0000-000000000000'
    const { place } = pane
    if (place === null) throw new Error('it has no place')
    const before = {
      server: { ...place.server, bootId },
      shell: { ...place.shell, bootId },
      paneId: place.paneId,
    }
    const found = await processes.adopt({
      ...record,
      identity: { ...identity, bootId },
      pane: { ...pane, place: before },
    })
    const other = pursue(found)
    other.pursuit.kill(10_000)
    await other.gone
    expect(await processes.lookUp(identity)).toBe('alive')
    expect(tmux.panes()).toHaveLength(2)
    const { pursuit, gone } = pursue(first)
    pursuit.kill(10_000)
    await gone
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

it('INV-13, INV-11: what passes the output on ends by itself where the engine died before it came', async () => {
  const fifo = join(tempDir(), 'output')
  expect(spawnSync('mkfifo', [fifo]).status).toBe(0)
  // Its input stays open, and nothing is ever written to it: only the missing reader can end it.
  const passing = spawn('sh', ['-c', passOnTo(fifo)], { stdio: ['pipe', 'ignore', 'ignore'] })
  onTestFinished(() => void passing.kill('SIGKILL'))
  await waitFor(() => passing.exitCode !== null || passing.signalCode !== null, {
    deadlineMs: 10_000,
    what: 'what passes the output on is over',
  })
})
