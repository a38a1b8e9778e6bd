/** Runs held by cgroups, through the public door. Skipped where this process may make none. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { createEngine } from '../../src/index.js'
import type { Engine, Run } from '../../src/index.js'
import { beatsAgain, beatsOf } from '../support/beats.js'
import {
  allowMore,
  cgroupParent,
  cgroupPathOf,
  isFrozen,
  noCgroup,
  pidsIn,
  tempCgroup,
} from '../support/cgroups.js'
import { openTestEngine, quickStop, startFixture } from '../support/engine.js'
import { launched } from '../support/in-pane.js'
import { aliveOf, descendantsOf, readLedger, statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const DEADLINE = { deadlineMs: 30_000 }
const HELD = { containment: { atLeast: 'cgroup' } } as const

const folderOf = async (engine: Engine, run: Run): Promise<string> => {
  const { executions } = await engine.history(run.id)
  return executions.at(-1)?.marks?.cgroup ?? '/nowhere'
}

/** A run of an engine that has closed and left it, where only its cgroup can tell that it is there. */
const leftInCgroup = async () => {
  const database = join(tempDir(), 'runs.db')
  const first = await createEngine({ database, ...HELD })
  const started = await startFixture(first, 'mark-shedding-daemon', { id: 'r1' })
  await started.ready()
  const folder = await folderOf(first, started.run)
  await first.close({ runs: 'leave' })
  return { database, started, folder }
}

/** Finds its own cgroup, makes one in it, and has a child that does `script` and then sleeps. */
const withChild = (script: string): string[] => {
  const own = `G=${cgroupParent}/$(sed -n 's/^0::.*[/]//p' /proc/self/cgroup); mkdir "$G/n"`
  return ['sh', '-c', `${own}; (${script}; exec sleep 60) & wait; sleep 60`]
}

/** Where the child must have arrived before it is stopped. */
type Arrived = (folder: string, child: number) => boolean
const isIn =
  (name: string): Arrived =>
  (_folder, child) =>
    cgroupPathOf(child)?.endsWith(name) === true

const inCgroups = describe.skipIf(noCgroup !== null)

inCgroups('a run in a cgroup', () => {
  it('C2: ps, show and live name the tier and the folder, and the folder is gone with the run', async () => {
    const engine = await openTestEngine(HELD)
    const started = await startFixture(engine, 'setsid-grandchild')
    await started.ready()
    const folder = await folderOf(engine, started.run)
    expect(pidsIn(folder).sort()).toEqual(
      started
        .alive()
        .map(({ pid }) => pid)
        .sort(),
    )
    expect(engine.live()).toMatchObject([{ runId: started.run.id, containment: 'cgroup' }])
    expect(await engine.runs({})).toMatchObject([{ containment: 'cgroup' }])
    const receipt = await started.run.cancel()
    expect(receipt.runs).toMatchObject([{ status: 'confirmed', evidence: [{ kind: 'cgroup-empty' }] }])
    expect(started.alive()).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })

  it('C5: what sheds every mark is gone when the stop says so', async () => {
    const engine = await openTestEngine(HELD)
    const started = await startFixture(engine, 'mark-shedding-daemon')
    await started.ready()
    expect(started.alive()).toHaveLength(2)
    expect((await started.run.cancel()).status).toBe('confirmed')
    expect(started.alive()).toEqual([])
  })

  it.each<[string, string, Arrived]>([
    ['made a cgroup of its own', 'echo 0 >"$G/n/cgroup.procs"', isIn('/n')],
    [
      'froze itself in a cgroup of its own',
      'echo 0 >"$G/n/cgroup.procs"; echo 1 >"$G/n/cgroup.freeze"',
      (folder) => isFrozen(join(folder, 'n')),
    ],
    [
      'moved itself to another cgroup',
      `echo 0 >"${cgroupParent}/cgroup.procs"`,
      (folder, child) => !pidsIn(folder).includes(child),
    ],
    [
      'has a process namespace of its own',
      'exec unshare -pf --mount-proc sleep 60',
      (_folder, child) => descendantsOf(child).some(({ name }) => name === 'sleep'),
    ],
  ])('C5: a child that %s is gone when the stop says so', async (_what, script, hasArrived) => {
    const engine = await openTestEngine(HELD)
    const run = await engine.start({ command: withChild(script), stop: quickStop })
    const leader = await waitFor(() => engine.live()[0]?.pid, { ...DEADLINE, what: 'its leader is up' })
    const folder = await folderOf(engine, run)
    await waitFor(
      () => {
        const child = descendantsOf(leader).find(({ name }) => name !== 'sed' && name !== 'mkdir')
        return child !== undefined && hasArrived(folder, child.pid)
      },
      { ...DEADLINE, what: `its child did: ${script}` },
    )
    const members = [leader, ...descendantsOf(leader).map(({ pid }) => pid)]
    expect(members.length).toBeGreaterThanOrEqual(2)
    expect((await run.cancel({ timeoutMs: 20_000 })).status).toBe('confirmed')
    const left = members.map((pid) => statOf(pid)).filter((stat) => stat !== undefined && stat.state !== 'Z')
    expect(left).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })

  it('C5, O1: one that is nested deeper than a path can name is frozen, and gone with all folders when the stop says so', async () => {
    const engine = await openTestEngine(HELD)
    const name = 'n'.repeat(240)
    const script = `cd "$G/n"; for i in $(seq 20); do mkdir ${name}; cd -P ./${name}; done; echo 0 >cgroup.procs`
    const run = await engine.start({ command: withChild(script), stop: quickStop })
    const leader = await waitFor(() => engine.live()[0]?.pid, { ...DEADLINE, what: 'its leader is up' })
    const folder = await folderOf(engine, run)
    const deep = (): number | undefined =>
      descendantsOf(leader).find(({ pid }) => (cgroupPathOf(pid)?.length ?? 0) > 4_000)?.pid
    const child = await waitFor(deep, { ...DEADLINE, what: 'its child is down there' })
    expect(await run.pause()).toEqual({ status: 'frozen', running: [] })
    expect((await run.cancel({ timeoutMs: 20_000 })).status).toBe('confirmed')
    expect([leader, child].map((pid) => statOf(pid)?.state ?? 'Z')).toEqual(['Z', 'Z'])
    expect(existsSync(folder)).toBe(false)
  })

  it('INV-5, C5: a command that leaves its cgroup at once, and removes that, is launched, and ended by its marks', async () => {
    const engine = await openTestEngine(HELD)
    const script = [
      `G=${cgroupParent}/$(sed -n 's/^0::.*[/]//p' /proc/self/cgroup); echo 0 >${cgroupParent}/cgroup.procs`,
      'setsid sleep 60 & trap : TERM; while :; do rmdir "$G" 2>/dev/null; sleep 0.1; done',
    ].join('; ')
    for (let round = 0; round < 5; round += 1) {
      const run = await engine.start({ command: ['sh', '-c', script], stop: quickStop })
      const leader = await waitFor(() => engine.live()[0]?.pid, { ...DEADLINE, what: 'its leader is up' })
      const folder = await folderOf(engine, run)
      const sleeper = (): number | undefined =>
        descendantsOf(leader).find(({ pid }) => statOf(pid)?.session === pid)?.pid
      const child = await waitFor(sleeper, { ...DEADLINE, what: 'its child is up' })
      await waitFor(() => !existsSync(folder), { ...DEADLINE, what: 'the folder is gone' })
      expect(await run.pause()).toEqual({ status: 'frozen', running: [] })
      await run.resume()
      expect((await run.cancel()).status).toBe('confirmed')
      expect([leader, child].map((pid) => statOf(pid)?.state ?? 'Z')).toEqual(['Z', 'Z'])
    }
  })

  it('O1: a pause freezes the cgroup, forking members included; the kernel says so; all go on after it', async () => {
    const engine = await openTestEngine(HELD)
    const metronome = await startFixture(engine, 'forking-heartbeat')
    const started = await startFixture(engine, 'forking-heartbeat')
    await Promise.all([metronome.ready(), started.ready()])
    const folder = await folderOf(engine, started.run)
    const roles = ['leader', 'child']
    for (let round = 0; round < 5; round += 1) {
      await beatsAgain(started.ledger, roles)
      expect(await started.run.pause()).toEqual({ status: 'frozen', running: [] })
      expect(isFrozen(folder)).toBe(true)
      const before = beatsOf(started.ledger).length
      await beatsAgain(metronome.ledger, roles, 8)
      expect(beatsOf(started.ledger)).toHaveLength(before)
      // Frozen by the kernel: no SIGSTOP, and so no SIGCHLD to a parent that watches.
      expect(started.alive().map(({ pid }) => statOf(pid)?.state)).not.toContain('T')
      await started.run.resume()
      expect(isFrozen(folder)).toBe(false)
    }
    await started.run.pause()
    expect((await started.run.cancel()).status).toBe('confirmed')
    expect(started.alive()).toEqual([])
    await metronome.run.cancel()
  })

  it('O1: a cgroup that somebody thaws is frozen again', async () => {
    const engine = await openTestEngine(HELD)
    const started = await startFixture(engine, 'heartbeat')
    await started.ready()
    const folder = await folderOf(engine, started.run)
    await started.run.pause()
    writeFileSync(join(folder, 'cgroup.freeze'), '0')
    await waitFor(() => isFrozen(folder), { ...DEADLINE, what: 'it is frozen again' })
    expect((await started.run.cancel()).status).toBe('confirmed')
  })

  it('C4: a member that stopped itself gets its TERM', async () => {
    const engine = await openTestEngine(HELD)
    const started = await startFixture(engine, 'stops-itself', { stop: { termGraceMs: 20_000 } })
    await started.ready()
    expect((await started.run.cancel()).status).toBe('confirmed')
    const { transitions } = await engine.history(started.run.id)
    const effects = transitions.flatMap(({ effects: all }) => all.map(({ kind }) => kind))
    expect(effects).toContain('process.terminate')
    expect(effects).not.toContain('process.kill')
  })

  it('R3: an engine without cgroups recovers a run that a dead one held in one', async () => {
    const { database, started, folder } = await leftInCgroup()
    const second = await openTestEngine({ database, containment: { prefer: 'group' } })
    const gone = await second.run('r1')?.gone
    expect(gone?.evidence).toMatchObject([{ kind: 'cgroup-empty' }])
    expect(aliveOf(readLedger(started.ledger))).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })

  it('INV-5: a run whose cgroup cannot be seen from here is not confirmed', async () => {
    const { database, started, folder } = await leftInCgroup()
    const rows = new BetterSqlite3(database)
    const set = rows.prepare('update runwarden_execution set cgroup = ?')
    set.run(`${cgroupParent}/runwarden-1-elsewhere`)
    const second = await openTestEngine({ database, recover: false })
    const receipt = await second.stop({ run: 'r1' }, { timeoutMs: 2_000, force: true })
    expect(receipt.status).not.toBe('confirmed')
    expect(second.run('r1')?.state.isConfirmed).toBe(false)
    await second.close({ runs: 'leave', deadlineMs: 1_000 })
    set.run(folder)
    rows.close()
    const third = await openTestEngine({ database, recover: false })
    expect((await third.stop({ run: 'r1' }, { force: true })).status).toBe('confirmed')
    expect(aliveOf(readLedger(started.ledger))).toEqual([])
  })

  it('C2: cgroups are made below the parent that the host names', async () => {
    const parent = tempCgroup('parent')
    const engine = await openTestEngine({ containment: { atLeast: 'cgroup', cgroup: { parent } } })
    const run = await engine.start({ command: ['sleep', '60'] })
    const pid = await waitFor(() => engine.live()[0]?.pid, { ...DEADLINE, what: 'it is up' })
    expect(cgroupPathOf(pid)).toContain(parent.split('/').at(-1))
    await run.cancel()
    expect(readdirSync(parent, { withFileTypes: true }).filter((entry) => entry.isDirectory())).toEqual([])
  })
})

inCgroups('where there is no room for another cgroup', () => {
  it('C2: a launch gets the next tier, and the record says so; with a floor it is refused, and nothing is run', async () => {
    const parent = tempCgroup('full')
    const engine = await openTestEngine({ containment: { prefer: 'cgroup', cgroup: { parent } } })
    const demanding = await openTestEngine({ containment: { atLeast: 'cgroup', cgroup: { parent } } })
    allowMore(parent, false)
    const run = await engine.start({ command: ['sleep', '60'] })
    await launched(run)
    expect(engine.live()).toMatchObject([{ containment: 'group+marks' }])
    expect(await engine.runs({})).toMatchObject([{ containment: 'group+marks' }])
    expect((await run.cancel()).runs).toMatchObject([
      { status: 'confirmed', evidence: [{ kind: 'tree-reaped' }] },
    ])
    const trace = join(tempDir(), 'trace')
    const refused = await demanding.start({ command: ['touch', trace] })
    expect(await refused.outcome).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/the command was not run: EAGAIN/) as string,
    })
    expect(existsSync(trace)).toBe(false)
    allowMore(parent, true)
    const last = await engine.start({ command: ['true'] })
    expect((await last.gone).evidence).toMatchObject([{ kind: 'cgroup-empty' }])
  })
})

describe('where there is no cgroup to be had', () => {
  const cgroup = { parent: '/nowhere' }

  it('C2: a floor is refused, naming the option, the tier and the reason', async () => {
    await expect(
      createEngine({ database: ':memory:', containment: { atLeast: 'cgroup', cgroup } }),
    ).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringMatching(
        /option containment\.atLeast "cgroup" cannot be had: no cgroup can be made in \/nowhere/,
      ) as string,
    })
    await expect(
      createEngine({ database: ':memory:', containment: { prefer: 'group', atLeast: 'cgroup' } }),
    ).rejects.toThrow(/containment\.prefer "group" is less than containment\.atLeast "cgroup"/)
    await expect(
      createEngine({ database: ':memory:', containment: { cgroup: { parent: 'below/here' } } }),
    ).rejects.toThrow(/containment\.cgroup\.parent must be an absolute path, got "below\/here"/)
  })

  it('C2: a preference is met by the next tier, which is what is reported', async () => {
    const engine = await openTestEngine({ containment: { prefer: 'cgroup', cgroup } })
    const run = await engine.start({ command: ['true'] })
    expect((await run.gone).evidence).toMatchObject([{ kind: 'tree-reaped' }])
    expect(await engine.runs({})).toMatchObject([{ containment: 'group+marks' }])
  })
})
