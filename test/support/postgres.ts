/**
 * A real PostgreSQL server for tests: the one that RUNWARDEN_TEST_DATABASE names, or one of the test file's own, in a temporary folder.
 *
 * Owns: the server's process, which ends with the file's, and a fresh schema for each test that asks, dropped after it.
 */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, it, onTestFinished } from 'vitest'
import { waitFor } from './wait-for.js'

/** The server refuses to run as root. */
const NOBODY = 65_534
const START_DEADLINE_MS = 60_000

const debianFolders = (): string[] => {
  const versions = '/usr/lib/postgresql'
  if (!existsSync(versions)) return []
  return readdirSync(versions)
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(versions, version, 'bin'))
}

const binaries = [...debianFolders(), ...(process.env['PATH'] ?? '').split(delimiter)].find(
  (folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')),
)

const isRoot = process.getuid?.() === 0
const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0

/** Why no server of our own can be started here, or null. */
export const whyNoServer = (): string | null => {
  if (binaries === undefined) return 'no PostgreSQL'
  return isRoot && !hasSetpriv ? 'root without setpriv cannot start PostgreSQL' : null
}

const given = process.env['RUNWARDEN_TEST_DATABASE']

/** Why tests on PostgreSQL cannot run here, or null. */
export const whyNoPostgres = (): string | null => (given === undefined ? whyNoServer() : null)

const asServerUser = (program: string, args: readonly string[]): readonly [string, string[]] => {
  const command = [join(binaries ?? '', program), ...args]
  if (!hasSetpriv) return [command[0] ?? '', command.slice(1)]
  // A test process that is killed takes its server along.
  const identity = isRoot ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
  return ['setpriv', ['--pdeathsig=QUIT', ...identity, '--', ...command]]
}

const environment = { PATH: process.env['PATH'], LANG: 'C', TZ: 'UTC' }

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export class PostgresServer {
  readonly port: number
  readonly #folder: string
  #process: ChildProcess | null = null

  private constructor(folder: string, port: number) {
    this.#folder = folder
    this.port = port
  }

  static async create(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), 'runwarden-postgres-'))
    if (isRoot) chownSync(folder, NOBODY, NOBODY)
    const args = ['-D', join(folder, 'data'), '-U', 'postgres', '--auth=trust', '--no-sync', '-E', 'UTF8']
    const [program, rest] = asServerUser('initdb', [...args, '--locale=C'])
    const made = spawnSync(program, rest, { env: environment, cwd: '/', encoding: 'utf8' })
    if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
    const server = new PostgresServer(folder, await freePort())
    await server.start()
    return server
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`
  }

  async start(): Promise<void> {
    const [program, rest] = asServerUser('postgres', [
      ...['-D', join(this.#folder, 'data'), '-k', this.#folder, '-h', '127.0.0.1', '-p', String(this.port)],
      // What is committed outlives the server's own death, which is all that is tested; not the machine's.
      ...['-c', 'fsync=off', '-c', 'shared_buffers=16MB', '-c', 'max_connections=60'],
    ])
    this.#process = spawn(program, rest, { env: environment, cwd: '/', stdio: 'ignore' })
    await waitFor(() => query(this.url, 'select 1').then(Boolean, () => false), {
      deadlineMs: START_DEADLINE_MS,
      what: 'PostgreSQL answers',
    })
  }

  /** As a crash would: no goodbye to anybody. */
  async crash(): Promise<void> {
    await this.#end('SIGQUIT')
  }

  /** To the whole server: it holds still, with every connection open. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    for (const pid of this.#pids()) process.kill(pid, signal)
  }

  async close(): Promise<void> {
    await this.#end('SIGINT')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#process
    this.#process = null
    if (server === null || server.exitCode !== null || server.signalCode !== null) return
    const exited = once(server, 'exit')
    server.kill(signal)
    await exited
  }

  /** The postmaster and its backends, which are its children. */
  #pids(): number[] {
    const postmaster = this.#process?.pid
    if (postmaster === undefined) return []
    const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(postmaster)], { encoding: 'utf8' })
    return [postmaster, ...stdout.split('\n').map(Number).filter(Boolean)]
  }
}

/** One statement on a connection of its own. */
export const query = async (url: string, text: string, values: unknown[] = []): Promise<pg.QueryResult> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await client.query(text, values)
  } finally {
    await client.end()
  }
}

let schemas = 0

/** A fresh schema on the server, dropped after the test; the address of it. */
export const schemaOn = async (server: string): Promise<string> => {
  schemas += 1
  const schema = `test_${process.pid}_${schemas}`
  await query(server, `create schema ${schema}`)
  onTestFinished(async () => {
    // A server that a test has ended takes its schemas along.
    await query(server, `drop schema ${schema} cascade`).catch(() => undefined)
  })
  const url = new URL(server)
  url.searchParams.set('options', `-c search_path=${schema}`)
  return url.href
}

/** A server for the tests of this file, and where to make the schemas of each. Skip where `whyNoPostgres` says why. */
export const usePostgres = (): { readonly url: string } => {
  const server = { url: given ?? '' }
  if (given !== undefined || whyNoServer() !== null) return server
  let own: PostgresServer | null = null
  beforeAll(async () => {
    own = await PostgresServer.create()
    server.url = own.url
  }, 2 * START_DEADLINE_MS)
  afterAll(() => own?.close())
  return server
}

/** Suites once more, each test over a schema of its own on a server. `load` imports them, with `RUNWARDEN_TEST_DATABASE` set. */
export const onPostgres = (load: () => Promise<unknown>): void => {
  const why = whyNoPostgres()
  if (why !== null) {
    it('S5: the same suites pass on PostgreSQL', ({ skip }) => skip(why))
    return
  }
  const server = usePostgres()
  beforeAll(() => {
    process.env['RUNWARDEN_TEST_DATABASE'] = server.url
  })
  describe('S5: on PostgreSQL', async () => {
    await load()
  })
}
