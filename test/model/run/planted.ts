/** For each invariant a fault that it alone must find, and the table of what became of the mutants. */
import { assign } from 'xstate'
import type { RunContext } from '../../../src/machines/run/run.context.js'
import { runMachine } from '../../../src/machines/run/run.machine.js'
import type { Verdict } from './hunt.js'
import { provide } from './model.js'
import type { Mutant } from './mutants.js'

const ANYWHERE = { uses: null, concerns: () => true }

const guarded = (guard: string, answer: boolean): Mutant => ({
  name: `${guard} = ${answer}`,
  machine: () => provide({ guards: { [guard]: () => answer } }),
  ...ANYWHERE,
})

export const without = (action: string): Mutant => ({
  name: `without ${action}`,
  machine: () => provide({ actions: { [action]: () => undefined } }),
  ...ANYWHERE,
})

const rewriting = (action: string): Mutant => {
  const rewrite = assign(({ context }: { context: RunContext }) => ({
    outcome: context.outcome && { ...context.outcome, message: 'rewritten' },
  }))
  return {
    name: `${action} rewrites the outcome`,
    machine: () => provide({ actions: { [action]: rewrite } }),
    ...ANYWHERE,
  }
}

export const PLANTED: readonly (readonly [string, Mutant])[] = [
  [
    'INV-2',
    {
      name: 'without effect process.kill',
      machine: () => runMachine,
      lostEffect: 'process.kill',
      ...ANYWHERE,
    },
  ],
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

const rowOf = ({ mutant, fate, killer }: Verdict): string =>
  `  ${mutant.padEnd(32)} ${killer === null ? fate : `killed by ${killer.id}: ${killer.claim}`}`

const countsOf = (names: readonly string[]): string => {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
}

/** The figures, the rules that killed, and a row for each mutant, or for those only that lived. */
export const tableOf = (title: string, verdicts: readonly Verdict[], rows: 'all' | 'alive'): string => {
  const fates = countsOf(verdicts.map(({ fate }) => fate))
  const killers = countsOf(verdicts.flatMap(({ killer }) => killer?.id ?? []))
  const shown = verdicts.filter(({ fate }) => rows === 'all' || fate !== 'killed')
  return [
    `mutants of ${title}: ${verdicts.length}: ${fates}`,
    `  killed by: ${killers}`,
    ...shown.map(rowOf),
  ].join('\n')
}

export const survivorsOf = (verdicts: readonly Verdict[]): string[] =>
  verdicts.filter(({ fate }) => fate === 'survived').map(({ mutant }) => mutant)
