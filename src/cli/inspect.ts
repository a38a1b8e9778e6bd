/** `runwarden inspect`: the local page over the store, live, until a signal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { Inspector, InspectorOptions } from '../inspector.js'
import { printJson, printLine } from './output.js'
import { AskingSignals } from './signals.js'
import { existingStore } from './store-path.js'
import { stderr } from './streams.js'
import { examples, verb } from './verb.js'
import type { SharedOptions } from './verb.js'

interface InspectOptions extends SharedOptions {
  readonly port?: number
  readonly host?: string
  readonly allowHost?: readonly string[]
  readonly readOnly?: boolean
  readonly logs: boolean
  readonly open?: boolean
}

/** What an act took over from a dead engine is brought to its end. */
const FINISH_MS = 15_000
const MAX_PORT = 65_535

const parsePort = (text: string): number => {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= MAX_PORT) return port
  throw new InvalidArgumentError('Give a number from 0 to 65535; 0 is any free port.')
}

const collectHost = (host: string, known: readonly string[] = []): readonly string[] => [...known, host]

/**
 * L7: an address in the argument of a program can be read by every user of the machine, and this one holds the token. So the browser is
 * given a file that only its owner can read, which sends it there.
 */
const openInBrowser = async (address: string): Promise<() => void> => {
  const folder = mkdtempSync(join(tmpdir(), 'runwarden-inspect-'))
  const file = join(folder, 'open.html')
  const page = `<!doctype html><meta http-equiv="refresh" content="0;url=${address}"><title>runwarden</title>`
  writeFileSync(file, page, { mode: 0o600 })
  const { createEngine } = await import('../index.js')
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const engine = await createEngine({ database: ':memory:', logs: false })
  const run = await engine.start({ command: [opener, file] })
  void run.outcome.then(async ({ status }) => {
    if (status !== 'completed') await stderr.write(`runwarden: ${opener} could not open a browser\n`)
    // The browser that it may have started goes on.
    await engine.close({ runs: 'leave' })
  })
  return () => {
    rmSync(folder, { recursive: true, force: true })
  }
}

const untilAsked = (): Promise<void> =>
  new Promise((resolve) => {
    new AskingSignals().onEach(() => {
      resolve()
    })
  })

const serve = async (inspector: Inspector, { json: isJson, open: isOpen }: InspectOptions): Promise<void> => {
  const asked = untilAsked()
  const address = await inspector.listen()
  const { isReadOnly } = inspector
  if (isJson === true) await printJson({ type: 'listening', address, isReadOnly })
  else {
    await printLine(address)
    await stderr.write(
      'The address is the key: who has it sees the runs, and may stop them. Ctrl-C ends the page.\n',
    )
  }
  const forget = isOpen === true ? await openInBrowser(address) : () => undefined
  try {
    await asked
  } finally {
    forget()
    await inspector.close()
  }
}

const inspect = async (options: InspectOptions): Promise<void> => {
  const { db, port, host, allowHost, readOnly: isReadOnly = false, logs } = options
  const database = existingStore(db)
  const [{ createEngine, openRecords }, { createInspector }] = await Promise.all([
    import('../index.js'),
    import('../inspector.js'),
  ])
  const given: InspectorOptions = {
    logs,
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(allowHost === undefined ? {} : { allowedHosts: [...allowHost] }),
  }
  if (isReadOnly) {
    await using records = await openRecords({ database })
    await serve(createInspector(records, given), options)
    return
  }
  // Only what an act covers is taken over from dead engines, as `stop` does it.
  const engine = await createEngine({ database, recover: false })
  try {
    await serve(createInspector(engine, given), options)
  } finally {
    await engine.close({ runs: 'interrupt', deadlineMs: FINISH_MS })
  }
}

export const addInspect = (program: Command): void => {
  verb(program, 'inspect', 'show the runs on a local page, as they move')
    .option('--port <number>', 'where it listens (default: any free port)', parsePort)
    .option('--host <address>', 'the address it listens on (default: 127.0.0.1, this machine alone)')
    .option('--allow-host <name>', 'a name by which browsers may call it; may be repeated', collectHost)
    .option('--read-only', 'look, and act on nothing')
    .option('--no-logs', 'do not show what the runs wrote')
    .option('--open', 'open it in the browser')
    .addHelpText(
      'after',
      `${examples('runwarden inspect', 'runwarden inspect --open', 'runwarden inspect --read-only --port 4100 --json')}

It prints its address, which holds a random token, and serves until a signal. Other
processes may use the store meanwhile; the runs stay theirs.`,
    )
    .action(async (_options: unknown, self: Command) => {
      await inspect(self.optsWithGlobals<InspectOptions>())
    })
}
