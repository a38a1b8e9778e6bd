/** The guardian, seen from outside: real engines, killed by SIGKILL, and nobody who would restart them. */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createEngine, openRecords } from '../../src/index.js'
import type { RunHistory } from '../../src/index.js'
import { start } from '../cli/cli.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { guardiansOf, startHost } from '../support/host.js'
import type { Host } from '../support/host.js'
import { aliveOf, readLedger, statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const DEADLINE_MS = 60_000
const until = <T>(what: string, condition: () => T | Promise<T>) =>
  waitFor(condition, { deadlineMs: DEADLINE_MS, what })

/** Nobody wanted to end it. */
const OPEN = /^open\.(accepted|active)/

const stop = { termGraceMs: 300, killGraceMs: 5_000 }

interface Place {
  readonly host: Host
  readonly database: string
  readonly engineId: string
  readonly ledger: string
}

const idIn = (host: Host): string => /engine (\S+)/.exec(host.text())?.[1] ?? ''

/** A host with a guardian that runs one stubborn fixture; `after` is what it does once the run is launched. */
const hostWith = async (
  options: { readonly database?: string; readonly id?: string; readonly after?: string } = {},
): Promise<Place> => {
  const { database = join(tempDir(), 'runs.db'), id = 'r1', after = '' } = options
  const { ledger, env } = withLedger()
  onTestFinished(() => endTree(ledger))
  const spec = JSON.stringify({ id, command: fixtureCommand('stubborn-pair'), stop })
  const host = startHost(
    `const engine = await createEngine({ database: ${JSON.stringify(database)}, guardian: true })
     say('engine ' + engine.id + ' ')
     await told('go')
     const run = await engine.start(${spec})
     say('started')
     ${after}`,
    env,
  )
  await host.says('engine ')
  const engineId = idIn(host)
  expect(guardiansOf(engineId), 'nothing is guarded yet').toEqual([])
  host.tell('go')
  await host.says('started')
  return { host, database, engineId, ledger }
}

const ready = ({ ledger }: Place): Promise<unknown> =>
  until('the tree is up', () => readLedger(ledger).readyAt !== undefined)

const historyOf = async (database: string, runId = 'r1'): Promise<RunHistory> => {
  await using records = await openRecords({ database })
  const history = await records.history(runId)
  return history
}

const expectEnded = async ({ database, ledger, engineId }: Place, runId = 'r1'): Promise<RunHistory> => {
  await until('the guardian is done', () => guardiansOf(engineId).length === 0)
  expect(aliveOf(readLedger(ledger))).toEqual([])
  const history = await historyOf(database, runId)
  expect(history.run).toMatchObject({ work: 'settled.interrupted', process: 'confirmed' })
  return history
}

describe('R7: the guardian', () => {
  it('R7, INV-13: an engine that is killed leaves nothing alive and nothing open, without anyone’s help', async () => {
    const place = await hostWith()
    await ready(place)
    expect(guardiansOf(place.engineId)).toHaveLength(1)
    await place.host.killed()
    const { transitions, executions } = await expectEnded(place)
    const intents = transitions.filter(({ event }) => event === 'run.interrupt')
    expect(intents).toHaveLength(1)
    expect(JSON.stringify(intents[0])).toContain('guardian')
    expect(executions[0]?.evidence).toMatch(/^(identity-gone|cgroup-empty)$/)
  }, 120_000)

  it('R7: an engine that dies in the tick after start leaves nothing behind', async () => {
    const place = await hostWith({ after: `process.kill(process.pid, 'SIGKILL')` })
    await place.host.ended
    const { run } = await expectEnded(place)
    expect(run.headline).toBe('interrupted')
  }, 120_000)

  it('R7: a host that ends without closing its engine has died', async () => {
    const place = await hostWith({ after: `process.exit(0)` })
    await place.host.ended
    await expectEnded(place)
  }, 120_000)

  it('R7: it outlives the signals that end the engine’s group, and those sent to itself', async () => {
    const place = await hostWith()
    await ready(place)
    const [guardian = 0] = guardiansOf(place.engineId)
    // Before that it is Node that starts, and any signal ends it.
    await until('it is up', () => statOf(guardian)?.name === 'runwarden-guard')
    for (const signal of ['SIGINT', 'SIGHUP'] as const) process.kill(-place.host.pid, signal)
    await place.host.ended
    try {
      process.kill(guardian, 'SIGHUP')
    } catch {
      // It may be done already.
    }
    await expectEnded(place)
  }, 120_000)

  it('R7: it goes with a clean close, and what was left on purpose stays', async () => {
    const place = await hostWith({
      after: `await told('close'); await engine.close({ runs: 'leave' }); say('closed'); await told('end'); process.exit(0)`,
    })
    await ready(place)
    place.host.tell('close')
    await place.host.says('closed')
    await until('the guardian has gone', () => guardiansOf(place.engineId).length === 0)
    place.host.tell('end')
    await place.host.ended
    expect(aliveOf(readLedger(place.ledger)).length).toBeGreaterThan(0)
    expect((await historyOf(place.database)).run).toMatchObject({
      work: expect.stringMatching(OPEN) as string,
      process: 'alive',
    })
  }, 120_000)

  it('R7, INV-4: what a close could not end in its time, the guardian goes on with', async () => {
    const place = await hostWith({
      after: `await told('close'); say(JSON.stringify(await engine.close({ deadlineMs: 0 }))); process.exit(0)`,
    })
    await ready(place)
    place.host.tell('close')
    await place.host.says('{"left":["r1"]}')
    const { transitions } = await expectEnded(place)
    expect(transitions.filter(({ event }) => event === 'run.interrupt')).toHaveLength(1)
  }, 120_000)

  it('R7, R5: of two engines over one store only the dead one’s runs are ended', async () => {
    const place = await hostWith()
    const other = await hostWith({ database: place.database, id: 'r2' })
    await ready(place)
    await ready(other)
    await place.host.killed()
    await expectEnded(place)
    expect(aliveOf(readLedger(other.ledger))).toHaveLength(2)
    expect((await historyOf(place.database, 'r2')).run.work).toMatch(OPEN)
    await other.host.killed()
    await expectEnded(other, 'r2')
  }, 120_000)

  it('R7, R5: an engine that starts at the same moment does not fight it: each run is taken by one', async () => {
    const place = await hostWith()
    await ready(place)
    await place.host.killed()
    const engines = await Promise.all([
      createEngine({ database: place.database }),
      createEngine({ database: place.database }),
    ])
    const { transitions } = await expectEnded(place)
    expect(transitions.filter(({ event }) => event === 'run.interrupt')).toHaveLength(1)
    expect(new Set(transitions.map(({ rev }) => rev)).size).toBe(transitions.length)
    for (const engine of engines) await engine.close()
  }, 120_000)

  it('R7: a guardian that was killed has a successor', async () => {
    const place = await hostWith()
    await ready(place)
    const [first = 0] = guardiansOf(place.engineId)
    process.kill(first, 'SIGKILL')
    await until('another guardian', () => guardiansOf(place.engineId).some((pid) => pid !== first))
    await place.host.killed()
    await expectEnded(place)
  }, 120_000)

  it('R7, INV-12: what the host has a finalize hook for is left to an engine that has it', async () => {
    const database = join(tempDir(), 'runs.db')
    const host = startHost(
      `const finalize = () => { say('finalizing'); return new Promise(() => {}) }
       const engine = await createEngine({ database: ${JSON.stringify(database)}, guardian: true, delivery: { finalize, deliver: () => undefined } })
       say('engine ' + engine.id + ' ')
       await engine.start({ id: 'r1', command: ['true'] })`,
    )
    await host.says('finalizing')
    await host.killed()
    await until('the guardian is done', () => guardiansOf(idIn(host)).length === 0)
    expect((await historyOf(database)).run.delivery).toBe('finalizing')
    const delivered: unknown[] = []
    await openTestEngine({
      database,
      delivery: { finalize: () => 'made', deliver: ({ finalized }) => void delivered.push(finalized) },
    })
    await until('it is delivered', () => delivered.length > 0)
    expect(delivered).toEqual(['made'])
  }, 120_000)

  it('R7: `run` has one unless told otherwise', async () => {
    const database = join(tempDir(), 'runs.db')
    const { ledger, env } = withLedger()
    onTestFinished(() => endTree(ledger))
    const args = ['--db', database, '--id', 'r1', '--term-grace', '300ms', '--']
    const runner = start(['run', ...args, ...fixtureCommand('stubborn-agent')], { env })
    await until('the tree is up', () => readLedger(ledger).readyAt !== undefined)
    runner.kill('SIGKILL')
    await runner.ended
    await until('the run is confirmed', async () => (await historyOf(database)).run.process === 'confirmed')
    expect(aliveOf(readLedger(ledger))).toEqual([])
  }, 120_000)

  it('R7: a store that no other process can open is refused by name', async () => {
    await expect(openTestEngine({ database: ':memory:', guardian: true })).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining('option guardian') as string,
    })
  })
})
