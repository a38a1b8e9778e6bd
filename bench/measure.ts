/**
 * Measures one size of a workload: every contender in turn, each sample in a process of its own, round by round.
 *
 * Owns: the rounds, the ratio of each sample to the floor's of the same round, and what becomes of a contender that fails.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Contender, Medians, Params, Sample, Workload } from './contract.js'
import { median } from './machine.js'

const SAMPLE_MAX_MS = 300_000
const WORKER = fileURLToPath(new URL('./worker.js', import.meta.url))

export const hashOf = (result: unknown): string =>
  createHash('sha256').update(JSON.stringify(result)).digest('hex').slice(0, 12)

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export interface Measured {
  readonly contender: string
  /** Why there is no figure, or null. */
  readonly why: string | null
  readonly value: Spread
  readonly ratio: Spread
  readonly more: Readonly<Record<string, number>>
  readonly hashes: readonly string[]
}

export interface Report {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly floor: string
  readonly reach: string
  readonly params: Params
  readonly rounds: number
  readonly isReached: boolean
  /** Every contender, in every round, did the same. */
  readonly isSameResult: boolean
  readonly measured: readonly Measured[]
}

const spreadOf = (values: readonly number[]): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
})

const sampleIn = async (workload: Workload, contender: Contender, params: Params): Promise<Sample> => {
  const job = JSON.stringify({ id: workload.id, contender: contender.name, params })
  const child = spawn(process.execPath, ['--expose-gc', WORKER, job], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: SAMPLE_MAX_MS,
    killSignal: 'SIGKILL',
  })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  const last = said.trimEnd().split('\n').at(-1) ?? ''
  if (code !== 0) throw new Error(`${workload.id} ${contender.name}: no sample (${code ?? 'killed'})`)
  return JSON.parse(last) as Sample
}

const namesOf = (samples: readonly Sample[]): string[] => [
  ...new Set(samples.flatMap(({ more = {} }) => Object.keys(more))),
]

const summarize = (name: string, samples: readonly Sample[], floor: readonly Sample[]): Measured => ({
  contender: name,
  why: null,
  value: spreadOf(samples.map(({ value }) => value)),
  ratio: spreadOf(samples.map(({ value }, round) => value / (floor[round]?.value ?? NaN))),
  more: Object.fromEntries(
    namesOf(samples).map((key) => [key, median(samples.map(({ more = {} }) => more[key] ?? NaN))]),
  ),
  hashes: [...new Set(samples.map(({ result }) => hashOf(result)))],
})

const absent = (contender: string, why: string): Measured => {
  const none = { median: NaN, min: NaN, max: NaN }
  return { contender, why, value: none, ratio: none, more: {}, hashes: [] }
}

const reportOf = (
  workload: Workload,
  params: Params,
  rounds: number,
  measured: readonly Measured[],
): Report => {
  const of = (name: string): Medians => {
    const found = measured.find(({ contender }) => contender === name)
    return { value: found?.value.median ?? NaN, ratio: found?.ratio.median ?? NaN, more: found?.more ?? {} }
  }
  const { id, title, unit, floor, reach } = workload
  const isSameResult = new Set(measured.flatMap(({ hashes }) => hashes)).size === 1
  const isReached = workload.isReached(of)
  return { id, title, unit, floor, reach, params, rounds, isReached, isSameResult, measured }
}

/** A contender that fails or cannot take part is named with the reason, and the others go on. */
export const measure = async (
  workload: Workload,
  params: Params,
  rounds: number,
  tell: (what: string) => void,
): Promise<Report> => {
  const samples = new Map<string, Sample[]>()
  const out = new Map<string, string>()
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of workload.contenders) {
      const { name } = contender
      if (out.has(name)) continue
      const why = contender.why?.() ?? null
      if (why !== null) {
        out.set(name, why)
        continue
      }
      tell(`${workload.id} ${JSON.stringify(params)} round ${round + 1} of ${rounds}: ${name}`)
      try {
        samples.set(name, [...(samples.get(name) ?? []), await sampleIn(workload, contender, params)])
      } catch (error) {
        out.set(name, error instanceof Error ? error.message : String(error))
      }
    }
  }
  const floor = samples.get(workload.floor) ?? []
  const measured = workload.contenders.map(({ name }) => {
    const why = out.get(name)
    return why === undefined ? summarize(name, samples.get(name) ?? [], floor) : absent(name, why)
  })
  return reportOf(workload, params, rounds, measured)
}
