/** One engine over a store file, real processes, a clock that can be hurried, and the recorder behind it all. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import type { DeliveryHooks } from '../../src/actors/deliveries.js'
import type { Engine, Run, RunSpec } from '../../src/index.js'
import { engineOptionsSchema, openEngineOver, openStore, parseOptions } from '../../src/internal.js'
import { conversational } from '../../src/testing/simulated-agent.js'
import { scriptedAgent } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { TIER } from '../support/engine.js'
import { waitFor } from '../support/wait-for.js'
import { HastyClock } from './hasty-clock.js'
import { Recorder } from './recorder.js'

const DEADLINE_MS = 20_000

export interface Stage {
  readonly folder: string
  readonly clock: HastyClock
  readonly recorder: Recorder
  /** The engine that was opened last. */
  readonly engine: Engine
  readonly open: (more?: { readonly recover: false }) => Promise<Engine>
  readonly start: (spec: Partial<RunSpec>) => Promise<Run>
  /** A run that speaks; its agent hears its first prompt, if there is one, and then does what it is told. */
  readonly talk: (steps: readonly Step[], spec?: Partial<RunSpec>) => Promise<Run>
  /** What agents wait for with `until`. */
  readonly file: (name: string) => string
  readonly go: (name: string) => void
  readonly until: (run: Run, place: string) => Promise<void>
  /** Calls `act` in the tick in which a run is heard to be there. */
  readonly when: (place: string, act: (run: Run) => unknown) => void
}

const stands = (run: Run, place: string): boolean => {
  const { work, process, delivery } = run.state
  return [work, process, delivery].some((at) => `.${at}.`.includes(`.${place}.`))
}

/** Ends everything that is left, and tells what did not agree. */
export const onStage = async (
  delivery: Partial<DeliveryHooks>,
  act: (stage: Stage) => Promise<void>,
): Promise<readonly string[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'runwarden-test-'))
  const database = join(folder, 'runs.db')
  const clock = new HastyClock()
  const options = parseOptions(
    engineOptionsSchema,
    { database, logs: false, delivery, containment: { prefer: TIER } },
    'test',
  )
  const store = await openStore(options)
  const other = new BetterSqlite3(database, { readonly: true })
  const recorder = new Recorder({
    rows: (sql) => Promise.resolve(other.prepare(sql).all() as Record<string, unknown>[]),
    lock: () => Promise.reject(new Error('nobody locks it')),
  })
  let engine: Engine | undefined
  const watched: { readonly place: string; readonly act: (run: Run) => unknown }[] = []
  const open = async (more: { readonly recover?: false } = {}): Promise<Engine> => {
    const opened = await openEngineOver(
      recorder.over(engine === undefined ? store : await openStore(options)),
      { ...options, ...more },
      clock,
    )
    opened.subscribe((event) => {
      recorder.heard(event)
      if (event.type !== 'transition') return
      const run = opened.run(event.runId)
      if (run === undefined) return
      for (const one of watched.filter(({ place }) => stands(run, place))) {
        watched.splice(watched.indexOf(one), 1)
        void one.act(run)
      }
    })
    engine = opened
    return opened
  }
  await open()
  const file = (name: string): string => join(folder, name)
  const start: Stage['start'] = (spec) => {
    if (engine === undefined) throw new Error('no engine')
    return engine.start({ command: ['true'], stop: { termGraceMs: 2_000, killGraceMs: 10_000 }, ...spec })
  }
  const stage: Stage = {
    folder,
    clock,
    recorder,
    get engine() {
      if (engine === undefined) throw new Error('no engine')
      return engine
    },
    open,
    start,
    talk: (steps, spec = {}) =>
      start({
        command: scriptedAgent(...(spec.prompt === undefined ? [] : [{ hear: 1 }]), ...steps, { stay: true }),
        protocol: conversational(),
        ...spec,
      }),
    file,
    go: (name) => {
      writeFileSync(file(name), '')
    },
    until: async (run, place) => {
      await waitFor(() => stands(run, place), {
        deadlineMs: DEADLINE_MS,
        what: `${run.id} is ${place}: ${run.state.headline}`,
      })
    },
    when: (place, then) => {
      watched.push({ place, act: then })
    },
  }
  try {
    await act(stage)
  } finally {
    clock.hasten(3_600_000)
    await engine?.close({ runs: 'cancel', deadlineMs: DEADLINE_MS }).catch(() => undefined)
    other.close()
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true })
  }
  return recorder.faults
}
