/** The job chart as the store needs it: one pure step, with the columns by which a job is found. */
import { pathOf } from '../machines/run/run.headline.js'
import type { JobContext } from '../machines/job/job.context.js'
import { JOB_MACHINE_VERSION, jobMachine } from '../machines/job/job.machine.js'
import type { JobChart, JobStep } from './job.ports.js'
import { dehydrate, firstStep, hydrate, isIdle, nextStep } from './step.js'
import type { Step } from './step.js'

const OVER = ['done', 'cancelled']

const toStep = (from: string, { snapshot }: Step): JobStep => {
  const { attemptsLeft, attemptsSpent, claim } = snapshot.context as JobContext
  const to = pathOf(snapshot.value)
  return {
    snapshot: dehydrate(snapshot),
    from,
    to,
    attemptsLeft,
    attemptsSpent,
    runId: claim?.runId ?? null,
    engineId: claim?.engineId ?? null,
    isOver: OVER.includes(to),
  }
}

export const jobChart: JobChart = {
  version: JOB_MACHINE_VERSION,
  first: (input) => toStep('', firstStep(jobMachine, input)),
  next: (stored, event) => {
    const before = hydrate(jobMachine, stored)
    const step = nextStep(jobMachine, before, event)
    return isIdle(before, step) ? null : toStep(pathOf(before.value), step)
  },
}
