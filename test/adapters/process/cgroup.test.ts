/** Cgroups of executions, in the real hierarchy. Skipped where there is none that may be written. */
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Execution, ExecutionMarks } from '../../../src/actors/ports.js'
import { joining } from '../../../src/adapters/process/cgroup-join.js'
import { findPlace, parseMounts } from '../../../src/adapters/process/cgroup-place.js'
import { CgroupTree } from '../../../src/adapters/process/cgroup-tree.js'
import { Cgroup } from '../../../src/adapters/process/cgroup.js'
import { ProcTable } from '../../../src/adapters/process/proc-table.js'
import { createProcessPort } from '../../../src/adapters/process/process-port.js'
import { Tree } from '../../../src/adapters/process/tree.js'
import {
  cgroupParent,
  cgroupPathOf,
  isPopulated,
  noCgroup,
  pidsIn,
  tempCgroup,
} from '../../support/cgroups.js'
import { fixtureCommand, withLedger } from '../../support/fixture.js'
import { statOf } from '../../support/proc-reader.js'
import { scanOf } from '../../support/steady-look.js'
import { tempDir, waitFor } from '../../support/wait-for.js'

const DEADLINE = { deadlineMs: 20_000 }
const port = createProcessPort('cgroup', { parent: cgroupParent, mustBeHeld: true })

const open: { execution: Execution; folder: string }[] = []
afterEach(async () => {
  for (const { execution, folder } of open.splice(0)) {
    await endExecution(execution, folder)
  }
})

const folderOf = (marks: ExecutionMarks): string => marks.cgroup ?? '/nowhere'

const endExecution = async (execution: Execution, folder: string): Promise<void> => {
  await waitFor(
    async () => {
      const members = await scanOf(execution)
      execution.signal('SIGKILL', members)
      return members.length === 0
    },
    { ...DEADLINE, what: `${folder} is empty` },
  )
  execution.cutOutput()
  execution.discard?.()
}

const launchCommand = async (
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>> = { PATH: process.env['PATH'] },
  marks = port.mintMarks(),
) => {
  const execution = await port.launch({
    runId: 'r',
    attempt: 1,
    command,
    cwd: '/',
    env,
    stdin: 'ignore',
    marks,
  })
  open.push({ execution, folder: folderOf(marks) })
  let output = ''
  execution.onOutput((_stream, chunk) => (output += chunk.toString()))
  const whole = async (): Promise<string> => {
    await execution.exited
    await execution.drained
    return output
  }
  return { execution, marks, folder: folderOf(marks), whole }
}

const inCgroups = describe.skipIf(noCgroup !== null)

inCgroups('a launch into a cgroup', () => {
  it('C2, L2: the first thing that a program does, it does inside, and its output is whole however short it lives', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { folder, whole } = await launchCommand(['cat', '/proc/self/cgroup'])
      expect(await whole()).toMatch(new RegExp(`^0::.*/${folder.split('/').at(-1) ?? '?'}$`, 'm'))
    }
  })

  it('C2: it is said to be launched only when it is inside, and leads its own session all the same', async () => {
    const { execution, folder } = await launchCommand(['sleep', '60'])
    const pid = execution.identity?.pid ?? 0
    expect(pidsIn(folder)).toEqual([pid])
    expect(statOf(pid)).toMatchObject({ group: pid, session: pid })
    expect(execution.containment).toBe('cgroup')
  })

  it('C2: a command that cannot be put into its cgroup is not run, and no folder is left', async () => {
    // A cgroup below one that has a threaded child is of no use: nothing can be put into it.
    const parent = tempCgroup('threaded')
    mkdirSync(join(parent, 'threads'))
    writeFileSync(join(parent, 'threads', 'cgroup.type'), 'threaded')
    const trace = join(tempDir(), 'trace')
    const marks = createProcessPort('cgroup', { parent, mustBeHeld: true }).mintMarks()
    await expect(launchCommand(['touch', trace], undefined, marks)).rejects.toThrow(
      /was not run: .* into its cgroup/,
    )
    expect(existsSync(trace)).toBe(false)
    expect(existsSync(folderOf(marks))).toBe(false)
    expect(findPlace(parent)).toMatchObject({
      parent: null,
      problem: expect.stringMatching(/no process can be put/) as string,
    })
  })

  it('L1: what is wrong with a command is said as without a cgroup', async () => {
    const marks = port.mintMarks()
    await expect(launchCommand(['no-such-program'], undefined, marks)).rejects.toMatchObject({
      code: 'ENOENT',
      message: expect.stringMatching(/cannot launch no-such-program: no such program/) as string,
    })
    expect(existsSync(folderOf(marks))).toBe(false)
    await expect(launchCommand(['/etc/passwd'])).rejects.toMatchObject({ code: 'EACCES' })
  })

  it('C2: a code of 125 is that of the command, which ran', async () => {
    const { execution } = await launchCommand(['sh', '-c', 'exit 125'])
    expect(await execution.exited).toEqual({ exitCode: 125, signal: null })
  })

  it.runIf(existsSync('/bin/bash'))(
    'C2: every variable reaches the command, also one that no shell can spell',
    async () => {
      const env = {
        PATH: process.env['PATH'],
        PLAIN: 'a b\nc',
        'npm_config_//host/:_token': 'x y',
        'BASH_FUNC_f%%': '() {  :\n}',
      }
      const { whole } = await launchCommand(['env', '-0'], env)
      const found = new Map(
        (await whole()).split('\0').map((line) => [line.split('=')[0], line.split('=').slice(1).join('=')]),
      )
      for (const [name, value] of Object.entries(env)) expect(found.get(name)).toBe(value)
    },
  )

  it('C2: arguments reach the command as they are', () => {
    const command = ['prog', '', 'a b', '$(touch x)', '"', "'", '\n', '-n']
    expect(joining('/f', command, {}).slice(-command.length)).toEqual(command)
  })
})

inCgroups('what is held', () => {
  it('C5: a daemon that shed every mark is held, and found without any', async () => {
    const { ledger, env } = withLedger()
    const { execution, folder } = await launchCommand(fixtureCommand('mark-shedding-daemon'), {
      ...process.env,
      ...env,
    })
    const isUp = () => readFileSync(ledger, 'utf8').includes('"ready"')
    await waitFor(() => existsSync(ledger) && isUp(), { ...DEADLINE, what: 'it is up' })
    const members = await scanOf(execution)
    expect(members.map(({ pid }) => pid).sort()).toEqual(pidsIn(folder).sort())
    expect(members).toHaveLength(2)
  })

  it('INV-5: empty is what the kernel says of the whole folder, nested cgroups included', async () => {
    const { execution, folder } = await launchCommand(['sleep', '60'])
    const nested = join(folder, 'a', 'b')
    mkdirSync(nested, { recursive: true })
    const pid = execution.identity?.pid ?? 0
    writeFileSync(join(nested, 'cgroup.procs'), String(pid))
    expect(pidsIn(folder)).toEqual([pid])
    expect((await scanOf(execution)).map((member) => member.pid)).toEqual([pid])
    expect(execution.signal('SIGKILL', await scanOf(execution))).toEqual([])
    expect(await execution.exited).toEqual({ exitCode: null, signal: 'SIGKILL' })
    await waitFor(() => !isPopulated(folder), { ...DEADLINE, what: 'it is empty' })
    expect(await scanOf(execution)).toEqual([])
    expect(execution.emptyEvidence).toBe('cgroup-empty')
  })

  it('INV-5: a folder that was never visible from here is not an empty one', () => {
    const [, namespace] = /runwarden-(\d+)-/.exec(folderOf(port.mintMarks())) ?? []
    const gone = new Cgroup(join(cgroupParent, `runwarden-${String(namespace)}-gone`))
    expect(gone.look()).toMatchObject({ isPopulated: false })
    const elsewhere = new Cgroup(join(cgroupParent, 'runwarden-1-gone'))
    expect(() => elsewhere.look()).toThrow(/cannot be seen from here/)
    const unmounted = new Cgroup(`/tmp/no/cgroup/runwarden-${String(namespace)}-gone`)
    expect(() => unmounted.look()).toThrow(/cannot be seen from here/)
  })

  it('INV-14, C8: a cgroup into which somebody put this process is neither killed nor frozen as a whole', async () => {
    const { execution, folder } = await launchCommand(['sleep', '60'])
    const goHome = (): void => {
      writeFileSync(join(cgroupParent, 'cgroup.procs'), String(process.pid))
    }
    onTestFinished(goHome)
    writeFileSync(join(folder, 'cgroup.procs'), String(process.pid))
    const members = await scanOf(execution)
    const pid = execution.identity?.pid ?? 0
    expect(members.map((member) => member.pid)).toEqual([pid])
    // Of the whole cgroup this would stop and kill the process that does it.
    execution.signal('SIGSTOP', members)
    await waitFor(() => statOf(pid)?.state === 'T', { ...DEADLINE, what: 'it alone is stopped' })
    execution.signal('SIGCONT', members)
    expect(execution.signal('SIGKILL', members)).toEqual([])
    expect(await execution.exited).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(await scanOf(execution)).toEqual([])
    expect(execution.emptyEvidence).toBe('tree-reaped')
    expect(execution.discard?.()).toBe(false)
    goHome()
    expect(await scanOf(execution)).toEqual([])
    expect(execution.emptyEvidence).toBe('cgroup-empty')
  })

  it('C3: without cgroup.kill a fork storm is frozen and killed one by one', async () => {
    const { env } = withLedger()
    const { execution, folder, marks } = await launchCommand(fixtureCommand('fork-storm'), {
      ...process.env,
      ...env,
    })
    await waitFor(async () => (await scanOf(execution)).length > 3, { ...DEADLINE, what: 'the storm' })
    const tree = new Tree({ leader: execution.identity, marks, usesMarks: false, isOwnChild: true })
    const old = new CgroupTree(new Cgroup(folder, { canKill: false }), tree, new ProcTable(), 0)
    await waitFor(
      async () => {
        const members = await scanOf(old)
        old.signal('SIGKILL', members)
        return members.length === 0
      },
      { ...DEADLINE, what: 'the storm is over' },
    )
    expect(isPopulated(folder)).toBe(false)
  })

  it('C2: the folder is removed with all that was nested in it', async () => {
    const { execution, folder } = await launchCommand(['true'])
    await execution.exited
    mkdirSync(join(folder, 'a', 'b'), { recursive: true })
    expect(execution.discard?.()).toBe(true)
    expect(readdirSync(cgroupParent)).not.toContain(folder.split('/').at(-1))
    expect(execution.discard?.()).toBe(true)
  })
})

describe('where cgroups can be made', () => {
  it('C10: the mount is found among others, also beside v1 and with a space in its path', () => {
    const text = [
      '24 30 0:22 / /proc rw - proc proc rw',
      '31 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
      '36 25 0:31 /a\\040b /sys/fs/cgroup/uni\\040fied rw,nosuid shared:9 - cgroup2 cgroup2 rw',
    ].join('\n')
    expect(parseMounts(text)).toEqual([{ root: '/a b', mountPoint: '/sys/fs/cgroup/uni fied' }])
  })

  it('C10: a folder that is no cgroup is named, with the reason', () => {
    expect(findPlace('/nowhere').problem).toMatch(/no cgroup can be made in \/nowhere: .*ENOENT/)
    const folder = tempDir()
    expect(findPlace(folder).problem).toMatch(/is no place for cgroups/)
    expect(readdirSync(folder)).toEqual([])
  })

  it.skipIf(noCgroup !== null)('C2: this process itself stays where it was', async () => {
    const before = cgroupPathOf('self')
    await launchCommand(['true'])
    expect(cgroupPathOf('self')).toBe(before)
  })
})
