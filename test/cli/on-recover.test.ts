/** `--on-recover`: what becomes of a run, and of a job's run, when the command line that supervises it is killed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createEngine } from '../../src/index.js'
import { openBackdoor } from '../support/database.js'
import { guardiansOf } from '../support/host.js'
import { statOf } from '../support/proc-reader.js'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, start, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"done"}'

/** Waits for a file, and says that it is done. */
const agentIn = (place: string): string[] => {
  const end = join(place, 'end')
  onTestFinished(() => {
    writeFileSync(end, '')
  })
  const script = `until [ -e '${end}' ]; do sleep 0.05; done; echo '${RESULT}'`
  return ['sh', '-c', script]
}

const isAlive = (pid: number): boolean => !['Z', 'X', undefined].includes(statOf(pid)?.state)

const pidOf = async (db: string): Promise<number> => {
  const runs = jsonOf(await cli(['ps', '--db', db, '--json'])) as { pid: number | null }[]
  return runs[0]?.pid ?? NaN
}

const ownerOf = async (db: string): Promise<string> => {
  const store = await openBackdoor(db)
  const [run] = await store.rows('select owner from runwarden_run')
  return String(run?.['owner'])
}

/** Returns the pid of the agent. */
const killWhenUp = async (args: readonly string[], db: string): Promise<number> => {
  const runner = start(args)
  const pid = await until('the agent is up, and on record', () => pidOf(db))
  runner.kill('SIGKILL')
  await runner.ended
  return pid
}

test('R3: a run to be adopted has no guardian, and the next engine goes on with it to its end', async () => {
  const place = folder()
  const db = join(place, 'runs.db')
  const args = ['run', '--db', db, '--id', 'r1', '--protocol', 'claude', '--on-recover', 'adopt', '--']
  await killWhenUp([...args, ...agentIn(place)], db)
  const engine = await createEngine({ database: db })
  onTestFinished(async () => {
    await engine.close()
  })
  const run = engine.run('r1')
  expect(run?.state).toMatchObject({ process: 'alive', intent: null })
  writeFileSync(join(place, 'end'), '')
  expect(await run?.outcome).toMatchObject({ status: 'completed', result: { text: 'done' } })
  await run?.gone
})

test('R3: a kept run outlives its guardian and the next engine, until it is stopped', async () => {
  const place = folder()
  const db = join(place, 'runs.db')
  await killWhenUp(['run', '--db', db, '--id', 'r1', '--on-recover', 'keep', '--', ...agentIn(place)], db)
  const pid = await pidOf(db)
  const owner = await ownerOf(db)
  await until('the guardian is done', () => guardiansOf(owner).length === 0)
  expect((await cli(['run', '--db', db, '--', 'true'])).code).toBe(0)
  expect(isAlive(pid)).toBe(true)
  expect((await cli(['stop', '--db', db, 'r1'])).code).toBe(0)
  expect(isAlive(pid)).toBe(false)
})

test('R3: what cannot outlive its engine is a usage error that names the option', async () => {
  const db = join(folder(), 'runs.db')
  const word = await cli(['run', '--db', db, '--on-recover', 'revive', '--', 'true'])
  expect(word.code).toBe(64)
  expect(word.stderr).toContain('--on-recover')
  const pty = await cli(['run', '--db', db, '--on-recover', 'adopt', '--pty', '--', 'true'])
  expect(pty.code).toBe(64)
  expect(pty.stderr).toContain('--on-recover')
  const input = join(folder(), 'prompt')
  writeFileSync(input, 'hello')
  const acp = ['--protocol', 'acp', '--input', input]
  const spoken = await cli(['jobs', 'add', '--db', db, '--on-recover', 'keep', ...acp, '--', 'true'])
  expect(spoken.code).not.toBe(0)
  expect(spoken.stderr).toContain('onRecover "keep"')
})

test('R3, O13: the run of a job is adopted by the next worker, and its end moves the job', async () => {
  const place = folder()
  const db = join(place, 'runs.db')
  const add = ['jobs', 'add', '--db', db, '--id', 'j1', '--attempts', '1', '--protocol', 'claude']
  const added = await cli([...add, '--on-recover', 'adopt', '--', ...agentIn(place)])
  expect(added.code, added.stderr).toBe(0)
  const pid = await killWhenUp(['jobs', 'work', '--db', db, '--no-guardian'], db)
  expect(isAlive(pid)).toBe(true)
  const first = await ownerOf(db)
  const worker = start(['jobs', 'work', '--db', db, '--forever'])
  onTestFinished(() => worker.kill('SIGTERM'))
  const jobIs = async (state: string): Promise<boolean> => {
    const listed = await cli(['jobs', 'list', '--db', db, '--all', '--json'])
    const jobs = jsonOf(listed) as { state: string }[]
    return jobs[0]?.state === state
  }
  await until('the next worker has it', async () => (await ownerOf(db)) !== first)
  expect(isAlive(pid)).toBe(true)
  writeFileSync(join(place, 'end'), '')
  await until('the job is done', () => jobIs('done'))
  worker.kill('SIGTERM')
  await worker.ended
})
