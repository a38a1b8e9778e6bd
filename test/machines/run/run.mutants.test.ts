/**
 * Whether the checks bite: faults planted into the run chart, each of which must break a claim. What no claim can break is either never
 * met in a legal world, or proven to do what the chart does on every edge of the exploration.
 */
import { assign } from 'xstate'
import { beforeAll, expect, test } from 'vitest'
import type { RunContext } from '../../../src/machines/run/run.context.js'
import { runMachine } from '../../../src/machines/run/run.machine.js'
import { checksOf, exploreRun, modelOf, POLICIES } from '../../model/run/exploration.js'
import { hunt } from '../../model/run/hunt.js'
import type { Verdict } from '../../model/run/hunt.js'
import { deadEnds, endless, stuck } from '../../model/run/liveness.js'
import { actionMutants, guardMutants, provide, transitionMutants } from '../../model/run/mutants.js'
import type { Mutant } from '../../model/run/mutants.js'
import { findUses } from '../../model/run/uses.js'
import type { Uses } from '../../model/run/uses.js'

const HUNT_TIMEOUT_MS = 240_000

let uses: Uses

beforeAll(() => {
  uses = findUses()
}, HUNT_TIMEOUT_MS)

const row = ({ mutant, fate, killer }: Verdict): string =>
  `  ${mutant.padEnd(44)} ${killer === null ? fate : `killed by ${killer.id}: ${killer.claim}`}`

const print = (title: string, verdicts: readonly Verdict[]): void => {
  const counts = new Map<string, number>()
  for (const { fate } of verdicts) counts.set(fate, (counts.get(fate) ?? 0) + 1)
  const summary = [...counts].map(([fate, count]) => `${count} ${fate}`).join(', ')
  console.log([`${title}: ${verdicts.length} mutants, ${summary}`, ...verdicts.map(row)].join('\n'))
}

const survivorsOf = (verdicts: readonly Verdict[]): string[] =>
  verdicts.filter(({ fate }) => fate === 'survived').map(({ mutant }) => mutant)

const always = { uses: null, concerns: () => true }
const guarded = (guard: string, answer: boolean): Mutant => ({
  name: `${guard} = ${answer}`,
  machine: () => provide({ guards: { [guard]: () => answer } }),
  ...always,
})
const without = (action: string): Mutant => ({
  name: `without ${action}`,
  machine: () => provide({ actions: { [action]: () => undefined } }),
  ...always,
})
const rewriting = (action: string): Mutant => ({
  name: `${action} rewrites the outcome`,
  machine: () =>
    provide({
      actions: {
        [action]: assign(({ context }: { context: RunContext }) => ({
          outcome: context.outcome && { ...context.outcome, message: 'rewritten' },
        })),
      },
    }),
  ...always,
})

/** For each invariant a fault that it alone must find: no other claim is asked. */
const PLANTED: readonly (readonly [string, Mutant])[] = [
  ['INV-2', { name: 'without effect process.kill', machine: () => runMachine, lostEffect: 'process.kill', ...always }],
  ['INV-3', rewriting('noteSuppressed')],
  ['INV-4', guarded('isIntentAtLaunch', false)],
  ['INV-5', guarded('isTreeEmpty', true)],
  ['INV-7', guarded('isAttemptDue', true)],
  ['INV-8', guarded('isAttemptDue', true)],
  ['INV-10', guarded('isCurrentTurn', true)],
  ['INV-11', without('disarmTurnCancel')],
  ['INV-12', without('announceSettled')],
  ['INV-15', rewriting('noteSurvivors')],
]

test('INV-3: the chart itself breaks no claim, so that each kill below is the fault\'s', () => {
  expect([...POLICY_NAMES].flatMap((name) => violationsOf(name))).toEqual([])
}, HUNT_TIMEOUT_MS)

const POLICY_NAMES = Object.keys(POLICIES)
const violationsOf = (name: string): string[] => {
  const features = POLICIES[name]
  if (features === undefined) return [`no policy ${name}`]
  return exploreRun(modelOf('legal', name, features), { stopAt: () => true }).violations.map(({ id, claim }) => `${id}: ${claim}`)
}

test('INV-3: each invariant finds a fault planted against it, without the help of another claim', () => {
  const verdicts = PLANTED.map(([id, mutant]) => ({
    ...hunt(mutant, uses, checksOf('legal').filter((check) => check.id === id)),
    id,
  }))
  print('run chart, one invariant asked', verdicts)
  expect(verdicts.filter(({ killer, id }) => killer?.id !== id)).toEqual([])
}, HUNT_TIMEOUT_MS)

test('INV-10: every guard that always says yes, or always no, breaks a claim', () => {
  const verdicts = guardMutants(uses).map((mutant) => hunt(mutant, uses))
  print('run chart, guards', verdicts)
  expect(survivorsOf(verdicts)).toEqual([])
}, HUNT_TIMEOUT_MS)

test('INV-2: every action and every effect that is left out breaks a claim', () => {
  const verdicts = actionMutants(uses).map((mutant) => hunt(mutant, uses))
  print('run chart, actions and effects', verdicts)
  expect(survivorsOf(verdicts)).toEqual([])
}, HUNT_TIMEOUT_MS)

test('INV-4: every transition that is left out, or has lost its guard, breaks a claim', () => {
  const verdicts = transitionMutants(uses).map((mutant) => hunt(mutant, uses))
  print('run chart, transitions', verdicts)
  expect(survivorsOf(verdicts)).toEqual([])
}, HUNT_TIMEOUT_MS)

test('INV-4: a ladder without its KILL step, and a tree whose end nobody hears, do not pass for live', () => {
  const [name = '', features] = Object.entries(POLICIES)[0] ?? []
  if (features === undefined) throw new Error('there is no policy')
  const explored = (mutant: Mutant | undefined) =>
    exploreRun(modelOf('legal', name, features, { checks: [], machine: mutant?.machine() ?? runMachine }))
  const noKill = transitionMutants(uses).find(({ name: what }) => what.startsWith('without run.process.term-sent: xstate.after.'))
  expect(endless(explored(noKill)).length).toBeGreaterThan(0)
  const unheard = explored(without('announceTreeConfirmed'))
  expect(stuck(unheard).length).toBeGreaterThan(0)
  expect(deadEnds(unheard).length).toBeGreaterThan(0)
})
