/** B1: starting many children, sixteen at a time; ours with every transition on record before it acts. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { execa } from 'execa'
import { OURS } from '../contract.js'
import type { Sample, Workload } from '../contract.js'
import { isRunning, killGroups, nowMs, pooled, withEngine } from '../machine.js'

const COMMAND = ['/bin/sleep', '300'] as const

/** What a program of `count` children says when it has started them. */
const sampleOf = (startedMs: number, pids: readonly (number | undefined)[]): Sample => ({
  value: nowMs() - startedMs,
  result: { alive: pids.filter((pid) => pid !== undefined && isRunning(pid)).length },
})

const raw = async ({ count = 1, concurrency = 1 }): Promise<Sample> => {
  const startedMs = nowMs()
  const children = await pooled(count, concurrency, async () => {
    const child = spawn(COMMAND[0], [COMMAND[1]], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    await once(child, 'spawn')
    return child
  })
  const sample = sampleOf(
    startedMs,
    children.map(({ pid }) => pid),
  )
  killGroups(children.flatMap(({ pid }) => pid ?? []))
  return sample
}

const throughExeca = async ({ count = 1, concurrency = 1 }): Promise<Sample> => {
  const startedMs = nowMs()
  const children = await pooled(count, concurrency, async () => {
    const child = execa(COMMAND[0], [COMMAND[1]], {
      detached: true,
      stdin: 'ignore',
      buffer: false,
      reject: false,
      cleanup: false,
    })
    await once(child, 'spawn')
    // In an object: a subprocess is a promise of its own end.
    return { child }
  })
  const sample = sampleOf(
    startedMs,
    children.map(({ child }) => child.pid),
  )
  killGroups(children.flatMap(({ child }) => child.pid ?? []))
  return sample
}

const ours = ({ count = 1, concurrency = 1 }): Promise<Sample> =>
  withEngine(async (engine) => {
    const startedMs = nowMs()
    const runs = await pooled(count, concurrency, async () => {
      const run = await engine.start({ command: [...COMMAND], stop: { termGraceMs: 1_000 } })
      for await (const event of run.events({ output: 'none' })) if (event.type === 'launched') break
      return run
    })
    return sampleOf(
      startedMs,
      runs.map(({ pid }) => pid),
    )
  })

export const start: Workload = {
  id: 'B1',
  title: 'start children, sixteen at a time',
  unit: 'ms',
  floor: 'child_process',
  reach: '≤ 1.3 × child_process, and below execa',
  isReached: (of) => of(OURS).ratio <= 1.3 && of(OURS).ratio < of('execa').ratio,
  sizes: [
    { count: 200, concurrency: 16 },
    { count: 1_000, concurrency: 16 },
  ],
  tiny: { count: 8, concurrency: 4 },
  contenders: [
    { name: 'child_process', run: raw },
    { name: 'execa', run: throughExeca },
    { name: OURS, run: ours },
  ],
}
