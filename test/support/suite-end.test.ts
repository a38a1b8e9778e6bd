/** How a suite ends, seen from outside: real runs of vitest over small suites, with its exit code and last line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test, vi } from 'vitest'
import { tempDir } from './wait-for.js'

// A run of vitest takes a second, or twenty on a loaded machine.
vi.setConfig({ testTimeout: 90_000 })

const root = resolve(import.meta.dirname, '../..')
const support = (file: string) => JSON.stringify(join(import.meta.dirname, file))

interface Ended {
  readonly exitCode: number
  readonly output: string
  readonly lastLine: string
}

/** Runs vitest over one test file, with our global setup and, before it, another. */
async function runSuite(testFile: string, otherSetup = 'export const setup = () => {}'): Promise<Ended> {
  const folder = tempDir()
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(join(folder, 'suite'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'suite/only.test.ts'), testFile)
  writeFileSync(join(folder, 'other-setup.ts'), otherSetup)
  const config = `export default { test: {
    include: ['suite/*.test.ts'],
    pool: 'forks',
    globalSetup: ['./other-setup.ts', ${support('leftovers.global-setup.ts')}],
    reporters: [${support('summary-reporter.ts')}],
  } }`
  writeFileSync(join(folder, 'vitest.config.mjs'), config)
  return endOf(folder)
}

async function endOf(folder: string): Promise<Ended> {
  const program = join(root, 'node_modules/vitest/vitest.mjs')
  // The inner run is its own suite: it must not take itself for a worker of this one.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')))
  const child = spawn(process.execPath, [program, 'run', '--configLoader', 'runner'], { cwd: folder, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const [exitCode] = (await once(child, 'close')) as [number]
  return { exitCode, output, lastLine: output.trimEnd().split('\n').at(-1) ?? '' }
}

test('SUPPORT: passed, failed and skipped tests are counted on the last line, and skip reasons before it', async () => {
  const { exitCode, output, lastLine } = await runSuite(`
    import { expect, test } from 'vitest'
    test('good', () => {})
    test('bad', () => expect(1).toBe(2))
    test('elsewhere', (ctx) => ctx.skip('no tmux'))
    test.skip('not now', () => {})`)
  expect(lastLine).toBe('1 passed, 1 failed, 2 skipped')
  expect(output).toContain('skipped: no tmux (elsewhere)')
  expect(exitCode).toBe(1)
})

test('SUPPORT: a suite in which all is well exits 0', async () => {
  const { exitCode, lastLine } = await runSuite("import { test } from 'vitest'; test('good', () => {})")
  expect({ exitCode, lastLine }).toEqual({ exitCode: 0, lastLine: '1 passed, 0 failed, 0 skipped' })
})

test.each([
  ['a file that does not load', "import './nothing.js'", '0 passed, 1 failed, 0 skipped'],
  [
    'an unhandled rejection',
    "import { test } from 'vitest'; test('x', () => { void Promise.reject(new Error('lost')) })",
    '1 passed, 1 failed, 0 skipped',
  ],
  [
    'a hook that throws',
    `import { beforeAll, describe, test } from 'vitest'
     describe('s', () => { beforeAll(() => { throw new Error('hook') }); test('x', () => {}) })`,
    '0 passed, 1 failed, 1 skipped',
  ],
])('SUPPORT: %s counts as failed', async (_what, testFile, expected) => {
  const { exitCode, lastLine } = await runSuite(testFile)
  expect({ exitCode, lastLine }).toEqual({ exitCode: 1, lastLine: expected })
})

test('SUPPORT: a global teardown that throws counts as failed', async () => {
  const good = "import { test } from 'vitest'; test('good', () => {})"
  const { exitCode, lastLine } = await runSuite(good, "export function teardown() { throw new Error('no') }")
  expect({ exitCode, lastLine }).toEqual({ exitCode: 1, lastLine: '1 passed, 1 failed, 0 skipped' })
})

test('SUPPORT: a suite that leaves a scrubbed daemon and a marked process fails, names both and ends them', async () => {
  const { exitCode, output, lastLine } = await runSuite(`
    import { spawn } from 'node:child_process'
    import { test } from 'vitest'
    import { fixtureCommand, withLedger } from ${support('fixture.ts')}
    import { readLedger } from ${support('proc-reader.ts')}
    import { waitFor } from ${support('wait-for.ts')}
    test('leaks', async () => {
      const { ledger, env } = withLedger()
      const [program, ...args] = fixtureCommand('scrubbed-daemon')
      const options = { detached: true, stdio: 'ignore' }
      spawn(program, args, { ...options, env: { ...process.env, ...env } }).unref()
      spawn('sleep', ['60'], { ...options, env: { ...process.env, RUNWARDEN_COOKIE: 'x' } }).unref()
      const isReady = () => readLedger(ledger).readyAt !== undefined
      await waitFor(isReady, { deadlineMs: 20_000, what: 'ready' })
    }, 30_000)`)
  expect({ exitCode, lastLine }).toEqual({ exitCode: 1, lastLine: '1 passed, 1 failed, 0 skipped' })
  expect(output).toContain('(now killed)')
  expect(output).toMatch(/pid \d+: daemon of fixture scrubbed-daemon/)
  expect(output).toMatch(/pid \d+: sleep .*, which bears/)
})
