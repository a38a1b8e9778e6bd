/** What an agent printed before it exited counts before its exit, however busy we were in between. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { claudeStreamJson, custom } from '../../src/protocols.js'
import { listenTo, scriptedAgent } from '../support/agents.js'
import type { Step } from '../support/agents.js'
import { openTestEngine, quickStop } from '../support/engine.js'
import { tempDir } from '../support/wait-for.js'

const FAILED = { type: 'result', subtype: 'error', is_error: true, result: 'no' }

/** Nothing of ours runs, not even what has become ready. */
const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

it('L2: an exit that is seen before the last word, because another child has exited too, counts after it', async () => {
  const engine = await openTestEngine()
  const [goOn, end] = [join(tempDir(), 'go'), join(tempDir(), 'go')]
  const agent = await engine.start({
    // With a child that is left there is no other way to see that it ended.
    command: scriptedAgent(
      { child: ['sleep', '60'] },
      { say: 'up' },
      { until: end },
      { say: FAILED },
      { exit: 0 },
    ),
    protocol: claudeStreamJson(),
    stop: quickStop,
  })
  const agentTold = listenTo(agent, { output: 'lines' })
  const neighbour = await engine.start({
    command: scriptedAgent({ say: 'up' }, { until: goOn }, { say: 'gone' }, { exit: 0 }),
    protocol: custom({
      classify: (line) => {
        if (line !== 'gone') return null
        // Its output is read, its exit is next in the same turn of the loop; the agent says and does its last in between.
        writeFileSync(end, '')
        block(2_000)
        return null
      },
    }),
    stop: quickStop,
  })
  await listenTo(neighbour, { output: 'lines' }).until('output')
  await agentTold.until('output')
  writeFileSync(goOn, '')
  block(1_500)
  expect((await neighbour.outcome).status).toBe('completed')
  expect(await agent.outcome).toMatchObject({
    status: 'failed',
    exitCode: 0,
    result: { isOk: false, text: 'no' },
  })
})

it.each<[string, readonly Step[]]>([
  ['alone', []],
  ['and leaves a child', [{ child: ['sleep', '60'] }]],
])('L2: a last word without a newline counts too, of an agent that exits %s', async (_, before) => {
  const engine = await openTestEngine()
  const run = await engine.start({
    command: scriptedAgent(...before, { write: JSON.stringify(FAILED) }, { exit: 0 }),
    protocol: claudeStreamJson(),
    stop: quickStop,
  })
  expect(await run.outcome).toMatchObject({
    status: 'failed',
    exitCode: 0,
    result: { isOk: false, text: 'no' },
  })
})

it('L4: who follows the log is told of every attempt, and until the run is confirmed', async () => {
  const engine = await openTestEngine()
  const run = await engine.start({
    command: ['sh', '-c', 'sleep 1; echo first >&2; exit 1'],
    protocol: claudeStreamJson(),
    fallback: { candidates: [{ command: ['sh', '-c', `echo '${JSON.stringify(FAILED)}'`] }] },
    stop: quickStop,
  })
  let text = ''
  for await (const piece of engine.logs(run.id, { follow: true }))
    if (piece.kind === 'chunk') text += piece.bytes.toString()
  expect(text).toBe(`first\n${JSON.stringify(FAILED)}\n`)
  expect(run.state).toMatchObject({ isConfirmed: true, outcome: { status: 'failed', attempt: 2 } })
})
