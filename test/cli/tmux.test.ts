/** `runwarden run --tmux`, and what becomes of its pane when the command line is killed. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { endTree } from '../support/end-tree.js'
import { fixtureCommand, withLedger } from '../support/fixture.js'
import { aliveOf, readLedger } from '../support/proc-reader.js'
import { NO_TMUX, hasTmux, testTmux } from '../support/tmux.js'
import { TEST_TIMEOUT_MS, cli, start, textOf, until } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

test('P12: --tmux runs it in a pane and says where; its exit code is ours', async ({ skip }) => {
  if (!hasTmux) skip(NO_TMUX)
  const tmux = testTmux()
  const options = ['--tmux=agents', '--tmux-socket', tmux.socketName, '--keep-pane', '--id', 'it']
  const ended = await cli(['run', ...options, '--', 'sh', '-c', 'echo seen there; exit 9'])
  expect(ended.code).toBe(9)
  expect(textOf(ended)).toBe('')
  expect(ended.stderr).toMatch(/it runs in pane %0; see it with `tmux -S .* attach -t %0`/)
  expect(tmux.panes()).toMatchObject([{ id: '%0', session: 'agents' }])
  expect(tmux.text('%0')).toContain('seen there')
  expect(textOf(await cli(['logs', 'it']))).toBe('seen there\r\n')
  expect(textOf(await cli(['show', 'it']))).toMatch(/pane %0 of tmux at \/.*, retained$/m)
})

test('INV-13, P12: the engine is killed: the command goes on in its pane, and a stop ends both', async ({
  skip,
}) => {
  if (!hasTmux) skip(NO_TMUX)
  const tmux = testTmux()
  tmux.run('new-session', '-d', '-s', 'agents', '--', 'sleep', '600')
  const { ledger, env } = withLedger()
  onTestFinished(() => endTree(ledger))
  const options = ['--tmux=agents', '--tmux-socket', tmux.socketName, '--id', 'it']
  const engine = start(['run', ...options, '--', ...fixtureCommand('stubborn-agent')], { env })
  await until('it is up', () => readLedger(ledger).readyAt)
  engine.kill('SIGKILL')
  await engine.ended
  expect(aliveOf(readLedger(ledger))).toHaveLength(4)
  expect(tmux.panes()).toHaveLength(2)
  const stop = await cli(['stop', 'it'])
  expect(stop.code).toBe(0)
  expect(aliveOf(readLedger(ledger))).toEqual([])
  expect(tmux.panes()).toHaveLength(1)
})
