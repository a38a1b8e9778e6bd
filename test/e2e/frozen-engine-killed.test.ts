/** SIGKILL of the engine while a run is frozen, in its grace window, and between TERM and KILL: the next engine ends it as the rules say. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createEngine } from '../../src/index.js'
import { openJobs } from '../../src/jobs.js'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger, statOf } from '../support/proc-reader.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const ROUNDS = Number(process.env['RUNWARDEN_KILL_ROUNDS'] ?? 9)
const AT_ONCE = 3
const WINDOW_MS = 300
const TERM_GRACE_MS = 1_200

const PHASES = ['frozen', 'in the window', 'between TERM and KILL'] as const
type Phase = (typeof PHASES)[number]

const builtFile = (name: string): string =>
  JSON.stringify(new URL(`../../dist/${name}.js`, import.meta.url).href)

const specOf = (phase: Phase): string => `{
    command: ${JSON.stringify(fixtureCommand('stubborn-pair'))},
    stop: {
      pauseGraceMs: ${phase === 'frozen' ? 3_600_000 : WINDOW_MS},
      termGraceMs: ${phase === 'frozen' ? 300 : TERM_GRACE_MS},
      killGraceMs: 5_000,
    },
  }`

/** A host over an engine that pauses a run when it is up, and says where its process stands. */
const hostOf = (database: string, body: string): string => `
  import { createEngine } from ${builtFile('index')}
  import { openJobs } from ${builtFile('jobs')}
  import { readFileSync } from 'node:fs'
  const engine = await createEngine({ database: ${JSON.stringify(database)} })
  const isUp = () => { try { return readFileSync(process.env.FIXTURE_LEDGER, 'utf8').includes('"ready"') } catch { return false } }
  const pause = async (run) => {
    while (!isUp()) await new Promise((resolve) => setTimeout(resolve, 20))
    engine.subscribe((event) => { if (event.type === 'transition') console.log(event.process) })
    run.pause().catch(() => undefined)
    await run.gone
  }
  ${body}
`

/** Starts one run and pauses it; the test kills it. */
const hostSource = (database: string, phase: Phase): string =>
  hostOf(database, `await pause(await engine.start({ id: 'r1', ...${specOf(phase)} }))`)

/** Works a queue of which the job in the middle alone may be started, and pauses its run; the test kills it. */
const workerSource = (database: string, phase: Phase): string =>
  hostOf(
    database,
    `const queue = await openJobs(engine, { caps: { total: 2, perProject: { closed: 0 } } })
  const waiting = { command: ['true'], project: 'closed' }
  await queue.addAll([
    { id: 'before', ...waiting },
    { id: 'paused', ...${specOf(phase)} },
    { id: 'behind', ...waiting },
  ])
  await queue.work({ until: 'stopped', onRun: pause })`,
  )

/** What the host must have said before the random moment begins to count, and how long it may be. */
const momentOf = (phase: Phase): { readonly after: string; readonly withinMs: number } => {
  if (phase === 'frozen') return { after: 'frozen', withinMs: 150 }
  if (phase === 'in the window') return { after: 'frozen', withinMs: WINDOW_MS + 50 }
  return { after: 'term-sent', withinMs: TERM_GRACE_MS + 50 }
}

const killHostIn = async (
  phase: Phase,
  database: string,
  random: () => number,
  sourceOf: (database: string, phase: Phase) => string = hostSource,
) => {
  const { ledger, env } = withLedger()
  const host = spawn(process.execPath, ['--input-type=module', '-e', sourceOf(database, phase)], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  host.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = new Promise((resolve) => host.once('close', resolve))
  const { after, withinMs } = momentOf(phase)
  await waitFor(() => said.includes(after), { deadlineMs: 60_000, what: `the host says ${after}` })
  await new Promise((resolve) => setTimeout(resolve, random() * withinMs))
  // Through the handle: it may be over already.
  host.kill('SIGKILL')
  await ended
  return ledger
}

describe('SIGKILL of the engine around a pause', () => {
  it(`INV-13, R3, R4, O2: over ${ROUNDS} random moments the next engine thaws, ends and confirms, and the journal explains`, async () => {
    const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
    const random = seededRandom(seed)
    const folder = tempDir()
    const rounds = Array.from({ length: ROUNDS }, (_, round) => ({
      round,
      phase: PHASES[round % PHASES.length] ?? 'frozen',
    }))
    const play = async ({ round, phase }: { round: number; phase: Phase }): Promise<void> => {
      const what = `seed ${seed}, round ${round}, ${phase}`
      const database = join(folder, `${round}.db`)
      const ledger = await killHostIn(phase, database, random)
      if (phase === 'frozen') {
        // Orphans that stand still: nobody but the next engine will ever continue them.
        const left = aliveOf(readLedger(ledger))
        expect(left.length, what).toBeGreaterThan(0)
        await waitFor(() => left.every(({ pid }) => statOf(pid)?.state !== 'R'), {
          deadlineMs: 10_000,
          what: `${what}: nobody runs`,
        })
      }
      // As stop does it from the command line, and as a host that restarts does it.
      const isByStop = round % 2 === 0
      const engine = await createEngine({ database, recover: isByStop ? false : 'interrupt' })
      if (isByStop) {
        const receipt = await engine.stop({ run: 'r1' }, { mode: 'interrupt', timeoutMs: 60_000 })
        expect(['confirmed', 'nothing-to-stop'], what).toContain(receipt.status)
      } else {
        await engine.run('r1')?.gone
      }
      expect(aliveOf(readLedger(ledger)), what).toEqual([])
      const { run, transitions } = await engine.history('r1')
      await engine.close()
      expect(run, what).toMatchObject({ process: 'confirmed', work: 'settled.interrupted' })
      const effects = transitions.flatMap(({ effects: all }) => all.map(({ kind }) => kind))
      expect(effects, what).toContain('process.terminate')
      // One intent, whoever had it: the window's end, or the next engine.
      const intents = transitions.filter(({ from, to }) => {
        const [before, after] = [JSON.stringify(from), JSON.stringify(to)]
        return after.includes('interrupting') && !before.includes('interrupting')
      })
      expect(intents, what).toHaveLength(1)
      await endTree(ledger)
    }
    const work = async (): Promise<void> => {
      for (let next = rounds.pop(); next !== undefined; next = rounds.pop()) await play(next)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
  }, 600_000)

  it.each(
    PHASES.flatMap((phase) => [
      { phase, isByStop: true },
      { phase, isByStop: false },
    ]),
  )(
    'O9, O12, O13, INV-13: a worker killed while the run of its job is $phase (ended by stop: $isByStop): the job stands in its place',
    async ({ phase, isByStop }) => {
      const seed = Number(process.env['RUNWARDEN_SEED'] ?? Date.now() % 1_000_000)
      const what = `seed ${seed}`
      const database = join(tempDir(), 'runs.db')
      // Well before its KILL: a worker that lives to see the end of the run starts the next one.
      const random = seededRandom(seed)
      const ledger = await killHostIn(phase, database, () => random() / 2, workerSource)
      const engine = await createEngine({ database, recover: isByStop ? false : 'interrupt' })
      const queue = await openJobs(engine, { caps: { total: 2, perProject: { closed: 0 } } })
      const [run] = await engine.runs()
      const runId = run?.runId ?? ''
      if (isByStop) {
        const receipt = await engine.stop({ task: 'paused' }, { mode: 'interrupt', timeoutMs: 60_000 })
        expect(['confirmed', 'nothing-to-stop'], what).toContain(receipt.status)
      } else {
        await engine.run(runId)?.gone
      }
      expect(aliveOf(readLedger(ledger)), what).toEqual([])
      // In the transaction that says so of the run: there is nothing to wait for.
      const jobs = await queue.list()
      expect(
        jobs.map(({ jobId, state, attemptsSpent }) => [jobId, state, attemptsSpent]),
        what,
      ).toEqual([
        ['before', 'pending', 0],
        ['paused', 'pending', 1],
        ['behind', 'pending', 0],
      ])
      const { job, transitions } = await queue.history('paused')
      expect(job.lastOutcome, what).toMatchObject({ runId, status: 'interrupted' })
      expect(
        transitions.map(({ event, to }) => `${event} ${to}`),
        what,
      ).toEqual([
        'job.added pending',
        'job.claim active.claimed',
        'run.recorded active.running',
        'run.settled active.leaving',
        'run.confirmed pending',
      ])
      await engine.close()
      await endTree(ledger)
    },
    120_000,
  )

  it('O2, R3: a window whose end comes while no engine is there is over for the next one', async () => {
    const database = join(tempDir(), 'runs.db')
    const ledger = await killHostIn('in the window', database, () => 0)
    const [member] = aliveOf(readLedger(ledger))
    const stateOf = (): string => statOf(member?.pid ?? 0)?.state ?? 'gone'
    await waitFor(() => stateOf() === 'T' || stateOf() === 'S', { deadlineMs: 5_000, what: 'it rests' })
    await new Promise((resolve) => setTimeout(resolve, WINDOW_MS))
    const engine = await createEngine({ database, recover: false })
    const receipt = await engine.stop({ run: 'r1' }, { mode: 'interrupt', timeoutMs: 60_000 })
    expect(receipt.status).toBe('confirmed')
    const { run } = await engine.history('r1')
    expect(run.work).toBe('settled.interrupted')
    expect(aliveOf(readLedger(ledger))).toEqual([])
    await engine.close()
  })
})
