/** What an exploration does not tell apart: delays, wall clocks and texts along single paths. */
import { expect, test } from 'vitest'
import type { AnyEventObject } from 'xstate'
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { RunEvent } from '../../../src/machines/run/run.events.js'
import { PureMachine } from '../../model/pure-machine.js'
import { featuresOf } from '../../model/run/exploration.js'
import { policyOf } from '../../model/run/model.js'
import type { RunSnapshot } from '../../model/run/node.js'

const policy = policyOf(featuresOf('one-shot, both hooks'))
const order = { by: 'tester', reason: 'because', force: false }

/** The snapshot after each event, and the delays of the timers that were set on the way, by the last word of their state. */
const walk = (events: readonly (RunEvent | AnyEventObject)[], input = { policy }) => {
  const pure = new PureMachine<RunSnapshot, RunEvent | AnyEventObject>(runMachine, input, { isTraced: false })
  let { snapshot } = pure.first()
  const delays: [string, number][] = []
  for (const event of events) {
    const step = pure.next(snapshot, event)
    snapshot = step.snapshot
    for (const { id, delayMs } of step.timersSet) delays.push([id.split('.').at(-1) ?? '', delayMs])
  }
  return { context: snapshot.context, value: snapshot.value, delays }
}

const launched: readonly RunEvent[] = [
  { type: 'run.admitted', at: 1 },
  { type: 'process.launched', at: 2, attempt: 1 },
]

test('P8: the kill of a tree that would not go is repeated after 5 s, 30 s, 2 min, and then every 5 min', () => {
  const round = [
    { type: 'xstate.after.killGrace.run.process.kill-sent', at: 4 },
    { type: 'xstate.after.unconfirmedRetry.run.process.unconfirmed', at: 5 },
  ]
  const cancel: RunEvent = { type: 'run.cancel', at: 3, ...order, force: true }
  const { context, delays } = walk([...launched, cancel, ...Array.from({ length: 6 }, () => round).flat()])
  const retries = delays.filter(([state]) => state === 'unconfirmed').map(([, delayMs]) => delayMs)
  expect(retries).toEqual([5_000, 30_000, 120_000, 300_000, 300_000, 300_000])
  expect(context.requestedAt).toEqual({ cancel: 3 })
})

test('P10: a wall clock that steps back leaves confirmedAt not before requestedAt', () => {
  const gone: RunEvent = { type: 'process.gone', at: 10, attempt: 1, evidence: 'tree-reaped' }
  const { context } = walk([...launched, { type: 'run.cancel', at: 1_000, ...order }, gone])
  expect(context.outcome?.cancellation).toMatchObject({ requestedAt: 1_000, confirmedAt: 1_000 })
})

test('P7: a cancel after an interrupt is requested when it came, and the time of the interrupt is kept', () => {
  const { context } = walk([
    ...launched,
    { type: 'run.interrupt', at: 100, ...order },
    { type: 'run.cancel', at: 200, ...order, by: 'someone else' },
    { type: 'run.cancel', at: 300, ...order, by: 'a third' },
  ])
  expect(context.requestedAt).toEqual({ interrupt: 100, cancel: 200 })
  expect(context.intent).toMatchObject({ kind: 'cancel', requestedAt: 200, by: 'someone else' })
})

const exit = { attempt: 1, isTreeEmpty: true, evidence: 'tree-reaped', isFallbackEligible: false } as const

test('O6: a foreign signal before any order is a failure that names it', () => {
  const killed: RunEvent = { type: 'process.exited', at: 3, exitCode: null, signal: 'SIGKILL', ...exit }
  const { outcome } = walk([...launched, killed]).context
  expect(outcome).toMatchObject({ status: 'failed', signal: 'SIGKILL', message: 'ended by signal SIGKILL' })
})

test("O6: an exit after the order is that order's end, with the real exit code kept", () => {
  const ended: RunEvent = { type: 'process.exited', at: 4, exitCode: 0, signal: null, ...exit }
  const { outcome } = walk([...launched, { type: 'run.interrupt', at: 3, ...order }, ended]).context
  expect(outcome).toMatchObject({ status: 'interrupted', exitCode: 0, reason: 'because' })
})

const driven = { policy: policyOf(featuresOf('one-shot, driven, fallback, ask')) }
const interactive = { policy: policyOf(featuresOf('interactive, ask, deliver hook, time limit')) }
const ofTurn = { attempt: 1, generation: 1 } as const

test('O6: an agent that exits with 0 in the middle of its turn has not done it, and the outcome says so', () => {
  const ended: RunEvent = { type: 'process.exited', at: 3, exitCode: 0, signal: null, ...exit }
  const { outcome } = walk([...launched, ended], driven).context
  const message = 'exited with code 0 before its turn was complete'
  expect(outcome).toMatchObject({ status: 'failed', exitCode: 0, message })
})

test('O6: an exit with 0 after a result that speaks of failure is the failure that the agent reported', () => {
  const completed: RunEvent = { type: 'turn.completed', at: 3, ...ofTurn, result: { isOk: false } }
  const ended: RunEvent = { type: 'process.exited', at: 4, exitCode: 0, signal: null, ...exit }
  const { outcome } = walk([...launched, completed, ended], driven).context
  expect(outcome).toMatchObject({ status: 'failed', exitCode: 0, message: 'the agent reported a failure' })
})

test('K13: a turn is freed at its limit and 2 s, or 2 s after the agent has answered, whichever is first', () => {
  const cancel: RunEvent = { type: 'turn.cancel', at: 3 }
  const heard: RunEvent = { type: 'turn.cancel-acknowledged', at: 4, ...ofTurn }
  const { delays, value } = walk([...launched, cancel, heard, heard], interactive)
  expect(delays.filter(([timer]) => timer.startsWith('turn-'))).toEqual([
    ['turn-cancel', interactive.policy.turnCancelMs + 2_000],
    ['turn-return', 2_000],
  ])
  expect(value).toMatchObject({ work: { open: 'accepted' } })
  const freed: RunEvent = { type: 'turn.cancelled', at: 5, ...ofTurn }
  expect(walk([...launched, cancel, heard, freed], interactive).value).toMatchObject({
    work: { open: 'ready' },
    process: 'alive',
  })
})

test('K13: a turn that was asked to end does not begin again with the next candidate', () => {
  const { policy: both } = driven
  const cancel: RunEvent = { type: 'turn.cancel', at: 3 }
  const failed: RunEvent = {
    type: 'process.exited',
    at: 4,
    exitCode: 7,
    signal: null,
    ...exit,
    isFallbackEligible: true,
  }
  const events = [...launched, cancel, failed]
  expect(walk(events, { policy: { ...both, isInteractive: true } })).toMatchObject({
    value: { work: { open: 'ready' }, process: 'waiting' },
    context: { attempt: 2 },
  })
  // A run of one turn has nothing else for it.
  expect(walk(events, driven).context.outcome).toMatchObject({ status: 'failed', exitCode: 7 })
})
