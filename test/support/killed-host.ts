/**
 * Hosts that die in the middle of what they do: at a counted boundary, or when the test kills them; and what must be true of the store and
 * of the machine afterwards, whoever brought it to that.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openRecords } from '../../src/index.js'
import type { RunHistory } from '../../src/index.js'
import { openBackdoor } from './database.js'
import { startHost } from './host.js'
import type { Host } from './host.js'
import { processesWith, statOf } from './proc-reader.js'
import { tempDir } from './wait-for.js'

/** Each says on a line of `ran` that it began; what it does then is the kind's. */
const script = (rest: string): readonly string[] => ['sh', '-c', `echo ran >> "$RAN"; ${rest}`]
const STUBBORN = script(`trap '' TERM; sleep 30 & wait; wait`)
const RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"done"}'

interface Kind {
  readonly spec: Readonly<Record<string, unknown>>
  readonly protocol?: 'claudeStreamJson'
  /** What the host does with the run, once it is there. */
  readonly act: string
  /** How it may end, whenever the engine dies. Lost: between the record of a launch and the spawn, or when it had ended by itself. */
  readonly ends: readonly string[]
  /** How often the command may begin. */
  readonly launchesMax: number
}

const launched = `while (run.state.process === 'waiting' || run.state.process === 'launching') await tick();`
const stop = { termGraceMs: 60, killGraceMs: 5_000 }

export const kinds: Readonly<Record<string, Kind>> = {
  'it completes': {
    spec: { command: script('sleep 0.05'), stop },
    act: '',
    ends: ['completed', 'interrupted', 'lost'],
    launchesMax: 1,
  },
  'it is cancelled, and does not want to go': {
    spec: { command: STUBBORN, stop },
    act: `${launched} void run.cancel({ by: 'test' })`,
    ends: ['cancelled', 'interrupted', 'lost'],
    launchesMax: 1,
  },
  'it is asked first': {
    spec: { command: STUBBORN, stdin: 'pipe', stop: { ...stop, askGraceMs: 60 } },
    act: `${launched} void run.cancel({ by: 'test' })`,
    ends: ['cancelled', 'interrupted', 'lost'],
    launchesMax: 1,
  },
  'it falls back': {
    spec: {
      command: ['sh', '-c', 'exit 1'],
      fallback: { candidates: [{ command: script('sleep 0.05') }] },
      stop,
    },
    act: '',
    ends: ['completed', 'interrupted', 'lost', 'failed'],
    launchesMax: 1,
  },
  'it is paused and resumed': {
    spec: { command: STUBBORN, stop },
    act: `${launched} await run.pause(); await run.resume(); void run.interrupt({ by: 'test' })`,
    ends: ['interrupted', 'lost'],
    launchesMax: 1,
  },
  'it is paused and resumed, and to be adopted': {
    spec: {
      command: script(`sleep 0.1; echo '${RESULT}'; sleep 0.05`),
      stop: { ...stop, pauseGraceMs: 300 },
      onRecover: 'adopt',
    },
    protocol: 'claudeStreamJson',
    act: `${launched} await run.pause(); await run.resume()`,
    ends: ['completed', 'interrupted', 'lost'],
    launchesMax: 1,
  },
  'it is to be adopted': {
    spec: { command: script(`sleep 0.1; echo '${RESULT}'; sleep 0.05`), stop, onRecover: 'adopt' },
    protocol: 'claudeStreamJson',
    act: '',
    ends: ['completed', 'interrupted', 'lost'],
    launchesMax: 1,
  },
}

export interface Victim {
  readonly host: Host
  readonly database: string
  readonly what: string
  readonly kind: Kind
  readonly mark: string
  readonly ran: string
}

/** `killAt`: the boundary at which it kills itself; infinite: never. `dieBefore`: it does so before the first such signal. */
export const startVictim = (
  name: string,
  options: {
    readonly killAt: number
    readonly dieBefore?: NodeJS.Signals
    readonly guardian?: boolean
    readonly database?: string
  },
): Victim => {
  const kind = kinds[name]
  if (kind === undefined) throw new Error(`no kind ${name}`)
  const folder = tempDir()
  const [database, ran, mark] = [join(folder, 'runs.db'), join(folder, 'ran'), randomUUID()]
  const from = (file: string): string => JSON.stringify(new URL(`../../dist/${file}`, import.meta.url).href)
  const host = startHost(
    `import { engineOptionsSchema, openEngineOver, openStore, parseOptions, systemClock } from ${from('internal.js')}
     import { createProcessPort } from ${from('adapters/process/process-port.js')}
     import { claudeStreamJson, lines } from ${from('protocols.js')}
     let boundaries = 0
     const at = () => { if ((boundaries += 1) === ${String(options.killAt)}) process.kill(process.pid, 'SIGKILL') }
     const around = (call) => async (...args) => { at(); const result = await call(...args); at(); return result }
     const aroundNow = (call) => (...args) => {
       if (args[0] === ${JSON.stringify(options.dieBefore ?? '')}) process.kill(process.pid, 'SIGKILL')
       at(); const result = call(...args); at(); return result
     }
     const options = parseOptions(engineOptionsSchema, ${JSON.stringify({
       database,
       guardian: options.guardian ?? false,
     })}, 'test')
     const inner = await openStore(options)
     const store = new Proxy(inner, { get: (target, key) => {
       const value = target[key]
       if (key === 'commit') return around(value.bind(target))
       return typeof value === 'function' ? value.bind(target) : value
     } })
     const port = createProcessPort('group+marks')
     const launch = around(port.launch)
     const processes = { ...port, launch: async (spec) => {
       const execution = await launch(spec)
       return { ...execution, signal: aroundNow(execution.signal), endInput: aroundNow(execution.endInput) }
     } }
     const tick = () => new Promise((resolve) => setTimeout(resolve, 2))
     const engine = await openEngineOver(store, options, systemClock, processes)
     say('engine ' + engine.id + ' ')
     const run = await engine.start({ id: 'r1', ...${JSON.stringify(kind.spec)}, protocol: ${kind.protocol ?? 'lines'}(),
       env: { ...process.env, RAN: ${JSON.stringify(ran)}, KILL_MARK: ${JSON.stringify(mark)} } })
     say('started')
     run.outcome.then(({ status }) => say('outcome ' + status + ' '))
     await (async () => { ${kind.act} })().catch(() => undefined)
     await run.gone
     await engine.close()
     say('done in ' + boundaries + ' boundaries')
     process.exit(0)`,
  )
  return { host, database, what: name, kind, mark, ran }
}

const livingOf = ({ mark }: Victim): number[] =>
  processesWith(`KILL_MARK=${mark}`)
    .filter(({ pid }) => !['Z', 'X', undefined].includes(statOf(pid)?.state))
    .map(({ pid }) => pid)

const outcomeOf = ({ run }: RunHistory): string | undefined =>
  (run.outcome as { status: string } | null)?.status

const launchesIn = ({ transitions }: RunHistory): number[] =>
  transitions.flatMap(({ effects }) =>
    effects
      .filter(({ kind }) => kind === 'process.launch')
      .map(({ params }) => (params as { attempt: number }).attempt),
  )

/** Null when the run never came on record: then nothing of it may have been launched. */
const historyOf = async (victim: Victim): Promise<RunHistory | null> => {
  await using records = await openRecords({ database: victim.database })
  const runs = await records.runs()
  return runs.length === 0 ? null : await records.history('r1')
}

/** All is over: nothing lives, nothing is open, nothing is lost or doubled, and the journal explains it. Returns the outcome. */
export const expectOver = async (victim: Victim, what: string): Promise<string> => {
  expect(livingOf(victim), `${what}: no process is left`).toEqual([])
  const ran = existsSync(victim.ran) ? readFileSync(victim.ran, 'utf8').split('\n').length - 1 : 0
  const history = existsSync(victim.database) ? await historyOf(victim) : null
  if (history === null) {
    expect(ran, `${what}: INV-1: nothing was launched off the record`).toBe(0)
    expect(victim.host.text(), what).not.toContain('started')
    return 'never recorded'
  }
  const { run, transitions, executions } = history
  expect(run.process, what).toBe('confirmed')
  expect(victim.kind.ends, what).toContain(outcomeOf(history))
  // INV-12: what was told once stands.
  const told = /outcome (\S+)/.exec(victim.host.text())?.[1]
  if (told !== undefined) expect(outcomeOf(history), `${what}: the outcome that was told`).toBe(told)
  expect(
    transitions.map(({ rev }) => rev),
    what,
  ).toEqual(transitions.map((_, rev) => rev))
  const settling = transitions.filter(
    ({ from, to }) => from?.work.startsWith('settled') !== true && to.work.startsWith('settled'),
  )
  expect(settling, `${what}: one outcome`).toHaveLength(1)
  const store = await openBackdoor(victim.database)
  expect(await store.rows(`select run_id from runwarden_result`), `${what}: one result`).toHaveLength(1)
  // R2: no attempt is launched twice, and what ran was launched by the journal.
  const launches = launchesIn(history)
  expect(new Set(launches).size, what).toBe(launches.length)
  expect(ran, what).toBeLessThanOrEqual(Math.min(launches.length, victim.kind.launchesMax))
  expect(
    executions.map(({ confirmedAt }) => confirmedAt !== undefined),
    what,
  ).toEqual(executions.map(() => true))
  return outcomeOf(history) ?? ''
}
