/**
 * Whatever candidates, exits, cancels, failed kills and host hooks do, and in whichever order they come to their turn: one outcome under
 * one delivery id, no launch after an intent, no two executions alive, and every execution confirmed or named.
 *
 * fast-check's scheduler decides when each commit is taken, each launch answered, each hook heard, and each order given: a script's steps
 * keep their order, and everything else may come between them. Simulated clock and processes, a real store in memory.
 * `RUNWARDEN_CANCEL_SCRIPTS` sets how many scripts are played; the seed is printed, and the shortest script that fails.
 */
import fc from 'fast-check'
import type { Scheduler } from 'fast-check'
import { expect, it } from 'vitest'
import type { Transition } from '../../src/actors/actor-role.js'
import type { Delivery, DeliveryHooks } from '../../src/actors/deliveries.js'
import type { LaunchSpec } from '../../src/actors/ports.js'
import type { StorePort } from '../../src/actors/store.ports.js'
import type { RunContext } from '../../src/machines/run/run.context.js'
import type { RunSpec } from '../../src/index.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { propertyParameters } from '../support/property.js'
import { startSimulatedRun } from '../support/simulated-engine.js'
import type { SimulatedRun } from '../support/simulated-engine.js'
import type { Behaviour } from '../../src/testing/simulated-execution.js'
import { openSimulatedStore } from '../../src/testing/simulated-store.js'
import type { SimulatedStore } from '../../src/testing/simulated-store.js'

const S = 1_000
/** A commit and what follows it take two turns of the loop. */
const FEW = 3
/** A store that has taken so many runs is exchanged for a fresh one. */
const RUNS_PER_STORE = 500

// ── what can happen ─────────────────────────────────────────────────────────────────────────────

const LAUNCHES = ['works', 'works', 'works', 'hangs', 'fails', 'hangs and fails'] as const
const STRENGTHS = ['dies of TERM', 'dies of KILL', 'never dies'] as const

interface Candidate {
  readonly launch: (typeof LAUNCHES)[number]
  readonly strength: (typeof STRENGTHS)[number]
  readonly hasChild: boolean
}

interface Setting {
  readonly candidates: readonly Candidate[]
  readonly rule: 'default' | 'always' | 'never' | 'throws' | 'promises'
  readonly finalize: 'none' | 'returns' | 'throws' | 'hangs'
  readonly deliver: 'none' | 'returns' | 'throws once' | 'hangs once' | 'cancels'
}

type Step =
  | { readonly do: 'exit'; readonly exitCode: number | null }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'cancel' | 'force' | 'interrupt' | 'terminate' | 'suppress' }
  | { readonly do: 'the launch goes on' | 'the child ends' | 'the disk answers' | 'hooks answer' }

const setting: fc.Arbitrary<Setting> = fc.record({
  candidates: fc.array(
    fc.record({
      launch: fc.constantFrom(...LAUNCHES),
      strength: fc.constantFrom(...STRENGTHS),
      hasChild: fc.boolean(),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  rule: fc.constantFrom('default', 'default', 'always', 'never', 'throws', 'promises'),
  finalize: fc.constantFrom('none', 'returns', 'throws', 'hangs'),
  deliver: fc.constantFrom('none', 'returns', 'throws once', 'hangs once', 'cancels'),
})

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('exit' as const), exitCode: fc.constantFrom(0, 1, null) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.constantFrom(1, 100, 2 * S, 6 * S, 40 * S),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'cancel',
        'cancel',
        'cancel',
        'force',
        'interrupt',
        'interrupt',
        'terminate',
        'suppress',
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'the launch goes on',
        'the launch goes on',
        'the child ends',
        'the disk answers',
        'hooks answer',
      ),
    }),
  },
)

const notThere = (): Error => new Error('not there')

const behaviourOf = ({ launch, strength }: Candidate): Behaviour => ({
  ...(launch === 'works' ? {} : { launch: launch === 'fails' ? notThere() : ('hangs' as const) }),
  ...(launch === 'hangs and fails' ? { thenFails: notThere() } : {}),
  diesOf: { 'dies of TERM': ['SIGTERM', 'SIGKILL'], 'dies of KILL': ['SIGKILL'], 'never dies': [] }[
    strength
  ] as NonNullable<Behaviour['diesOf']>,
})

const RULES = {
  default: undefined,
  always: () => true,
  never: () => false,
  throws: () => {
    throw new Error('no idea')
  },
  promises: () => Promise.reject(new Error('no idea')) as unknown as boolean,
} as const

const specOf = ({ candidates, rule }: Setting): Partial<RunSpec> => {
  const when = RULES[rule]
  return {
    stop: { termGraceMs: 2 * S, killGraceMs: S },
    ...(candidates.length === 1
      ? {}
      : {
          fallback: {
            candidates: candidates
              .slice(1)
              .map((_, index) => ({ command: [`candidate-${String(index + 2)}`] })),
            ...(when === undefined ? {} : { when }),
          },
        }),
  }
}

// ── what must hold ──────────────────────────────────────────────────────────────────────────────

/** Keeps by itself what was asked for, what was done, and what was said. */
class Witness {
  readonly deliveries: Delivery[] = []
  readonly #simulated: SimulatedRun
  readonly #setting: Setting
  /** What was found where a throw would be taken for someone else's. */
  readonly #faults: unknown[] = []
  readonly #launched = new Set<number>()
  readonly #answers: { answer: () => void }[] = []
  #isIntentOnRecord = false
  #recorded: 'cancel' | 'interrupt' | null = null
  #outcomes = 0
  #outcome = ''
  #isDeliveryOver = false
  #finalizes = 0

  constructor(simulated: SimulatedRun, setting: Setting) {
    this.#simulated = simulated
    this.#setting = setting
    simulated.run.onTransition((transition) => {
      this.#note(() => {
        this.#follow(transition)
      })
      // F: it hurts nobody.
      throw new Error('a listener of the host')
    })
  }

  launching({ attempt }: LaunchSpec): void {
    this.#note(() => {
      const { run, processes } = this.#simulated
      expect(run.isEndWanted, 'an end was asked for before this launch').toBe(false)
      expect(this.#isIntentOnRecord, 'an intent is on record at this launch').toBe(false)
      expect(this.#launched.has(attempt), 'launched twice').toBe(false)
      expect(processes.executions.filter(({ size }) => size > 0).length, 'alive at a launch').toBe(0)
      this.#launched.add(attempt)
    })
  }

  hooksAnswer(): void {
    for (const { answer } of this.#answers) answer()
  }

  look(): void {
    if (this.#faults.length > 0) throw this.#faults[0]
    const { processes, run } = this.#simulated
    expect(processes.executions.filter(({ size }) => size > 0).length, 'executions alive').toBeLessThan(2)
    // INV-4: what is over or to end, and not confirmed, is being ended, or named.
    const { state } = run
    const isToEnd = state.isSettled || state.intent !== null
    if (isToEnd) expect(['alive', 'frozen', 'waiting']).not.toContain(state.process)
    if (state.process === 'confirmed') this.#assertAllConfirmed()
  }

  async over(store: StorePort): Promise<void> {
    this.look()
    const { run } = this.#simulated
    const { state } = run
    expect(this.#outcomes, 'outcomes').toBe(1)
    expect(state.outcome?.status, 'nobody lost sight of it').not.toBe('lost')
    expect(JSON.stringify(await run.outcome), 'the outcome that was promised').toBe(this.#outcome)
    expect(JSON.stringify(state.outcome), 'the outcome in the end').toBe(this.#outcome)
    if (this.#recorded !== null) {
      const status = { cancel: 'cancelled', interrupt: 'interrupted' }[this.#recorded]
      expect(state.outcome?.status, 'what was ordered in time').toBe(status)
    }
    await this.#assertDelivered(store)
  }

  async #assertDelivered(store: StorePort): Promise<void> {
    const { run } = this.#simulated
    const isSuppressed = run.state.delivery === 'suppressed'
    const result = await store.resultOf(run.id)
    expect(result?.deliveryId).toBe(`${run.id}/result`)
    expect(result?.body, 'the outcome on record').toBe(this.#outcome)
    for (const { deliveryId, outcome } of this.deliveries) {
      expect(deliveryId, 'delivery id').toBe(`${run.id}/result`)
      expect(JSON.stringify(outcome), 'the outcome that was delivered').toBe(this.#outcome)
    }
    if (this.#setting.deliver === 'none' || isSuppressed) expect(result?.acknowledgedAt).toBeNull()
    else expect(this.deliveries.length, 'deliveries').toBeGreaterThan(0)
    expect(this.#finalizes, 'finalized').toBeLessThan(2)
  }

  #assertAllConfirmed(): void {
    const { run, processes } = this.#simulated
    const evident = new Set(run.state.evidence.map(({ attempt }) => attempt))
    for (const attempt of this.#launched)
      expect(evident.has(attempt), `evidence of attempt ${String(attempt)}`).toBe(true)
    for (const { size } of processes.executions) expect(size, 'alive in a confirmed run').toBe(0)
  }

  finalize(how: Setting['finalize']): unknown {
    this.#finalizes += 1
    if (how === 'throws') throw new Error('finalize')
    return how === 'hangs' ? this.#held() : 'made of it'
  }

  delivering(delivery: Delivery): void {
    this.deliveries.push(delivery)
    this.#note(() => {
      expect(this.#outcome, 'delivered before it was on record').not.toBe('')
      expect(this.#isDeliveryOver, 'delivered again').toBe(false)
    })
  }

  deliver(how: Setting['deliver']): unknown {
    if (how === 'cancels') void this.#simulated.run.post({ type: 'run.cancel', ...order, force: false })
    if (this.deliveries.length > 1) return undefined
    if (how === 'throws once') throw new Error('deliver')
    return how === 'hangs once' ? this.#held() : undefined
  }

  #held(): Promise<void> {
    return new Promise((resolve) => this.#answers.push({ answer: resolve }))
  }

  #note(look: () => void): void {
    try {
      look()
    } catch (fault) {
      this.#faults.push(fault)
    }
  }

  #follow({ event, before, after }: Transition): void {
    const { intent, outcome } = after.context as RunContext
    const was = before?.context as RunContext | undefined
    this.#isIntentOnRecord ||= intent !== null
    if (
      was !== undefined &&
      was.outcome === null &&
      (intent?.kind === 'cancel' || intent?.kind === 'interrupt')
    )
      this.#recorded = intent.kind
    if (outcome !== null && was?.outcome === null) {
      this.#outcomes += 1
      this.#outcome = JSON.stringify(outcome)
    }
    if (event.type === 'delivery.acknowledged' || event.type === 'run.suppress') {
      const { delivery } = after.value as { delivery: string }
      this.#isDeliveryOver ||= delivery === 'delivered' || delivery === 'suppressed'
    }
  }
}

// ── the play ────────────────────────────────────────────────────────────────────────────────────

const order = { by: 'tester', reason: 'over' }

const proxied = <T extends object, K extends keyof T>(target: T, name: K, member: T[K]): T =>
  new Proxy(target, {
    get: (of, asked) => (asked === name ? member : (Reflect.get(of, asked) as unknown)),
    set: (of, asked, value) => Reflect.set(of, asked, value),
  })

/** One script on one run. */
const play = async (
  base: SimulatedStore,
  given: Setting,
  steps: readonly Step[],
  s: Scheduler,
): Promise<void> => {
  let isScheduled = true
  /** Its turn comes when the scheduler says so. */
  const turnOf = (label: string): Promise<unknown> =>
    isScheduled ? s.schedule(Promise.resolve(label), label) : Promise.resolve()
  const readable = proxied(base, 'resultOf', async (runId: string) => {
    await turnOf('read')
    return base.resultOf(runId)
  })
  const store = proxied(readable, 'commit', async (...args: Parameters<StorePort['commit']>) => {
    // A run that is not on record in time does not begin, which is no matter here.
    if (args[0].every(({ expectedRev }) => expectedRev !== null)) await turnOf('commit')
    return base.commit(...args)
  })
  const met: { simulated?: SimulatedRun; witness?: Witness } = {}
  const witnessed = (): Witness => met.witness as Witness
  const delivery: Partial<DeliveryHooks> = {
    ...(given.finalize === 'none'
      ? {}
      : { finalize: () => turnOf('finalize').then(() => witnessed().finalize(given.finalize)) }),
    ...(given.deliver === 'none'
      ? {}
      : {
          deliver: (what) => {
            witnessed().delivering(what)
            return turnOf('deliver').then(() => witnessed().deliver(given.deliver))
          },
        }),
  }
  const starting = startSimulatedRun(store, specOf(given), {
    delivery,
    meet: (simulated) => {
      met.simulated = simulated
      const witness = (met.witness = new Witness(simulated, given))
      const { processes } = simulated
      processes.next.push(...given.candidates.map(behaviourOf))
      const launch = processes.launch.bind(processes)
      processes.launch = async (spec) => {
        witness.launching(spec)
        await turnOf('launch')
        const execution = await launch(spec)
        if (given.candidates[spec.attempt - 1]?.hasChild === true) execution.spawn('child')
        return execution
      }
    },
  })
  const simulated = met.simulated as SimulatedRun
  const witness = witnessed()
  const script = s.scheduleSequence(
    steps.map((one) => ({ builder: () => act(simulated, witness, one), label: one.do })),
  )
  await drain(s, witness)
  await starting
  expect(script.faulty, 'a step failed').toBe(false)
  isScheduled = false
  await end(simulated, witness)
  witness.hooksAnswer()
  await turns(FEW)
  await witness.over(base)
  await simulated.end()
  expect(simulated.clock.armed, 'timers').toBe(0)
}

/** Until nothing waits for its turn any more, also of what the last one led to. */
const drain = async (s: Scheduler, witness: Witness): Promise<void> => {
  await turns(FEW)
  while (s.count() > 0) {
    await s.waitNext(1)
    await turns(FEW)
    witness.look()
  }
}

const act = async ({ run, processes, clock }: SimulatedRun, witness: Witness, one: Step): Promise<void> => {
  const current = processes.executions.at(-1)
  switch (one.do) {
    case 'exit':
      current?.exit(one.exitCode, one.exitCode === null ? 'SIGSEGV' : null)
      return
    case 'advance':
      // Not awaited: what becomes due waits for its turn like everything else.
      void clock.advance(one.ms)
      await Promise.resolve()
      return
    case 'cancel':
    case 'force':
      void run.post({ type: 'run.cancel', ...order, force: one.do === 'force' })
      return
    case 'terminate':
      // Of a run whose work is open it is refused at the door (ending.ts).
      if (run.state.isSettled) void run.post({ type: 'run.terminate', ...order, force: false })
      return
    case 'interrupt':
    case 'suppress':
      void run.post({ type: `run.${one.do}`, ...order, force: false })
      return
    case 'the launch goes on':
      processes.goOn()
      return
    case 'the child ends':
      current?.endOther()
      return
    case 'the disk answers':
      if (current !== undefined) current.diesOf = ['SIGTERM', 'SIGKILL']
      return
    case 'hooks answer':
      witness.hooksAnswer()
  }
}

/** Ends whatever is left: every disk answers, every launch goes on, and time passes. */
const end = async ({ run, processes, clock }: SimulatedRun, witness: Witness): Promise<void> => {
  processes.next.length = 0
  for (let round = 0; !run.state.isDone; round += 1) {
    if (round > 60) throw new Error(`it does not end: ${JSON.stringify(run.state)}`)
    processes.goOn()
    for (const execution of processes.executions) execution.diesOf = ['SIGTERM', 'SIGKILL']
    if (!run.isEndWanted && !run.state.isSettled) void run.post({ type: 'run.cancel', ...order, force: true })
    if (round > 3) witness.hooksAnswer()
    await turns(FEW)
    await clock.advance(round < 4 ? 100 : 30 * S)
    witness.look()
  }
}

it('INV-7, INV-8, INV-12, INV-3, INV-4, P11, P19: for any candidates, exits, cancels, failed kills and hooks, in any order', async () => {
  let store = await openSimulatedStore()
  let count = 0
  try {
    await fc.assert(
      fc.asyncProperty(
        setting,
        fc.array(step, { maxLength: 10, size: 'max' }),
        fc.scheduler(),
        async (given, steps, s) => {
          count += 1
          if (count % RUNS_PER_STORE === 0) {
            await store.close()
            store = await openSimulatedStore()
          }
          await play(store, given, steps, s)
        },
      ),
      propertyParameters(200, 'RUNWARDEN_CANCEL_SCRIPTS'),
    )
  } finally {
    await store.close()
  }
}, 3_600_000)
