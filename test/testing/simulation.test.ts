/** Simulations as a host uses them: through the package's own names, with no clock, process or disk behind them. */
import { expect, it, onTestFinished } from 'vitest'
import type { Delivery } from '../../src/index.js'
import { openJobs } from '../../src/jobs.js'
import { busy, conversational, createSimulation, line } from '../../src/testing.js'
import type { Simulation, SimulationOptions } from '../../src/testing.js'

const simulate = async (options: SimulationOptions = {}): Promise<Simulation> => {
  const simulation = await createSimulation(options)
  onTestFinished(() => simulation.close())
  return simulation
}

const agent = { command: ['agent'], env: {} }

it('INV-12: a host sees in a test that it is told again, under one id, of what it did not take', async () => {
  const delivered: Delivery[] = []
  const simulation = await simulate({
    onLaunch: (execution) => {
      execution.exit(0)
    },
    engine: {
      delivery: {
        deliver: (delivery) => {
          delivered.push(delivery)
          if (delivered.length === 1) throw new Error('the host is busy')
        },
      },
    },
  })
  const run = await simulation.engine.start(agent)
  await simulation.until(() => run.state.isDone)
  expect(delivered.map(({ deliveryId }) => deliveryId)).toEqual([`${run.id}/result`, `${run.id}/result`])
  expect(delivered[0]?.outcome.status).toBe('completed')
})

it('K13: an agent that answers its prompts is spoken to in simulated time', async () => {
  const simulation = await simulate({
    onLaunch: (execution) => {
      execution.onInput = (text) => {
        const { type, id } = JSON.parse(text) as { type: string; id: string }
        simulation.clock.after(2_000, () => {
          execution.say(line(type === 'prompt' ? { type: 'done', prompt: id } : 'cancelled'))
        })
      }
    },
  })
  const { engine, clock } = simulation
  const run = await engine.start({ ...agent, protocol: conversational() })
  const startedMs = clock.monotonicMs()
  expect(await simulation.drive(run.prompt('hello'))).toMatchObject({ status: 'completed' })
  expect(clock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(2_000)
})

it('INV-13: a crash at any call leaves a run that the next engine brings to its end', async () => {
  for (const isDone of [false, true]) {
    for (let calls = 1; calls < 30; calls += 3) {
      const simulation = await simulate({ seed: calls })
      const { engine, life, machine } = simulation
      life.endAt(calls, { isDone })
      void engine.start({ ...agent, id: 'run' }).then(
        (run) => run.cancel(),
        () => undefined,
      )
      await simulation
        .until(() => life.isOver, 60_000)
        .catch(() => {
          simulation.crash()
        })
      const next = await simulation.openEngine()
      await simulation.advance(20_000)
      const [summary] = await next.engine.runs()
      // Nothing was recorded, or all of it is over and nothing is left.
      expect(summary?.process ?? 'confirmed').toBe('confirmed')
      expect(machine.executions.filter(({ size }) => size > 0)).toEqual([])
    }
  }
}, 60_000)

it('INV-5: a process that survives KILL is named in a test, and confirmed when it has gone', async () => {
  const simulation = await simulate()
  simulation.processes.behaviour = { diesOf: [] }
  const run = await simulation.engine.start(agent)
  await simulation.until(() => run.state.process === 'alive')
  const receipt = await simulation.drive(run.cancel())
  expect(receipt.runs).toMatchObject([{ status: 'unconfirmed' }])
  simulation.processes.last.exit(null, 'SIGKILL')
  await simulation.drive(run.gone)
  expect((await run.outcome).status).toBe('cancelled')
})

it('P8: a signal that fails is named, and the kill is repeated until it works', async () => {
  const simulation = await simulate()
  const run = await simulation.engine.start(agent)
  await simulation.until(() => run.state.process === 'alive')
  simulation.processes.last.signalError = 'EPERM'
  expect((await simulation.drive(run.cancel())).runs[0]?.status).toBe('unconfirmed')
  expect(run.state.lastError).toContain('EPERM')
  simulation.processes.last.signalError = null
  await simulation.drive(run.gone)
  expect(simulation.processes.last.size).toBe(0)
})

it('K14, INV-2: an engine beside it stops what another one runs, over the store that both have', async () => {
  const simulation = await simulate()
  const run = await simulation.engine.start({ ...agent, session: 's' })
  await simulation.until(() => run.state.process === 'alive')
  const other = await simulation.openEngine()
  const receipt = await simulation.drive(other.engine.stop({ session: 's' }))
  expect(receipt).toMatchObject({ status: 'confirmed', runs: [{ runId: run.id, status: 'confirmed' }] })
})

it('R5: the runs of an engine that crashed are taken by the next, those of one that lives are not', async () => {
  const simulation = await simulate()
  const dead = simulation.life
  await simulation.engine.start({ ...agent, id: 'dead' })
  const living = await simulation.openEngine()
  await living.engine.start({ ...agent, id: 'living' })
  await simulation.advance(1_000)
  dead.end()
  const next = await simulation.openEngine()
  await simulation.advance(20_000)
  const runs = await next.engine.runs()
  expect(Object.fromEntries(runs.map(({ runId, headline }) => [runId, headline]))).toEqual({
    dead: 'interrupted',
    living: 'accepted',
  })
})

it('S2: a store that does not answer holds up no stop, and has the record when it does', async () => {
  const simulation = await simulate()
  const { engine, store, processes } = simulation
  const run = await engine.start(agent)
  await simulation.until(() => run.state.process === 'alive')
  store.trouble = busy()
  const receipt = await simulation.drive(run.cancel())
  expect([receipt.lookup, processes.last.size]).toEqual(['incomplete', 0])
  store.trouble = null
  await simulation.drive(run.gone)
  await simulation.advance(5_000)
  expect((await engine.runs())[0]?.headline).toBe('cancelled')
})

it('O11: jobs are worked in simulated time', async () => {
  const simulation = await simulate({
    onLaunch: (execution) => {
      simulation.clock.after(60_000, () => {
        execution.exit(0)
      })
    },
  })
  const queue = await openJobs(simulation.engine, { caps: { total: 1 } })
  await queue.addAll([{ command: ['agent'] }, { command: ['agent'] }])
  const report = await simulation.drive(queue.work())
  expect(report).toMatchObject({ started: 2 })
  expect(simulation.clock.monotonicMs()).toBeGreaterThanOrEqual(120_000)
})

it('F: the same seed gives the same course, down to the ids', async () => {
  const course = async (seed: number): Promise<unknown> => {
    const simulation = await simulate({ seed })
    const run = await simulation.engine.start(agent)
    await simulation.advance(Math.floor(simulation.random() * 10_000))
    await simulation.drive(run.cancel())
    return [run.id, await simulation.engine.history(run.id)]
  }
  const [one, same, other] = [await course(7), await course(7), await course(8)]
  expect(same).toEqual(one)
  expect(other).not.toEqual(one)
})

it('F: a seed that is none, and a wait that nothing ends, are said by name', async () => {
  await expect(createSimulation({ seed: 0.5 })).rejects.toThrow(/createSimulation: option seed.*whole number/)
  const simulation = await simulate({ seed: 3 })
  await expect(simulation.until(() => false, 10_000)).rejects.toThrow(
    /not within 10000 simulated ms \(seed 3\)/,
  )
})
