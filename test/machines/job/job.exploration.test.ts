/** The job chart, explored exhaustively: claims, ends of runs and commands of people, in every order. */
import { expect, test } from 'vitest'
import { jobMachine } from '../../../src/machines/job/job.machine.js'
import { describe as figuresOf, explore, reaching } from '../../model/explorer.js'
import { faultsOf, judgeFaults } from '../../model/faults.js'
import { isOver, jobChecks, jobModel } from '../../model/job.js'

const models = [jobModel(false), jobModel(true)]
const explorations = models.map((model) => explore(model(), { maxStates: 20_000 }))
for (const exploration of explorations) console.log(figuresOf(exploration))

const asked = new Set<string>()
const holds = (id: string) => {
  asked.add(id)
  return () => {
    const violations = explorations.flatMap((exploration) => exploration.violations)
    expect(violations.filter((violation) => violation.id === id)).toEqual([])
  }
}

test('INV-3: a job that is over takes no event', holds('INV-3'))
test(
  'INV-8: a job has one claim at a time, and only the proof that its run is gone gives it back',
  holds('INV-8'),
)
test('O9: the outcome of its run decides where a job goes', holds('O9'))
test('O11: commands act where they make sense, and a lost claim changes nothing', holds('O11'))
test('O12: an attempt is spent by every run that ends, once, and by nothing else', holds('O12'))
test('O13: a claim comes to a run, or gives the job back', holds('O13'))
test('O14: a job that is blocked says why', holds('O14'))

test('O11: from every state a job comes to its end, with attempts added where they are wanted', () => {
  for (const exploration of explorations) {
    const live = reaching(exploration, isOver, ({ event }) => event.type !== 'job.drop')
    expect(live.size).toBe(exploration.nodes.length)
  }
})

test('O11: every check of the job model is asked for by a test of its rule', () => {
  expect(jobChecks.filter(({ id }) => !asked.has(id))).toEqual([])
})

test('O11: every guard that always says yes or no, and every action left out, breaks a claim', () => {
  const judged = models.map((model) => judgeFaults(faultsOf(jobMachine), model))
  for (const { table } of judged) console.log(`mutants of the job chart:\n${table}`)
  const [first, second] = judged.map(({ survivors }) => survivors)
  expect(first?.filter((name) => second?.includes(name))).toEqual([])
})

test('O12: a job recorded by the first version of the chart is taken up as it stood', () => {
  const stored = {
    value: { active: 'running' },
    context: {
      needsReview: true,
      attemptsLeft: 2,
      attemptsSpent: 1,
      claim: { runId: 'r7', engineId: 'e1', at: 1_700_000_000_000 },
      lastOutcome: null,
      reason: '',
    },
  }
  const snapshot = jobMachine.resolveState(stored)
  expect(snapshot.value).toEqual({ active: 'running' })
  expect(snapshot.context.claim?.runId).toBe('r7')
  expect(snapshot.can({ type: 'run.confirmed', at: 1, runId: 'r7' })).toBe(false)
})
