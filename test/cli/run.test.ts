/** `runwarden run`: what passes through, what it prints, and how it ends. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { TEST_TIMEOUT_MS, cli, folder, jsonOf, linesOf, orphan, runFixture, textOf, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const node = (script: string): string[] => [process.execPath, '-e', script]

test('CLI: the output passes through byte for byte, each stream to its own', async () => {
  const bytes = 'Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * 7) % 256))'
  const script = `process.stdout.write(${bytes}); process.stderr.write('no newline at the end')`
  const { code, stdout, stderr } = await cli(['run', '--', ...node(script)])
  const expected = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * 7) % 256))
  expect(code).toBe(0)
  expect(stdout.equals(expected)).toBe(true)
  expect(stderr).toBe('no newline at the end')
})

test('CLI: a command that ends by itself gives its code, and 1 where a signal ended it', async () => {
  const codes: { code: number | null; says: string }[] = []
  for (const script of ['process.exit(0)', 'process.exit(3)', 'process.kill(process.pid, "SIGKILL")']) {
    const { code, stderr } = await cli(['run', '--', ...node(script)])
    codes.push({ code, says: stderr })
  }
  expect(codes[0]).toEqual({ code: 0, says: '' })
  expect(codes[1]).toEqual({ code: 3, says: '' })
  expect(codes[2]?.code).toBe(1)
  expect(codes[2]?.says).toContain('ended by signal SIGKILL')
})

test('CLI: the options of the command are its own, with and without --', async () => {
  const script = 'console.log(process.argv.slice(1).join(" "))'
  const apart = await cli(['run', '--', ...node(script), '--', '--json', '-x'])
  const joined = await cli(['run', ...node(script), 'a', '--quiet', '--id'])
  expect(textOf(apart)).toBe('--json -x\n')
  expect(textOf(joined)).toBe('a --quiet --id\n')
})

test('L1: a program that is not there is 127, one that may not be run 126, and both are on record', async () => {
  writeFileSync(join(folder(), 'no-program'), '')
  const missing = await cli(['run', '--id', 'missing', '--', 'no-such-program-anywhere'])
  const refused = await cli(['run', '--id', 'refused', '--', './no-program'])
  expect([missing.code, refused.code]).toEqual([127, 126])
  expect(missing.stderr).toBe('runwarden: cannot launch no-such-program-anywhere: no such program (ENOENT)\n')
  expect(refused.stderr).toContain('permission denied (EACCES)')
  const runs = jsonOf(await cli(['ps', '--all', '--json']))
  expect(runs).toMatchObject([
    { runId: 'missing', headline: 'failed', pid: null },
    { runId: 'refused', headline: 'failed', pid: null },
  ])
})

test('CLI: run --json begins with accepted, has the output in events, and ends with settled and confirmed', async () => {
  const script =
    'console.log("one"); console.error("two"); process.stdout.write("three"); process.exitCode = 4'
  const ended = await cli(['run', '--json', '--id', 'j', '--', ...node(script)])
  expect(ended.code).toBe(4)
  const lines = linesOf(ended)
  expect(textOf(ended).split('\n')[0]).toBe('{"type":"accepted","runId":"j"}')
  expect(lines.find(({ type }) => type === 'launched')).toEqual({
    type: 'launched',
    runId: 'j',
    attempt: 1,
    pid: expect.any(Number) as number,
    containment: expect.stringMatching(/^(cgroup|group)/) as string,
  })
  const output = lines.filter(({ type }) => type === 'output')
  expect(output.filter(({ stream }) => stream === 'stdout').map(({ line }) => line)).toEqual(['one', 'three'])
  expect(output.filter(({ stream }) => stream === 'stderr').map(({ line }) => line)).toEqual(['two'])
  expect(lines.at(-2)).toMatchObject({
    type: 'settled',
    runId: 'j',
    outcome: { status: 'failed', exitCode: 4, signal: null },
  })
  expect(lines.at(-1)).toMatchObject({
    type: 'confirmed',
    runId: 'j',
    evidence: [{ attempt: 1, kind: expect.stringMatching(/^(cgroup-empty|tree-reaped)$/) as string }],
    survivors: [],
    confirmedAt: expect.any(Number) as number,
  })
})

test('CLI: run --json of a failed launch is accepted, settled and confirmed, and ends in 127', async () => {
  const ended = await cli(['run', '--json', '--', 'no-such-program-anywhere'])
  const types = linesOf(ended).map(({ type }) => type)
  expect(ended.code).toBe(127)
  expect(types[0]).toBe('accepted')
  expect(types).not.toContain('launched')
  expect(types.slice(-2)).toEqual(['settled', 'confirmed'])
  expect(linesOf(ended).at(-1)).toMatchObject({ evidence: [{ kind: 'never-launched' }], survivors: [] })
})

test('CLI: with --stdin the command reads what we are given, without it nothing', async () => {
  const script = 'process.stdin.pipe(process.stdout)'
  const passed = await cli(['run', '--stdin', '--', ...node(script)], { stdin: 'for the agent\n' })
  const ignored = await cli(['run', '--', ...node(script)], { stdin: 'for nobody\n' })
  expect([passed.code, textOf(passed)]).toEqual([0, 'for the agent\n'])
  expect([ignored.code, textOf(ignored)]).toEqual([0, ''])
})

test('CLI: --cwd is where the command runs', async () => {
  const { stdout } = await cli(['run', '--cwd', '/', '--', ...node('process.stdout.write(process.cwd())')])
  expect(stdout.toString()).toBe('/')
})

test('L8: an id that is taken is refused with 64, and nothing is spawned', async () => {
  const touch = node('require("node:fs").appendFileSync("ran", "x")')
  const first = await cli(['run', '--id', 'twice', '--', ...touch])
  const second = await cli(['run', '--id', 'twice', '--json', '--', ...touch])
  expect([first.code, second.code]).toEqual([0, 64])
  expect(second.stderr).toBe('runwarden: start: option id "twice" is already used in this store\n')
  expect(jsonOf(second)).toMatchObject({ type: 'error', code: 'run-exists' })
  expect(statSync(join(folder(), 'ran')).size).toBe(1)
})

test('CLI: the default store is made below the current folder, for its owner only', async () => {
  await cli(['run', '--', ...node('')])
  const store = join(folder(), '.runwarden')
  expect(statSync(store).mode & 0o777).toBe(0o700)
  expect(statSync(join(store, 'runs.db')).mode & 0o777).toBe(0o600)
})

test('S1: commands that open a new store at the same time all run', async () => {
  const ended = await Promise.all(
    ['a', 'b', 'c', 'd'].map((id) => cli(['run', '--id', id, '--', ...node('')])),
  )
  expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    ended.map(() => ({ code: 0, stderr: '' })),
  )
})

test('CLI: $RUNWARDEN_DB names the store, and --db goes before it', async () => {
  const env = { RUNWARDEN_DB: join(folder(), 'env.db') }
  await cli(['run', '--id', 'by-env', '--', ...node('')], { env })
  await cli(['run', '--id', 'by-option', '--db', 'option.db', '--', ...node('')], { env })
  const byEnv = await cli(['ps', '--all', '--json'], { env })
  const byOption = await cli(['--db', 'option.db', 'ps', '--all', '--json'], { env })
  expect(jsonOf(byEnv)).toMatchObject([{ runId: 'by-env' }])
  expect(jsonOf(byOption)).toMatchObject([{ runId: 'by-option' }])
  expect(existsSync(join(folder(), '.runwarden'))).toBe(false)
})

test('CLI: when nobody reads our stdout any more the run is interrupted and the command ends (| head -1)', async () => {
  const run = await runFixture('flood', ['--id', 'flood'], { readsStdout: false })
  run.stdout.destroy()
  const { code, stderr } = await run.ended
  expect(code).toBe(130)
  expect(stderr).toContain('nobody reads the output any more (EPIPE)')
  expect(run.alive()).toEqual([])
  expect(jsonOf(await cli(['ps', '--all', '--json']))).toMatchObject([{ headline: 'interrupted' }])
})

test('R3: the next run interrupts what a killed one has left in the store', async () => {
  const orphaned = await orphan(['--id', 'orphan', '--term-grace', '300ms'])
  const next = await cli(['run', '--id', 'next', '--', ...node('')])
  expect(next.code).toBe(0)
  await until('the orphaned tree is gone', () => orphaned.alive().length === 0)
  expect(jsonOf(await cli(['ps', '--all', '--json']))).toMatchObject([
    { runId: 'orphan', headline: 'interrupted' },
    { runId: 'next', headline: 'completed' },
  ])
})

test('CLI: --quiet says nothing of our own, but for errors', async () => {
  const killed = await cli(['run', '--quiet', '--', ...node('process.kill(process.pid, "SIGKILL")')])
  const failed = await cli(['run', '--quiet', '--', 'no-such-program-anywhere'])
  expect([killed.code, killed.stderr]).toEqual([1, ''])
  expect(failed.stderr).toContain('no such program')
})

test('O15: --timeout and --max-output interrupt the run, and the reason names the limit', async () => {
  const slow = await cli(['run', '--timeout', '700ms', '--term-grace', '300ms', '--', 'sleep', '60'])
  expect(slow.code).toBe(130)
  expect(slow.stderr).toContain('limit timeoutMs exceeded: more than 700 ms')
  const loud = await cli(['run', '--max-output', '1k', '--term-grace', '300ms', '--', 'yes'])
  expect(loud.code).toBe(130)
  expect(loud.stderr).toContain('limit maxOutputBytes exceeded: more than 1024 bytes')
})
