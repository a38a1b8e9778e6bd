/** The first example, which `npm run demo` runs. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { expect, test, vi } from 'vitest'
import { statOf } from '../support/proc-reader.js'
import { TEST_TIMEOUT_MS } from './cli.js'

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

const main = resolve(import.meta.dirname, '../../examples/01-stubborn-run/main.mjs')

test('C5: the demo cancels the stubborn agent, tells each step, and leaves none of its processes', async () => {
  const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const [code] = (await once(child, 'close')) as [number]
  expect(code).toBe(0)
  const steps = [...text.matchAll(/^ +[\d.]+ s {2}(?:\w+ +→ )?([a-z.-]+)$/gm)].map(([, step]) => step)
  const order = [
    'accepted',
    'open.active.progressing',
    'open.cancel-requested',
    'term-sent',
    'kill-sent',
    'confirmed',
  ]
  expect(steps.filter((step = '') => order.includes(step))).toEqual(order)
  expect(text).toMatch(/The run is cancelled; its end is confirmed, by (tree-reaped|cgroup-empty)\./)
  const pids = [...text.matchAll(/s +\w+ +pid (\d+)/g)].map(([, pid]) => Number(pid))
  expect(pids).toHaveLength(4)
  expect(pids.filter((pid) => (statOf(pid)?.state ?? 'Z') !== 'Z')).toEqual([])
})
