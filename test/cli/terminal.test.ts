/** `runwarden run` on a terminal: the status line, and a terminal that stands still. */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, identityOf, isAlive, readLedger, statOf } from '../support/proc-reader.js'
import { tempDir } from '../support/wait-for.js'
import { TEST_TIMEOUT_MS, cli, start, textOf, until } from './cli.js'
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

test('L9: --pty passes the terminal through: its size, what is typed, and control-C to the command alone', async ({
  skip,
}) => {
  if (!hasScript) skip(NO_SCRIPT)
  const script =
    'trap "echo interrupted" INT; stty cols 99 </dev/tty; echo "TERM $TERM"; read -r word; echo "got $word"; read -r _ || read -r _; exit 5'
  const child = onTerminal(['run', '--pty', '--id', 'it', '--', 'sh', '-c', script], { TERM: 'vt220' })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  await until('it reads', () => text.includes('TERM vt220') || undefined)
  child.stdin.write('a word\r')
  await until('it has read', () => text.includes('got a word') || undefined)
  child.stdin.write('\x03')
  await until('it was interrupted', () => text.includes('interrupted') || undefined)
  child.stdin.write('\r')
  const [code] = (await once(child, 'close')) as [number]
  expect(code).toBe(5)
  // No status line is drawn into what the command draws; the last word comes when it has ended.
  expect(text).not.toContain('active · ')
  expect(text).toMatch(
    /runwarden: it failed: exited with code 5 · .* · confirmed by (?:tree-reaped|cgroup-empty)\r\n$/,
  )
})

test('CLI: --pty works without a terminal, and is refused together with --stdin', async () => {
  const ended = await cli(['run', '--pty', '--', 'sh', '-c', 'tty >/dev/null && stty size'])
  expect([ended.code, textOf(ended)]).toEqual([0, '24 80\r\n'])
  expect(await cli(['run', '--pty', '--stdin', '--', 'true'])).toMatchObject({ code: 64 })
})

test('L9, INV-13: the engine is killed: the kernel hangs the terminal up, and a stop ends what does not mind', async () => {
  const place = join(tempDir(), 'place')
  const script = 'trap "echo hung up >>$0.hup" HUP; trap "" TERM; echo $$ >$0; while :; do sleep 0.1; done'
  const engine = start(['run', '--pty', '--id', 'it', '--', 'sh', '-c', script, place])
  const textIn = (path: string): string | undefined =>
    existsSync(path) ? readFileSync(path, 'utf8').trim() || undefined : undefined
  const pid = Number(await until('it is up', () => textIn(place)))
  const command = identityOf(pid)
  onTestFinished(() => {
    if (command !== undefined && isAlive(command)) process.kill(pid, 'SIGKILL')
  })
  engine.kill('SIGKILL')
  await engine.ended
  expect(await until('it was hung up', () => textIn(`${place}.hup`))).toBe('hung up')
  expect(command !== undefined && isAlive(command)).toBe(true)
  const stop = await cli(['stop', 'it'])
  expect([stop.code, command !== undefined && isAlive(command)]).toEqual([0, false])
})
