/**
 * Real reuse of process ids: in a PID namespace of its own the kernel is told which number to give next, and a stranger gets that of a
 * dead leader. Needs root, `unshare` and a writable `ns_last_pid`; skipped elsewhere.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openRecords } from '../../src/index.js'
import { openTestEngine } from '../support/engine.js'
import { tempDir } from '../support/wait-for.js'

const FLAGS = ['--pid', '--fork', '--kill-child', '--mount-proc']

const inNamespace = (source: string, database: string): string => {
  const ended = spawnSync(
    'unshare',
    // The shell is the init of the namespace: it reaps whom nobody waits for, so that their numbers are free again.
    [
      ...FLAGS,
      'sh',
      '-c',
      '"$@"; exit $?',
      'sh',
      process.execPath,
      '--input-type=module',
      '-e',
      source,
      database,
    ],
    { encoding: 'utf8', timeout: 25_000 },
  )
  if (ended.status !== 0) throw new Error(`the namespace ended with ${String(ended.status)}: ${ended.stderr}`)
  return ended.stdout
}

const canReuse = ((): boolean => {
  try {
    inNamespace(
      `import { writeFileSync } from 'node:fs'; writeFileSync('/proc/sys/kernel/ns_last_pid', '40')`,
      '',
    )
    return true
  } catch {
    return false
  }
})()

const dist = (path: string): string => JSON.stringify(new URL(`../../dist/${path}`, import.meta.url).href)

/** What every script in the namespace begins with. */
const PRELUDE = `
  import { spawn } from 'node:child_process'
  import { readFileSync, writeFileSync } from 'node:fs'
  import { createEngine } from ${dist('index.js')}
  import { signalMembers } from ${dist('adapters/process/signal.js')}
  import { identify, readStat, isAlive } from ${dist('adapters/process/proc-fs.js')}
  const database = process.argv[1]
  const until = async (is) => { while (!is()) await new Promise((resolve) => setTimeout(resolve, 5)) }
  const isUp = (pid) => { const stat = readStat(pid); return stat !== null && isAlive(stat) }
  /** A stranger under that number, born in a later clock tick than its last owner. */
  const reuse = async (pid, startTicks) => {
    for (;;) {
      writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1))
      const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
      if (child.pid === pid && readStat(pid).startTicks > startTicks) return child
      child.kill('SIGKILL')
      await new Promise((resolve) => child.once('exit', resolve))
    }
  }
  const say = (answer) => console.log(JSON.stringify(answer))
`

describe.skipIf(!canReuse)('a number that was given to somebody else', () => {
  it('INV-6, R6: no signal reaches the new owner of a pid and of its group', () => {
    const source = `${PRELUDE}
      let untouched = 0
      for (let round = 0; round < 20; round += 1) {
        const first = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
        const { pid, startTicks } = identify(first.pid)
        first.kill('SIGKILL')
        await new Promise((resolve) => first.once('exit', resolve))
        const stranger = await reuse(pid, startTicks)
        const failures = ['SIGTERM', 'SIGSTOP', 'SIGKILL'].flatMap((signal) =>
          signalMembers(signal, [{ pid, startTicks, state: 'S', name: 'sleep' }]))
        if (failures.length === 0 && isUp(pid) && readStat(pid).state !== 'T') untouched += 1
        stranger.kill('SIGKILL')
        await new Promise((resolve) => stranger.once('exit', resolve))
      }
      say({ untouched })`
    expect(JSON.parse(inNamespace(source, ''))).toEqual({ untouched: 20 })
  })

  it('R6, INV-14: a recovered run whose leader has a successor is gone, and its daemon is ended without it', () => {
    const database = join(tempDir(), 'runs.db')
    const source = `${PRELUDE}
      const first = await createEngine({ database, containment: { prefer: 'group+marks' } })
      // The daemon left group, session and, with its parent's end, lineage: its marks alone lead to it.
      await first.start({ id: 'alone', command: ['sleep', '600'] })
      const command = ['sh', '-c', 'setsid sleep 601 & exec sleep 600']
      await first.start({ id: 'daemon', command, stop: { termGraceMs: 200 } })
      await until(() => first.live().length === 2 && first.live().every(({ pid }) => pid > 0))
      const leaders = first.live().map(({ pid }) => identify(pid))
      const commandOf = (pid) => readFileSync('/proc/' + pid + '/cmdline', 'utf8')
      const { pid: parent } = leaders[1]
      const daemons = () => readFileSync('/proc/' + parent + '/task/' + parent + '/children', 'utf8').split(' ').filter(Boolean)
      await until(() => daemons().some((pid) => commandOf(pid).startsWith('sleep')))
      const daemon = Number(daemons()[0])
      await first.close({ runs: 'leave' })
      for (const { pid } of leaders) process.kill(pid, 'SIGKILL')
      await until(() => leaders.every(({ pid }) => readStat(pid) === null))
      const strangers = []
      for (const { pid, startTicks } of leaders) strangers.push(await reuse(pid, startTicks))
      const second = await createEngine({ database, containment: { prefer: 'group+marks' } })
      // One that is gone already when it is taken up is held no longer.
      await Promise.all(['alone', 'daemon'].map((id) => second.run(id)?.gone))
      const records = await Promise.all(['alone', 'daemon'].map((id) => second.history(id)))
      const ends = records.map(({ executions }) => executions[0].evidence)
      say({
        ends,
        isDaemonUp: isUp(daemon),
        untouched: leaders.filter(({ pid }) => isUp(pid) && readStat(pid).state !== 'T').length,
      })
      await second.close()
      for (const one of strangers) one.kill('SIGKILL')`
    expect(JSON.parse(inNamespace(source, database))).toEqual({
      ends: ['identity-gone', 'identity-gone'],
      isDaemonUp: false,
      untouched: 2,
    })
  })

  it('R1, R5: a run of another process namespace is left alone, and nobody here is taken for it', async () => {
    const database = join(tempDir(), 'runs.db')
    const source = `${PRELUDE}
      const engine = await createEngine({ database, containment: { prefer: 'group+marks' } })
      await engine.start({ id: 'r1', command: ['sleep', '600'] })
      await until(() => engine.live().some(({ pid }) => pid > 0))
      process.exit(0)`
    inNamespace(source, database)
    const engine = await openTestEngine({ database })
    const receipt = await engine.stop({ run: 'r1' }, { timeoutMs: 500, force: true })
    expect(receipt.status).toBe('requested')
    await using records = await openRecords({ database })
    const { run, transitions } = await records.history('r1')
    expect(run.process).not.toBe('confirmed')
    expect(transitions.flatMap(({ effects }) => effects.map(({ kind }) => kind))).not.toContain(
      'process.kill',
    )
  })
})
