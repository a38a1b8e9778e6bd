/** `runwarden run --protocol`: how an agent is given its prompt, what is said of it, and how it ends. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { acpAgent, scriptedAgent } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { TEST_TIMEOUT_MS, cli, folder, linesOf, start, textOf, until } from './cli.js'
import type { Ended, StartOptions } from './cli.js'
import { NO_SCRIPT, hasScript, textOnTerminal } from './on-terminal.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const DELTA = { type: 'stream_event', event: { type: 'content_block_delta' } }
const RESULT = { type: 'result', subtype: 'success', is_error: false, result: 'done' }
const input = { command: 'curl -H "Authorization: s3cret"' }
const BASH = {
  type: 'assistant',
  message: { content: [{ type: 'tool_use', id: 'call-1', name: 'Bash', input }] },
}

const prompt = (text: string): string => {
  const file = join(folder(), `${text.trim()}.md`)
  writeFileSync(file, text)
  return file
}

const runAcp = (act: string, flags: readonly string[] = [], options?: StartOptions): Promise<Ended> =>
  cli(['run', '--protocol', 'acp', '--input', prompt(act), ...flags, '--', ...acpAgent()], options)

const runClaude = (flags: readonly string[], ...steps: readonly Step[]) =>
  cli(['run', '--protocol', 'claude', ...flags, '--', ...scriptedAgent(...steps)])

test('CLI: --input is the prompt of an agent that takes prompts; its frames pass through', async () => {
  const ended = await runAcp('answer\n')
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  expect(linesOf(ended).map(({ jsonrpc }) => jsonrpc)).toEqual(['2.0', '2.0', '2.0', '2.0'])
  expect(textOf(ended)).toContain('"text":"Hello."')
})

test('CLI: --input - is what we are given, and an agent without prompts reads it from its stdin', async () => {
  const given = cli(['run', '--protocol', 'acp', '--input', '-', '--', ...acpAgent()], { stdin: 'answer\n' })
  const read = await runClaude(
    ['--input', prompt('fix it')],
    { hear: 1 },
    { say: RESULT },
    { hearEnd: true },
    { exit: 0 },
  )
  const ours = await given
  expect([ours.code, textOf(ours).includes('Hello.')]).toEqual([0, true])
  expect([read.code, textOf(read)]).toEqual([0, `${JSON.stringify(RESULT)}\n`])
})

test('K9: --permissions says what the agent is told when it asks; without it is refused', async () => {
  const [allowed, refused] = await Promise.all([
    runAcp('permission', ['--permissions', 'allow']),
    runAcp('permission'),
  ])
  expect(textOf(allowed)).toContain(String.raw`\"optionId\":\"yes\"`)
  expect(textOf(refused)).toContain(String.raw`\"optionId\":\"no\"`)
  expect([allowed.code, refused.code]).toEqual([0, 0])
})

test('CLI: an agent that fails gives its code, or 1 where it has none of its own', async () => {
  const [crashed, said, refused] = await Promise.all([
    runAcp('crash'),
    runClaude([], { say: { ...RESULT, is_error: true, result: 'out of tokens' } }, { exit: 0 }),
    runAcp('refuse'),
  ])
  expect(crashed.code).toBe(3)
  expect([said.code, refused.code]).toEqual([1, 1])
  expect(said.stderr).toContain('failed: the agent reported a failure: out of tokens')
  expect(refused.stderr).toContain('refusal')
})

test('K5: an agent that never begins is 70, and says so', async () => {
  const { code, stderr } = await runAcp('hang', ['--id', 'it', '--never-started', '1s'])
  expect(code).toBe(70)
  expect(stderr).toMatch(/^runwarden: Agent produced no output since start\n/)
  expect(stderr).toMatch(
    /runwarden: it failed-never-started: .* · confirmed by (?:tree-reaped|cgroup-empty)\n$/,
  )
  const shown = await cli(['show', 'it'])
  expect(textOf(shown)).toContain('Agent produced no output since start')
})

test('K9: one that stalls at work is 71', async () => {
  const { code, stderr } = await runClaude(['--stalled', '300ms'], { say: DELTA }, { stay: true })
  expect(code).toBe(71)
  expect(stderr).toContain('failed-stalled: Agent stopped making progress')
})

test('K8: an advisory is one line on stderr, withdrawn in another, without arguments; plain where there is no terminal', async () => {
  const go = join(folder(), 'go')
  const command = scriptedAgent({ say: BASH }, { until: go }, { say: DELTA }, { say: RESULT }, { exit: 0 })
  const run = start(['run', '--id', 'it', '--protocol', 'claude', '--advisory', '300ms', '--', ...command])
  await until('the advisory', () => run.text().includes('Still waiting on Bash'))
  writeFileSync(go, '')
  const { code, stderr } = await run.ended
  expect(code).toBe(0)
  expect(stderr).toMatch(/^runwarden: Still waiting on Bash\n(runwarden: The agent is at work again\n)?$/)
  expect(stderr).not.toContain('\u001b')
  const shown = textOf(await cli(['show', 'it']))
  expect(shown).toContain('Still waiting on Bash')
  expect(shown).not.toContain('s3cret')
})

test('CLI: with --quiet nothing is said of the agent, and its retries are', async () => {
  const retry = {
    type: 'system',
    subtype: 'api_retry',
    attempt: 1,
    max_retries: 10,
    error: 'rate \u001b[2Jlimit',
  }
  const steps = [{ say: retry }, { say: DELTA }, { say: RESULT }, { exit: 0 }]
  const [loud, quiet] = await Promise.all([runClaude([], ...steps), runClaude(['--quiet'], ...steps)])
  expect(loud.stderr).toBe('runwarden: The agent tries again (1 of 10): rate \\x1b[2Jlimit\n')
  expect(quiet.stderr).toBe('')
  expect([loud.code, quiet.code]).toEqual([0, 0])
})

test('CLI: run --json tells of turns, notices and retries, one object a line', async () => {
  const retry = { type: 'system', subtype: 'api_retry', attempt: 1, max_retries: 10, error: 'rate' }
  const steps = [
    { say: retry },
    { say: { type: 'strange' } },
    { say: BASH },
    { waitMs: 1_500 },
    { say: RESULT },
    { exit: 0 },
  ]
  const ended = await runClaude(['--json', '--advisory', '300ms'], ...steps)
  expect([ended.code, ended.stderr]).toEqual([0, ''])
  const lines = linesOf(ended)
  const of = (type: string) => lines.filter((line) => line['type'] === type)
  expect(lines[0]).toMatchObject({ type: 'accepted' })
  expect(of('retrying')).toMatchObject([{ attempt: 1, attemptsMax: 10, reason: 'rate' }])
  expect(of('unknown-frame')).toMatchObject([{ frameType: expect.stringContaining('strange') as string }])
  expect(of('notice')).toMatchObject([{ kind: 'advisory', text: 'Still waiting on Bash', generation: 1 }])
  expect(of('notice-withdrawn')).toMatchObject([{ kind: 'advisory', generation: 1 }])
  expect(of('turn-ended')).toMatchObject([{ generation: 1, status: 'completed', text: 'done' }])
  expect(of('output')).toHaveLength(4)
  expect(lines.slice(-2)).toMatchObject([
    { type: 'settled', outcome: { status: 'completed', result: { isOk: true, text: 'done' } } },
    { type: 'confirmed', survivors: [] },
  ])
})

test('K13: a signal ends the run in the middle of a turn; with --ask-grace the agent is asked first', async () => {
  const command = ['--', ...acpAgent()]
  const flags = ['run', '--protocol', 'acp', '--input', prompt('obey'), '--json']
  const [asked, told] = [start([...flags, '--ask-grace', '20s', ...command]), start([...flags, ...command])]
  for (const run of [asked, told]) {
    await until('the turn', () => run.text().includes('session in '))
    await until('its start', () => run.text().includes('"process":"alive"'))
    run.kill('SIGINT')
  }
  const outcomes = await Promise.all([asked, told].map(async (run) => linesOf(await run.ended).at(-2)))
  expect((await asked.ended).code).toBe(130)
  expect((await told.ended).code).toBe(130)
  expect(outcomes).toMatchObject([
    { outcome: { status: 'interrupted', exitCode: 0, signal: null } },
    { outcome: { status: 'interrupted', exitCode: null, signal: 'SIGTERM' } },
  ])
})

test('CLI: what makes no sense is wrong usage, and named', async () => {
  const uses: [string, ...string[]][] = [
    ['telepathy', '--protocol', 'telepathy'],
    ['--input', '--protocol', 'acp'],
    ['no-such-file', '--protocol', 'acp', '--input', 'no-such-file'],
    ['empty', '--protocol', 'acp', '--input', '/dev/null'],
    ['--stdin', '--input', '/proc/self/comm', '--stdin'],
    ['soon', '--advisory', 'soon'],
    ['perhaps', '--permissions', 'perhaps'],
  ]
  const ended = await Promise.all(uses.map(([, ...flags]) => cli(['run', ...flags, '--', 'true'])))
  expect(ended.map(({ code }) => code)).toEqual(uses.map(() => 64))
  for (const [index, [named]] of uses.entries()) expect(ended[index]?.stderr).toContain(named)
})

test('CLI: on a terminal the status line has the headline, the open tool and how long it is quiet', async ({
  skip,
}) => {
  if (!hasScript) skip(NO_SCRIPT)
  const command = scriptedAgent({ say: BASH }, { waitMs: 6_000 }, { say: RESULT }, { exit: 0 })
  const flags = ['run', '--id', 'it', '--protocol', 'claude', '--advisory', '2s', '--', ...command]
  const { code, text } = await textOnTerminal(flags)
  expect(code).toBe(0)
  expect(text).toMatch(/it {2}active · [\d.]+ m?s · Bash · pid \d+/)
  expect(text).toContain('runwarden: Still waiting on Bash\r\n')
  expect(text).toMatch(/it {2}stalled-advisory · [\d.]+ s · Bash · quiet [56]\.\d s · pid \d+/)
  expect(text).toMatch(
    /runwarden: it completed: exited with code 0 · .* · confirmed by (?:tree-reaped|cgroup-empty)\r\n$/,
  )
})
