/** B2: one stop for every group of two processes there is, until a process of its own finds none of them in /proc. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { execa } from 'execa'
import { OURS } from '../contract.js'
import type { Params, Sample, Workload } from '../contract.js'
import { killGroups, membersOf, nowMs, pooled, watchUntilGone, withEngine } from '../machine.js'

const PAIR = ['/bin/sh', '-c', 'sleep 300 & wait'] as const
const DEADLINE_MS = 120_000
const CONCURRENCY = 16

/** Both processes of every group are up. */
const untilAllUp = async (leaders: readonly number[]): Promise<number[]> => {
  for (;;) {
    const members = membersOf(leaders)
    if (members.length >= 2 * leaders.length) return members
    await wait(20)
  }
}

/** `stop` resolves when the contender says that it is done. */
const timeStop = async (leaders: readonly number[], stop: () => Promise<unknown>): Promise<Sample> => {
  const members = await untilAllUp(leaders)
  const { gone } = await watchUntilGone(members, DEADLINE_MS)
  const startedMs = nowMs()
  const said = stop().then(() => nowMs())
  const { atMs, left } = await gone
  const saidMs = await Promise.race([said, wait(DEADLINE_MS).then(() => NaN)])
  return {
    value: atMs - startedMs,
    more: { resolvedMs: saidMs - startedMs },
    result: { processes: members.length, left },
  }
}

const raw = async ({ count = 1 }: Params): Promise<Sample> => {
  const children = await pooled(count, CONCURRENCY, async () => {
    const child = spawn(PAIR[0], PAIR.slice(1), { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    await once(child, 'spawn')
    return child
  })
  const leaders = children.flatMap(({ pid }) => pid ?? [])
  const stop = async (): Promise<void> => {
    const exits = children.map((child) => once(child, 'exit'))
    for (const pid of leaders) process.kill(-pid, 'SIGTERM')
    await Promise.all(exits)
  }
  return timeStop(leaders, stop).finally(() => {
    killGroups(leaders)
  })
}

/** As its documentation says: `kill`, which signals the leader. */
const throughExeca = async ({ count = 1 }: Params): Promise<Sample> => {
  const children = await pooled(count, CONCURRENCY, async () => {
    const child = execa(PAIR[0], PAIR.slice(1), {
      detached: true,
      stdin: 'ignore',
      buffer: false,
      reject: false,
    })
    await once(child as unknown as ChildProcess, 'spawn')
    return { child }
  })
  const leaders = children.flatMap(({ child }) => child.pid ?? [])
  const stop = async (): Promise<void> => {
    for (const { child } of children) child.kill()
    await Promise.all(children.map(({ child }) => once(child as unknown as ChildProcess, 'exit')))
  }
  const members = await untilAllUp(leaders)
  const startedMs = nowMs()
  await stop()
  // Nobody signals the others: to wait for them is to wait for their own end.
  const left = membersOf(leaders).length
  const sample = { value: nowMs() - startedMs, result: { processes: members.length, left } }
  killGroups(leaders)
  return sample
}

const ours = ({ count = 1 }: Params): Promise<Sample> =>
  withEngine(async (engine) => {
    const runs = await pooled(count, CONCURRENCY, async () => {
      const run = await engine.start({ command: [...PAIR] })
      for await (const event of run.events({ output: 'none' })) if (event.type === 'launched') break
      return run
    })
    let confirmed = 0
    const sample = await timeStop(
      runs.flatMap(({ pid }) => pid ?? []),
      async () => {
        const receipt = await engine.stop(
          { all: true },
          { mode: 'cancel', reason: 'bench', timeoutMs: DEADLINE_MS },
        )
        confirmed = receipt.runs.filter(({ status }) => status === 'confirmed').length
      },
    )
    return { ...sample, more: { ...sample.more, unconfirmed: count - confirmed } }
  })

export const stopAll: Workload = {
  id: 'B2',
  title: 'stop all groups of two processes, until they are gone',
  unit: 'ms',
  floor: 'child_process',
  reach: '≤ 1.1 × child_process until gone, resolved before its loop, 0 survivors',
  isReached: (of) => {
    const own = of(OURS)
    const { more } = of('child_process')
    return (
      own.ratio <= 1.1 &&
      (own.more['resolvedMs'] ?? Infinity) <= (more['resolvedMs'] ?? 0) &&
      own.more['unconfirmed'] === 0
    )
  },
  sizes: [{ count: 200 }, { count: 1_000 }],
  tiny: { count: 5 },
  contenders: [
    { name: 'child_process', run: raw },
    { name: 'execa', run: throughExeca },
    { name: OURS, run: ours },
  ],
}
