/** What the agents of a simulated world do, as its plan says. */
import { line } from '../../src/testing/simulated-agent.js'
import type { SimulatedClock } from '../../src/testing/simulated-clock.js'
import type { Behaviour, SimulatedExecution } from '../../src/testing/simulated-execution.js'
import type { AgentPlan, RunPlan } from './plan.js'

const DIES_OF = { TERM: ['SIGTERM', 'SIGKILL'], KILL: ['SIGKILL'], nothing: [] } as const
const AGAIN_MS = 500

export const FAIR_AGENT: AgentPlan = {
  launch: 'works',
  launchMs: 0,
  diesOf: 'TERM',
  exitMs: 1_000,
  exitCode: 0,
  children: 0,
  childrenMs: null,
  storm: 0,
  kernelMs: null,
  exitToldMs: 0,
  signalMs: 0,
  refusesMs: null,
  unreadableMs: null,
  frameMs: 200,
  answers: 'done',
}

export const behaviourOf = ({ launch, launchMs, diesOf }: AgentPlan, clock: SimulatedClock): Behaviour => ({
  diesOf: DIES_OF[diesOf],
  ...(launch === 'fails' ? { launch: new Error('not there') } : {}),
  ...(launchMs > 0 ? { after: new Promise<void>((resolve) => void clock.after(launchMs, resolve)) } : {}),
})

/** An agent that is stopped does what it was about to do when it goes on. */
const whenRunning = (clock: SimulatedClock, execution: SimulatedExecution, act: () => void): void => {
  if (execution.isFrozen && execution.size > 0) {
    clock.after(AGAIN_MS, () => {
      whenRunning(clock, execution, act)
    })
  } else act()
}

const within = (
  clock: SimulatedClock,
  window: readonly [number, number] | null,
  begin: () => void,
  end: () => void,
): void => {
  if (window === null) return
  clock.after(window[0], begin)
  clock.after(window[1], end)
}

const talk = (
  execution: SimulatedExecution,
  { frameMs, answers }: AgentPlan,
  speaks: RunPlan['speaks'],
  clock: SimulatedClock,
): void => {
  let count = 0
  const frame = (): void => {
    if (!execution.isAlive || frameMs === null) return
    count += 1
    if (!execution.isFrozen)
      execution.say(speaks === 'lines' ? `line ${String(count)}\n` : line(count % 3 === 0 ? 'usage' : 'work'))
    clock.after(frameMs, frame)
  }
  if (frameMs !== null) clock.after(frameMs, frame)
  execution.onInput = (text) => {
    const { type, id } = JSON.parse(text) as { readonly type: string; readonly id: string }
    if (answers === 'hangs' || type === 'steer') return
    const answer = { type: 'done', prompt: id, isOk: answers === 'done' }
    clock.after(frameMs ?? 1_000, () => {
      whenRunning(clock, execution, () => {
        execution.say(line(type === 'cancel' ? 'cancelled' : answer))
      })
    })
  }
}

/** From its launch on, until the world becomes fair. */
export const animate = (
  execution: SimulatedExecution,
  agent: AgentPlan,
  speaks: RunPlan['speaks'],
  clock: SimulatedClock,
): void => {
  const { exitMs, exitCode, childrenMs, exitToldMs, signalMs } = agent
  const leader = execution.identity.pid
  for (let child = 0; child < agent.children; child += 1) execution.spawn('child')
  if (exitMs !== null) {
    clock.after(exitMs, () => {
      whenRunning(clock, execution, () => {
        execution.exit(exitCode)
      })
    })
  }
  if (childrenMs !== null) {
    clock.after(childrenMs, () => {
      whenRunning(clock, execution, () => {
        execution.endOther()
      })
    })
  }
  let storm = agent.storm
  execution.onLook = () => {
    if (storm === 0 || execution.size === 0 || execution.isFrozen) return
    storm -= 1
    execution.spawn('forked')
  }
  within(
    clock,
    agent.kernelMs,
    () => {
      execution.waitInKernel(leader)
    },
    () => {
      execution.wake(leader)
    },
  )
  within(
    clock,
    agent.refusesMs,
    () => {
      execution.signalError = 'EPERM'
    },
    () => {
      execution.signalError = null
    },
  )
  within(
    clock,
    agent.unreadableMs,
    () => {
      execution.isReadable = false
    },
    () => {
      execution.isReadable = true
    },
  )
  if (exitToldMs > 0) {
    execution.holdExit()
    clock.after(exitToldMs, () => {
      execution.tellExit()
    })
  }
  if (signalMs > 0) {
    execution.holdSignals()
    clock.after(signalMs, () => {
      execution.deliverSignals()
    })
  }
  talk(execution, agent, speaks, clock)
}

/** Every process obeys, and everything that was late comes. */
export const makeFair = (execution: SimulatedExecution): void => {
  execution.diesOf = DIES_OF.TERM
  execution.onLook = () => undefined
  execution.signalError = null
  execution.isReadable = true
  for (const pid of execution.pids) execution.wake(pid)
  execution.deliverSignals()
  execution.tellExit()
}
