/** `runwarden run` on a terminal: the status line, and a terminal that stands still. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, identityOf, isAlive, readLedger, statOf } from '../support/proc-reader.js'
import { TEST_TIMEOUT_MS, cli, until } from './cli.js'
import { NO_SCRIPT, hasScript, onTerminal, textOnTerminal } from './on-terminal.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const say = (script: string): string[] => ['--', process.execPath, '-e', script]

test('CLI: on a terminal a status line tells how the run is, and makes way for its output', async ({
  skip,
}) => {
  if (!hasScript) skip(NO_SCRIPT)
  const script = 'console.log("one"); setTimeout(() => { console.log("two"); process.exitCode = 3 }, 1_500)'
  const { code, text } = await textOnTerminal(['run', '--id', 'it', ...say(script)])
  expect(code).toBe(3)
  const erase = '\r\u001b[K'
  expect(text).toContain('one\r\n' + erase + 'it  active · ')
  expect(text).toMatch(/it {2}active · [\d.]+ m?s · pid \d+\r/)
  expect(text).toContain(erase + 'two\r\n')
  expect(text).toMatch(
    /runwarden: it failed: exited with code 3 · .* · confirmed by (?:tree-reaped|cgroup-empty)\r\n$/,
  )
})

test('CLI: with --quiet the terminal is the command’s alone', async ({ skip }) => {
  if (!hasScript) skip(NO_SCRIPT)
  const script = 'process.stdout.write("one "); setTimeout(() => console.log("two"), 1_200)'
  expect(await textOnTerminal(['run', '--quiet', ...say(script)])).toEqual({ code: 0, text: 'one two\r\n' })
})

test('CLI: a terminal gets colours, unless NO_COLOR is set', async ({ skip }) => {
  if (!hasScript) skip(NO_SCRIPT)
  await cli(['run', ...say('')])
  expect((await textOnTerminal(['ps', '--all'])).text).toContain('\u001b[')
  expect((await textOnTerminal(['ps', '--all'], { NO_COLOR: '1' })).text).not.toContain('\u001b')
})

test('L6: a terminal that stands still does not hold up the stop; when it is gone, so is the command', async ({
  skip,
}) => {
  if (!hasScript) skip(NO_SCRIPT)
  const { ledger, env } = withLedger()
  onTestFinished(() => endTree(ledger))
  // Nobody reads what the terminal shows: it fills up, as with Ctrl-S.
  const terminal = onTerminal(['run', '--id', 'it', '--', ...fixtureCommand('flood')], env)
  const leader = await until('the flood runs', () => {
    const { readyAt, members } = readLedger(ledger)
    return readyAt === undefined ? undefined : members[0]
  })
  const command = identityOf(statOf(leader.pid)?.parentPid ?? NaN)
  const stop = await cli(['stop', 'it'])
  expect(stop.code).toBe(0)
  expect(aliveOf(readLedger(ledger))).toEqual([])
  terminal.kill('SIGKILL')
  await until('the command is gone', () => command !== undefined && !isAlive(command))
})
