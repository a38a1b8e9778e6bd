/**
 * `npm run soak -- [--minutes 30] [--runs 2000]`: so many runs in flight, all the time: started, ended by themselves, crashing, stopped.
 * Prints memory, open files and handles each minute; exits 1 when they grow, or when a process is left at the end.
 */
import { readdirSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Engine } from '../src/index.js'
import { isRunning, median, nowMs, pooled, withEngine } from './machine.js'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, runs: { type: 'string', default: '2000' } },
})
const [minutes, inFlight] = [Number(values.minutes), Number(values.runs)]
if (!(minutes > 0)) throw new Error(`--minutes must be more than 0, got ${values.minutes}`)
if (!Number.isInteger(inFlight) || inFlight < 1)
  throw new Error(`--runs must be at least 1, got ${values.runs}`)

/** Growth beyond this between the first and the last third is a leak. */
const GROWTH_MAX = 1.15
/** Buffers and pools take so long to find their size. */
const WARM_UP_SHARE = 0.2
const LOOKS = 30

interface Look {
  readonly rssMiB: number
  readonly heapMiB: number
  readonly files: number
  readonly handles: number
  readonly ended: number
}

const fates = [
  // Ends by itself, crashes, is stopped: one after the other, the same in every soak.
  { command: ['/bin/sh', '-c', 'sleep 2.5'], isStopped: false },
  { command: ['/bin/sh', '-c', 'sleep 3; kill -SEGV $$'], isStopped: false },
  { command: ['/bin/sh', '-c', 'sleep 300 & exec sleep 300'], isStopped: true },
] as const

const pids = new Set<number>()
let ended = 0

const live = async (engine: Engine, index: number): Promise<void> => {
  const fate = fates[index % fates.length] ?? fates[0]
  const run = await engine.start({ command: [...fate.command], stop: { termGraceMs: 1_000 } })
  for await (const event of run.events({ output: 'none' })) if (event.type === 'launched') break
  if (run.pid !== undefined) pids.add(run.pid)
  if (fate.isStopped) await run.cancel({ timeoutMs: 60_000 })
  await run.gone
  if (run.pid !== undefined) pids.delete(run.pid)
  ended += 1
}

const look = (): Look => {
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  return {
    rssMiB: Math.round(rss / 2 ** 20),
    heapMiB: Math.round(heapUsed / 2 ** 20),
    files: readdirSync('/proc/self/fd').length,
    handles: process.getActiveResourcesInfo().length,
    ended,
  }
}

const growthOf = (looks: readonly Look[], name: Exclude<keyof Look, 'ended'>): number => {
  const settled = looks.slice(Math.floor(looks.length * WARM_UP_SHARE))
  const third = Math.max(1, Math.floor(settled.length / 3))
  const of = (some: readonly Look[]): number => median(some.map((one) => one[name]))
  return of(settled.slice(-third)) / of(settled.slice(0, third))
}

const soak = (): Promise<readonly Look[]> =>
  withEngine(
    async (engine) => {
      const [fromMs, lengthMs] = [nowMs(), minutes * 60_000]
      const looks: Look[] = []
      const timer = setInterval(() => {
        looks.push(look())
        process.stdout.write(`${JSON.stringify(looks.at(-1))}\n`)
      }, lengthMs / LOOKS)
      // Each place is taken again as soon as it is free.
      await pooled(inFlight, inFlight, async (place) => {
        for (let index = place; nowMs() - fromMs < lengthMs; index += 1) await live(engine, index)
      })
      clearInterval(timer)
      return looks
    },
    // Of what is over nothing but its record is kept, and that not for ever.
    { logs: false },
  )

const looks = await soak()
const left = [...pids].filter(isRunning)
const growth = (['heapMiB', 'files', 'handles'] as const).map(
  (name) => [name, growthOf(looks, name)] as const,
)
const grown = growth.filter(([, times]) => times > GROWTH_MAX)
const told = growth.map(([name, times]) => `${name} × ${times.toFixed(2)}`).join(', ')
process.stdout.write(`${ended} runs ended; ${told}; ${left.length} processes left\n`)
process.exitCode = grown.length > 0 || left.length > 0 ? 1 : 0
