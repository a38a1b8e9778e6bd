/** B6: from the end of a process to the proof that all of it is gone, on record; against the bare exit event. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { OURS } from '../contract.js'
import type { Params, Sample, Workload } from '../contract.js'
import { nowMs, quantile, withEngine } from '../machine.js'

const COMMAND = ['/bin/sleep', '300'] as const

const sampleOf = (tookMs: readonly number[]): Sample => ({
  value: quantile(tookMs, 0.5),
  more: { p99Ms: quantile(tookMs, 0.99) },
  result: { ends: tookMs.length },
})

const raw = async ({ count = 1 }: Params): Promise<Sample> => {
  const tookMs: number[] = []
  for (let round = 0; round < count; round += 1) {
    const child = spawn(COMMAND[0], [COMMAND[1]], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    await once(child, 'spawn')
    const exit = once(child, 'exit')
    const fromMs = nowMs()
    child.kill('SIGKILL')
    await exit
    tookMs.push(nowMs() - fromMs)
  }
  return sampleOf(tookMs)
}

const ours = ({ count = 1 }: Params): Promise<Sample> =>
  withEngine(async (engine) => {
    const tookMs: number[] = []
    for (let round = 0; round < count; round += 1) {
      const run = await engine.start({ command: [...COMMAND] })
      for await (const event of run.events({ output: 'none' })) if (event.type === 'launched') break
      const { pid } = run
      if (pid === undefined) throw new Error('launched without a process id')
      const fromMs = nowMs()
      // As the kernel, or a person, would.
      process.kill(pid, 'SIGKILL')
      await run.gone
      tookMs.push(nowMs() - fromMs)
    }
    return sampleOf(tookMs)
  })

export const confirm: Workload = {
  id: 'B6',
  title: 'from the end of a process to the recorded proof',
  unit: 'ms',
  floor: 'exit event',
  reach: '≤ 1.5 ms more than the exit event at p50, ≤ 5 ms at p99',
  isReached: (of) => {
    const [own, floor] = [of(OURS), of('exit event')]
    const more = (own.more['p99Ms'] ?? Infinity) - (floor.more['p99Ms'] ?? 0)
    return own.value - floor.value <= 1.5 && more <= 5
  },
  sizes: [{ count: 500 }],
  tiny: { count: 3 },
  contenders: [
    { name: 'exit event', run: raw },
    { name: OURS, run: ours },
  ],
}
