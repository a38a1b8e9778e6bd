/** Which rows a run's transition changes besides its snapshot. Pure: transition in, rows out. */
import type { RunContext } from '../machines/run/run.context.js'
import type { RunStateValue } from '../machines/run/run.headline.js'
import type { RunEffects } from '../machines/run/run.effects.js'
import type { RunEvent } from '../machines/run/run.events.js'
import type { Transition } from './actor-role.js'
import { jobFactsOf } from './job-facts.js'
import { hasSettled } from './run-milestones.js'
import type { Containment, ExecutionMarks, PaneRecord, ProcessIdentity } from './ports.js'
import type { ExecutionRow, KindRows, NoticeRow, ResultRow, RunHead, RunRow } from './store.ports.js'

/** What the run actor knows of the execution and the chart does not. */
export interface ExecutionFacts {
  readonly marks: ExecutionMarks
  readonly containment: Containment
  readonly logPath: string | null
  readonly identity: ProcessIdentity | null
  readonly launchedAt: number | null
  readonly pane: PaneRecord | null
}

const ofEffect = <K extends keyof RunEffects>(transition: Transition, kind: K): RunEffects[K] | undefined =>
  transition.effects.find(({ type }) => type === kind)?.params as RunEffects[K] | undefined

const paneOf = ({ pane }: ExecutionFacts): Pick<ExecutionRow, 'pane'> => (pane === null ? {} : { pane })

/** R2: the row with its marks is in the same commit as the decision to launch; the identity follows with `process.launched`. */
const executionRows = (transition: Transition, facts: ExecutionFacts): readonly ExecutionRow[] => {
  const { at } = transition
  const event = transition.event as unknown as RunEvent
  const context = transition.after.context as RunContext
  const attempt = context.executionAttempt
  const rows: ExecutionRow[] = []
  if (ofEffect(transition, 'process.launch') !== undefined) {
    const { marks, containment, logPath } = facts
    rows.push({ attempt, marks, containment, logPath, requestedAt: at, ...paneOf(facts) })
  }
  if (event.type === 'process.launched' && facts.identity !== null) {
    const { identity, containment } = facts
    rows.push({ attempt, identity, containment, launchedAt: at, ...paneOf(facts) })
  }
  if (event.type === 'process.exited') {
    rows.push({ attempt, exitedAt: at, exit: { exitCode: event.exitCode, signal: event.signal } })
  }
  if (event.type === 'process.survived') rows.push({ attempt, survivors: event.survivors })
  if (ofEffect(transition, 'process.release') !== undefined) {
    const evidence = context.evidence.find((one) => one.attempt === attempt)
    if (evidence !== undefined)
      rows.push({ attempt, confirmedAt: at, evidence: evidence.kind, survivors: [] })
  }
  return rows
}

const noticeRows = (transition: Transition): readonly NoticeRow[] => {
  const raised = ofEffect(transition, 'notice.raise')
  return raised === undefined ? [] : [{ ...raised, at: transition.at }]
}

/** INV-12: one result a run, under one delivery id, from the transition that settled it. */
const resultRow = (transition: Transition): ResultRow | undefined =>
  hasSettled(transition)
    ? {
        deliveryId: `${transition.actor}/result`,
        body: JSON.stringify((transition.after.context as RunContext).outcome),
        at: transition.at,
        finalized: null,
        acknowledgedAt: null,
      }
    : undefined

const deliveryIn = (snapshot: { readonly value: unknown } | null): string | undefined =>
  snapshot === null ? undefined : (snapshot.value as RunStateValue).delivery

/** What the host's hook made of the outcome, or why it made nothing of it. */
const finalizedBody = ({ before, after, event }: Transition): string | undefined => {
  if (deliveryIn(before) !== 'finalizing' || deliveryIn(after) === 'finalizing') return undefined
  if (event.type === 'delivery.finalized') return event['body'] as string | undefined
  if (deliveryIn(after) === 'suppressed') return undefined
  const { finalizeDeadlineMs } = (after.context as RunContext).policy
  return JSON.stringify({ error: `finalize did not answer within ${String(finalizeDeadlineMs)} ms` })
}

const isAcknowledged = ({ before, after, event }: Transition): boolean =>
  event.type === 'delivery.acknowledged' &&
  deliveryIn(after) === 'delivered' &&
  deliveryIn(before) !== 'delivered'

/** What changes of the result: it is there, it is complete, the host has it. */
const deliveryRows = (
  transition: Transition,
): { readonly result?: ResultRow; readonly finalized?: string; readonly acknowledged?: true } => {
  const result = resultRow(transition)
  const finalized = finalizedBody(transition)
  return {
    ...(result === undefined ? {} : { result }),
    ...(finalized === undefined ? {} : { finalized }),
    ...(isAcknowledged(transition) ? { acknowledged: true } : {}),
  }
}

export const rowsOf = (
  transition: Transition,
  run: { readonly row: RunRow; readonly head: RunHead; readonly execution: ExecutionFacts | null },
): KindRows => {
  const withdrawn = ofEffect(transition, 'notice.withdraw')?.generation
  const job = jobFactsOf(transition, run.row.job)
  return {
    kind: 'run',
    ...(transition.before === null ? { created: run.row } : {}),
    head: run.head,
    executions: run.execution === null ? [] : executionRows(transition, run.execution),
    notices: noticeRows(transition),
    ...(withdrawn === undefined ? {} : { withdrawsNotices: withdrawn }),
    ...deliveryRows(transition),
    ...(job === undefined ? {} : { job }),
  }
}
