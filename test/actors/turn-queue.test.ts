/** The prompts of one run, over the real run chart: which is whose turn, and how each ends. */
import { describe, expect, it } from 'vitest'
import type { AnyMachineSnapshot } from 'xstate'
import type { Transition } from '../../src/actors/actor-role.js'
import { firstStep, isIdle, nextStep } from '../../src/actors/step.js'
import type { TurnEnd } from '../../src/actors/turn-end.js'
import { PROMPTS_WAITING_MAX, TurnQueue } from '../../src/actors/turn-queue.js'
import type { RunContext, RunPolicy } from '../../src/machines/run/run.context.js'
import { runMachine } from '../../src/machines/run/run.machine.js'
import { plainPolicy } from '../support/policy.js'

const POLICY = { ...plainPolicy, isInteractive: true, isDriven: true, hasPrompt: true }
const ORDER = { by: 'tester', reason: 'enough', force: false }
const FAILED_LAUNCH = { type: 'process.launch-failed', code: 'ENOENT', message: 'not there' }

type Event = Readonly<Record<string, unknown>> & { readonly type: string }

/** A queue, and the run that it belongs to: the chart alone, without a mailbox. */
class Queued {
  readonly queue: TurnQueue
  readonly started: number[] = []
  readonly ends: (readonly [string, TurnEnd])[] = []
  finishes = 0
  /** Whether `turn.started` is taken. */
  isTaking = true
  starts = 0
  #snapshot: AnyMachineSnapshot

  constructor(policy: Partial<RunPolicy> = {}) {
    const whole = { ...POLICY, ...policy }
    this.#snapshot = firstStep(runMachine, { policy: whole }).snapshot
    this.queue = new TurnQueue(
      {
        startTurn: async () => {
          this.starts += 1
          // A loop of microtasks would never let the test fail.
          if (this.starts > 100) throw new Error('a hot loop')
          await Promise.resolve()
          return this.isTaking && this.post({ type: 'turn.started' })
        },
        finish: () => {
          this.finishes += 1
        },
      },
      whole.hasPrompt ? 'first' : undefined,
    )
    this.#follow(null, this.#snapshot, { type: 'run.accepted' })
    if (whole.hasPrompt) this.#note('first', this.queue.ended)
  }

  get context(): RunContext {
    return this.#snapshot.context as RunContext
  }

  /** Of the turn that is open. */
  get turn(): { readonly attempt: number; readonly generation: number } {
    const { attempt, generation } = this.context
    return { attempt, generation }
  }

  post(event: Event): boolean {
    const before = this.#snapshot
    const step = nextStep(runMachine, before, { ...event, at: 1 })
    if (isIdle(before, step)) return false
    this.#snapshot = step.snapshot
    this.#follow(before, step.snapshot, event)
    return true
  }

  prompt(text: string): void {
    this.#note(text, this.queue.add(text))
  }

  launched(): this {
    const { attempt } = this.context
    this.post({ type: 'run.admitted' })
    this.post({ type: 'process.launched', attempt })
    return this
  }

  complete(text = 'done', isOk = true): void {
    this.post({ type: 'turn.completed', ...this.turn, result: { isOk, text } })
  }

  #note(text: string, ended: Promise<TurnEnd> | null): void {
    void ended?.then((end) => this.ends.push([text, end]))
  }

  #follow(before: AnyMachineSnapshot | null, after: AnyMachineSnapshot, event: Event): void {
    const effects: Transition['effects'] = []
    this.queue.follow({ actor: 'r', kind: 'run', rev: 0, at: 1, event, before, after, effects })
  }
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
}

describe('the order of prompts', () => {
  it('K11: prompts have their turns one after the other, in order, each under a number of its own', async () => {
    const queued = new Queued().launched()
    for (const text of ['second', 'third', 'fourth']) queued.prompt(text)
    const given: (readonly [number, string | null])[] = []
    for (let turn = 0; turn < 4; turn += 1) {
      given.push([queued.turn.generation, queued.queue.textOf(queued.turn.generation)])
      queued.complete(`answer ${String(turn + 1)}`)
      await settle()
    }
    expect(given).toEqual([
      [1, 'first'],
      [2, 'second'],
      [3, 'third'],
      [4, 'fourth'],
    ])
    expect(queued.ends).toEqual([
      ['first', { generation: 1, status: 'completed', text: 'answer 1' }],
      ['second', { generation: 2, status: 'completed', text: 'answer 2' }],
      ['third', { generation: 3, status: 'completed', text: 'answer 3' }],
      ['fourth', { generation: 4, status: 'completed', text: 'answer 4' }],
    ])
  })

  it('K11: two prompts in one tick begin one turn', async () => {
    const queued = new Queued({ hasPrompt: false }).launched()
    queued.prompt('a')
    queued.prompt('b')
    await settle()
    expect(queued.starts).toBe(1)
    expect(queued.queue.waiting).toBe(1)
    expect(queued.queue.textOf(2)).toBe('a')
  })

  it('K11: nobody is given the prompt of a turn that is over, or not begun', async () => {
    const queued = new Queued().launched()
    queued.prompt('second')
    expect(queued.queue.textOf(2)).toBeNull()
    queued.complete()
    await settle()
    expect(queued.queue.textOf(1)).toBeNull()
    expect(queued.queue.textOf(2)).toBe('second')
  })

  it('K11: a completion of an older turn ends nothing', async () => {
    const queued = new Queued().launched()
    const { turn } = queued
    queued.prompt('second')
    queued.complete()
    await settle()
    expect(queued.post({ type: 'turn.completed', ...turn, result: { isOk: true } })).toBe(false)
    expect(queued.ends).toHaveLength(1)
    expect(queued.queue.textOf(2)).toBe('second')
  })

  it('INV-11: the queue has a maximum; past it a prompt is refused, and there is room again later', async () => {
    const queued = new Queued().launched()
    for (let prompt = 0; prompt < PROMPTS_WAITING_MAX; prompt += 1) queued.prompt(String(prompt))
    expect(() => queued.queue.add('one too many')).toThrow(/32 prompts wait already/)
    expect(queued.queue.waiting).toBe(PROMPTS_WAITING_MAX)
    queued.complete()
    await settle()
    queued.prompt('late')
    expect(queued.queue.waiting).toBe(PROMPTS_WAITING_MAX)
  })

  it('F: a turn that cannot be begun is tried again with the next transition, and not in a hot loop', async () => {
    const queued = new Queued({ hasPrompt: false }).launched()
    queued.isTaking = false
    queued.prompt('a')
    await settle()
    await settle()
    expect(queued.starts).toBe(1)
    expect(queued.queue.waiting).toBe(1)
    queued.isTaking = true
    queued.post({ type: 'run.pause', owner: 'user' })
    await settle()
    expect(queued.queue.textOf(2)).toBe('a')
  })
})

describe('the end of a prompt', () => {
  it('K11: what the agent calls a failure is one, with its words', async () => {
    const queued = new Queued().launched()
    queued.complete('no model', false)
    await settle()
    expect(queued.ends).toEqual([['first', { generation: 1, status: 'failed', text: 'no model' }]])
  })

  it('K10: a turn that was closed because its agent had said that it is done is completed', async () => {
    const queued = new Queued().launched()
    const stamp = { ...queued.turn, epoch: 1 }
    queued.post({ type: 'turn.progressed', ...queued.turn })
    queued.post({ type: 'watchdog.completion-silent', seen: stamp, current: stamp })
    await settle()
    expect(queued.ends).toEqual([['first', { generation: 1, status: 'completed' }]])
  })

  it.each([
    ['acknowledged', { type: 'turn.cancelled' }],
    ['the deadline', { type: 'turn.cancelled' }],
  ])('K13: a turn that was cancelled (%s) says so, and the next one begins', async (_, event) => {
    const queued = new Queued().launched()
    queued.prompt('second')
    queued.post({ type: 'turn.cancel' })
    await settle()
    expect(queued.ends).toEqual([])
    queued.post({ ...queued.turn, ...event })
    await settle()
    expect(queued.ends).toEqual([['first', { generation: 1, status: 'cancelled' }]])
    expect(queued.queue.textOf(2)).toBe('second')
  })

  it.each([true, false])(
    'K13: a turn that was cancelled before there was an agent is cancelled, not abandoned (interactive: %s)',
    async (isInteractive) => {
      const queued = new Queued({ isInteractive })
      queued.post({ type: 'turn.cancel' })
      await settle()
      expect(queued.ends).toEqual([['first', { generation: 1, status: 'cancelled' }]])
    },
  )

  it('K13: a turn that was to end when its agent died is cancelled, and not given to the next candidate', async () => {
    const queued = new Queued({ candidates: 2 }).launched()
    queued.post({ type: 'turn.cancel' })
    const { attempt } = queued.context
    const exit = { exitCode: 1, signal: null, isTreeEmpty: true, evidence: 'tree-reaped' }
    queued.post({ type: 'process.exited', attempt, ...exit, isFallbackEligible: true })
    await settle()
    expect(queued.ends).toEqual([['first', { generation: 1, status: 'cancelled' }]])
  })

  it('P9: the next candidate takes up the same prompt under a new number', async () => {
    const queued = new Queued({ candidates: 2 })
    queued.post({ type: 'run.admitted' })
    queued.post({ ...FAILED_LAUNCH, attempt: 1, isFallbackEligible: true })
    await settle()
    expect(queued.ends).toEqual([])
    expect(queued.turn).toEqual({ attempt: 2, generation: 2 })
    expect(queued.queue.textOf(1)).toBeNull()
    expect(queued.queue.textOf(2)).toBe('first')
    queued.launched().complete()
    await settle()
    expect(queued.ends).toEqual([['first', { generation: 2, status: 'completed', text: 'done' }]])
  })

  it('P9: a run of one turn whose result was not the end gives its prompt to the next candidate too', async () => {
    const queued = new Queued({ candidates: 2, isInteractive: false }).launched()
    queued.complete()
    const { attempt } = queued.context
    const exit = { exitCode: 1, signal: null, isTreeEmpty: true, evidence: 'tree-reaped' }
    queued.post({ type: 'process.exited', attempt, ...exit, isFallbackEligible: true })
    await settle()
    expect(queued.turn).toEqual({ attempt: 2, generation: 2 })
    expect(queued.queue.textOf(2)).toBe('first')
    expect(queued.ends).toEqual([['first', { generation: 1, status: 'completed', text: 'done' }]])
  })

  const ENDS: readonly [string, Event, RegExp][] = [
    ['is cancelled', { type: 'run.cancel', ...ORDER }, /enough/],
    ['is interrupted', { type: 'run.interrupt', ...ORDER }, /enough/],
    [
      'never started',
      {
        type: 'watchdog.silent',
        seen: { attempt: 1, generation: 1, epoch: 0 },
        current: { attempt: 1, generation: 1, epoch: 0 },
      },
      /no output since start/,
    ],
    ['is broken', { type: 'run.faulted', message: 'it broke' }, /it broke/],
    ['is lost', { type: 'run.lost', evidence: 'identity-gone' }, /not observed/],
    [
      'exits',
      {
        type: 'process.exited',
        attempt: 1,
        exitCode: 3,
        signal: null,
        isTreeEmpty: true,
        evidence: 'tree-reaped',
        isFallbackEligible: false,
      },
      /exited with code 3/,
    ],
  ]
  it.each(ENDS)(
    'K11: a run that %s abandons the open prompt and those that wait, once, saying why',
    async (_, event, why) => {
      const queued = new Queued().launched()
      queued.prompt('second')
      queued.prompt('third')
      queued.post(event)
      queued.post({ type: 'run.cancel', ...ORDER })
      await settle()
      expect(queued.ends.map(([text]) => text)).toEqual(['first', 'second', 'third'])
      for (const [, { status, message }] of queued.ends) {
        expect(status).toBe('abandoned')
        expect(message).toMatch(why)
      }
      expect(queued.queue.waiting).toBe(0)
      expect(queued.starts).toBe(0)
    },
  )

  it('K11: an engine that lets go of the run abandons its prompts, and begins no turn any more', async () => {
    const queued = new Queued().launched()
    queued.prompt('second')
    queued.queue.leave()
    await settle()
    expect(queued.ends).toMatchObject([
      ['first', { status: 'abandoned', message: 'the engine let go of the run' }],
      ['second', { status: 'abandoned', message: 'the engine let go of the run' }],
    ])
    expect(queued.starts).toBe(0)
  })
})

describe('the end of prompts', () => {
  it('K11: a run that is told to finish has the turns of those that wait, and finishes then, once', async () => {
    const queued = new Queued().launched()
    queued.prompt('second')
    queued.queue.finish()
    queued.queue.finish()
    expect(queued.queue.isFinishing).toBe(true)
    expect(queued.finishes).toBe(0)
    queued.complete()
    await settle()
    expect(queued.finishes).toBe(0)
    queued.complete()
    await settle()
    expect(queued.finishes).toBe(1)
  })

  it('K11: one that is ready finishes at once', () => {
    const queued = new Queued({ hasPrompt: false })
    queued.queue.finish()
    expect(queued.finishes).toBe(1)
  })
})
