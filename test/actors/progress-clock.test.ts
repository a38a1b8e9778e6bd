/** Is it working, or only alive? On a clock that moves only when told to. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Silence, WatchdogLimits } from '../../src/actors/watchdog-limits.js'
import type { TurnStamp } from '../../src/machines/run/run.context.js'
import { ProgressClock } from '../../src/internal.js'
import { SimulatedClock, turns } from '../../src/testing/simulated-clock.js'
import { propertyParameters } from '../support/property.js'

const MINUTE = 60_000
const LIMITS: WatchdogLimits = {
  neverStartedMs: 5 * MINUTE,
  advisoryMs: 5 * MINUTE,
  stalledMs: null,
  stalledToolMs: null,
  completionSignalMs: 10 * MINUTE,
  sleepGapMs: 30_000,
}
const NO_LIMITS: WatchdogLimits = {
  ...LIMITS,
  neverStartedMs: null,
  advisoryMs: null,
  completionSignalMs: null,
}

interface Told {
  readonly silence: Silence
  readonly stamp: TurnStamp
  readonly atMs: number
}

/** A progress clock, and a run of which a test says what it answers. */
class Watched {
  readonly clock: SimulatedClock
  readonly told: Told[] = []
  readonly progressed: TurnStamp[] = []
  readonly progress: ProgressClock
  hasTool = false
  cpuLooks = 0
  /** What the tool's processes have used since the last look. */
  cpuUsedMs: () => Promise<number | null> = () => Promise.resolve(null)
  answer: (silence: Silence, stamp: TurnStamp) => boolean | Promise<boolean> = (silence, stamp) => {
    // As a run does: it settles, or its turn is over.
    if (silence !== 'silent' || stamp.epoch === 0) this.progress.rest()
    return true
  }

  constructor(limits: Partial<WatchdogLimits> | null, clock: SimulatedClock) {
    this.clock = clock
    this.progress = new ProgressClock(this.clock, limits === null ? null : { ...LIMITS, ...limits }, {
      progressed: (stamp) => this.progressed.push(stamp),
      passed: (silence, stamp) => {
        this.told.push({ silence, stamp, atMs: this.clock.monotonicMs() })
        return Promise.resolve(this.answer(silence, stamp))
      },
      hasOpenTool: () => this.hasTool,
      cpuUsedMs: () => {
        this.cpuLooks += 1
        return this.cpuUsedMs()
      },
    })
    this.progress.begin(1, 1)
  }

  get silences(): Silence[] {
    return this.told.map(({ silence }) => silence)
  }
}

const watch = (limits: Partial<WatchdogLimits> | null = {}, clock = new SimulatedClock()): Watched =>
  new Watched(limits, clock)

/** An answer that a test gives when it likes. */
const pendingAnswer = <T>(): { readonly promise: Promise<T>; readonly give: (value: T) => void } => {
  let give: (value: T) => void = () => undefined
  const promise = new Promise<T>((resolve) => {
    give = resolve
  })
  return { promise, give }
}

describe('what moves the clock', () => {
  it('K1: a frame costs no timer, and only the first of a turn is an edge', async () => {
    const { clock, progress, progressed, told } = watch()
    for (let frame = 0; frame < 100_000; frame += 1) progress.progress()
    expect(progressed).toEqual([{ attempt: 1, generation: 1, epoch: 1 }])
    expect(clock.armed).toBe(1)
    await clock.advance(299_000)
    progress.progress()
    await clock.advance(299_000)
    expect(told).toEqual([])
  })

  it('K1: new input starts the silence anew; nothing was seen by it, and it is no new epoch', async () => {
    const { clock, progress, progressed, told } = watch()
    await clock.advance(299_000)
    const before = progress.stamp
    progress.restart()
    expect(progress.stamp).toEqual(before)
    expect(progressed).toEqual([])
    expect(progress.hasProgressedIn(1)).toBe(false)
    await clock.advance(299_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toEqual([{ silence: 'silent', stamp: before, atMs: 599_000 }])
  })

  it('K1: a prompt that goes out after its turn began starts the silence anew, and takes back nothing that was seen', async () => {
    const watched = watch({ stalledMs: 20 * MINUTE })
    const { clock, progress, progressed } = watched
    await clock.advance(4 * MINUTE)
    progress.progress()
    progress.begin(1, 1)
    expect(progress.stamp).toEqual({ attempt: 1, generation: 1, epoch: 1 })
    await clock.advance(5 * MINUTE)
    expect(watched.silences).toEqual(['silent'])
    progress.begin(1, 1)
    await clock.advance(19 * MINUTE)
    expect(watched.silences).toEqual(['silent'])
    await clock.advance(2 * MINUTE)
    expect(watched.silences).toEqual(['silent', 'exhausted'])
    expect(progressed).toHaveLength(1)
  })

  it('K1: what comes between two turns is progress of neither', async () => {
    const { clock, progress, progressed, told } = watch()
    progress.rest()
    progress.progress()
    await clock.advance(60 * MINUTE)
    expect(progressed).toEqual([])
    expect(clock.armed).toBe(0)
    progress.begin(1, 2)
    expect(progress.stamp).toEqual({ attempt: 1, generation: 2, epoch: 0 })
    await clock.advance(5 * MINUTE)
    expect(told).toMatchObject([{ silence: 'silent', stamp: { generation: 2, epoch: 0 } }])
  })

  it('K1: how long it has been quiet is told while a turn is watched, and stands still while it is held', async () => {
    const { clock, progress } = watch()
    await clock.advance(1_000)
    expect(progress.quietMs).toBe(1_000)
    progress.hold('frozen')
    await clock.advance(5_000)
    expect(progress.quietMs).toBe(1_000)
    progress.release('frozen')
    await clock.advance(500)
    expect(progress.quietMs).toBe(1_500)
    progress.progress()
    expect(progress.quietMs).toBe(0)
    progress.rest()
    expect(progress.quietMs).toBeNull()
  })

  it('P9: whether an attempt has shown progress is known of that attempt, in whichever turn', () => {
    const { progress } = watch()
    expect(progress.hasProgressedIn(1)).toBe(false)
    progress.progress()
    progress.begin(1, 2)
    expect(progress.hasProgressedIn(1)).toBe(true)
    progress.begin(2, 3)
    expect(progress.hasProgressedIn(2)).toBe(false)
  })
})

describe('what a fact carries', () => {
  it('K4: attempt, generation and epoch are read together, and move with each frame', () => {
    const { progress } = watch()
    const before = progress.stamp
    progress.progress()
    expect(progress.stamp).not.toEqual(before)
    progress.begin(2, 5)
    expect(progress.stamp).toEqual({ attempt: 2, generation: 5, epoch: 0 })
  })

  const MOVES: readonly [string, (watched: Watched) => void][] = [
    ['progress', ({ progress }) => progress.progress()],
    ['new input', ({ progress }) => progress.restart()],
    ['the prompt that goes out only now', ({ progress }) => progress.begin(1, 1)],
    ['a freeze', ({ progress }) => progress.hold('frozen')],
    ['a question to a person', ({ progress }) => progress.hold('person')],
    ['the end of the turn', ({ progress }) => progress.rest()],
    ['another turn', ({ progress }) => progress.begin(1, 2)],
    ['another attempt', ({ progress }) => progress.begin(2, 2)],
  ]
  it.each(MOVES)('K4: %s between the look and its handling makes what was told void', async (_, move) => {
    const watched = watch()
    watched.answer = () => false
    await watched.clock.advance(5 * MINUTE)
    const [{ silence, stamp } = { silence: 'silent', stamp: watched.progress.stamp } as const] = watched.told
    expect(watched.progress.isStill(silence, stamp)).toBe(true)
    move(watched)
    expect(watched.progress.isStill(silence, stamp)).toBe(false)
  })

  it('K4: the first event of a turn makes it void that there was none, also where silence has no time at all', async () => {
    const watched = watch({ neverStartedMs: 0, advisoryMs: 0 })
    watched.answer = () => false
    await watched.clock.advance(0)
    const { stamp } = watched.progress
    expect(watched.progress.isStill('silent', stamp)).toBe(true)
    watched.progress.progress()
    expect(watched.progress.isStill('silent', stamp)).toBe(false)
  })

  it('K4, K10: a retry between the look and its handling makes a completion that did not come void', async () => {
    const { clock, progress, told } = watch({ advisoryMs: null })
    progress.progress()
    progress.signalled()
    const { stamp } = progress
    await clock.advance(10 * MINUTE - 1)
    expect(progress.isStill('completion-silent', stamp)).toBe(false)
    await clock.advance(1)
    expect(told).toMatchObject([{ silence: 'completion-silent', stamp }])
    progress.begin(1, 2)
    progress.progress()
    progress.signalled()
    await clock.advance(10 * MINUTE)
    progress.begin(1, 2)
    progress.unsignalled()
    expect(progress.isStill('completion-silent', progress.stamp)).toBe(false)
  })

  it.each(MOVES)('K4: %s while a look waits for the process table: nothing is told', async (_, move) => {
    const watched = watch({ advisoryMs: null, stalledToolMs: 4 * MINUTE })
    const { clock, progress } = watched
    watched.hasTool = true
    progress.progress()
    await clock.advance(4 * MINUTE - 1)
    const cpu = pendingAnswer<number | null>()
    watched.cpuUsedMs = () => cpu.promise
    await clock.advance(1)
    expect(watched.told).toEqual([])
    move(watched)
    cpu.give(0)
    await turns()
    expect(watched.told).toEqual([])
    expect(clock.armed).toBeLessThanOrEqual(1)
  })
})

describe('never started', () => {
  it('K5: nothing seen since the prompt is told once its time has passed, exactly once', async () => {
    const { clock, told } = watch()
    await clock.advance(299_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toEqual([
      { silence: 'silent', stamp: { attempt: 1, generation: 1, epoch: 0 }, atMs: 300_000 },
    ])
    await clock.advance(60 * MINUTE)
    expect(told).toHaveLength(1)
    expect(clock.armed).toBe(0)
  })

  it('K5: each turn has its own time, whatever the turns before it have shown', async () => {
    const { clock, progress, told } = watch()
    progress.progress()
    await clock.advance(299_000)
    progress.begin(1, 2)
    await clock.advance(299_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toMatchObject([{ stamp: { generation: 2, epoch: 0 } }])
  })

  it('K7: a silence that could not be recorded is told again, once a second', async () => {
    const watched = watch()
    const take = watched.answer
    watched.answer = () => false
    await watched.clock.advance(5 * MINUTE)
    await watched.clock.advance(10_000)
    expect(watched.told.map(({ atMs }) => atMs)).toEqual(
      Array.from({ length: 11 }, (_, again) => 300_000 + again * 1_000),
    )
    watched.answer = take
    await watched.clock.advance(1_000)
    const told = watched.told.length
    await watched.clock.advance(10 * MINUTE)
    expect(watched.told).toHaveLength(told)
  })

  it('K7: progress while a silence waits to be recorded ends the asking', async () => {
    const watched = watch()
    const answer = pendingAnswer<boolean>()
    watched.answer = () => answer.promise
    await watched.clock.advance(5 * MINUTE)
    watched.progress.progress()
    answer.give(false)
    await watched.clock.advance(299_999)
    expect(watched.told).toHaveLength(1)
    await watched.clock.advance(1)
    expect(watched.told.at(-1)).toMatchObject({ stamp: { epoch: 1 } })
  })
})

describe('silence after progress', () => {
  it('K8: silence is told once a generation, and the next progress is an edge again', async () => {
    const { clock, progress, progressed, told } = watch()
    progress.progress()
    await clock.advance(65 * MINUTE)
    expect(told).toMatchObject([{ silence: 'silent', stamp: { epoch: 1 }, atMs: 300_000 }])
    progress.progress()
    expect(progressed).toHaveLength(2)
    progress.progress()
    expect(progressed).toHaveLength(2)
    await clock.advance(60 * MINUTE)
    expect(told).toHaveLength(1)
    progress.begin(1, 2)
    progress.progress()
    await clock.advance(5 * MINUTE)
    expect(told.at(-1)).toMatchObject({ silence: 'silent', stamp: { generation: 2, epoch: 1 } })
  })

  it('K8: an advisory that was not taken is told again, until it is', async () => {
    const watched = watch()
    watched.progress.progress()
    watched.answer = () => watched.told.length > 3
    await watched.clock.advance(60 * MINUTE)
    expect(watched.told).toHaveLength(4)
  })

  it('K8: progress that comes while the advisory is being recorded is an edge after it', async () => {
    const watched = watch()
    const { clock, progress, progressed } = watched
    progress.progress()
    const answer = pendingAnswer<boolean>()
    watched.answer = () => answer.promise
    await clock.advance(5 * MINUTE)
    progress.progress()
    progress.progress()
    expect(progressed).toHaveLength(1)
    answer.give(true)
    await turns()
    // The run took the advisory after the progress: it must hear of it now, or nobody takes the advisory back.
    expect(progressed.map(({ epoch }) => epoch)).toEqual([1, 3])
    await clock.advance(60 * MINUTE)
    expect(watched.told).toHaveLength(1)
  })

  it.each(['frozen', 'person'] as const)(
    'K8: an advisory that was taken while the clock came to be held (%s) is not told again',
    async (reason) => {
      const watched = watch()
      const { clock, progress, progressed } = watched
      progress.progress()
      const answer = pendingAnswer<boolean>()
      watched.answer = () => answer.promise
      await clock.advance(5 * MINUTE)
      progress.hold(reason)
      answer.give(true)
      await turns()
      expect(clock.armed).toBe(0)
      progress.release(reason)
      await clock.advance(60 * MINUTE)
      expect(watched.told).toHaveLength(1)
      progress.progress()
      expect(progressed).toHaveLength(2)
    },
  )

  it('K8: the answer to the turn before says nothing of the one that is open now', async () => {
    const watched = watch()
    const { clock, progress } = watched
    progress.progress()
    const answer = pendingAnswer<boolean>()
    watched.answer = () => answer.promise
    await clock.advance(5 * MINUTE)
    progress.begin(1, 2)
    progress.progress()
    answer.give(true)
    watched.answer = () => true
    await clock.advance(5 * MINUTE)
    expect(watched.told).toMatchObject([{ stamp: { generation: 1 } }, { stamp: { generation: 2 } }])
  })
})

describe('a prolonged stall', () => {
  it('K9: two limits that have passed at one look are told one after the other, the milder first', async () => {
    const { clock, progress, told } = watch({ stalledMs: 5 * MINUTE })
    progress.progress()
    await clock.advance(6 * MINUTE)
    expect(told.map(({ silence, atMs }) => [silence, atMs])).toEqual([
      ['silent', 300_000],
      ['exhausted', 301_000],
    ])
  })

  it('K9: without progress in the turn nothing is exhausted: that is never-started, or nothing', async () => {
    const { clock, told } = watch({ neverStartedMs: null, stalledMs: MINUTE, stalledToolMs: MINUTE })
    await clock.advance(60 * MINUTE)
    expect(told).toEqual([])
  })

  it.each([
    ['shorter', { stalledMs: 8 * MINUTE, stalledToolMs: 4 * MINUTE }],
    ['longer', { stalledMs: 4 * MINUTE, stalledToolMs: 8 * MINUTE }],
  ])('K9: an open tool has its own limit, which may be the %s one', async (_, limits) => {
    for (const hasTool of [false, true]) {
      const watched = watch({ advisoryMs: null, ...limits })
      watched.hasTool = hasTool
      watched.progress.progress()
      const limitMs = hasTool ? limits.stalledToolMs : limits.stalledMs
      await watched.clock.advance(limitMs - 1)
      expect(watched.told).toEqual([])
      await watched.clock.advance(1)
      expect(watched.silences).toEqual(['exhausted'])
    }
  })

  it.each([
    ['opens', { stalledMs: 8 * MINUTE, stalledToolMs: 4 * MINUTE }],
    ['closes', { stalledMs: 4 * MINUTE, stalledToolMs: 8 * MINUTE }],
  ])('K9: a tool that %s between two looks changes the limit that counts', async (how, limits) => {
    const watched = watch({ advisoryMs: null, ...limits })
    watched.hasTool = how === 'closes'
    watched.progress.progress()
    await watched.clock.advance(5 * MINUTE)
    expect(watched.told).toEqual([])
    watched.hasTool = how === 'opens'
    // The look that every wait ends with.
    await watched.clock.advance(LIMITS.sleepGapMs)
    expect(watched.silences).toEqual(['exhausted'])
  })

  it('K9: a tool that may be silent for ever is watched again as soon as it is closed', async () => {
    const watched = watch({ advisoryMs: null, stalledMs: 4 * MINUTE })
    const { clock, progress } = watched
    watched.hasTool = true
    progress.progress()
    await clock.advance(60 * MINUTE)
    expect(watched.told).toEqual([])
    watched.hasTool = false
    progress.progress()
    await clock.advance(4 * MINUTE - 1)
    expect(watched.told).toEqual([])
    await clock.advance(1)
    expect(watched.silences).toEqual(['exhausted'])
  })

  it('K9: so is one that closes without a word', async () => {
    const watched = watch({ stalledMs: 4 * MINUTE })
    watched.hasTool = true
    watched.progress.progress()
    await watched.clock.advance(60 * MINUTE)
    expect(watched.silences).toEqual(['silent'])
    watched.hasTool = false
    await watched.clock.advance(4 * MINUTE)
    expect(watched.silences).toEqual(['silent', 'exhausted'])
  })

  it('K9: a tool whose processes use the CPU is at work, for as long as they do', async () => {
    const watched = watch({ advisoryMs: null, stalledToolMs: 4 * MINUTE })
    watched.hasTool = true
    watched.cpuUsedMs = () => Promise.resolve(30_000)
    watched.progress.progress()
    await watched.clock.advance(60 * MINUTE)
    expect(watched.told).toEqual([])
    watched.cpuUsedMs = () => Promise.resolve(0)
    await watched.clock.advance(5 * MINUTE)
    expect(watched.silences).toEqual(['exhausted'])
  })

  it('K9: what an idle program uses by waking now and then is no work, and nor is what cannot be told', async () => {
    for (const used of [599, 0, null]) {
      const watched = watch({ advisoryMs: null, stalledToolMs: 4 * MINUTE })
      watched.hasTool = true
      watched.cpuUsedMs = () => Promise.resolve(used)
      watched.progress.progress()
      await watched.clock.advance(4 * MINUTE)
      expect(watched.silences).toEqual(['exhausted'])
    }
  })

  it('K9: the CPU time of what went before the tool is a baseline and no work of it', async () => {
    const watched = watch({ advisoryMs: null, stalledToolMs: 4 * MINUTE, stalledMs: 60 * MINUTE })
    const { clock, progress } = watched
    let sinceLookMs = 0
    watched.cpuUsedMs = () => {
      const usedMs = sinceLookMs
      sinceLookMs = 0
      return Promise.resolve(usedMs)
    }
    watched.hasTool = true
    progress.progress()
    await clock.advance(3 * MINUTE)
    watched.hasTool = false
    progress.progress()
    await clock.advance(10 * MINUTE)
    sinceLookMs = 9 * MINUTE
    watched.hasTool = true
    progress.progress()
    const openedMs = clock.monotonicMs()
    await clock.advance(5 * MINUTE)
    expect(watched.told).toMatchObject([{ silence: 'exhausted', atMs: openedMs + 4 * MINUTE }])
  })

  it('K9: a tool that began to work just before its limit is seen at it', async () => {
    const watched = watch({ advisoryMs: null, stalledToolMs: 4 * MINUTE })
    const { clock, progress } = watched
    watched.hasTool = true
    progress.progress()
    // Out of step with the looks.
    await clock.advance(50_000)
    progress.progress()
    let usedMs = 0
    watched.cpuUsedMs = () => Promise.resolve(usedMs)
    await clock.advance(3 * MINUTE + 30_000)
    usedMs = 20_000
    await clock.advance(31_000)
    expect(watched.told).toEqual([])
  })

  it('K9: nothing looks at the CPU while no tool is open, or no limit asks for it', async () => {
    const idle = watch({ stalledToolMs: 4 * MINUTE, stalledMs: 60 * MINUTE })
    idle.progress.progress()
    await idle.clock.advance(50 * MINUTE)
    expect(idle.cpuLooks).toBe(0)
    const unlimited = watch({ stalledMs: 60 * MINUTE })
    unlimited.hasTool = true
    unlimited.progress.progress()
    await unlimited.clock.advance(50 * MINUTE)
    expect(unlimited.cpuLooks).toBe(0)
  })
})

describe('a completion that does not come', () => {
  it('K10: it is told when its time has passed since the agent said that it is done', async () => {
    const { clock, progress, told } = watch()
    progress.progress()
    await clock.advance(MINUTE)
    progress.signalled()
    await clock.advance(10 * MINUTE - 1)
    expect(told.map(({ silence }) => silence)).toEqual(['silent'])
    await clock.advance(1)
    expect(told.at(-1)).toMatchObject({ silence: 'completion-silent', atMs: 11 * MINUTE })
  })

  it('K10: an agent that says it again and again is as done as one that said it once', async () => {
    const { clock, progress, told } = watch({ advisoryMs: null })
    progress.progress()
    progress.signalled()
    const { fired } = clock
    for (let frame = 0; frame < 100_000; frame += 1) progress.signalled()
    expect([clock.armed, clock.fired]).toEqual([1, fired])
    await clock.advance(9 * MINUTE)
    progress.signalled()
    await clock.advance(MINUTE)
    expect(told).toMatchObject([{ silence: 'completion-silent', atMs: 10 * MINUTE }])
  })

  it.each([
    ['progress', ({ progress }: Watched) => progress.progress()],
    ['a retry', ({ progress }: Watched) => progress.unsignalled()],
    ['new input', ({ progress }: Watched) => progress.restart()],
    ['the next turn', ({ progress }: Watched) => progress.begin(1, 2)],
  ])('K10: %s takes the signal back', async (_, takeBack) => {
    const watched = watch({ neverStartedMs: null, advisoryMs: null })
    watched.progress.progress()
    watched.progress.signalled()
    await watched.clock.advance(9 * MINUTE)
    takeBack(watched)
    await watched.clock.advance(60 * MINUTE)
    expect(watched.told).toEqual([])
  })
})

describe('time that does not count', () => {
  it('INV-9, O7: frozen time does not count', async () => {
    const { clock, progress, told } = watch()
    await clock.advance(200_000)
    progress.hold('frozen')
    expect(clock.armed).toBe(0)
    await clock.advance(120 * MINUTE)
    progress.hold('frozen')
    expect(told).toEqual([])
    progress.release('frozen')
    progress.release('frozen')
    await clock.advance(99_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toHaveLength(1)
  })

  it.each([
    ['frozen', 'person', 'frozen', 'person'],
    ['frozen', 'person', 'person', 'frozen'],
  ] as const)('O7, K9: %s and %s at once is held until both are over', async (first, second, third, last) => {
    const { clock, progress, told } = watch()
    await clock.advance(100_000)
    progress.hold(first)
    await clock.advance(MINUTE)
    progress.hold(second)
    await clock.advance(60 * MINUTE)
    progress.release(third)
    expect(clock.armed).toBe(0)
    await clock.advance(60 * MINUTE)
    progress.release(last)
    await clock.advance(199_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toHaveLength(1)
  })

  it('O7: a turn that begins while the tree is frozen has its whole time when it is thawed', async () => {
    const { clock, progress, told } = watch()
    progress.hold('frozen')
    await clock.advance(60 * MINUTE)
    progress.begin(1, 2)
    await clock.advance(60 * MINUTE)
    expect(clock.armed).toBe(0)
    progress.release('frozen')
    await clock.advance(299_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toHaveLength(1)
  })

  it('O7: progress and signals that come while it is held count from its end, not from beyond it', async () => {
    const { clock, progress, told } = watch()
    progress.hold('person')
    await clock.advance(60 * MINUTE)
    progress.progress()
    progress.signalled()
    await clock.advance(60 * MINUTE)
    progress.release('person')
    const releasedMs = clock.monotonicMs()
    await clock.advance(11 * MINUTE)
    expect(told).toMatchObject([
      { silence: 'silent', atMs: releasedMs + 5 * MINUTE },
      { silence: 'completion-silent', atMs: releasedMs + 10 * MINUTE },
    ])
  })

  it('INV-9, K12: time in which the machine slept, or the loop was blocked, does not count', async () => {
    const { clock, told } = watch()
    await clock.advance(100_000)
    await clock.jump(60 * MINUTE)
    expect(told).toEqual([])
    await clock.advance(169_999)
    expect(told).toEqual([])
    await clock.advance(30_001)
    expect(told).toHaveLength(1)
  })

  it('K12: a gap moves every limit on: advisory, stall and completion', async () => {
    const { clock, progress, told } = watch({ stalledMs: 8 * MINUTE })
    progress.progress()
    progress.signalled()
    await clock.advance(4 * MINUTE)
    await clock.jump(60 * MINUTE)
    // What was left of the wait when the machine went to sleep counts.
    await clock.advance(29_999)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toMatchObject([{ silence: 'silent' }])
    await clock.advance(3 * MINUTE - 1)
    expect(told).toHaveLength(1)
    await clock.advance(1)
    expect(told).toMatchObject([{ silence: 'silent' }, { silence: 'exhausted' }])
  })

  it('K12: a frame that comes first after a sleep does not buy as much silence as the sleep was long', async () => {
    const { clock, progress, told } = watch()
    progress.progress()
    await clock.advance(10_000)
    clock.skip(8 * 60 * MINUTE)
    progress.progress()
    await clock.advance(5 * MINUTE - 1)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toHaveLength(1)
  })

  it.each([
    ['a completion signal', ({ progress }: Watched) => progress.signalled()],
    [
      'a freeze',
      ({ progress }: Watched) => {
        progress.hold('frozen')
        progress.release('frozen')
      },
    ],
  ])('K12: %s that comes first after a sleep does not hide it', async (_, first) => {
    const watched = watch()
    watched.progress.progress()
    await watched.clock.advance(10_000)
    watched.clock.skip(60 * MINUTE)
    first(watched)
    await watched.clock.advance(4 * MINUTE)
    expect(watched.told).toEqual([])
    await watched.clock.advance(MINUTE)
    expect(watched.silences).toEqual(['silent'])
  })

  it('K12: a sleep while a look waits for the process table does not count', async () => {
    const watched = watch({ advisoryMs: null, stalledToolMs: 4 * MINUTE })
    const { clock, progress } = watched
    watched.hasTool = true
    progress.progress()
    const cpu = pendingAnswer<number | null>()
    watched.cpuUsedMs = () => cpu.promise
    await clock.advance(MINUTE)
    clock.skip(60 * MINUTE)
    watched.cpuUsedMs = () => Promise.resolve(0)
    cpu.give(0)
    await turns()
    await clock.advance(3 * MINUTE - 1)
    expect(watched.told).toEqual([])
    await clock.advance(1)
    expect(watched.silences).toEqual(['exhausted'])
  })

  it('K12: a look that comes late by no more than the gap counts as watched', async () => {
    const { clock, told } = watch()
    await clock.advance(299_000)
    await clock.jump(31_000)
    expect(told).toHaveLength(1)
  })

  it('K12: a step of the wall clock changes nothing', async () => {
    const { clock, progress, told } = watch()
    await clock.advance(100_000)
    clock.stepWall(600_000)
    clock.stepWall(-7_200_000)
    await clock.advance(199_999)
    expect(told).toEqual([])
    progress.progress()
    expect(progress.lastProgressAt).toBe(clock.wallMs())
    clock.stepWall(-7_200_000)
    await clock.advance(5 * MINUTE)
    expect(told).toHaveLength(1)
  })

  it('K12: a limit over 2³¹ ms is kept, and not told early', async () => {
    const days60 = 60 * 24 * 60 * MINUTE
    const { clock, told } = watch({ neverStartedMs: days60, sleepGapMs: days60 / 10 })
    await clock.advance(days60 - 1)
    expect(told).toEqual([])
    await clock.advance(1)
    expect(told).toHaveLength(1)
  })

  it('K12: a limit that is switched off is never told, and nothing waits for it', async () => {
    const { clock, progress, progressed, told } = watch(NO_LIMITS)
    expect(clock.armed).toBe(0)
    progress.progress()
    progress.signalled()
    await clock.advance(24 * 60 * MINUTE)
    expect(clock.armed).toBe(0)
    expect(told).toEqual([])
    expect(progressed).toHaveLength(1)
    const unwatched = watch(null)
    unwatched.progress.progress()
    expect(unwatched.clock.armed).toBe(0)
    expect(unwatched.progressed).toHaveLength(1)
  })
})

describe('its one timer', () => {
  it('K12: the clock is looked at no more often than the gap that must be noticed', async () => {
    const { clock, progress } = watch({ stalledMs: 24 * 60 * MINUTE })
    progress.progress()
    for (let second = 0; second < 3_600; second += 1) {
      await clock.advance(1_000)
      progress.progress()
    }
    expect(clock.fired).toBeLessThanOrEqual(3_600 / 30 + 1)
    expect(clock.armed).toBe(1)
  })

  it.each([0, 1, 100])('INV-11: limits of %i ms make no hot loop', async (ms) => {
    const limits = { neverStartedMs: ms, advisoryMs: ms, stalledMs: ms, stalledToolMs: ms }
    for (const off of [{}, { advisoryMs: null, stalledMs: null }, { stalledToolMs: null }]) {
      const watched = watch({ ...limits, completionSignalMs: ms, ...off })
      // Nothing is ever taken.
      watched.answer = () => false
      await watched.clock.advance(10_000)
      watched.progress.progress()
      watched.progress.signalled()
      for (const hasTool of [false, true]) {
        watched.hasTool = hasTool
        await watched.clock.advance(10_000)
      }
      expect(watched.clock.fired).toBeLessThan(1_000)
      expect(watched.clock.armed).toBeLessThanOrEqual(1)
    }
  })

  it('INV-11: a run that takes everything and goes on makes no hot loop', async () => {
    const watched = watch({ stalledMs: 5 * MINUTE })
    watched.answer = () => true
    await watched.clock.advance(10 * MINUTE)
    watched.progress.progress()
    watched.progress.signalled()
    await watched.clock.advance(20 * MINUTE)
    expect(watched.clock.fired).toBeLessThan(3_000)
  })
})

// ── any order of things ─────────────────────────────────────────────────────────────────────────

const S = 1_000
const RANDOM_LIMITS: WatchdogLimits = {
  neverStartedMs: 50 * S,
  advisoryMs: 40 * S,
  stalledMs: 70 * S,
  stalledToolMs: 90 * S,
  completionSignalMs: 60 * S,
  sleepGapMs: 10 * S,
}
/** Asking again takes a second, a look some turns of the loop, and a tool that opens or closes without a word is seen with the next look. */
const SLACK_MS = RANDOM_LIMITS.sleepGapMs + 3 * S

/** Keeps by itself what a watchdog must know, in the least clever way: how much silence has counted, at least and at most. */
class Bookkeeper {
  isOpen = true
  epoch = 0
  hasTool = false
  isRefusing = false
  readonly holds = new Set<string>()
  readonly counted = { least: 0, most: 0, signalled: null as { least: number; most: number } | null }

  /** While the run refuses what it is told, nothing is owed. */
  pass(ms: number, leastMs = this.isRefusing ? 0 : ms): void {
    if (!this.isOpen || this.holds.size > 0) return
    this.counted.least += leastMs
    this.counted.most += ms
    if (this.counted.signalled !== null) {
      this.counted.signalled.least += leastMs
      this.counted.signalled.most += ms
    }
  }

  moved(): void {
    this.counted.least = 0
    this.counted.most = 0
    this.counted.signalled = null
  }

  limitOf(silence: Silence): number {
    const { neverStartedMs, advisoryMs, stalledMs, stalledToolMs, completionSignalMs } = RANDOM_LIMITS
    if (silence === 'completion-silent') return completionSignalMs ?? Infinity
    if (silence === 'exhausted') return (this.hasTool ? stalledToolMs : stalledMs) ?? Infinity
    return (this.epoch === 0 ? neverStartedMs : advisoryMs) ?? Infinity
  }
}

type Step =
  | { readonly do: 'advance' | 'sleep'; readonly ms: number }
  | { readonly do: 'hold' | 'release'; readonly reason: 'frozen' | 'person' }
  | {
      readonly do:
        | 'progress'
        | 'restart'
        | 'signal'
        | 'unsignal'
        | 'next turn'
        | 'same turn'
        | 'rest'
        | 'tool'
        | 'refuse'
        | 'take'
    }

const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 60 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('sleep' as const), ms: fc.integer({ min: 21, max: 9_000 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom('hold' as const, 'release' as const),
        reason: fc.constantFrom('frozen' as const, 'person' as const),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constantFrom(
          'progress' as const,
          'progress' as const,
          'restart' as const,
          'signal' as const,
          'unsignal' as const,
          'next turn' as const,
          'same turn' as const,
          'rest' as const,
          'tool' as const,
          'refuse' as const,
          'take' as const,
        ),
      }),
    },
  ),
  { maxLength: 40, size: 'max' },
)

const play = async (script: readonly Step[]): Promise<void> => {
  const watched = watch(RANDOM_LIMITS, new SimulatedClock({ eachTurns: 2, lastTurns: 2 }))
  const { clock, progress } = watched
  const book = new Bookkeeper()
  let generation = 1
  let advisories = 0
  const answer: Watched['answer'] = (silence, stamp) => {
    // Nothing is told that is not so.
    expect(book.isOpen && book.holds.size === 0, `${silence} of no turn, or of one that is held`).toBe(true)
    expect(stamp).toEqual({ attempt: 1, generation, epoch: book.epoch })
    const { most, signalled } = book.counted
    const countedMs = silence === 'completion-silent' ? (signalled?.most ?? -1) : most
    expect(countedMs, `${silence} before its time`).toBeGreaterThanOrEqual(book.limitOf(silence))
    if (book.isRefusing) return false
    if (silence === 'silent' && stamp.epoch > 0) {
      advisories += 1
      expect(advisories, 'advisories of one generation').toBe(1)
    } else {
      progress.rest()
      book.isOpen = false
    }
    return true
  }
  /** What the run finds is found within the clock, where nobody could see it thrown. */
  const faults: unknown[] = []
  watched.answer = (silence, stamp) => {
    try {
      return answer(silence, stamp)
    } catch (fault) {
      faults.push(fault)
      return false
    }
  }
  /** Second by second, so that the book is right at every look. */
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      book.pass(S)
      await clock.advance(S)
    }
  }
  for (const step of script) {
    switch (step.do) {
      case 'advance':
        await pass(step.ms)
        break
      case 'sleep': {
        // Of a sleep that is noticed at most what was left of a wait counts.
        const { sleepGapMs } = RANDOM_LIMITS
        book.pass(step.ms * S > 2 * sleepGapMs ? sleepGapMs : step.ms * S, 0)
        await clock.jump(step.ms * S)
        break
      }
      case 'hold':
        progress.hold(step.reason)
        book.holds.add(step.reason)
        break
      case 'release':
        progress.release(step.reason)
        book.holds.delete(step.reason)
        break
      case 'progress':
        progress.progress()
        if (book.isOpen) book.epoch += 1
        book.moved()
        break
      case 'restart':
      case 'same turn':
        if (!book.isOpen) break
        if (step.do === 'restart') progress.restart()
        else progress.begin(1, generation)
        book.moved()
        break
      case 'signal':
        if (!book.isOpen) break
        progress.signalled()
        book.counted.signalled ??= { least: 0, most: 0 }
        break
      case 'unsignal':
        progress.unsignalled()
        book.counted.signalled = null
        break
      case 'next turn':
        generation += 1
        advisories = 0
        progress.begin(1, generation)
        book.isOpen = true
        book.epoch = 0
        book.moved()
        break
      case 'rest':
        progress.rest()
        book.isOpen = false
        break
      case 'tool':
        watched.hasTool = !watched.hasTool
        book.hasTool = watched.hasTool
        break
      case 'refuse':
        book.isRefusing = true
        break
      case 'take':
        book.isRefusing = false
    }
    await turns(1)
    if (faults.length > 0) throw faults[0]
    expect(clock.armed, 'timers').toBeLessThanOrEqual(1)
    if (!book.isOpen || book.holds.size > 0 || book.isRefusing) continue
    // Nothing that is so stays untold.
    const { least, signalled } = book.counted
    if (book.epoch === 0 || advisories === 0) expect(least).toBeLessThan(book.limitOf('silent') + SLACK_MS)
    if (book.epoch > 0) expect(least).toBeLessThan(book.limitOf('exhausted') + SLACK_MS)
    expect(signalled?.least ?? 0).toBeLessThan(book.limitOf('completion-silent') + SLACK_MS)
  }
}

it('K12: whatever the order of frames, holds, sleeps and turns, silence is told when it is so and only then', async () => {
  await fc.assert(fc.asyncProperty(steps, play), propertyParameters(500))
})
