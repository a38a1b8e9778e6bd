/** Membership and signals, on the real process table. */
import { spawn } from 'node:child_process'
import { closeSync, readlinkSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ProcessIdentity } from '../../../src/actors/ports.js'
import {
  identify,
  isAlive,
  lookUpIdentity,
  parseStat,
  readStat,
} from '../../../src/adapters/process/proc-fs.js'
import { libc } from '../../../src/adapters/process/libc.js'
import { createProcessPort } from '../../../src/adapters/process/process-port.js'
import { ProcTable } from '../../../src/adapters/process/proc-table.js'
import { signalMembers } from '../../../src/adapters/process/signal.js'
import { Tree } from '../../../src/adapters/process/tree.js'
import { identityOf } from '../../support/proc-reader.js'
import { scanOf, steadily } from '../../support/steady-look.js'
import { waitFor } from '../../support/wait-for.js'

const sleeper = (): { readonly pid: number; readonly identity: ProcessIdentity } => {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
  const pid = child.pid ?? 0
  onTestFinished(() => void child.kill('SIGKILL'))
  const identity = identify(pid)
  if (identity === null) throw new Error('the sleeper is not there')
  return { pid, identity }
}

/** A launch of its own, without its marks. */
const launchOf = (command: readonly string[]) => ({
  runId: 'r',
  attempt: 1,
  command,
  cwd: '/',
  env: { PATH: process.env['PATH'] },
  stdin: 'ignore' as const,
})

describe('identity', () => {
  it.each([
    ['a plain name', '12 (sleep) S 1 12 12 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 999 0 42', 'sleep', 999],
    [
      'a name that ends like a field list',
      '12 (a) R 1 (b) S 1 12 12 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 777 0 42',
      'a) R 1 (b',
      777,
    ],
  ])('R1: %s is read after the last parenthesis', (_what, text, name, startTicks) => {
    expect(parseStat(text)).toMatchObject({
      pid: 12,
      name,
      state: 'S',
      parent: 1,
      startTicks,
      cpuTicks: 12,
      threads: 1,
    })
  })

  it('R1: another boot is gone, another namespace unknown, another start time gone', () => {
    const { identity } = sleeper()
    expect(lookUpIdentity(identity)).toBe('alive')
    expect(lookUpIdentity({ ...identity, bootId: 'another' })).toBe('gone')
    expect(lookUpIdentity({ ...identity, pidNamespace: 'pid:[1]' })).toBe('unknown')
    expect(lookUpIdentity({ ...identity, startTicks: identity.startTicks + 1 })).toBe('gone')
    expect(identity.pidNamespace).toBe(readlinkSync('/proc/self/ns/pid'))
  })

  it('C6: a zombie is not alive, unless other threads of it run on', () => {
    const base = parseStat('12 (x) Z 1 12 12 0 -1 0 0 0 0 0 5 7 0 0 20 0 1 0 999 0 42')
    expect(isAlive(base)).toBe(false)
    expect(isAlive({ ...base, threads: 2 })).toBe(true)
    expect(isAlive({ ...base, state: 'D' })).toBe(true)
  })
})

describe('signals', () => {
  const member = (pid: number, startTicks: number) => ({ pid, startTicks, state: 'S', name: 'x' })

  it.each([
    ['init', () => 1],
    ['ourselves', () => process.pid],
    ['our own group', () => process.ppid],
  ])('C8: %s is refused outright', (_what, pidOf) => {
    const pid = pidOf()
    const stat = readStat(pid)
    if (pid !== 1 && pid !== process.pid && stat?.group !== readStat(process.pid)?.group) return
    expect(signalMembers('SIGCONT', [member(pid, stat?.startTicks ?? 0)])).toEqual([
      { pid, error: 'refused' },
    ])
  })

  it('INV-6, R6: a process with another start time is not signalled', () => {
    const { pid, identity } = sleeper()
    expect(signalMembers('SIGKILL', [member(pid, identity.startTicks - 1)])).toEqual([])
    expect(lookUpIdentity(identity)).toBe('alive')
  })

  it('C9: a process that is gone is no failure; one of another user is alive and named', async () => {
    const { pid, identity } = sleeper()
    expect(signalMembers('SIGKILL', [member(pid, identity.startTicks)])).toEqual([])
    await waitFor(() => lookUpIdentity(identity) === 'gone', {
      deadlineMs: 5_000,
      what: 'the sleeper is dead',
    })
    expect(signalMembers('SIGKILL', [member(pid, identity.startTicks)])).toEqual([])
  })
})

describe('membership', () => {
  const marks = { cookie: 'not-borne-by-anyone', limit: null }

  it('INV-14: a group is not ours when its number names another process now', async () => {
    const { pid, identity } = sleeper()
    const before: ProcessIdentity = { ...identity, startTicks: identity.startTicks - 100 }
    const tree = new Tree({ leader: before, marks, usesMarks: false, isOwnChild: true })
    const procs = new ProcTable()
    expect(await steadily(async () => tree.membersIn(await procs.look()))).toEqual([])
    const own = new Tree({ leader: identity, marks, usesMarks: false, isOwnChild: true })
    const found = await steadily(async () => own.membersIn(await procs.look()))
    expect(found.map((one) => one.pid)).toEqual([pid])
  })

  it('C2: the limit mark and the cookie find a process that left group, session and lineage', async () => {
    const port = createProcessPort('group+marks')
    const own = port.mintMarks()
    const execution = await port.launch({
      runId: 'r',
      attempt: 1,
      command: ['sh', '-c', 'env -i setsid sleep 60 & env setsid sleep 60 & sleep 0.2'],
      cwd: '/',
      env: { PATH: process.env['PATH'] },
      stdin: 'ignore',
      marks: own,
    })
    execution.onOutput(() => undefined)
    await execution.exited
    const members = await waitFor(
      async () => {
        const found = await scanOf(execution)
        return found.length === 2 && found.every(({ name }) => name === 'sleep') ? found : null
      },
      { deadlineMs: 5_000, what: 'both sleepers, and nobody else' },
    )
    const group = new Tree({ leader: execution.identity, marks: own, usesMarks: false, isOwnChild: false })
    expect(group.membersIn(await new ProcTable().look())).toEqual([])
    execution.signal('SIGKILL', members)
    await waitFor(async () => (await scanOf(execution)).length === 0, {
      deadlineMs: 5_000,
      what: 'both are gone',
    })
    execution.cutOutput()
  })

  it('C2: the limit of this process is what it was after a launch', async () => {
    const { readFileSync } = await import('node:fs')
    const before = readFileSync('/proc/self/limits', 'utf8')
    const port = createProcessPort('group+marks')
    const launch = launchOf(['true'])
    const execution = await port.launch({ ...launch, marks: port.mintMarks() })
    await execution.exited
    expect(readFileSync('/proc/self/limits', 'utf8')).toBe(before)
  })

  it('R2: an execution whose identity was never recorded is found by its marks', async () => {
    const port = createProcessPort('group+marks')
    const own = port.mintMarks()
    const spec = launchOf(['sleep', '60'])
    const launched = await port.launch({ ...spec, marks: own })
    const adopted = await port.adopt({
      ...spec,
      marks: own,
      containment: 'group+marks',
      identity: null,
      launchedAt: null,
    })
    expect(adopted.identity).toMatchObject(identityOf(launched.identity?.pid ?? 0) ?? {})
    adopted.signal('SIGKILL', await scanOf(adopted))
    await launched.exited
    const nobody = await port.adopt({
      ...spec,
      marks: port.mintMarks(),
      containment: 'group+marks',
      identity: null,
      launchedAt: null,
    })
    expect(nobody.identity).toBeNull()
    expect(await scanOf(nobody)).toEqual([])
  })

  it('R6: an execution of another boot is gone, and nothing here is taken for it', async () => {
    const port = createProcessPort('group+marks')
    const { identity } = sleeper()
    const adopted = await port.adopt({
      runId: 'r',
      attempt: 1,
      marks,
      containment: 'group+marks',
      identity: { ...identity, bootId: 'another' },
      launchedAt: 0,
    })
    expect(await scanOf(adopted)).toEqual([])
  })
})

describe('what reaches a process', () => {
  it('C4: a stopped process gets its TERM only through the CONT that follows', async () => {
    const port = createProcessPort('group+marks')
    const spec = launchOf(['sleep', '60'])
    const execution = await port.launch({ ...spec, marks: port.mintMarks() })
    const stateOf = async (): Promise<string | undefined> => (await scanOf(execution))[0]?.state
    execution.signal('SIGSTOP', await scanOf(execution))
    await waitFor(async () => (await stateOf()) === 'T', { deadlineMs: 5_000, what: 'it is stopped' })
    execution.signal('SIGTERM', await scanOf(execution))
    expect(await stateOf()).toBe('T')
    execution.signal('SIGCONT', await scanOf(execution))
    expect(await execution.exited).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })

  it('C7: a signal goes through a pidfd where the kernel has one', () => {
    const kernel = libc()
    const { pid, identity } = sleeper()
    const fd = kernel?.openPidfd(pid) ?? -1
    expect(kernel === null || fd >= 0).toBe(true)
    if (fd >= 0) closeSync(fd)
    const member = { pid, startTicks: identity.startTicks, state: 'S', name: 'sleep' }
    expect(signalMembers('SIGSTOP', [member])).toEqual([])
    expect(signalMembers('SIGCONT', [member])).toEqual([])
  })

  it('C3: one complete look misses nothing that lived at its last listing, however fast it forks', async () => {
    const table = new ProcTable()
    const before = await table.look()
    const children = Array.from({ length: 30 }, sleeper)
    const after = await table.look()
    for (const { pid } of children) expect(after.find(pid)).toBeDefined()
    expect(before.find(children[0]?.pid ?? 0)).toBeUndefined()
  })
})
