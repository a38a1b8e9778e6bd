/** A host that dies around a delivery: the next one makes it, under the same id, and once acknowledged it is made never again. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { RunSummary } from '../../src/index.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const program = fileURLToPath(new URL('delivering-host.mjs', import.meta.url))
const RESULT = 'r1/result'

interface Delivered {
  readonly deliveryId: string
  readonly status: string
  readonly finalized?: unknown
}

class Hosts {
  readonly database = join(tempDir(), 'runs.db')
  readonly #inbox = join(tempDir(), 'inbox.jsonl')

  start(how: string, ...command: readonly string[]): ChildProcess {
    const host = spawn(process.execPath, [program, this.database, this.#inbox, how, ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(async () => {
      if (host.exitCode !== null || host.signalCode !== null) return
      host.kill('SIGKILL')
      await once(host, 'exit')
    })
    return host
  }

  get inbox(): readonly Delivered[] {
    if (!existsSync(this.#inbox)) return []
    const lines = readFileSync(this.#inbox, 'utf8').split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line) as Delivered)
  }

  async received(count: number): Promise<void> {
    await waitFor(() => this.inbox.length >= count, { deadlineMs: 60_000, what: `delivery ${String(count)}` })
  }

  async run(): Promise<RunSummary> {
    await using records = await openRecords({ database: this.database })
    return (await records.history('r1')).run
  }

  async delivered(): Promise<void> {
    await waitFor(async () => (await this.run()).delivery === 'delivered', {
      deadlineMs: 60_000,
      what: 'it is acknowledged',
    })
  }
}

const killed = async (host: ChildProcess): Promise<void> => {
  if (host.exitCode === null && host.signalCode === null) await once(host, 'exit')
  expect(host.signalCode).toBe('SIGKILL')
}

/** Opens an engine with hooks and closes it: it has delivered whatever was due. */
const deliverWhatIsDue = async (hosts: Hosts): Promise<void> => {
  const host = hosts.start('takes')
  if (host.stdout === null) throw new Error('the host has no stdout')
  await once(host.stdout, 'data')
  await hosts.delivered()
  host.kill('SIGTERM')
  await once(host, 'exit')
}

describe('SIGKILL of the host', () => {
  it.each(['dies', 'hangs'] as const)(
    'INV-12, INV-13: between commit and acknowledgement (%s): delivered again under the same id, then never again',
    async (how) => {
      const hosts = new Hosts()
      const first = hosts.start(how, 'sh', '-c', 'exit 3')
      await hosts.received(1)
      if (how === 'hangs') first.kill('SIGKILL')
      await killed(first)
      expect(await hosts.run()).toMatchObject({ work: 'settled.failed', delivery: 'delivering' })
      // And once more, so that it is no luck.
      const second = hosts.start('dies')
      await killed(second)
      await deliverWhatIsDue(hosts)
      const finalized = { by: how, status: 'failed' }
      const delivery = { deliveryId: RESULT, status: 'failed', finalized }
      expect(hosts.inbox).toEqual([delivery, delivery, delivery])
      await deliverWhatIsDue(hosts)
      expect(hosts.inbox).toHaveLength(3)
    },
    180_000,
  )

  it('INV-12: after an acknowledgement in its own transaction, before the hook returned: never again', async () => {
    const hosts = new Hosts()
    await killed(hosts.start('acknowledges', 'true'))
    expect(await hosts.run()).toMatchObject({ delivery: 'delivering' })
    await deliverWhatIsDue(hosts)
    expect(hosts.inbox).toMatchObject([{ deliveryId: RESULT, status: 'completed' }])
  }, 180_000)

  it('INV-13, P3: in its finalize hook: the next one finalizes afresh, and the outcome is the one on record', async () => {
    const hosts = new Hosts()
    await killed(hosts.start('finalizes', 'true'))
    expect(await hosts.run()).toMatchObject({ work: 'settled.completed', delivery: 'finalizing' })
    expect(hosts.inbox).toEqual([])
    await deliverWhatIsDue(hosts)
    expect(hosts.inbox).toEqual([
      { deliveryId: RESULT, status: 'completed', finalized: { by: 'takes', status: 'completed' } },
    ])
  }, 180_000)
})
