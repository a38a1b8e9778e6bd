/** B4: what a thousand quiet runs cost: memory each, and CPU while nothing happens. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { execa } from 'execa'
import { OURS } from '../contract.js'
import type { Params, Sample, Workload } from '../contract.js'
import { killGroups, nowMs, pooled, withEngine } from '../machine.js'

const CONCURRENCY = 16

const settle = async (): Promise<number> => {
  for (let round = 0; round < 3; round += 1) {
    globalThis.gc?.()
    await wait(100)
  }
  return process.memoryUsage().rss
}

/** `start` resolves with how to end what it has started, once all of it is up. */
const weigh = async (
  { count = 1, idleMs = 0 }: Params,
  start: () => Promise<{ readonly up: number; readonly end: () => Promise<unknown> }>,
): Promise<Sample> => {
  const before = await settle()
  const { up, end } = await start()
  const rss = await settle()
  const [cpu, fromMs] = [process.cpuUsage(), nowMs()]
  await wait(idleMs)
  const used = process.cpuUsage(cpu)
  const idleCpuShare = (used.user + used.system) / 1_000 / Math.max(1, nowMs() - fromMs)
  await end()
  return { value: (rss - before) / 1024 / count, more: { idleCpuShare }, result: { up } }
}

const raw = (params: Params): Promise<Sample> =>
  weigh(params, async () => {
    const children = await pooled(params['count'] ?? 1, CONCURRENCY, async () => {
      const child = spawn('/bin/sleep', ['300'], { detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
      child.stdout.resume()
      child.stderr.resume()
      await once(child, 'spawn')
      return child
    })
    return {
      up: children.length,
      end: () => {
        killGroups(children.flatMap(({ pid }) => pid ?? []))
        return Promise.all(children.map((child) => once(child, 'exit')))
      },
    }
  })

const throughExeca = (params: Params): Promise<Sample> =>
  weigh(params, async () => {
    const children = await pooled(params['count'] ?? 1, CONCURRENCY, async () => {
      const child = execa('/bin/sleep', ['300'], {
        detached: true,
        buffer: false,
        reject: false,
        cleanup: false,
      })
      await once(child, 'spawn')
      return { child }
    })
    return {
      up: children.length,
      end: () => {
        killGroups(children.flatMap(({ child }) => child.pid ?? []))
        return Promise.all(children.map(({ child }) => child))
      },
    }
  })

const ours = (params: Params): Promise<Sample> =>
  withEngine((engine) =>
    weigh(params, async () => {
      const runs = await pooled(params['count'] ?? 1, CONCURRENCY, async () => {
        const run = await engine.start({ command: ['/bin/sleep', '300'], stdin: 'pipe' })
        for await (const event of run.events({ output: 'none' })) if (event.type === 'launched') break
        return run
      })
      return { up: runs.length, end: () => engine.stop({ all: true }, { timeoutMs: 60_000 }) }
    }),
  )

export const idle: Workload = {
  id: 'B4',
  title: 'quiet runs: memory each, CPU while nothing happens',
  unit: 'KiB',
  floor: 'child_process',
  reach: '≤ 1.5 × memory of child_process; idle CPU < 0.1 % of a core',
  isReached: (of) => of(OURS).ratio <= 1.5 && (of(OURS).more['idleCpuShare'] ?? 1) < 0.001,
  sizes: [{ count: 1_000, idleMs: 10_000 }],
  tiny: { count: 5, idleMs: 10 },
  contenders: [
    { name: 'child_process', run: raw },
    { name: 'execa', run: throughExeca },
    { name: OURS, run: ours },
  ],
}
