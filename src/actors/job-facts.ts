/** What a run's transition tells the job that it is a run of. Pure: transition in, facts out. */
import type { JobOutcome } from '../machines/job/job.context.js'
import type { JobFact } from '../machines/job/job.events.js'
import type { Outcome, RunContext } from '../machines/run/run.context.js'
import { isConfirmed, isSettled } from '../machines/run/run.headline.js'
import type { RunStateValue } from '../machines/run/run.headline.js'
import type { Transition } from './actor-role.js'
import type { JobFacts } from './job.ports.js'
import { hasSettled } from './run-milestones.js'

const toJobOutcome = (runId: string, outcome: Outcome): JobOutcome => {
  const { status, code, reason, message, settledAt } = outcome
  return { runId, status, ...(code === undefined ? {} : { code }), reason, message, settledAt }
}

const isEnded = (snapshot: { readonly value: unknown } | null): boolean => {
  if (snapshot === null) return false
  const value = snapshot.value as RunStateValue
  return isSettled(value) && isConfirmed(value)
}

/** O13: what the job is told belongs to the run's own transaction. Undefined where this transition tells it nothing. */
export const jobFactsOf = (transition: Transition, jobId: string | null): JobFacts | undefined => {
  if (jobId === null) return undefined
  const { actor: runId, at, before, after } = transition
  const { outcome } = after.context as RunContext
  const facts: JobFact[] = []
  if (before === null) facts.push({ type: 'run.recorded', at, runId })
  if (hasSettled(transition) && outcome !== null)
    facts.push({ type: 'run.settled', at, runId, outcome: toJobOutcome(runId, outcome) })
  // O9: not before every process is proven gone, also where the outcome came long before.
  if (isEnded(after) && !isEnded(before)) facts.push({ type: 'run.confirmed', at, runId })
  return facts.length === 0 ? undefined : { jobId, facts }
}
