/**
 * Whatever agents, hosts, clocks and stores do, in any order: a run that works is not failed, and one that does not is not forgotten.
 *
 * A script of steps is played on one run, over simulated processes and a real store, and a witness keeps by itself what must hold.
 * `RUNWARDEN_PROPERTY_RUNS` sets how many scripts are played; a failure prints its seed, and the shortest script that fails.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Transition } from '../../src/actors/actor-role.js'
import type { ActorWrite, StorePort } from '../../src/actors/store.ports.js'
import type { TurnEnd } from '../../src/actors/turn-end.js'
import type { RunContext } from '../../src/machines/run/run.context.js'
import type { RunSpec } from '../../src/index.js'
import { turns } from '../../src/testing/simulated-clock.js'
import { propertyParameters } from '../support/property.js'
import { conversational, line, single } from '../../src/testing/simulated-agent.js'
import { drive, startSimulatedRun } from '../support/simulated-engine.js'
import type { SimulatedRun } from '../support/simulated-engine.js'
import type { SimulatedExecution } from '../../src/testing/simulated-execution.js'
import { busy, openSimulatedStore } from '../../src/testing/simulated-store.js'
import type { SimulatedStore } from '../../src/testing/simulated-store.js'

const S = 1_000
const LIMITS = {
  neverStartedMs: 8 * S,
  advisoryMs: 6 * S,
  stalledMs: 15 * S,
  stalledToolMs: 20 * S,
  completionSignalMs: 12 * S,
  sleepGapMs: 3 * S,
}
/** The least silence that leads to a state. */
const LIMIT_OF = {
  'failed-never-started': LIMITS.neverStartedMs,
  'failed-stalled': LIMITS.stalledMs,
  'stalled-advisory': LIMITS.advisoryMs,
}
/** What was not taken is asked again in a second, and a store that answers again within another; both may come twice. */
const SLACK_MS = 5 * S

// ── what can happen ─────────────────────────────────────────────────────────────────────────────

const PROGRESS = ['work', 'tool-open', 'ask'] as const
/** Progress or not, by what was seen before. */
const MAYBE = ['tool-update', 'tool-close', 'answer'] as const
const NO_PROGRESS = ['usage', 'nova', 'signal', 'retry', 'heard', 'done-older'] as const
const ENDS = ['done', 'failed', 'cancelled'] as const
const FRAMES = [...PROGRESS, ...PROGRESS, ...PROGRESS, ...MAYBE, ...MAYBE, ...NO_PROGRESS, ...ENDS]
type FrameName = (typeof FRAMES)[number]

const OWNERS = ['user', 'machine'] as const
const HOST = ['prompt', 'prompt', 'prompt', 'steer', 'steer', 'cancelTurn', 'cancelTurn', 'finish'] as const
const STOPS = ['cancel', 'interrupt', 'force'] as const
const WORLD = [
  'busy',
  'hold',
  'answering',
  'answering',
  'answering',
  'launch goes on',
  'burn',
  'leave a child',
] as const

type Step =
  | { readonly do: 'frame'; readonly frame: FrameName }
  /** An execution that is over, or being swept, still says something. */
  | { readonly do: 'late'; readonly frame: FrameName }
  /** A frame in the very moment in which a deadline passes, before anything was recorded of it. */
  | { readonly do: 'advance and say'; readonly s: number; readonly frame: FrameName }
  | { readonly do: 'advance' | 'sleep' | 'busy for'; readonly s: number }
  | { readonly do: 'pause' | 'resume'; readonly owner: (typeof OWNERS)[number] }
  | { readonly do: 'exit'; readonly exitCode: number }
  | { readonly do: (typeof HOST)[number] | (typeof STOPS)[number] | (typeof WORLD)[number] }

const frame = fc.constantFrom(...FRAMES)
const seconds = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 1, arbitrary: fc.integer({ min: 4, max: 21 }) },
)
const owner = fc.constantFrom(...OWNERS)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 20, arbitrary: fc.record({ do: fc.constant('frame' as const), frame }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('advance' as const), s: seconds }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('advance and say' as const), s: seconds, frame }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('busy for' as const), s: seconds }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('late' as const), frame }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('sleep' as const), s: fc.integer({ min: 7, max: 900 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pause' as const), owner }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('resume' as const), owner }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constantFrom(...HOST) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom(...WORLD) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('exit' as const), exitCode: fc.constantFrom(0, 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom(...STOPS) }) },
)

interface Setting {
  readonly talks: 'one by one' | 'once' | 'never'
  readonly hasPrompt: boolean
  readonly candidates: number
  readonly isStallFatal: boolean
  readonly launch: 'works' | 'hangs' | 'fails'
  readonly isStubborn: boolean
}

const setting: fc.Arbitrary<Setting> = fc.record({
  talks: fc.constantFrom('one by one', 'one by one', 'once', 'never'),
  hasPrompt: fc.boolean(),
  candidates: fc.integer({ min: 1, max: 2 }),
  isStallFatal: fc.boolean(),
  launch: fc.constantFrom(...Array.from({ length: 8 }, () => 'works' as const), 'hangs', 'fails'),
  isStubborn: fc.boolean(),
})

const specOf = ({ talks, hasPrompt, candidates, isStallFatal }: Setting): Partial<RunSpec> => ({
  protocol: talks === 'never' ? single() : conversational(),
  oneShot: talks === 'once',
  ...(talks !== 'never' && (hasPrompt || talks === 'once') ? { prompt: 'first' } : {}),
  ...(candidates === 1 ? {} : { fallback: { candidates: [{ command: ['other'] }] } }),
  watchdog: isStallFatal ? LIMITS : { ...LIMITS, stalledMs: false, stalledToolMs: false },
  turnCancelMs: 4 * S,
  stop: { termGraceMs: 2 * S, killGraceMs: S },
})

// ── what must hold ──────────────────────────────────────────────────────────────────────────────

/** How much silence has counted since the last thing that ends one: at least and at most. */
interface Silence {
  leastMs: number
  mostMs: number
}

interface Prompt {
  readonly text: string
  readonly ends: TurnEnd[]
}

const isOneOf = (names: readonly FrameName[], name: FrameName): boolean => names.includes(name)

/** The agent of one execution, as far as it can tell by itself. */
interface Agent {
  readonly execution: SimulatedExecution
  /** The turn of each prompt it was given, by the id of its command. */
  readonly turns: Map<string, number>
  /** The one it is at. */
  open: { readonly id: string; readonly generation: number } | null
  tools: number
}

class Witness {
  readonly prompts: Prompt[] = []
  readonly agents: Agent[] = []
  /** Calls that wait for the end of a turn. */
  awaited = 0
  isStoreWell = true
  readonly silence: Silence = { leastMs: 0, mostMs: 0 }
  readonly #simulated: SimulatedRun
  readonly #isDriven: boolean
  readonly #progressed = new Set<number>()
  readonly #advised = new Map<number, 'raised' | 'withdrawn'>()
  /** What was found where a throw would be taken for someone else's. */
  readonly #faults: unknown[] = []
  /** The advisory stands although its agent is at work again. */
  #isWithdrawalDue = false
  #settled = 0
  #turn = ''

  constructor(simulated: SimulatedRun, isDriven: boolean) {
    this.#simulated = simulated
    this.#isDriven = isDriven
    simulated.run.onTransition((transition) => {
      this.#note(() => {
        this.#follow(transition)
      })
    })
  }

  get agent(): Agent | undefined {
    return this.agents.at(-1)
  }

  /** (a) What goes to the store. Asked at the last moment at which it can still be taken back. */
  committing(writes: readonly ActorWrite[]): void {
    this.#note(() => {
      for (const write of writes) if (write.actor === this.#simulated.run.id) this.#assertTimely(write)
    })
  }

  /** A frame of the agent that is there now. */
  said(frame: FrameName): void {
    const { agent } = this
    const { context } = this.#simulated.run
    if (agent?.open == null || !agent.execution.isAlive) return
    const isOfTurn = agent.open.generation === context.generation && this.agents.length === context.attempt
    if (!isOneOf(NO_PROGRESS, frame)) this.silence.leastMs = 0
    if (isOfTurn && isOneOf(PROGRESS, frame)) {
      this.#progressed.add(context.generation)
      this.#isWithdrawalDue ||= this.#advised.get(context.generation) === 'raised'
      this.#anew()
    }
    if (isOneOf(ENDS, frame)) agent.open = null
  }

  steered(): void {
    this.#anew()
  }

  prompted(ended: Promise<TurnEnd>): void {
    const { run } = this.#simulated
    const ends: TurnEnd[] = []
    this.prompts.push({ text: `prompt ${String(this.prompts.length)}`, ends })
    void ended.then((end) => {
      ends.push(end)
      this.#note(() => {
        const isOver = run.isEndWanted || run.state.isSettled
        expect(end.status !== 'abandoned' || isOver, 'abandoned by a run that goes on').toBe(true)
      })
    })
  }

  pass(ms: number, leastMs = ms): void {
    const { state, context } = this.#simulated.run
    if (context.freeze !== null || context.openQuestions > 0) return
    this.silence.mostMs += ms
    const isWatched = context.executionAttempt === context.attempt && state.intent === null
    if (isWatched && this.isStoreWell) this.silence.leastMs += leastMs
  }

  /** After every step, when everything that was ready has happened. */
  look(): void {
    if (this.#faults.length > 0) throw this.#faults[0]
    const { run, processes, errors } = this.#simulated
    for (const execution of processes.executions.slice(this.agents.length)) {
      const open = this.#isDriven ? null : { id: '', generation: run.context.generation }
      this.agents.push({ execution, turns: new Map(), open, tools: 0 })
      this.silence.leastMs = 0
    }
    this.#readPrompts()
    const { attempt, generation } = run.context
    const turn = `${String(attempt)} ${String(generation)}`
    if (turn !== this.#turn) this.#anew()
    this.#turn = turn
    expect(errors, 'logged as an error').toEqual([])
    expect(this.agents.filter(({ execution }) => execution.size > 0).length, 'trees at once').toBeLessThan(2)
    this.#assertGiven()
    this.#assertNotForgotten()
    this.#assertNotices()
  }

  /** When the run is over, and before its engine lets go of it. */
  over(): void {
    const { run } = this.#simulated
    expect(run.state).toMatchObject({ isSettled: true, isConfirmed: true })
    expect(this.#settled, 'outcomes').toBe(1)
    expect(this.awaited, 'calls that nobody answered').toBe(0)
    for (const { text, ends } of this.prompts) expect(ends.length, `ends of prompt ${text}`).toBe(1)
    const generations = this.prompts.flatMap(({ ends }) =>
      ends.filter(({ status }) => status !== 'abandoned').map((end) => end.generation),
    )
    expect(new Set(generations).size, 'turns of prompts').toBe(generations.length)
    expect(
      [...generations].sort((a, b) => a - b),
      'the order of prompts',
    ).toEqual(generations)
    expect([...this.#advised.values()], 'advisories').not.toContain('raised')
  }

  async left(store: StorePort): Promise<void> {
    const { run, clock } = this.#simulated
    const notices = await store.noticesOf(run.id)
    const standing = notices.filter(
      ({ kind, withdrawnAt }) => kind === 'advisory' && withdrawnAt === undefined,
    )
    expect(standing, 'advisories on record that stand').toEqual([])
    expect(clock.armed, 'timers').toBe(0)
  }

  #note(look: () => void): void {
    try {
      look()
    } catch (fault) {
      this.#faults.push(fault)
    }
  }

  #assertTimely({ journal, snapshot }: ActorWrite): void {
    const { generation } = (JSON.parse(snapshot) as { context: RunContext }).context
    for (const [state, limitMs] of Object.entries(LIMIT_OF)) {
      if (!journal.to.includes(state) || journal.from.includes(state)) continue
      const name = `${state} in turn ${String(generation)}`
      expect(this.silence.mostMs, `${name} before its time`).toBeGreaterThanOrEqual(limitMs)
      if (state === 'failed-never-started')
        expect(this.#progressed.has(generation), `${name} after progress in it`).toBe(false)
    }
  }

  #anew(): void {
    this.silence.leastMs = 0
    this.silence.mostMs = 0
  }

  #readPrompts(): void {
    const { agent } = this
    if (agent === undefined) return
    const commands = agent.execution.input.map((text) => JSON.parse(text) as { type: string; id: string })
    const { generation } = this.#simulated.run.context
    for (const { type, id } of commands) {
      if (type !== 'prompt' || agent.turns.has(id)) continue
      agent.turns.set(id, generation)
      agent.open = { id, generation }
      agent.tools = 0
      this.#anew()
    }
  }

  /** A turn that is open is one that the agent has, if there is one to have it. */
  #assertGiven(): void {
    const { run } = this.#simulated
    const { context, state } = run
    const isThere = state.process === 'alive' && context.executionAttempt === context.attempt
    if (!this.#isDriven || !isThere || state.work !== 'open.accepted' || this.silence.leastMs < SLACK_MS)
      return
    expect([...(this.agent?.turns.values() ?? [])], 'the turns that the agent has').toContain(
      context.generation,
    )
  }

  /** (b) Nobody is left open past a limit, unless it is held, or the store could not record it. */
  #assertNotForgotten(): void {
    const { run } = this.#simulated
    const { work } = run.state
    const { leastMs } = this.silence
    const { generation } = run.context
    const limit = (ms: number): number => ms + SLACK_MS
    if (work === 'open.accepted') {
      expect(leastMs, `silence of turn ${String(generation)} that has not started`).toBeLessThan(
        limit(LIMITS.neverStartedMs),
      )
    }
    if (work === 'open.active.progressing' && !this.#advised.has(generation)) {
      expect(leastMs, 'silence without an advisory').toBeLessThan(limit(LIMITS.advisoryMs))
    }
    if (!work.startsWith('open.active') || run.environment.watchdog?.stalledMs == null) return
    // A tool at work may take longer, and one that was at work in the end as long again.
    const hasTool = run.turns.activity.openTools.length > 0 || (this.agent?.tools ?? 0) > 0
    const stalledMs = hasTool ? 3 * LIMITS.stalledToolMs : LIMITS.stalledMs
    expect(leastMs, 'silence of a stalled turn').toBeLessThan(limit(stalledMs))
  }

  #assertNotices(): void {
    const { state, context } = this.#simulated.run
    const stands = state.work === 'open.active.stalled-advisory'
    expect(this.#advised.get(context.generation) === 'raised', 'the advisory of the turn stands').toBe(stands)
    if (this.#isWithdrawalDue) expect(this.silence.leastMs, 'time to withdraw it').toBeLessThan(SLACK_MS)
  }

  #follow({ event, before, after, effects }: Transition): void {
    const { attempt, generation, outcome } = after.context as RunContext
    const was = before?.context as RunContext | undefined
    if (outcome !== null && was?.outcome === null) this.#settled += 1
    // (d) Each turn, and each attempt at one, has the next number.
    const isNew = event.type === 'turn.started' || attempt !== was?.attempt
    if (was !== undefined) expect(generation, 'generation').toBe(was.generation + (isNew ? 1 : 0))
    for (const { type, params } of effects) {
      const notice = params as { kind: string; generation: number }
      if (type === 'notice.raise' && notice.kind === 'advisory') {
        expect(this.#advised.has(notice.generation), 'a second advisory of one turn').toBe(false)
        this.#advised.set(notice.generation, 'raised')
      }
      if (type === 'notice.withdraw') {
        expect(this.#advised.get(notice.generation), 'the notice that is withdrawn').toBe('raised')
        this.#advised.set(notice.generation, 'withdrawn')
        this.#isWithdrawalDue = false
      }
    }
  }
}

// ── the play ────────────────────────────────────────────────────────────────────────────────────

/** A store that shows what goes into it. */
const watched = (
  store: SimulatedStore,
  committing: (writes: readonly ActorWrite[]) => void,
): SimulatedStore =>
  new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown
      if (name !== 'commit') return member
      return (...args: Parameters<StorePort['commit']>) => {
        committing(args[0])
        return (member as StorePort['commit'])(...args)
      }
    },
  })

class Play {
  readonly #store: SimulatedStore
  readonly #simulated: SimulatedRun
  readonly #witness: Witness
  #release: (() => void) | null = null

  private constructor(store: SimulatedStore, simulated: SimulatedRun, witness: Witness) {
    this.#store = store
    this.#simulated = simulated
    this.#witness = witness
  }

  static async begin(store: SimulatedStore, setting: Setting): Promise<Play> {
    const witnesses: Witness[] = []
    const shown = watched(store, (writes) => {
      for (const witness of witnesses) witness.committing(writes)
    })
    const { launch, isStubborn } = setting
    const ofLaunch = {
      works: {},
      hangs: { launch: 'hangs' },
      fails: { launch: new Error('not there') },
    } as const
    const behaviour = isStubborn ? { diesOf: [] } : {}
    const simulated = await startSimulatedRun(shown, specOf(setting), {
      behaviour: { ...behaviour, ...ofLaunch[launch] },
      meet: (met) => witnesses.push(new Witness(met, setting.talks !== 'never')),
    })
    simulated.processes.behaviour = behaviour
    const play = new Play(store, simulated, witnesses[0] as Witness)
    witnesses[0]?.look()
    return play
  }

  async all(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      await this.#do(step)
      await turns()
      this.#witness.look()
    }
  }

  async end(): Promise<void> {
    const { run, processes, clock, end } = this.#simulated
    this.#answering()
    processes.behaviour = {}
    processes.goOn()
    await turns()
    for (const execution of processes.executions) execution.diesOf = ['SIGTERM', 'SIGKILL']
    void run.post({ type: 'run.cancel', by: 'tester', reason: 'over', force: true })
    await drive(clock, run.gone)
    await turns()
    this.#witness.look()
    this.#witness.over()
    await end()
    await this.#witness.left(this.#store)
  }

  #busy(): void {
    this.#store.trouble = busy()
    this.#witness.isStoreWell = false
  }

  #answering(): void {
    this.#store.trouble = null
    this.#release?.()
    this.#release = null
    this.#witness.isStoreWell = true
  }

  async #do(step: Step): Promise<void> {
    const { run, clock, processes } = this.#simulated
    const { agent } = this.#witness
    switch (step.do) {
      case 'frame':
        this.#say(step.frame)
        return
      case 'late':
        for (const { execution } of this.#witness.agents.slice(0, -1)) execution.say(line(step.frame))
        return
      case 'advance':
        await this.#pass(step.s)
        return
      case 'advance and say': {
        await this.#pass(step.s - 1)
        this.#witness.pass(S)
        const passing = clock.advance(S)
        for (let microtask = 0; microtask < 20; microtask += 1) await Promise.resolve()
        this.#say(step.frame)
        await passing
        return
      }
      case 'sleep':
        // Of a sleep that is noticed at most what was left of a wait counts.
        this.#witness.pass(step.s * S > 2 * LIMITS.sleepGapMs ? LIMITS.sleepGapMs : step.s * S, 0)
        await clock.jump(step.s * S)
        return
      case 'pause':
        void run.post({ type: 'run.pause', owner: step.owner })
        return
      case 'resume':
        void run.post({ type: 'run.resume', owner: step.owner })
        return
      case 'exit':
        agent?.execution.exit(step.exitCode)
        return
      case 'launch goes on':
        processes.goOn()
        return
      case 'burn':
        if (agent !== undefined) agent.execution.burn(agent.execution.spawn('tool'), 10 * S)
        return
      case 'leave a child':
        agent?.execution.spawn('left over')
        return
      case 'busy':
        this.#busy()
        return
      case 'busy for':
        this.#busy()
        await this.#pass(step.s)
        this.#answering()
        return
      case 'hold':
        this.#release ??= this.#store.hold()
        this.#witness.isStoreWell = false
        return
      case 'answering':
        this.#answering()
        return
      case 'cancel':
      case 'interrupt':
      case 'force':
        void run.post({
          type: step.do === 'interrupt' ? 'run.interrupt' : 'run.cancel',
          by: 'tester',
          reason: step.do,
          force: step.do === 'force',
        })
        return
      default:
        this.#ask(step.do)
    }
  }

  /** Second by second, so that the witness is right at every moment. */
  async #pass(count: number): Promise<void> {
    for (let second = 0; second < count; second += 1) {
      this.#witness.pass(S)
      await this.#simulated.clock.advance(S)
      this.#witness.look()
    }
  }

  #say(name: FrameName): void {
    const { agent } = this.#witness
    if (agent?.execution.isAlive !== true || agent.execution.isFrozen) return
    const text = this.#lineOf(name, agent)
    this.#witness.said(name)
    agent.execution.say(text)
  }

  #lineOf(name: FrameName, agent: Agent): string {
    const { open } = agent
    const prompt = open === null || open.id === '' ? {} : { prompt: open.id }
    switch (name) {
      case 'done':
      case 'failed':
        return line({ type: 'done', ...prompt, isOk: name === 'done', text: name })
      case 'cancelled':
        return line({ type: 'cancelled', ...prompt })
      case 'done-older': {
        const [oldest] = agent.turns.keys()
        return oldest === undefined || oldest === open?.id
          ? line('usage')
          : line({ type: 'done', prompt: oldest })
      }
      case 'tool-open':
        agent.tools += 1
        return line({ type: name, id: `tool-${String(agent.tools)}`, title: 'Bash' })
      case 'tool-update':
        return line({ type: name, id: `tool-${String(agent.tools)}`, output: 'the same' })
      case 'tool-close':
        return line({ type: name, id: `tool-${String(agent.tools)}` })
      default:
        return line({ type: name, id: 'it' })
    }
  }

  #ask(what: (typeof HOST)[number]): void {
    const { run } = this.#simulated
    try {
      if (what === 'prompt') this.#prompt()
      else if (what === 'steer') this.#steer()
      else if (what === 'cancelTurn') this.#cancelTurn()
      else run.turns.finish()
    } catch (error) {
      // A run that is over, or knows no turns, says so.
      expect(error).toMatchObject({ code: 'refused' })
    }
  }

  #prompt(): void {
    this.#witness.prompted(this.#simulated.run.turns.prompt('do it'))
  }

  #cancelTurn(): void {
    const answered = (): void => {
      this.#witness.awaited -= 1
    }
    this.#witness.awaited += 1
    this.#simulated.run.turns.cancelTurn().then(answered, answered)
  }

  #steer(): void {
    this.#simulated.run.turns.steer('more')
    this.#witness.steered()
  }
}

it('K4, K5, K7, K8, K9, K11, INV-9, INV-12: for any order of frames, time, prompts, pauses, stops and troubles of the store', async () => {
  const store = await openSimulatedStore()
  try {
    await fc.assert(
      fc.asyncProperty(setting, fc.array(step, { maxLength: 40, size: 'max' }), async (given, steps) => {
        const play = await Play.begin(store, given)
        const faults: unknown[] = []
        const note = (fault: unknown): void => void faults.push(fault)
        await play.all(steps).catch(note)
        // Whatever it was, nothing of it is left for the next script.
        await play.end().catch(note)
        if (faults.length > 0) throw faults[0]
      }),
      propertyParameters(200),
    )
  } finally {
    await store.close()
  }
}, 600_000)
