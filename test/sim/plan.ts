/**
 * What is to happen in one simulated world, as data: made from a seed, and made smaller when it fails.
 *
 * Owns: how likely each thing is. Each world has only some of the faults (swarm testing): a fault that is always there hides others.
 */
import { seededRandom } from '../../src/testing/seeded-random.js'

/** How one launch goes, and what its processes do. Times in ms from the launch; null: never. */
export interface AgentPlan {
  readonly launch: 'works' | 'fails'
  readonly launchMs: number
  readonly diesOf: 'TERM' | 'KILL' | 'nothing'
  readonly exitMs: number | null
  readonly exitCode: number
  readonly children: number
  /** Children that the leader leaves behind end by themselves then. */
  readonly childrenMs: number | null
  /** So many are forked while the tree is looked at. */
  readonly storm: number
  readonly kernelMs: readonly [from: number, to: number] | null
  readonly exitToldMs: number
  readonly signalMs: number
  readonly refusesMs: readonly [from: number, to: number] | null
  readonly unreadableMs: readonly [from: number, to: number] | null
  /** Time between frames of an agent that speaks; null: it is silent. */
  readonly frameMs: number | null
  readonly answers: 'done' | 'fails' | 'hangs'
}

export interface RunPlan {
  readonly id: string
  readonly session: string | null
  readonly agents: readonly AgentPlan[]
  readonly speaks: 'lines' | 'one turn' | 'turns'
  readonly termGraceMs: number
  readonly killGraceMs: number
  readonly askGraceMs: number | null
  readonly pauseGraceMs: number
  readonly timeoutMs: number | null
  readonly watchdogMs: number | null
  readonly isPersistent: boolean
  readonly parent: string | null
  readonly fallback: 'default' | 'always' | 'throws'
}

export interface JobPlan {
  readonly id: string
  readonly agents: readonly AgentPlan[]
  readonly attempts: number
  readonly review: boolean
  readonly after: string | null
}

const RUN_VERBS = [
  'cancel',
  'cancel',
  'force',
  'interrupt',
  'terminate',
  'pause',
  'pause',
  'resume',
  'prompt',
  'steer',
  'cancelTurn',
  'finish',
] as const
const SCOPE_VERBS = [
  'stop session',
  'stop session',
  'stop all',
  'interrupt session',
  'pause session',
  'resume session',
] as const
const ENGINE_VERBS = ['in use', 'idle', 'work', 'close', 'leave', 'suppress', 'open', 'prune'] as const
const JOB_VERBS = ['add', 'drop', 'accept', 'extend', 'retry', 'hold', 'release'] as const
export const FAULTS = [
  'crash',
  'crash at call',
  'crash behind call',
  'store away',
  'commits held',
  'answers lost',
  'hints lost',
  'spool full',
  'wall steps',
  'machine sleeps',
  'hooks throw',
  'hooks hang',
  'observers fail',
] as const

export type Verb =
  | 'start'
  | (typeof RUN_VERBS)[number]
  | (typeof SCOPE_VERBS)[number]
  | (typeof ENGINE_VERBS)[number]
  | (typeof JOB_VERBS)[number]
  | (typeof FAULTS)[number]

/** One thing that happens. `of`: a run, a session, a job; `slot`: the engine that does it, or that it is done to. */
export interface Step {
  readonly atMs: number
  readonly do: Verb
  readonly slot: number
  readonly of: string
  /** A length, a number of calls, or a size, as the verb has it. */
  readonly amount: number
}

export interface Plan {
  readonly seed: number
  readonly slots: number
  readonly turns: number
  readonly reusesPids: boolean
  readonly runs: readonly RunPlan[]
  readonly jobs: readonly JobPlan[]
  readonly steps: readonly Step[]
}

// ── how likely ──────────────────────────────────────────────────────────────────────────────────

/** The draws of one world. */
class Dice {
  readonly random: () => number

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  is(probability: number): boolean {
    return this.random() < probability
  }

  below(count: number): number {
    return Math.floor(this.random() * count)
  }

  of<T>(list: readonly T[]): T {
    const one = list[this.below(list.length)]
    if (one === undefined) throw new Error('an empty list')
    return one
  }

  /** Small ones are as likely as large ones. */
  ms(most: number): number {
    return Math.floor(most ** this.random())
  }

  window(most: number): readonly [number, number] {
    const from = this.ms(most)
    return [from, from + this.ms(most)]
  }
}

const SPAN_MS = 40_000
const SESSIONS = ['red', 'blue']

/** Which kinds of trouble this world has. */
interface Swarm {
  readonly agents: ReadonlySet<string>
  readonly faults: readonly (typeof FAULTS)[number][]
}

const TROUBLES = ['launch', 'stubborn', 'children', 'storm', 'kernel', 'late', 'refusing', 'unreadable']

const agentOf = (dice: Dice, { agents: has }: Swarm): AgentPlan => {
  const isIn = (trouble: string, probability: number): boolean => has.has(trouble) && dice.is(probability)
  return {
    launch: isIn('launch', 0.3) ? 'fails' : 'works',
    launchMs: isIn('launch', 0.4) ? dice.ms(20_000) : 0,
    diesOf: isIn('stubborn', 0.4) ? dice.of(['KILL', 'KILL', 'nothing']) : 'TERM',
    exitMs: dice.is(0.7) ? dice.ms(SPAN_MS) : null,
    exitCode: dice.is(0.6) ? 0 : 1,
    children: isIn('children', 0.6) ? 1 + dice.below(2) : 0,
    childrenMs: dice.is(0.5) ? dice.ms(SPAN_MS) : null,
    storm: isIn('storm', 0.4) ? 1 + dice.below(6) : 0,
    kernelMs: isIn('kernel', 0.4) ? dice.window(SPAN_MS) : null,
    exitToldMs: isIn('late', 0.4) ? dice.ms(10_000) : 0,
    signalMs: isIn('late', 0.4) ? dice.ms(10_000) : 0,
    refusesMs: isIn('refusing', 0.4) ? dice.window(SPAN_MS) : null,
    unreadableMs: isIn('unreadable', 0.4) ? dice.window(SPAN_MS) : null,
    frameMs: dice.is(0.6) ? 200 + dice.ms(10_000) : null,
    answers: dice.of(['done', 'done', 'fails', 'hangs']),
  }
}

const agentsOf = (dice: Dice, swarm: Swarm, most: number): readonly AgentPlan[] =>
  Array.from({ length: 1 + dice.below(most) }, () => agentOf(dice, swarm))

const runOf = (dice: Dice, swarm: Swarm, index: number): RunPlan => ({
  id: `run-${String(index)}`,
  session: dice.is(0.7) ? dice.of(SESSIONS) : null,
  agents: agentsOf(dice, swarm, dice.is(0.4) ? 3 : 1),
  speaks: dice.of(['lines', 'lines', 'one turn', 'turns']),
  termGraceMs: dice.of([0, 300, 2_000, 5_000]),
  killGraceMs: dice.of([200, 2_000]),
  askGraceMs: dice.is(0.2) ? dice.ms(3_000) : null,
  pauseGraceMs: dice.of([500, 5_000, 60_000]),
  timeoutMs: dice.is(0.15) ? 1 + dice.ms(SPAN_MS) : null,
  watchdogMs: dice.is(0.25) ? 500 + dice.ms(SPAN_MS) : null,
  isPersistent: dice.is(0.08),
  parent: index > 0 && dice.is(0.2) ? `run-${String(dice.below(index))}` : null,
  fallback: dice.of(['default', 'default', 'always', 'throws']),
})

const jobOf = (dice: Dice, swarm: Swarm, index: number): JobPlan => ({
  id: `job-${String(index)}`,
  agents: agentsOf(dice, swarm, 3),
  attempts: 1 + dice.below(3),
  review: dice.is(0.3),
  after: index > 0 && dice.is(0.2) ? `job-${String(dice.below(index))}` : null,
})

/** Much happens at a few moments: races, and not only what follows one by one. */
const timesOf = (dice: Dice): (() => number) => {
  const moments = Array.from({ length: 3 + dice.below(4) }, () => dice.below(SPAN_MS))
  return () => (dice.is(0.6) ? dice.of(moments) + dice.ms(60) - 1 : dice.below(SPAN_MS))
}

export const planOf = (seed: number): Plan => {
  const dice = new Dice(seed)
  const slots = dice.of([1, 1, 2, 2, 3])
  const swarm: Swarm = {
    agents: new Set(TROUBLES.filter(() => dice.is(0.4))),
    faults: FAULTS.filter(() => dice.is(0.3)),
  }
  const runs = Array.from({ length: 3 + dice.below(7) }, (_, index) => runOf(dice, swarm, index))
  const jobs = dice.is(0.35)
    ? Array.from({ length: 1 + dice.below(4) }, (_, index) => jobOf(dice, swarm, index))
    : []
  const time = timesOf(dice)
  const steps: Step[] = []
  const add = (verb: Verb, of: string, amount = 0, atMs = time()): void => {
    steps.push({ atMs, do: verb, slot: dice.below(slots), of, amount })
  }
  for (const { id } of runs) {
    add('start', id, 0, dice.is(0.5) ? dice.ms(2_000) : time())
    for (let left = dice.below(4); left > 0; left -= 1) add(dice.of(RUN_VERBS), id, dice.ms(30_000))
  }
  for (let left = dice.below(4); left > 0; left -= 1)
    add(dice.of(SCOPE_VERBS), dice.of(SESSIONS), dice.ms(30_000))
  for (let left = dice.below(4); left > 0; left -= 1) add(dice.of(ENGINE_VERBS), '', dice.ms(15_000))
  if (jobs.length > 0) {
    for (let slot = 0; slot < slots; slot += 1) add('work', '')
    for (const { id } of jobs) {
      add('add', id, 0, dice.ms(2_000))
      for (let left = dice.below(3); left > 0; left -= 1) add(dice.of(JOB_VERBS), id, 1 + dice.below(2))
    }
  }
  for (const fault of swarm.faults)
    for (let left = 1 + dice.below(2); left > 0; left -= 1)
      add(
        fault,
        '',
        fault.startsWith('crash ') || fault === 'answers lost' ? 1 + dice.below(60) : dice.ms(20_000),
      )
  steps.sort((one, other) => one.atMs - other.atMs)
  return { seed, slots, turns: dice.of([1, 2, 4]), reusesPids: dice.is(0.5), runs, jobs, steps }
}
