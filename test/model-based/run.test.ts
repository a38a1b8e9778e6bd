/**
 * The charts on real processes and a real store: each transition is driven, and after each step the chart by itself, the row, the kernel
 * and what the engine shows are compared. Prints how many transitions were driven, and which were not, with the reason.
 */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DeliveryHooks } from '../../src/actors/deliveries.js'
import { openRecords } from '../../src/index.js'
import type { Run, RunSpec } from '../../src/index.js'
import { registryMachine } from '../../src/machines/registry/registry.machine.js'
import { runMachine } from '../../src/machines/run/run.machine.js'
import { stopOrderMachine } from '../../src/machines/stop-order/stop-order.machine.js'
import { transitionsOf } from '../model/chart.js'
import { acp } from '../../src/protocols.js'
import { acpAgent } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { identityOf, isAlive } from '../support/proc-reader.js'
import { waitFor } from '../support/wait-for.js'
import { reasonFor } from './not-driven.js'
import { steps, taken } from './recorder.js'
import { onStage } from './stage.js'
import type { Stage } from './stage.js'

const TIMEOUT_MS = 90_000
const HOURS_MS = 3_600_000

const drive = (
  name: string,
  act: (stage: Stage) => Promise<void>,
  delivery: Partial<DeliveryHooks> = {},
): void => {
  test.concurrent(
    `INV-1, INV-3, INV-5, INV-8: on real processes: ${name}`,
    { timeout: TIMEOUT_MS },
    async () => {
      expect(await onStage(delivery, act)).toEqual([])
    },
  )
}

/** For what happens in other processes, and nobody tells of. */
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 300))

const stubborn = ['sh', '-c', 'trap "" TERM; echo up; while :; do sleep 0.05; done']
const leaves = ['sh', '-c', '(trap "" TERM; while :; do sleep 0.05; done) & exit 0']
const missing = { command: ['/nowhere/agent'] }

// ── every way into a state of work, and every way out of it ─────────────────────────────────────

const work = { say: { type: 'work' } } as const
const done = { say: { type: 'done' } } as const

const PLACES: Readonly<
  Record<string, { readonly before: readonly Step[]; readonly spec: Partial<RunSpec> }>
> = {
  accepted: { before: [], spec: { prompt: 'begin' } },
  active: { before: [work], spec: { prompt: 'begin' } },
  ready: { before: [], spec: {} },
  finishing: { before: [work, done], spec: { prompt: 'begin', oneShot: true } },
}

type Way = (stage: Stage, run: Run) => Promise<unknown> | undefined

const always = { when: () => true }

const WAYS: Readonly<
  Record<string, { readonly then?: readonly Step[]; readonly spec?: Partial<RunSpec>; readonly way: Way }>
> = {
  'a cancel': { way: (_, run) => run.cancel() },
  'an interrupt': { way: (_, run) => run.interrupt() },
  'a shutdown': { way: ({ engine }) => engine.close({ runs: 'suppress' }) },
  'its time limit': {
    spec: { limits: { timeoutMs: HOURS_MS / 2 } },
    way: async ({ clock }) => {
      clock.hasten(HOURS_MS)
    },
  },
  'exit 0': {
    then: [{ exit: 0 }],
    way: async (stage) => {
      stage.go('go')
    },
  },
  'exit 1': {
    then: [{ exit: 1 }],
    way: async (stage) => {
      stage.go('go')
    },
  },
  'exit 1, and another candidate': {
    then: [{ exit: 1 }],
    spec: { fallback: { candidates: [{ command: ['true'] }], ...always } },
    way: async (stage) => {
      stage.go('go')
    },
  },
  'the loss of its engine and then of its process, taken up by who wants nothing of it': {
    then: [{ exit: 0 }],
    way: async (stage, run) => {
      await stage.engine.close({ runs: 'leave' })
      stage.go('go')
      await gone(run.pid)
      const engine = await stage.open({ recover: false })
      await engine.stop({ run: run.id }, { mode: 'terminate' })
    },
  },
  'the loss of its engine and then of its process': {
    then: [{ exit: 0 }],
    way: async (stage, run) => {
      await stage.engine.close({ runs: 'leave' })
      stage.go('go')
      await gone(run.pid)
      await stage.open()
    },
  },
}

const gone = async (pid: number | undefined): Promise<void> => {
  const identity = pid === undefined ? undefined : identityOf(pid)
  await waitFor(() => identity === undefined || !isAlive(identity), {
    deadlineMs: 20_000,
    what: 'it is gone',
  })
}

describe('work', () => {
  for (const [place, { before, spec }] of Object.entries(PLACES)) {
    for (const [name, { then = [], spec: more = {}, way }] of Object.entries(WAYS)) {
      drive(`${place}, ended by ${name}`, async (stage) => {
        const steps: Step[] = [...before, { until: stage.file('go') }, ...then]
        const run = await stage.talk(steps, { ...spec, ...more })
        await stage.until(run, 'alive')
        await stage.until(run, place)
        await way(stage, run)
        // One that is gone when it is taken up is held no longer, and its record says so.
        await using records = await openRecords({ database: join(stage.folder, 'runs.db') })
        await waitFor(async () => (await records.history(run.id)).run.process === 'confirmed', {
          deadlineMs: 20_000,
          what: `${run.id} is confirmed on record`,
        })
      })
    }
  }

  drive('an advisory, withdrawn, and a stall', async ({ talk, until, clock, file, go }) => {
    const run = await talk([work, { until: file('more') }, work], {
      prompt: 'begin',
      watchdog: { advisoryMs: 60_000, stalledMs: 600_000, sleepGapMs: HOURS_MS },
    })
    await until(run, 'progressing')
    clock.hasten(70_000)
    await until(run, 'stalled-advisory')
    go('more')
    await until(run, 'progressing')
    clock.hasten(700_000)
    await until(run, 'failed-stalled')
    await until(run, 'confirmed')
  })

  drive('a run that never starts', async ({ talk, until, clock }) => {
    const run = await talk([], {
      prompt: 'begin',
      watchdog: { neverStartedMs: 60_000, sleepGapMs: HOURS_MS },
    })
    await until(run, 'alive')
    clock.hasten(70_000)
    await until(run, 'failed-never-started')
    await until(run, 'confirmed')
  })

  drive('questions to a person, before any progress and after it', async ({ talk, file, go }) => {
    const asks = { say: { type: 'ask', id: 'q' } } as const
    const run = await talk(
      [
        asks,
        { until: file('a') },
        { say: { type: 'answer', id: 'q' } },
        { until: file('b') },
        asks,
        { until: file('c') },
      ],
      {
        prompt: 'begin',
      },
    )
    await waitFor(() => run.activity.isWaitingForPerson, { deadlineMs: 20_000, what: 'it asks' })
    go('a')
    await waitFor(() => !run.activity.isWaitingForPerson, { deadlineMs: 20_000, what: 'it is answered' })
    go('b')
    await run.cancel()
  })

  for (const oneShot of [false, true]) {
    for (const isActive of [false, true]) {
      const name = `${oneShot ? 'one' : 'many'} turns, ${isActive ? 'active' : 'accepted'}`
      const before: Step[] = isActive ? [work] : []
      const place = isActive ? 'active' : 'accepted'
      drive(`${name}: a turn that is cancelled and heard`, async ({ talk, until, file }) => {
        const run = await talk(
          [...before, { hear: 1 }, { say: 'heard' }, { say: 'cancelled' }, { until: file('x') }].map(
            (step) => ('say' in step && typeof step.say === 'string' ? { say: { type: step.say } } : step),
          ),
          { prompt: 'begin', oneShot },
        )
        await until(run, 'alive')
        await until(run, place)
        await run.cancelTurn()
        await until(run, oneShot ? 'confirmed' : 'ready')
      })
      drive(`${name}: a turn that is complete without its end`, async ({ talk, until, clock }) => {
        const run = await talk([...before, { say: { type: 'signal' } }], {
          prompt: 'begin',
          oneShot,
          watchdog: { neverStartedMs: false, completionSignalMs: 60_000, sleepGapMs: HOURS_MS },
        })
        await until(run, 'alive')
        await until(run, place)
        await settle()
        clock.hasten(120_000)
        await until(run, oneShot ? 'finishing' : 'ready')
        await run.cancel()
      })
      drive(`${name}: a turn that is completed`, async ({ talk, until, file, go }) => {
        const run = await talk([...before, { until: file('go') }, done], { prompt: 'begin', oneShot })
        await until(run, 'alive')
        await until(run, place)
        go('go')
        await until(run, oneShot ? 'finishing' : 'ready')
        await run.cancel()
      })
    }
  }

  drive('a second turn, and the end of all turns', async ({ talk, until }) => {
    const run = await talk([done, { hear: 1 }, done, { hearEnd: true }, { exit: 0 }], { prompt: 'begin' })
    await until(run, 'ready')
    await run.prompt('again')
    await run.finish()
    await until(run, 'confirmed')
  })

  drive('a prompt and a finish before there is an agent', async ({ start, talk, when, until }) => {
    when('launching', (run) => run.prompt('early').catch(() => undefined))
    const run = await talk([{ hear: 1 }, done, { hearEnd: true }, { exit: 0 }])
    await until(run, 'alive')
    await until(run, 'ready')
    await run.finish()
    when('launching', (other) => other.finish().catch(() => undefined))
    const other = await talk([{ hearEnd: true }, { exit: 0 }])
    await until(other, 'confirmed')
    await start({})
  })

  for (const isOk of [true, false]) {
    drive(
      `an agent that does not exit when it is ${isOk ? 'done' : 'failed'}, and one that meets its limit then`,
      async ({ talk, until, clock }) => {
        const ends = { say: { type: 'done', isOk } } as const
        const run = await talk([work, ends], { prompt: 'begin', oneShot: true })
        await until(run, 'finishing')
        clock.hasten(20_000)
        await until(run, 'confirmed')
        const other = await talk([work, ends], {
          prompt: 'begin',
          oneShot: true,
          limits: { timeoutMs: HOURS_MS },
        })
        await until(other, 'finishing')
        clock.hasten(HOURS_MS)
        await until(other, 'confirmed')
      },
    )
  }

  drive('commands that write and end', async ({ start, until, file, go }) => {
    const command = ['sh', '-c', `echo up; while [ ! -e ${file('go')} ]; do sleep 0.05; done`]
    const run = await start({ command })
    await until(run, 'active')
    go('go')
    await until(run, 'completed')
  })

  drive('a turn that is cancelled before there is an agent', async ({ talk, until, when }) => {
    when('launching', (run) => run.cancelTurn())
    const run = await talk([], { prompt: 'begin' })
    await until(run, 'alive')
    await run.cancel()
  })

  for (const prompt of [undefined, 'begin']) {
    for (const isAlone of [true, false]) {
      const name = `${prompt === undefined ? 'without a prompt' : 'with one'}, ${isAlone ? 'alone' : 'with another candidate'}`
      drive(`sessions that cannot begin, ${name}`, async ({ start, until }) => {
        const run = await start({
          command: acpAgent('old'),
          protocol: acp(),
          ...(prompt === undefined ? {} : { prompt }),
          ...(isAlone ? {} : { fallback: { candidates: [{ command: acpAgent('old') }], ...always } }),
        })
        await until(run, 'failed')
        await until(run, 'confirmed')
      })
    }
  }

  drive('launches that fail', async ({ start, until, talk }) => {
    await until(await start(missing), 'failed')
    await until(await start({ ...missing, fallback: { candidates: [{ command: ['true'] }] } }), 'completed')
    await until(await talk([], missing), 'failed')
    await until(
      await talk([], { ...missing, fallback: { candidates: [{ command: ['/nowhere/else'] }], ...always } }),
      'failed',
    )
  })
})

// ── the ladder ──────────────────────────────────────────────────────────────────────────────────

type Order = 'cancel' | 'interrupt' | 'terminate'

const force = (stage: Stage, run: Run, mode: Order) =>
  stage.engine.stop({ run: run.id }, { mode, force: true })

describe('process', () => {
  for (const mode of ['cancel', 'interrupt'] as const) {
    drive(`a ladder whose TERM is ignored, and one that is forced by ${mode}`, async (stage) => {
      const { start, until, clock } = stage
      const run = await start({ command: stubborn })
      await until(run, 'alive')
      const stopping = run.interrupt()
      await until(run, 'term-sent')
      await run[mode]({ force: true })
      await stopping
      const cancelled = await start({ command: stubborn })
      await until(cancelled, 'active')
      void cancelled.cancel()
      await until(cancelled, 'term-sent')
      await cancelled[mode]({ force: true })
      const other = await start({ command: stubborn })
      await until(other, 'alive')
      void other.cancel()
      await until(other, 'term-sent')
      clock.hasten(10_000)
      await until(other, 'confirmed')
      const forced = await start({ command: stubborn })
      await until(forced, 'alive')
      await forced[mode]({ force: true })
      const frozen = await start({ command: stubborn })
      await until(frozen, 'alive')
      await frozen.pause()
      await frozen[mode]({ force: true })
    })

    drive(`an agent that is asked, and forced by ${mode}`, async ({ start, until }) => {
      const run = await start({ command: stubborn, stop: { askGraceMs: HOURS_MS, killGraceMs: 10_000 } })
      await until(run, 'alive')
      void run.interrupt()
      await until(run, 'asking')
      await run[mode]({ force: true })
    })

    drive(`orders that come while a launch is under way: ${mode}`, async (stage) => {
      stage.when('launching', (run) => run[mode]())
      await stage.until(await stage.start({ command: stubborn }), 'term-sent')
      stage.clock.hasten(10_000)
      stage.when('launching', (run) => run[mode]({ force: true }))
      await stage.until(await stage.start({ command: stubborn }), 'confirmed')
    })
  }

  drive(
    'an agent that is asked: it goes, it leaves a child, it does not hear, it was frozen',
    async ({ start, talk, until, clock, file }) => {
      const stop = { askGraceMs: HOURS_MS, termGraceMs: 2_000, killGraceMs: 10_000 }
      const goes = await talk([{ hearEnd: true }, { exit: 0 }], { stop })
      await until(goes, 'alive')
      await goes.interrupt()
      const child = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.05; done']
      const leaver = await talk([{ child }, { hearEnd: true }, { exit: 0 }], { stop })
      await until(leaver, 'alive')
      await settle()
      void leaver.interrupt()
      await until(leaver, 'term-sent')
      clock.hasten(10_000)
      await until(leaver, 'confirmed')
      const deaf = await start({ command: stubborn, stop })
      await until(deaf, 'alive')
      void deaf.interrupt()
      await until(deaf, 'asking')
      clock.hasten(2 * HOURS_MS)
      await until(deaf, 'term-sent')
      clock.hasten(10_000)
      await until(deaf, 'confirmed')
      const frozen = await talk([{ until: file('never') }], { stop })
      await until(frozen, 'alive')
      await frozen.pause()
      void frozen.interrupt()
      await until(frozen, 'asking')
      await frozen.cancel({ force: true })
    },
  )

  drive('terminate, and shutdowns, of what is settled and still lives', async (stage) => {
    const { start, until } = stage
    const run = await start({ command: leaves })
    await until(run, 'term-sent')
    await force(stage, run, 'terminate')
    const other = await start({ command: leaves })
    await until(other, 'term-sent')
    void stage.engine.close({ runs: 'suppress' })
    await until(other, 'kill-sent')
  })

  drive(
    'members that a leader leaves behind, alive and frozen',
    async ({ start, until, clock, file, go }) => {
      const run = await start({ command: leaves })
      await until(run, 'term-sent')
      clock.hasten(10_000)
      await until(run, 'confirmed')
      const child = `(trap "" TERM; while :; do sleep 0.05; done) &`
      const waits = await start({
        command: ['sh', '-c', `${child} while [ ! -e ${file('go')} ]; do sleep 0.05; done; exit 0`],
      })
      await until(waits, 'alive')
      go('go')
      await until(waits, 'term-sent')
      clock.hasten(10_000)
      await until(waits, 'confirmed')
    },
  )

  drive(
    'a pause, another one, a resumption, and a window that passes',
    async ({ start, until, clock, engine, when }) => {
      const run = await start({ command: stubborn, stop: { pauseGraceMs: 60_000, killGraceMs: 10_000 } })
      await until(run, 'alive')
      await engine.presence.inUse()
      await run.pause()
      await run.resume()
      await engine.presence.idle()
      await run.pause()
      clock.hasten(120_000)
      await until(run, 'term-sent')
      clock.hasten(10_000)
      await until(run, 'confirmed')
      when('launching', (early) => early.pause().catch(() => undefined))
      const early = await start({ command: stubborn })
      await until(early, 'frozen')
      await early.resume()
      void early.cancel({ force: true })
      when('launching', (late) => {
        void late.pause().catch(() => undefined)
        void late.resume().catch(() => undefined)
      })
      const late = await start({ command: stubborn })
      await until(late, 'alive')
      await late.cancel({ force: true })
      const frozen = await start({ command: stubborn })
      await until(frozen, 'alive')
      await frozen.pause()
      void frozen.cancel()
      await until(frozen, 'term-sent')
    },
  )

  drive('a frozen tree that is killed from outside', async ({ start, until }) => {
    const run = await start({ command: ['sleep', '100'] })
    await until(run, 'alive')
    await run.pause()
    process.kill(run.pid ?? 0, 'SIGKILL')
    await until(run, 'confirmed')
  })

  drive('a kill that is not over at its deadline, told again and by a timer', async (stage) => {
    const { start, until, clock } = stage
    const many = [
      'sh',
      '-c',
      'for i in 1 2 3 4 5 6 7 8; do (trap "" TERM; while :; do sleep 0.05; done) & done; wait',
    ]
    for (const again of ['nothing', 'timer', 'cancel', 'interrupt', 'terminate'] as const) {
      const run = await start({ command: many, stop: { termGraceMs: 0, killGraceMs: 0 } })
      await until(run, 'alive')
      void run.interrupt()
      await until(run, 'unconfirmed')
      if (again === 'timer') clock.hasten(10_000)
      else if (again !== 'nothing') void stage.engine.stop({ run: run.id }, { mode: again })
      await until(run, 'confirmed')
    }
  })

  drive('a sweep of what a leader left that is not over at its deadline, ended again', async (stage) => {
    const child = '(trap "" TERM; while :; do sleep 0.05; done) &'
    const run = await stage.start({
      command: ['sh', '-c', `${child.repeat(8)} exit 0`],
      stop: { termGraceMs: 0, killGraceMs: 0 },
    })
    await stage.until(run, 'unconfirmed')
    void stage.engine.stop({ run: run.id }, { mode: 'terminate' })
    await stage.until(run, 'confirmed')
  })

  drive(
    'a leader that goes before its children do, in the ladder and frozen',
    async ({ start, until, clock }) => {
      const family = ['sh', '-c', '(trap "" TERM; while :; do sleep 0.05; done) & echo up; wait']
      const run = await start({ command: family })
      await until(run, 'active')
      await settle()
      void run.cancel()
      await until(run, 'term-sent')
      await settle()
      clock.hasten(10_000)
      await until(run, 'confirmed')
      const frozen = await start({ command: family })
      await until(frozen, 'active')
      await settle()
      await frozen.pause()
      process.kill(frozen.pid ?? 0, 'SIGKILL')
      await until(frozen, 'term-sent')
      clock.hasten(10_000)
      await until(frozen, 'confirmed')
    },
  )

  drive('orders before anything is launched', async ({ start, until, when }) => {
    when('waiting', (run) => run.cancel())
    await until(await start({ command: stubborn }), 'confirmed')
    when('waiting', (run) => {
      void run.pause().catch(() => undefined)
      void run.resume().catch(() => undefined)
    })
    const run = await start({ command: stubborn })
    await until(run, 'alive')
    await run.cancel({ force: true })
  })

  drive('left and taken up by who wants nothing of it, then frozen and killed', async (stage) => {
    const run = await stage.start({ command: ['sleep', '100'] })
    await stage.until(run, 'alive')
    const { pid } = run
    await stage.engine.close({ runs: 'leave' })
    const engine = await stage.open({ recover: false })
    await engine.stop({ run: run.id }, { mode: 'terminate', timeoutMs: 500 })
    const held = engine.run(run.id)
    if (held === undefined) return
    await held.pause()
    process.kill(pid ?? 0, 'SIGKILL')
    await stage.until(held, 'confirmed')
  })

  drive('orders that are repeated while it is being ended, and a shutdown behind them', async (stage) => {
    const { start, until } = stage
    const stop = { termGraceMs: 60_000, killGraceMs: 10_000 }
    const [run, other] = [await start({ command: stubborn, stop }), await start({ command: stubborn, stop })]
    await until(run, 'active')
    await until(other, 'active')
    void run.cancel()
    void other.interrupt()
    await until(run, 'term-sent')
    await until(other, 'term-sent')
    void run.cancel()
    void run.interrupt()
    await settle()
    void stage.engine.close({ runs: 'suppress', deadlineMs: 600_000 })
    await settle()
    stage.clock.hasten(60_000)
    await until(run, 'confirmed')
    await until(other, 'confirmed')
  })

  drive('engines that are left at each step of the ladder', async (stage) => {
    for (const place of ['alive', 'frozen', 'asking', 'term-sent']) {
      const termGraceMs = place === 'term-sent' ? 60_000 : 500
      const stop = { askGraceMs: place === 'asking' ? HOURS_MS : 0, termGraceMs, killGraceMs: 10_000 }
      const run = await stage.start({ command: stubborn, stop })
      await stage.until(run, 'alive')
      if (place === 'frozen') await run.pause()
      if (place === 'asking' || place === 'term-sent') void run.interrupt()
      await stage.until(run, place)
      const { pid } = run
      await stage.engine.close({ runs: 'leave', deadlineMs: 1_000 })
      if (place !== 'alive') {
        process.kill(pid ?? 0, 'SIGKILL')
        await gone(pid)
      }
      await stage.open()
      const taken = stage.engine.run(run.id)
      if (taken === undefined) continue
      await stage.until(taken, 'confirmed')
    }
  })
})

// ── delivery ────────────────────────────────────────────────────────────────────────────────────

const HOOKS: Readonly<Record<string, Partial<DeliveryHooks>>> = {
  'without hooks': {},
  'with finalize': { finalize: () => 1 },
  'with deliver': { deliver: () => undefined },
  'with both': { finalize: () => 1, deliver: () => undefined },
  'with a finalize that hangs': { finalize: () => new Promise(() => undefined) },
  'with both, where finalize hangs': {
    finalize: () => new Promise(() => undefined),
    deliver: () => undefined,
  },
}

describe('delivery', () => {
  for (const [name, hooks] of Object.entries(HOOKS)) {
    drive(
      `an outcome ${name}`,
      async ({ start, until, clock }) => {
        const run = await start({})
        await until(run, 'completed')
        if (name.includes('hangs')) {
          await until(run, 'finalizing')
          clock.hasten(60_000)
        }
        await until(run, 'delivered')
      },
      hooks,
    )
    if (name === 'without hooks' || name === 'with deliver') continue
    drive(
      `a shutdown ${name}`,
      async ({ start, until, engine }) => {
        const run = await start({})
        await until(run, 'completed')
        await engine.close({ runs: 'suppress' })
      },
      hooks,
    )
  }

  let calls = 0
  drive(
    'a delivery that fails, and is made again; and one that is given up by a shutdown',
    async ({ start, until, clock, engine }) => {
      const run = await start({})
      await until(run, 'retrying')
      clock.hasten(600_000)
      await until(run, 'delivered')
      calls = 0
      const other = await start({})
      await until(other, 'retrying')
      await engine.close({ runs: 'suppress' })
    },
    {
      deliver: () => {
        calls += 1
        if (calls === 1) throw new Error('away')
      },
    },
  )
  drive(
    'a delivery that hangs, and is given up by a shutdown',
    async ({ start, until, engine }) => {
      const run = await start({})
      await until(run, 'delivering')
      await engine.close({ runs: 'suppress' })
    },
    { deliver: () => new Promise(() => undefined) },
  )
})

// ── orders ──────────────────────────────────────────────────────────────────────────────────────

describe('orders and the registry', () => {
  drive(
    'orders over nothing, over what is not there, and over persistent runs',
    async ({ engine, start, until }) => {
      await engine.stop({ session: 'nobody' })
      await engine.stop({ run: 'nobody' }).catch(() => undefined)
      const run = await start({ command: stubborn, persistent: true, session: 's', stop: { askGraceMs: 0 } })
      await until(run, 'alive')
      await engine.pause({ session: 's' }, { timeoutMs: 5_000 })
      void engine.stop({ session: 's' }, { force: true })
      await until(run, 'kill-sent')
      await engine.pause({ session: 's' }, { timeoutMs: 1_000 })
      await until(run, 'confirmed')
    },
  )

  drive('an order that settles while its engine closes', async ({ engine, start, until }) => {
    const run = await start({ command: stubborn, session: 's', stop: { termGraceMs: 300 } })
    await until(run, 'active')
    const stopping = engine.stop({ session: 's' })
    await until(run, 'term-sent')
    await Promise.all([engine.close({ runs: 'cancel' }), stopping])
  })

  drive(
    'orders that are open while an engine closes, and a closing that meets its deadline',
    async ({ engine, start, until, clock }) => {
      const run = await start({ command: stubborn, session: 's', stop: { termGraceMs: 60_000 } })
      await until(run, 'alive')
      const stopping = engine.stop({ session: 's' })
      const closing = engine.close({ runs: 'cancel', deadlineMs: 5_000 })
      void engine.stop({ session: 's' }).catch(() => undefined)
      await until(run, 'term-sent')
      clock.hasten(6_000)
      await closing
      await stopping
      // The deadline of the closing came before the end of its ladder: it is left, and nobody comes after.
      process.kill(-(run.pid ?? 0), 'SIGKILL')
      await gone(run.pid)
    },
  )
})

describe('what was driven', () => {
  test('INV-10: every transition was driven on real processes, or says why it cannot be', () => {
    const charts = { run: runMachine, 'stop-order': stopOrderMachine, registry: registryMachine }
    const lacking: string[] = []
    for (const [name, machine] of Object.entries(charts)) {
      const all = [...new Set(transitionsOf(machine as never))]
      const missed = all.filter((transition) => !taken.has(transition))
      console.log(
        `${name}: ${String(all.length - missed.length)} of ${String(all.length)} edges covered, ${String(steps[name as 'run'])} steps compared`,
      )
      for (const transition of missed)
        console.log(`  not driven: ${transition}: ${reasonFor(transition) ?? '?'}`)
      lacking.push(...missed.filter((transition) => reasonFor(transition) === null))
    }
    expect(lacking).toEqual([])
  })
})
