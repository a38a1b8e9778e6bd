/** `npm run sim -- --seed N --runs M`: plays worlds until so many runs were supervised. */
import { parseArgs } from 'node:util'
import { VERSION } from '../../src/version.js'
import { failureOf, play, shrink } from './play.js'
import type { Report } from './play.js'
import { planOf } from './plan.js'

const EXIT = { safety: 1, liveness: 2, differs: 3, usage: 64 } as const

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    runs: { type: 'string', default: '1000' },
    /** Plays one seed and prints its trace. */
    trace: { type: 'boolean', default: false },
    /** Plays every so manieth world twice, which must go the same way. */
    twice: { type: 'string', default: '50' },
    /** A failure is told, and not made smaller. */
    plain: { type: 'boolean', default: false },
  },
})

const numberOf = (name: 'seed' | 'runs' | 'twice'): number => {
  const value = Number(values[name])
  if (Number.isInteger(value) && value >= 0) return value
  console.error(`sim: option --${name} "${values[name]}" must be a whole number`)
  process.exit(EXIT.usage)
}

const describe = (report: Report): string =>
  [
    ...report.violations.slice(0, 5).map(({ id, what, atMs }) => `  ${id} at ${String(atMs)} ms: ${what}`),
    ...report.stuck.slice(0, 5).map((what) => `  liveness: ${what}`),
  ].join('\n')

const fail = async (seed: number, report: Report, failure: string): Promise<never> => {
  console.log(`FAILED: seed ${String(seed)}, version ${VERSION}: ${failure}\n${describe(report)}`)
  console.log(`again: npm run sim -- --seed ${String(seed)} --runs 1 --trace`)
  const code = failure === 'liveness' ? EXIT.liveness : EXIT.safety
  if (values.plain) process.exit(code)
  const smaller = await shrink(planOf(seed), failureOf, failure)
  const again = await play(smaller, { isKept: true })
  console.log(`the smallest plan that fails so:\n${JSON.stringify(smaller, null, 1)}`)
  console.log(describe(again))
  console.log((again.lines ?? []).slice(-400).join('\n'))
  process.exit(code)
}

const seed = numberOf('seed')
const wanted = numberOf('runs')
const twice = numberOf('twice')
const total = { worlds: 0, runs: 0, launches: 0, signals: 0, commits: 0, simulatedMs: 0 }
const startedMs = performance.now()
let combined = 0

for (let at = seed; total.runs < wanted; at += 1) {
  const report = await play(planOf(at), { isKept: values.trace })
  if (values.trace) console.log((report.lines ?? []).join('\n'))
  total.worlds += 1
  total.runs += report.runs
  total.launches += report.launches
  total.signals += report.signals
  total.commits += report.commits
  total.simulatedMs += report.simulatedMs
  combined = Math.imul(combined ^ Number.parseInt(report.hash.slice(0, 8), 16), 0x01000193)
  const failure = failureOf(report)
  if (failure !== null) await fail(at, report, failure)
  if (twice > 0 && total.worlds % twice === 1) {
    const again = await play(planOf(at))
    if (again.hash !== report.hash) {
      console.log(
        `FAILED: seed ${String(at)}, version ${VERSION}: ${report.hash} at first, then ${again.hash}`,
      )
      process.exit(EXIT.differs)
    }
  }
}

const seconds = (performance.now() - startedMs) / 1_000
const cpuSeconds = process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6
console.log(
  `simulated: seeds ${String(seed)} to ${String(seed + total.worlds - 1)}, version ${VERSION}: ` +
    `${String(total.worlds)} worlds, ${String(total.runs)} runs, ${String(total.launches)} launches, ` +
    `${String(total.signals)} signals, ${String(total.commits)} commits, ` +
    `${(total.simulatedMs / 3_600_000).toFixed(1)} simulated hours; ` +
    `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU, ` +
    `${((cpuSeconds * 1_000) / total.runs).toFixed(2)} ms a run; trace ${(combined >>> 0).toString(16)}`,
)
