/** The freezer of a cgroup under the freeze of a tree, in the real hierarchy. Skipped where there is none that may be written. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Logger, ProcessPort } from '../../../src/actors/ports.js'
import { TreeFreeze } from '../../../src/actors/tree-freeze.js'
import { TreePursuit } from '../../../src/actors/tree-pursuit.js'
import { TreeReach } from '../../../src/actors/tree-reach.js'
import { systemClock } from '../../../src/adapters/clock/system-clock.js'
import { createProcessPort } from '../../../src/adapters/process/process-port.js'
import { cgroupParent, isFrozen, noCgroup, pidsIn } from '../../support/cgroups.js'
import { descendantsOf, identityOf, isAlive, statOf } from '../../support/proc-reader.js'
import { scanOf } from '../../support/steady-look.js'
import { waitFor } from '../../support/wait-for.js'

const DEADLINE = { deadlineMs: 20_000 }
const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

const launch = async (
  command: readonly string[],
  processes: ProcessPort = createProcessPort('cgroup', { parent: cgroupParent, mustBeHeld: true }),
) => {
  const marks = processes.mintMarks()
  const env = { PATH: process.env['PATH'] }
  const base = { runId: 'r', attempt: 1, cwd: '/', env, stdin: 'ignore' } as const
  const execution = await processes.launch({ ...base, command, marks })
  const told: string[] = []
  const reach = new TreeReach(execution, systemClock, silent, (error) => told.push(error))
  const freeze = new TreeFreeze(reach, {
    frozen: () => told.push('frozen'),
    failed: () => told.push('failed'),
  })
  const end = async (): Promise<void> => {
    freeze.end()
    await new Promise<void>((gone) => {
      const survived = (): void => undefined
      new TreePursuit(reach, { mayBeGone: () => true, gone, survived }).kill(10_000)
    })
    execution.cutOutput()
  }
  const folder = marks.cgroup ?? '/nowhere'
  const pid = execution.identity?.pid ?? 0
  return { execution, freeze, told, end, folder, pid }
}

describe.skipIf(noCgroup !== null)('a tree in a frozen cgroup', () => {
  it('O1: it goes on as a whole, although whom the freeze began with was killed meanwhile', async () => {
    const { execution, freeze, told, end, folder, pid } = await launch(['sh', '-c', 'sleep 600 & sleep 601'])
    await waitFor(() => pidsIn(folder).length === 3, { ...DEADLINE, what: 'its children are up' })
    const children = pidsIn(folder).filter((one) => one !== pid)
    await freeze.freeze()
    expect([told, isFrozen(folder)]).toEqual([['frozen'], true])
    process.kill(pid, 'SIGKILL')
    await execution.exited
    expect(isFrozen(folder)).toBe(true)
    await freeze.thaw()
    expect([pidsIn(folder).sort(), isFrozen(folder)]).toEqual([children.sort(), false])
    await end()
    expect(execution.discard?.()).toBe(true)
    expect(existsSync(folder)).toBe(false)
  })

  it('O1: a parent that waits in vfork and its child stand still by the kernel’s word, and go on', async ({
    skip,
  }) => {
    if (spawnSync('python3', ['--version']).status !== 0) skip('skipped: no python3')
    const source = [
      'import ctypes, os, time',
      'number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]',
      'ctypes.CDLL(None).syscall(number, 0x4000 | 17, 0, 0, 0, 0)',
      'time.sleep(600)',
    ].join('\n')
    const { execution, freeze, told, end, folder, pid } = await launch(['python3', '-c', source])
    // Whoever reads a file waits like that for a moment, too.
    const isInVfork = (): boolean => statOf(pid)?.state === 'D' && descendantsOf(pid).length === 1
    await waitFor(isInVfork, { ...DEADLINE, what: 'the parent waits for its child' })
    await freeze.freeze()
    expect(told).toEqual(['frozen'])
    expect(await scanOf(execution)).toMatchObject([{ state: 'T' }, { state: 'T' }])
    await freeze.thaw()
    expect(isFrozen(folder)).toBe(false)
    await end()
    expect(execution.discard?.()).toBe(true)
  })

  it('O1: one that had stopped by itself stays so, and one that went to another cgroup is stopped by a signal', async () => {
    const leaves = `echo 0 >${join(cgroupParent, 'cgroup.procs')}; exec sleep 603`
    const script = `(kill -STOP $(exec sh -c 'echo $PPID'); exec sleep 602) & (${leaves}) & exec sleep 601`
    const { execution, freeze, told, end, folder, pid } = await launch(['sh', '-c', script])
    const settled = async (): Promise<{ inside: number; outside: number } | undefined> => {
      const members = (await scanOf(execution)).filter((member) => member.pid !== pid)
      const inside = members.find((member) => pidsIn(folder).includes(member.pid))
      const outside = members.find((member) => !pidsIn(folder).includes(member.pid))
      if (members.length !== 2 || inside?.state !== 'T' || outside?.name !== 'sleep') return undefined
      return { inside: inside.pid, outside: outside.pid }
    }
    const { inside, outside } = await waitFor(settled, { ...DEADLINE, what: 'one has stopped, one has left' })
    await freeze.freeze()
    expect([told, isFrozen(folder), statOf(outside)?.state]).toEqual([['frozen'], true, 'T'])
    await freeze.thaw()
    await waitFor(() => statOf(outside)?.state === 'S', { ...DEADLINE, what: 'who was outside goes on' })
    expect([isFrozen(folder), statOf(inside)?.state, statOf(pid)?.state]).toEqual([false, 'T', 'S'])
    await end()
    expect([inside, outside].map((one) => statOf(one)?.state ?? 'Z')).toEqual(['Z', 'Z'])
    expect(execution.discard?.()).toBe(true)
  })

  it('INV-14: a stranger that was put into it while it was frozen is not left frozen', async () => {
    const stranger = spawn('sleep', ['600'], { stdio: 'ignore', detached: true })
    const identity = identityOf(stranger.pid ?? 0)
    // A start in the same tick would be no older.
    const born = statOf(stranger.pid ?? 0)?.startTicks ?? 0
    await waitFor(
      () => {
        const other = spawnSync('sh', ['-c', 'cut -d" " -f22 /proc/self/stat'], { encoding: 'utf8' })
        return Number(other.stdout) > born
      },
      { ...DEADLINE, what: 'the clock has ticked' },
    )
    const { execution, freeze, end, folder } = await launch(['sleep', '601'])
    onTestFinished(() => {
      stranger.kill('SIGKILL')
      if (existsSync(folder)) rmdirSync(folder)
    })
    await freeze.freeze()
    writeFileSync(join(folder, 'cgroup.procs'), String(stranger.pid))
    expect((await scanOf(execution)).map(({ name }) => name)).toEqual(['sleep'])
    await end()
    expect(execution.discard?.()).toBe(false)
    expect([identity && isAlive(identity), isFrozen(folder)]).toEqual([true, false])
    writeFileSync(join(cgroupParent, 'cgroup.procs'), String(stranger.pid))
    expect(execution.discard?.()).toBe(true)
  })
})
