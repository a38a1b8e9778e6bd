/** Processes that look like a run's and are not: same program, arguments, folder and name. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createEngine } from '../../src/index.js'
import { noCgroup } from '../support/cgroups.js'
import { identityOf, isAlive, statOf } from '../support/proc-reader.js'
import type { Identity } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = 50
const COMMAND = ['sleep', '600'] as const
const TIERS =
  noCgroup === null ? (['cgroup', 'group+marks', 'group'] as const) : (['group+marks', 'group'] as const)

describe('strangers', () => {
  it(`INV-14: in ${ROUNDS} rounds of stops, pauses and recoveries no process with the same name, folder and command is touched`, async () => {
    const cwd = tempDir()
    const children: ChildProcess[] = []
    onTestFinished(() => {
      for (const child of children) child.kill('SIGKILL')
    })
    const strangers: Identity[] = []
    const meetStranger = (): void => {
      const child = spawn(COMMAND[0], COMMAND.slice(1), { cwd, stdio: 'ignore', detached: true })
      children.push(child)
      const identity = identityOf(child.pid ?? 0)
      if (identity === undefined) throw new Error('the stranger is not there')
      strangers.push(identity)
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const containment = { prefer: TIERS[round % TIERS.length] ?? 'group' }
      const database = join(cwd, `${round}.db`)
      meetStranger()
      const engine = await createEngine({ database, containment })
      const run = await engine.start({ id: 'r', command: [...COMMAND], cwd })
      const pid = await waitFor(() => engine.live()[0]?.pid, { deadlineMs: 20_000, what: 'the run is up' })
      meetStranger()
      if (round % 2 === 0) {
        await run.pause()
        expect((await run.cancel({ force: round % 4 === 0 })).status).toBe('confirmed')
        await engine.close()
      } else {
        await engine.close({ runs: 'leave' })
        const next = await createEngine({ database, containment })
        await next.run('r')?.gone
        await next.close()
      }
      const after = statOf(pid)
      expect(after === undefined || after.state === 'Z', `round ${round}`).toBe(true)
      const touched = strangers.filter((one) => !isAlive(one) || statOf(one.pid)?.state !== 'S')
      expect(touched, `round ${round}`).toEqual([])
    }
    expect(strangers).toHaveLength(2 * ROUNDS)
  }, 300_000)
})
