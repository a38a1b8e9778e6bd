/** Every hostile program, each in a tmux pane, stopped with both cores busy: closing a pane is not what ends them. */
import { describe, expect, it } from 'vitest'
import { catalogue } from '../fixtures/catalogue.js'
import { EMPTY_ADOPTED, openTestEngine } from '../support/engine.js'
import {
  REPEATS_ELSEWHERE as REPEATS,
  endBeyondMarks,
  expectTruth,
  stopWhenReady,
} from '../support/hostile.js'
import { loadCores } from '../support/load.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'

const AT_ONCE = 6

describe('hostile programs in panes', () => {
  it(`P12, C5: each is gone, and its pane closed, when its stop says so, in ${String(REPEATS)} stops of each`, async ({
    skip,
  }) => {
    if (!hasTmux) skip(NO_TMUX)
    const engine = await openTestEngine()
    const tmux = testTmux()
    tmux.run('new-session', '-d', '-s', 'it', '--', 'sleep', '3600')
    await loadCores(2)
    const surface = { kind: 'tmux', socketName: tmux.socketName, session: 'it' } as const
    const queue = Array.from({ length: REPEATS }, () => catalogue).flat()
    const work = async (): Promise<void> => {
      for (let fixture = queue.pop(); fixture !== undefined; fixture = queue.pop()) {
        const [started, receipt] = await stopWhenReady(engine, fixture, { surface })
        expectTruth(fixture, started, receipt)
        endBeyondMarks(fixture, started)
        expect((await started.run.outcome).status, fixture.name).toBe(fixture.outcome)
        expect((await started.run.gone).evidence).toMatchObject([{ attempt: 1, kind: EMPTY_ADOPTED }])
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    expect(tmux.panes()).toHaveLength(1)
  }, 600_000)
})
