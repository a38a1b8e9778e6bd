/** B9: the nine hostile programs. When `stop` says that it is done, is all of it dead? Asked of the machine, not of the contender. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { execa } from 'execa'
import { hostileStops } from '../../test/fixtures/catalogue.js'
import type { Fixture } from '../../test/fixtures/catalogue.js'
import { aliveOf, readLedger } from '../../test/support/proc-reader.js'
import { OURS } from '../contract.js'
import type { Sample, Workload } from '../contract.js'
import { inFolder, withEngine } from '../machine.js'

const GRACE_MS = 500
const UP_MAX_MS = 60_000
/** Who has not answered by then does not answer. */
const ANSWER_MAX_MS = 20_000

interface Started {
  /** Resolves when the contender says that the program is stopped; `true` when it says so, `false` when it says that it is not sure. */
  readonly stop: () => Promise<boolean>
  readonly hasLeaderEnded: () => boolean
}

type Launch = (command: readonly [string, ...string[]], env: Record<string, string>) => Promise<Started>

/** Where the programs are is told by the folder of the call: the benchmarks are compiled into another. */
const commandOf = ({ file, args }: Fixture): readonly [string, ...string[]] => [
  file.endsWith('.sh') ? '/bin/sh' : process.execPath,
  join(process.cwd(), 'test', 'fixtures', file),
  ...args.map(String),
]

const until = async (condition: () => boolean, maxMs: number): Promise<void> => {
  for (let waitedMs = 0; !condition() && waitedMs < maxMs; waitedMs += 20) await wait(20)
}

const killLeft = (ledger: string): void => {
  for (const { pid } of aliveOf(readLedger(ledger))) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It is gone already.
    }
  }
}

/** Whether the word of the contender was true, or it said itself that it could not tell. */
const isTrue = async (launch: Launch, fixture: Fixture, folder: string): Promise<boolean> => {
  const ledger = join(folder, `${fixture.name}.jsonl`)
  const env = { ...process.env, FIXTURE_LEDGER: ledger, FIXTURE_NODE: process.execPath } as Record<
    string,
    string
  >
  const started = await launch(commandOf(fixture), env)
  const isUp = (): boolean =>
    fixture.leaderEnd === 'stays' ? readLedger(ledger).readyAt !== undefined : started.hasLeaderEnded()
  await until(isUp, UP_MAX_MS)
  const answer = await Promise.race([started.stop(), wait(ANSWER_MAX_MS).then(() => null)])
  const left = aliveOf(readLedger(ledger)).length
  // A storm is looked at until it is over.
  await until(() => {
    killLeft(ledger)
    return aliveOf(readLedger(ledger)).length === 0
  }, ANSWER_MAX_MS)
  return answer === false || (answer === true && left === 0)
}

const judge =
  (launch: Launch): (() => Promise<Sample>) =>
  () =>
    inFolder((folder) => judgeIn(launch, folder))

const judgeIn = async (launch: Launch, folder: string): Promise<Sample> => {
  const truths: [string, boolean][] = []
  for (const fixture of hostileStops)
    truths.push([fixture.hostileStop ?? fixture.name, await isTrue(launch, fixture, folder)])
  return {
    value: truths.filter(([, isRight]) => isRight).length,
    more: Object.fromEntries(truths.map(([name, isRight]) => [name, Number(isRight)])),
    result: { programs: truths.length },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

const signal = (pid: number | undefined, name: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch {
    // There is nobody.
  }
}

/** TERM, a grace, KILL; done when the leader has exited: what most hosts write by hand. */
const ladder = async (child: ChildProcess, send: (name: NodeJS.Signals) => void): Promise<boolean> => {
  const exit = hasEnded(child) ? Promise.resolve() : once(child, 'exit')
  send('SIGTERM')
  await Promise.race([exit, wait(GRACE_MS)])
  if (!hasEnded(child)) send('SIGKILL')
  await exit
  return true
}

const spawned = (
  [file, ...args]: readonly [string, ...string[]],
  env: Record<string, string>,
): ChildProcess => {
  const child = spawn(file, args, { detached: true, env, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.resume()
  return child
}

const groupLoop: Launch = (command, env) => {
  const child = spawned(command, env)
  const stop = (): Promise<boolean> =>
    ladder(child, (name) => {
      signal(child.pid === undefined ? undefined : -child.pid, name)
    })
  return Promise.resolve({ stop, hasLeaderEnded: () => hasEnded(child) })
}

const throughExeca: Launch = ([file, ...args], env) => {
  const child = execa(file, args, {
    env,
    stdin: 'ignore',
    buffer: false,
    reject: false,
    forceKillAfterDelay: GRACE_MS,
  })
  const stop = async (): Promise<boolean> => {
    child.kill()
    await child
    return true
  }
  return Promise.resolve({ stop, hasLeaderEnded: () => hasEnded(child as unknown as ChildProcess) })
}

type TreeKill = (pid: number, signal: string, done: () => void) => void

/** Peers are no dependency of the package: `npm run bench:peers` brings them. */
const peers = createRequire(new URL('../peers/package.json', import.meta.url))

const whyNot = (name: string) => (): string | null => {
  try {
    peers.resolve(name)
    return null
  } catch {
    return 'not installed: npm run bench:peers'
  }
}

const throughTreeKill: Launch = (command, env) => {
  const kill = peers('tree-kill') as TreeKill
  const child = spawned(command, env)
  const stop = (): Promise<boolean> =>
    ladder(child, (name) => {
      if (child.pid !== undefined) kill(child.pid, name, () => undefined)
    })
  return Promise.resolve({ stop, hasLeaderEnded: () => hasEnded(child) })
}

/** The part of PM2's interface that is used here. */
interface Pm2 {
  start(options: object, done: (error: unknown) => void): void
  describe(name: string, done: (error: unknown, list: { pm2_env?: { status?: string } }[]) => void): void
  delete(name: string, done: (error: unknown) => void): void
}

const called = (call: (done: (error: unknown) => void) => void): Promise<boolean> =>
  new Promise((resolve) => {
    call((error) => {
      resolve(!error)
    })
  })

const throughPm2 =
  (pm2: Pm2): Launch =>
  async ([script, ...args], env) => {
    const name = String(args.at(0)) + String(Math.random())
    const options = {
      name,
      script,
      args,
      env,
      interpreter: 'none',
      autorestart: false,
      kill_timeout: GRACE_MS,
    }
    await called((done) => {
      pm2.start(options, done)
    })
    let hasLeaderEnded = false
    const look = setInterval(() => {
      pm2.describe(name, (_, list) => {
        hasLeaderEnded = list.at(0)?.pm2_env?.status !== 'online'
      })
    }, 100)
    const stop = async (): Promise<boolean> => {
      clearInterval(look)
      return called((done) => {
        pm2.delete(name, done)
      })
    }
    return { stop, hasLeaderEnded: () => hasLeaderEnded }
  }

const pm2Judged = (): Promise<Sample> =>
  inFolder(async (folder) => {
    process.env['PM2_HOME'] = join(folder, 'pm2')
    const pm2 = peers('pm2') as Pm2 & {
      connect: (done: (error: unknown) => void) => void
      killDaemon: (done: (error: unknown) => void) => void
    }
    await called((done) => {
      pm2.connect(done)
    })
    try {
      return await judgeIn(throughPm2(pm2), folder)
    } finally {
      await called((done) => {
        pm2.killDaemon(done)
      })
    }
  })

const ours = (): Promise<Sample> =>
  withEngine((engine, folder) =>
    judgeIn(async (command, env) => {
      const run = await engine.start({
        command: [...command],
        env,
        stop: { termGraceMs: GRACE_MS, killGraceMs: 5_000 },
      })
      const stop = async (): Promise<boolean> => {
        const { status } = await run.cancel({ timeoutMs: ANSWER_MAX_MS - 1_000 })
        return status === 'confirmed' || status === 'nothing-to-stop'
      }
      return { stop, hasLeaderEnded: () => run.state.isSettled }
    }, folder),
  )

export const hostile: Workload = {
  id: 'B9',
  title: 'nine hostile programs: is all dead when stop says so?',
  unit: 'true answers',
  floor: 'child_process',
  reach: '9 of 9',
  isReached: (of) => of(OURS).value === hostileStops.length,
  sizes: [{}],
  tiny: {},
  contenders: [
    { name: 'child_process', run: judge(groupLoop) },
    { name: 'execa', run: judge(throughExeca) },
    { name: 'tree-kill', why: whyNot('tree-kill'), run: judge(throughTreeKill) },
    { name: 'pm2', why: whyNot('pm2'), run: pm2Judged },
    { name: OURS, run: ours },
  ],
}
