/** Is it working, or only alive? On a clock that moves only when told to. */
import { describe, expect, it } from 'vitest'
import type { TurnStamp } from '../../src/machines/run/run.context.js'
import { ProgressClock } from '../../src/internal.js'
import { ManualClock } from '../support/manual-clock.js'

const LIMITS = { neverStartedMs: 300_000, advisoryMs: 300_000 }

interface Watched {
  readonly clock: ManualClock
  readonly progress: ProgressClock
  readonly progressed: TurnStamp[]
  readonly silences: TurnStamp[]
  isRecorded: boolean
}

const watch = (): Watched => {
  const clock = new ManualClock()
  const watched: Watched = {
    clock,
    progressed: [],
    silences: [],
    isRecorded: true,
    progress: new ProgressClock(clock, LIMITS, {
      progressed: (stamp) => watched.progressed.push(stamp),
      silent: (stamp) => {
        watched.silences.push(stamp)
        return Promise.resolve(watched.isRecorded)
      },
    }),
  }
  watched.progress.begin(1, 1)
  return watched
}

describe('the progress clock', () => {
  it('K5: nothing seen since the prompt is told once its time has passed, exactly once', async () => {
    const { clock, silences, progress } = watch()
    await clock.advance(299_999)
    expect(silences).toEqual([])
    await clock.advance(2)
    expect(silences).toEqual([{ attempt: 1, generation: 1, epoch: 0 }])
    progress.stop()
    await clock.advance(3_600_000)
    expect(silences).toHaveLength(1)
  })

  it('K1: a frame costs no timer, and only the first of a turn is an edge', async () => {
    const { clock, progress, progressed, silences } = watch()
    for (let frame = 0; frame < 100_000; frame += 1) progress.progress()
    expect(progressed).toEqual([{ attempt: 1, generation: 1, epoch: 1 }])
    expect(clock.armed).toBe(1)
    await clock.advance(299_000)
    progress.progress()
    await clock.advance(299_000)
    expect(silences).toEqual([])
  })

  it('K8: silence after progress is told once a generation, and the next progress is an edge again', async () => {
    const { clock, progress, progressed, silences } = watch()
    progress.progress()
    await clock.advance(300_001)
    await clock.advance(3_600_000)
    expect(silences).toEqual([{ attempt: 1, generation: 1, epoch: 1 }])
    progress.progress()
    expect(progressed).toHaveLength(2)
    await clock.advance(3_600_000)
    expect(silences).toHaveLength(1)
    progress.begin(1, 2)
    progress.progress()
    await clock.advance(300_001)
    expect(silences.at(-1)).toEqual({ attempt: 1, generation: 2, epoch: 1 })
  })

  it('K4: attempt, generation and epoch are read together, and move with each frame', () => {
    const { progress } = watch()
    const before = progress.stamp
    progress.progress()
    expect(progress.stamp).not.toEqual(before)
    progress.begin(2, 5)
    expect(progress.stamp).toEqual({ attempt: 2, generation: 5, epoch: 0 })
  })

  it('K7: a silence that could not be recorded is told again', async () => {
    const watched = watch()
    watched.isRecorded = false
    await watched.clock.advance(300_001)
    await watched.clock.advance(2_500)
    expect(watched.silences.length).toBeGreaterThanOrEqual(3)
    watched.isRecorded = true
    await watched.clock.advance(1_001)
    const told = watched.silences.length
    watched.progress.stop()
    await watched.clock.advance(600_000)
    expect(watched.silences).toHaveLength(told)
  })

  it('INV-9, O7: frozen time does not count', async () => {
    const { clock, progress, silences } = watch()
    await clock.advance(200_000)
    progress.freeze()
    await clock.advance(7_200_000)
    expect(silences).toEqual([])
    progress.thaw()
    await clock.advance(99_000)
    expect(silences).toEqual([])
    await clock.advance(2_000)
    expect(silences).toHaveLength(1)
  })

  it('INV-9, K12: time in which the machine slept, or the loop was blocked, does not count', async () => {
    const { clock, silences } = watch()
    await clock.advance(100_000)
    await clock.jump(3_600_000)
    expect(silences).toEqual([])
    await clock.advance(400_000)
    expect(silences).toHaveLength(1)
  })

  it('K12: a step of the wall clock changes nothing', async () => {
    const { clock, silences } = watch()
    await clock.advance(100_000)
    clock.stepWall(600_000)
    clock.stepWall(-7_200_000)
    await clock.advance(199_000)
    expect(silences).toEqual([])
  })
})
