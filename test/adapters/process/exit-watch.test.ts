/** Exits of processes that are not our children, told by the kernel or looked for. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ExitWatch } from '../../../src/adapters/process/exit-watch.js'
import { libc } from '../../../src/adapters/process/libc.js'
import { identify } from '../../../src/adapters/process/proc-fs.js'
import { waitFor } from '../../support/wait-for.js'

const until = <T>(what: string, condition: () => T | Promise<T>) =>
  waitFor(condition, { deadlineMs: 30_000, what })

/** The grandchild of a child that has ended: whoever reaps it, it is not us. */
const stranger = async () => {
  const shell = spawn('sh', ['-c', 'sleep 1000 >/dev/null & echo $!'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  shell.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(shell, 'close')
  const pid = Number(text)
  const identity = identify(pid)
  if (identity === null) throw new Error(`no process ${text}`)
  const kill = (): void => {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It is gone.
    }
  }
  onTestFinished(kill)
  return { identity, kill }
}

const openFiles = (): number => readdirSync('/proc/self/fd').length

describe.each([
  ['pidfds and one epoll', libc()],
  ['looks', null],
] as const)('R3: by %s', (by, kernel) => {
  const isTold = kernel !== null

  it(`R3: each exit is told once, to whom it concerns (${by})`, async () => {
    if (by !== 'looks' && !isTold) {
      console.log('skipped: no koffi')
      return
    }
    const watch = new ExitWatch(kernel)
    const exited: number[] = []
    const strangers = await Promise.all(Array.from({ length: 20 }, stranger))
    for (const { identity } of strangers) watch.watch(identity, () => exited.push(identity.pid))
    expect(watch.counts).toEqual(isTold ? { told: 20, lookedAt: 0 } : { told: 0, lookedAt: 20 })
    const [first, ...others] = strangers
    first?.kill()
    await until('the first is told', () => exited.length > 0)
    expect(exited).toEqual([first?.identity.pid])
    for (const { kill } of others) kill()
    await until('all are told', () => exited.length === 20)
    expect([...exited].sort()).toEqual(strangers.map(({ identity }) => identity.pid).sort())
    expect(watch.counts).toEqual({ told: 0, lookedAt: 0 })
  }, 60_000)

  it(`R3: one that is gone, or whose number is another’s by now, is told at once (${by})`, async () => {
    const watch = new ExitWatch(kernel)
    const { identity } = await stranger()
    const exited: string[] = []
    watch.watch({ ...identity, startTicks: identity.startTicks - 1 }, () => exited.push('other start'))
    watch.watch({ ...identity, pid: 2 ** 22 - 1 }, () => exited.push('no such process'))
    await until('both are told', () => exited.length === 2)
    expect(watch.counts).toEqual({ told: 0, lookedAt: 0 })
  }, 60_000)

  it(`R3: what is watched no more is not told, and holds no file (${by})`, async () => {
    const watch = new ExitWatch(kernel)
    const [one, other] = [await stranger(), await stranger()]
    const exited: number[] = []
    watch.watch(other.identity, () => exited.push(other.identity.pid))
    const before = openFiles()
    const stop = watch.watch(one.identity, () => exited.push(one.identity.pid))
    stop()
    stop()
    expect(openFiles()).toBe(before)
    one.kill()
    other.kill()
    await until('the other is told', () => exited.length > 0)
    expect(exited).toEqual([other.identity.pid])
  }, 60_000)
})
