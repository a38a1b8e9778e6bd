/**
 * The run chart, explored exhaustively: every event in every reachable state, under six policies, in a legal but hostile world, and
 * once more in a world without law. Each test asks for the violations of one rule; the path of each is printed.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { runMachine } from '../../../src/machines/run/run.machine.js'
import { describe as figuresOf } from '../../model/explorer.js'
import { transitionsOf } from '../../model/chart.js'
import { checksOf, exploreLawless, exploreRun, featuresOf, modelOf } from '../../model/run/exploration.js'
import { hunt } from '../../model/run/hunt.js'
import { deadEnds, endless, stuck } from '../../model/run/liveness.js'
import type { RunExploration } from '../../model/run/liveness.js'
import { actionMutants, guardMutants, transitionMutants } from '../../model/run/mutants.js'
import type { Mutant } from '../../model/run/mutants.js'
import { PLANTED, survivorsOf, tableOf, without } from '../../model/run/planted.js'
import { changedByRestore } from '../../model/run/restored.js'
import { exploreLegal } from '../../model/run/uses.js'
import type { Uses } from '../../model/run/uses.js'

/** Under a minute on an idle core; the limit is for a machine that is busy with much else. */
const TIMEOUT_MS = 600_000

let uses: Uses
let legal: readonly RunExploration[] = []
let lawless: readonly RunExploration[] = []

beforeAll(() => {
  uses = exploreLegal()
  legal = [...uses.explorations.values()]
  lawless = exploreLawless()
  for (const exploration of [...legal, ...lawless]) console.log(figuresOf(exploration))
}, TIMEOUT_MS)

const asked = new Set<string>()

const violationsOf = (id: string, explorations: readonly RunExploration[]): string[] =>
  explorations.flatMap(({ name, violations }) =>
    violations
      .filter((violation) => violation.id === id)
      .map(({ claim, path }) => `${name}: ${claim}: ${path.join(' → ')}`),
  )

/** The claim of a test on every edge of every exploration. */
const holds = (id: string) => {
  asked.add(id)
  return () => {
    expect(violationsOf(id, [...legal, ...lawless])).toEqual([])
  }
}

describe('invariants, over every event in every reachable state', () => {
  test(
    'INV-2: each step of the ladder calls for exactly its effects, and no signal without a tree',
    holds('INV-2'),
  )
  test('INV-3: a settled outcome never changes', holds('INV-3'))
  test('INV-4: a live tree behind an intent or an outcome is being ended', holds('INV-4'))
  test('INV-5: only evidence ends the ladder, and it is recorded as the fact gave it', holds('INV-5'))
  test('INV-7: after an intent or an outcome nothing starts', holds('INV-7'))
  test('INV-8: a launch is the next attempt, and every earlier tree is proven gone', holds('INV-8'))
  test('INV-10: a stale fact changes nothing', holds('INV-10'))
  test('INV-11: each wait has its deadline, and none is left of a wait that is over', holds('INV-11'))
  test('INV-12: one outcome, announced once, delivered once', holds('INV-12'))
  test('INV-15: no fact of the teardown rewrites what is settled', holds('INV-15'))
})

describe('orders', () => {
  test('P1: a cancel is recorded at once in every open state, and no intent ever weakens', holds('P1'))
  test('P2: a run that is being ended settles as the order says, once its tree is gone', holds('P2'))
  test(
    'P4: a launch that ends in an intent is answered at once, and a failed one leaves nothing',
    holds('P4'),
  )
  test('P5: a cancel before any launch spawns nothing, with evidence never-launched', holds('P5'))
  test('P6: what settled by itself is not moved by a later order', holds('P6'))
  test('P7: a repeated order joins the first, and adds only its force', holds('P7'))
  test(
    'P10: the cancellation record carries the first request, and only a cancelled outcome has one',
    holds('P10'),
  )
  test('P11: confirmed means evidence of every attempt', holds('P11'))
  test('P18: a suppressed run is interrupted and not delivered', holds('P18'))
  test('K14: terminate ends what settled work holds, and leaves open work alone', holds('K14'))
  test('K18: force upgrades a graceful ladder, nothing downgrades it, and one kill is going', holds('K18'))
  test('O15: a limit interrupts open work, and says which one', holds('O15'))
  test('O2: a pause that outlives its window is an interrupt', holds('O2'))
  test('O9: an interrupt is recorded at once in every open state without an intent', holds('O9'))
})

describe('the ladder', () => {
  test('L2: what a leader leaves behind is swept, and only an empty tree stops the sweep', holds('L2'))
  test('O3: a tree that outlives the TERM grace gets KILL', holds('O3'))
  test('P8: a tree that outlives KILL is unconfirmed, named, and killed again', holds('P8'))
  test('R3: a tree that recovery proves gone is over, and its work lost or ended', holds('R3'))
})

describe('attempts and their ends', () => {
  test('K19: an exit told twice never touches the next attempt', holds('K19'))
  test('P3: the exit of the awaited execution decides, and the outcome tells no other exit', holds('P3'))
  test('P9: only an eligible failure starts the next candidate', holds('P9'))
  test('O6: the exit told last is kept until the next launch', holds('O6'))
  test('P17: late answers of the host change nothing', holds('P17'))
  test('P19: a finalize hook that does not answer holds nothing back', holds('P19'))
})

describe('turns, watchdogs, pauses', () => {
  test('K1: progress and completion of the open turn are taken', holds('K1'))
  test(
    'K4: a watchdog is not heard while the run is paused, waits for a person, is being ended or is settled',
    holds('K4'),
  )
  test('K5: never-started is said of a silent turn without progress, and of no other', holds('K5'))
  test('K8: one advisory per generation, which stands as long as the stall', holds('K8'))
  test(
    'K9: a prolonged stall after progress settles failed-stalled, unless a person is waited for',
    holds('K9'),
  )
  test('K10: a completion that stays open and silent closes the turn', holds('K10'))
  test('K11: a generation begins with a turn or an attempt, and with nothing else', holds('K11'))
  test('K13: a turn is asked to end once, and its end is not the success of the run', holds('K13'))
  test('O1: frozen means that someone wants it so, and what is said of it is what was found', holds('O1'))
  test('O4: the owner of a freeze, or someone stronger, lifts it; nobody pauses the ladder', holds('O4'))
  test('O7: no timer of the agent fires while it is frozen', holds('O7'))
  test('O8: a launch that is to be paused is frozen at once', holds('O8'))
})

describe('the exploration itself', () => {
  test('INV-3: in a world without law no event throws, and nothing settled changes', () => {
    expect([...violationsOf('ROBUST', [...legal, ...lawless]), ...violationsOf('INV-3', lawless)]).toEqual([])
  })

  test('INV-4: from every reachable state the run can come to its end', () => {
    expect(legal.flatMap((exploration) => [...deadEnds(exploration), ...stuck(exploration)])).toEqual([])
  })

  test('INV-4: in a fair world a run that is to end does end, with nobody ordering anything', () => {
    expect(legal.flatMap(endless)).toEqual([])
  })

  test(
    'INV-13: a snapshot restored from its record does what the living one does, in every reachable state',
    { timeout: TIMEOUT_MS },
    () => {
      const both = ['one-shot, both hooks', 'interactive, ask, deliver hook, time limit'].map((policy) =>
        uses.explorations.get(policy),
      )
      expect(both.map((exploration) => exploration && changedByRestore(exploration))).toEqual([[], []])
    },
  )

  test('INV-10: every transition of the chart is taken in a legal world, but those against an unlawful one', () => {
    // Before a launch was answered an agent has said nothing, and who asks the agent to end has an intent already.
    const isUnlawful =
      /^run\.work\.open\.active: process\.launch-failed|^run\.process\.asking: intent\.recorded/
    const untaken = transitionsOf(runMachine).filter((name) => !uses.ofTransition.has(name))
    expect(untaken.filter((name) => !isUnlawful.test(name))).toEqual([])
  })

  test('INV-10: every check of the model is asked for by a test of its rule', () => {
    expect(checksOf('legal').filter(({ id }) => !asked.has(id))).toEqual([])
  })
})

/** A kill is the fault's only where the chart itself breaks nothing: until then no fault is planted. */
describe('planted faults', () => {
  const sound = () => {
    expect(legal.flatMap(({ violations }) => violations.map(({ id, claim }) => `${id}: ${claim}`))).toEqual(
      [],
    )
  }

  const judge = (title: string, mutants: readonly Mutant[], rows: 'all' | 'alive') => {
    const verdicts = mutants.map((mutant) => hunt(mutant, uses))
    console.log(tableOf(title, verdicts, rows))
    expect(survivorsOf(verdicts)).toEqual([])
  }

  test(
    'INV-3: each invariant finds a fault planted against it, without the help of another claim',
    { timeout: TIMEOUT_MS },
    () => {
      sound()
      const verdicts = PLANTED.map(([id, mutant]) => {
        const checks = checksOf('legal').filter((check) => check.id === id)
        return { ...hunt(mutant, uses, checks), id }
      })
      console.log(tableOf('the run chart, with one invariant asked', verdicts, 'all'))
      expect(verdicts.filter(({ killer, id }) => killer?.id !== id)).toEqual([])
    },
  )

  test(
    'INV-10: every guard that always says yes, or always no, breaks a claim',
    { timeout: TIMEOUT_MS },
    () => {
      sound()
      judge('the run chart, guards', guardMutants(uses), 'all')
    },
  )

  test(
    'INV-2: every action and every effect that is left out breaks a claim',
    { timeout: TIMEOUT_MS },
    () => {
      sound()
      judge('the run chart, actions and effects', actionMutants(uses), 'all')
    },
  )

  test(
    'INV-4: every transition that is left out, or has lost its guard, breaks a claim',
    { timeout: TIMEOUT_MS },
    () => {
      sound()
      judge('the run chart, transitions', transitionMutants(uses), 'alive')
    },
  )

  test(
    'INV-4: a ladder without its KILL step, and a tree whose end nobody hears, do not pass for live',
    { timeout: TIMEOUT_MS },
    () => {
      const policy = 'one-shot, both hooks'
      const explored = (mutant: Mutant | undefined) => {
        const machine = mutant?.machine() ?? runMachine
        return exploreRun(modelOf('legal', policy, featuresOf(policy), { checks: [], machine }))
      }
      const isKillStep = ({ name }: Mutant): boolean =>
        name.startsWith('without run.process.term-sent: xstate.after.')
      expect(endless(explored(transitionMutants(uses).find(isKillStep))).length).toBeGreaterThan(0)
      const unheard = explored(without('announceTreeConfirmed'))
      expect(stuck(unheard).length).toBeGreaterThan(0)
      expect(deadEnds(unheard).length).toBeGreaterThan(0)
    },
  )
})
