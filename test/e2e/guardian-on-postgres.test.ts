/** The guardian, adopted and kept runs over a PostgreSQL server: the store is reached by its address, and the guardian is told it by pipe. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRecords } from '../../src/index.js'
import { endTree } from '../support/end-tree.js'
import { openTestEngine } from '../support/engine.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { guardiansOf, startHost } from '../support/host.js'
import { schemaOn, usePostgres, whyNoPostgres } from '../support/postgres.js'
import { aliveOf, readLedger, statOf } from '../support/proc-reader.js'
import { tempDir, waitFor } from '../support/wait-for.js'

const until = <T>(what: string, condition: () => T | Promise<T>) =>
  waitFor(condition, { deadlineMs: 60_000, what })

/** Logs of a server's runs go below the user's state folder. */
const freshState = (): string => {
  const state = tempDir()
  const before = process.env['XDG_STATE_HOME']
  process.env['XDG_STATE_HOME'] = state
  onTestFinished(() => {
    if (before === undefined) delete process.env['XDG_STATE_HOME']
    else process.env['XDG_STATE_HOME'] = before
  })
  return state
}

const hostOver = async (database: string, spec: object, env: Record<string, string>, guardian: boolean) => {
  const host = startHost(
    `const engine = await createEngine({ database: ${JSON.stringify(database)}, guardian: ${String(guardian)} })
     say('engine ' + engine.id + ' ')
     const run = await engine.start(${JSON.stringify(spec)})
     while (run.state.process !== 'alive') await new Promise((resolve) => setTimeout(resolve, 5))
     say('pid ' + run.pid + ' ')
     await told('never')`,
    env,
  )
  await host.says('pid ')
  const [, engineId = ''] = /engine (\S+)/.exec(host.text()) ?? []
  return { host, engineId, pid: Number(/pid (\d+)/.exec(host.text())?.[1]) }
}

const stop = { termGraceMs: 300, killGraceMs: 5_000 }

describe('on PostgreSQL', () => {
  const why = whyNoPostgres()
  if (why !== null) {
    it('R7, S5: the guardian', ({ skip }) => skip(why))
    return
  }
  const server = usePostgres()

  it('R7, S5: an engine that is killed leaves nothing alive and nothing open', async () => {
    const database = await schemaOn(server.url)
    const { ledger, env } = withLedger()
    onTestFinished(() => endTree(ledger))
    const XDG_STATE_HOME = freshState()
    const spec = { id: 'r1', command: fixtureCommand('stubborn-pair'), stop }
    const { host, engineId } = await hostOver(database, spec, { ...env, XDG_STATE_HOME }, true)
    await until('the tree is up', () => readLedger(ledger).readyAt !== undefined)
    expect(guardiansOf(engineId)).toHaveLength(1)
    await host.killed()
    await until('the guardian is done', () => guardiansOf(engineId).length === 0)
    expect(aliveOf(readLedger(ledger))).toEqual([])
    await using records = await openRecords({ database })
    const { run, transitions } = await records.history('r1')
    expect(run).toMatchObject({ work: 'settled.interrupted', process: 'confirmed' })
    expect(transitions.map(({ rev }) => rev)).toEqual(transitions.map((_, rev) => rev))
    expect(JSON.stringify(transitions)).toContain('guardian')
  }, 120_000)

  it('R3, R10, S5: a run is adopted by the next engine, which reads its output on', async () => {
    const database = await schemaOn(server.url)
    const XDG_STATE_HOME = freshState()
    const end = join(tempDir(), 'end')
    onTestFinished(() => {
      writeFileSync(end, '')
    })
    const script = `echo one; until [ -e '${end}' ]; do sleep 0.05; done; echo two`
    const spec = { id: 'r1', command: ['sh', '-c', script], stop, onRecover: 'adopt' }
    const { host, pid } = await hostOver(database, spec, { XDG_STATE_HOME }, false)
    await host.killed()
    const engine = await openTestEngine({ database })
    const run = engine.run('r1')
    expect(run?.state).toMatchObject({ process: 'alive', intent: null })
    writeFileSync(end, '')
    expect(await run?.outcome).toMatchObject({ status: 'lost' })
    await run?.gone
    expect(['Z', 'X', undefined]).toContain(statOf(pid)?.state)
    let logged = ''
    for await (const piece of engine.logs('r1'))
      if (piece.kind === 'chunk') logged += piece.bytes.toString('utf8')
    expect(logged).toBe('one\ntwo\n')
  }, 120_000)
})
