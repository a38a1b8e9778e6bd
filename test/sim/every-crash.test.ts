/**
 * Every crash of short courses, one by one: the engine dies at each call that it makes to the world, before the call has its effect and
 * behind it, unheard; the next engine comes, and may die in the same way at each of its first calls. What must hold is what the
 * simulator's witness asks, and a fair world must bring everything to its end.
 */
import { expect, it } from 'vitest'
import { FAIR_AGENT } from './agents.js'
import { failureOf, play } from './play.js'
import type { AgentPlan, JobPlan, Plan, RunPlan, Step, Verb } from './plan.js'

const AGENT: AgentPlan = { ...FAIR_AGENT, exitMs: null, frameMs: null }

const run = (id: string, more: Partial<RunPlan> = {}): RunPlan => ({
  id,
  session: 'red',
  agents: [AGENT],
  speaks: 'lines',
  termGraceMs: 300,
  killGraceMs: 200,
  askGraceMs: null,
  pauseGraceMs: 1_000,
  timeoutMs: null,
  watchdogMs: null,
  isPersistent: false,
  parent: null,
  fallback: 'default',
  ...more,
})

const step = (atMs: number, verb: Verb, of = '', amount = 0, slot = 0): Step => ({
  atMs,
  do: verb,
  slot,
  of,
  amount,
})

const course = (more: Partial<Plan>): Plan => ({
  seed: 1,
  slots: 1,
  turns: 2,
  reusesPids: true,
  runs: [],
  jobs: [],
  steps: [],
  ...more,
})

const stubborn = { ...AGENT, diesOf: 'KILL', children: 1 } as const
const job: JobPlan = {
  id: 'job',
  agents: [{ ...FAIR_AGENT, exitMs: 300 }],
  attempts: 2,
  review: false,
  after: null,
}

const COURSES: Readonly<Record<string, Plan>> = {
  'a run that ends by itself and is delivered': course({
    runs: [run('one', { agents: [{ ...FAIR_AGENT, exitMs: 300 }] })],
    steps: [step(10, 'start', 'one')],
  }),
  'a cancel of a tree that ignores TERM': course({
    runs: [run('one', { agents: [stubborn] })],
    steps: [step(10, 'start', 'one'), step(500, 'cancel', 'one')],
  }),
  'a cancel while the launch is under way': course({
    runs: [run('one', { agents: [{ ...AGENT, launchMs: 500 }] })],
    steps: [step(10, 'start', 'one'), step(200, 'cancel', 'one')],
  }),
  'a fallback, cancelled in its second attempt': course({
    runs: [run('one', { agents: [{ ...AGENT, exitMs: 100, exitCode: 1 }, stubborn], fallback: 'always' })],
    steps: [step(10, 'start', 'one'), step(700, 'cancel', 'one')],
  }),
  'a pause that outlives its window': course({
    runs: [run('one', { agents: [stubborn] })],
    steps: [step(10, 'start', 'one'), step(200, 'pause', 'one')],
  }),
  'a pause, a resume, and an interrupt': course({
    runs: [run('one')],
    steps: [
      step(10, 'start', 'one'),
      step(200, 'pause', 'one'),
      step(600, 'resume', 'one'),
      step(900, 'interrupt', 'one'),
    ],
  }),
  'a conversation of two turns, asked to end': course({
    runs: [
      run('one', { speaks: 'turns', agents: [{ ...AGENT, frameMs: 100, answers: 'done' }], askGraceMs: 200 }),
    ],
    steps: [step(10, 'start', 'one'), step(500, 'prompt', 'one', 1), step(900, 'interrupt', 'one')],
  }),
  'a run whose part is ended with it': course({
    runs: [run('one'), run('two', { parent: 'one', session: null })],
    steps: [step(10, 'start', 'one'), step(300, 'start', 'two'), step(600, 'cancel', 'one')],
  }),
  'a stop of two runs with a fence, filed by the other engine': course({
    slots: 2,
    runs: [run('one', { agents: [stubborn] }), run('two')],
    steps: [
      step(10, 'start', 'one', 0, 0),
      step(20, 'start', 'two', 0, 1),
      step(500, 'stop session', 'red', 0, 1),
    ],
  }),
  'a stop of two runs, whose answer is owed by the engine that dies': course({
    slots: 2,
    runs: [run('one', { agents: [stubborn] }), run('two')],
    steps: [
      step(10, 'start', 'one', 0, 0),
      step(20, 'start', 'two', 0, 0),
      step(500, 'stop session', 'red', 0, 1),
    ],
  }),
  'a job whose first run fails': course({
    jobs: [{ ...job, agents: [{ ...FAIR_AGENT, exitMs: 300, exitCode: 1 }, ...job.agents] }],
    steps: [step(10, 'add', 'job'), step(50, 'work'), step(1_500, 'retry', 'job')],
  }),
  'a closing that interrupts': course({
    runs: [run('one', { agents: [stubborn] })],
    steps: [step(10, 'start', 'one'), step(500, 'close')],
  }),
}

/** Every so manieth call, from a random one on; 1: every call there is. */
const stride = Number(process.env['RUNWARDEN_CRASH_STRIDE'] ?? 6)
const first = 1 + Math.floor(Math.random() * stride)
const SECOND_STRIDE = 5
/** So many calls of the second engine are looked at. */
const SECOND_CALLS = 6
const CALLS_MAX = 400

const judge = async (plan: Plan, where: string): Promise<void> => {
  const report = await play(plan)
  if (failureOf(report) === null) return
  expect.fail(`${where}: ${JSON.stringify([...report.violations, ...report.stuck])}`)
}

/** The engine dies at its n-th call; with `again`, the next one at its own. */
const dying = (plan: Plan, verb: Verb, calls: number, again: number): Plan => ({
  ...plan,
  steps: [
    step(0, verb, '', calls),
    ...plan.steps,
    ...(again > 0 ? [step(5_001, verb, '', again), step(9_000, 'prune')] : []),
  ].sort((one, other) => one.atMs - other.atMs),
})

it.for(Object.entries(COURSES))(
  'INV-13, INV-4, INV-5, INV-12, R2, R3: at every call of %s the engine may die, before it and behind it',
  { timeout: 240_000 },
  async ([name, plan]) => {
    const { calls } = await play(plan)
    expect(calls).toBeLessThan(CALLS_MAX)
    let played = 0
    for (const verb of ['crash at call', 'crash behind call'] as const) {
      for (let call = first; call <= calls; call += stride) {
        await judge(dying(plan, verb, call, 0), `${verb} ${String(call)} of ${name}`)
        played += 1
      }
      for (let call = first; call <= calls; call += SECOND_STRIDE * stride) {
        for (let again = 1; again <= SECOND_CALLS; again += 1) {
          await judge(
            dying(plan, verb, call, again),
            `${verb} ${String(call)}, then ${String(again)}, of ${name}`,
          )
          played += 1
        }
      }
    }
    console.log(
      `${name}: ${String(calls)} calls, every ${String(stride)} from ${String(first)}, ${String(played)} crashes`,
    )
  },
)
