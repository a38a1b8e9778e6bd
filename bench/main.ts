/** `npm run bench -- [--only B1,B5] [--rounds 5] [--tiny] [--out FILE]`: measures, prints the table, writes JSON, one object a workload. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { environment } from './environment.js'
import { measure } from './measure.js'
import type { Report } from './measure.js'
import { tableOf, verdictsOf } from './table.js'
import { workloads } from './workloads.js'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    tiny: { type: 'boolean', default: false },
    out: { type: 'string', default: 'bench-results.ndjson' },
  },
})

const rounds = Number(values.rounds)
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds must be at least 1, got ${values.rounds}`)
const wanted = values.only?.split(',')
const known = workloads.map(({ id }) => id)
const unknown = (wanted ?? []).filter((id) => !known.includes(id))
if (unknown.length > 0)
  throw new Error(`--only: no workload ${unknown.join(', ')}; there are ${known.join(', ')}`)

const machine = environment()
const reports: Report[] = []
writeFileSync(values.out, '')
for (const workload of workloads.filter(({ id }) => wanted?.includes(id) ?? true)) {
  for (const params of values.tiny ? [workload.tiny] : workload.sizes) {
    const report = await measure(workload, params, rounds, (what) => process.stderr.write(`${what}\n`))
    reports.push(report)
    appendFileSync(values.out, `${JSON.stringify({ ...report, environment: machine })}\n`)
  }
}
const about = Object.entries(machine).map(([name, value]) => `${name} ${value}`)
process.stdout.write(`${about.join(', ')}\n\n${tableOf(reports)}\n\n${verdictsOf(reports)}\n`)
