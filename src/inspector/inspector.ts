/**
 * The inspector: what the page asks, and what it is told.
 *
 * Owns: the addresses below the door, the clients, and the server when it listens itself.
 * Does not own: any run. It reads through the public door and acts through it, as any host app does.
 * Invariants: INV-11 (a maximum of clients), and without the token, or for a stranger's page, there is nothing here (door.ts).
 */
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { RunwardenError, VERSION } from '../index.js'
import { act } from './acts.js'
import { assetFor } from './assets.js'
import { Door } from './door.js'
import { EventClient } from './event-source.js'
import { Fleet, RUNS_MAX } from './fleet.js'
import { LogFeed } from './log-feed.js'
import { answerOverNode } from './node-server.js'
import type { ParsedOptions } from './options.js'
import { problemOf } from './problem.js'
import { PULSE_MS } from './pulse.js'
import { RunFeed } from './run-feed.js'
import { Source, isEngine } from './source.js'
import type { Inspected } from './source.js'
import type { Hello } from './wire.js'

/** Streams, of all pages together: a page has up to three. */
const CLIENTS_MAX = 48
const CLOSE_MS = 1_000

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': CSP,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
}

const answerWith = (status: number, body: string | ReadableStream | null, type = 'text/plain'): Response =>
  new Response(body, { status, headers: { ...HEADERS, 'content-type': type } })

const json = (status: number, text: string): Response => answerWith(status, text, 'application/json')

export class Inspector {
  readonly #options: ParsedOptions
  readonly #door: Door
  readonly #source: Source
  readonly #fleet: Fleet
  readonly #clients = new Set<EventClient>()
  #server: Server | null = null
  #isClosed = false

  /** @internal Use `createInspector`. */
  constructor(inspected: Inspected, options: ParsedOptions) {
    this.#options = options
    const { token, basePath, allowedHosts, host } = options
    this.#door = new Door({ token, basePath, allowedHosts: [...allowedHosts, host] })
    this.#source = new Source(inspected)
    this.#fleet = new Fleet(this.#source, (error) => {
      for (const client of this.#clients) client.send('problem', problemOf(error, 'unexpected'))
    })
  }

  /** Below the server's address, where the page is: `/…token…/`. Keep it to those who may look. */
  get path(): string {
    return this.#door.path
  }

  get isReadOnly(): boolean {
    return this.#options.readOnly || !isEngine(this.#source.inspected)
  }

  /** Answers a request in the types of Fetch. Never rejects. A request that is none of ours, or of someone without the token, gets 404. */
  readonly fetch = async (request: Request): Promise<Response> => {
    try {
      const verdict = this.#door.judge(request)
      if (!verdict.isAllowed) return answerWith(verdict.status, null)
      return await this.#answer(request, verdict.path)
    } catch (error) {
      return json(500, this.#serialize(problemOf(error, 'unexpected')))
    }
  }

  /** The same for `node:http`: mount it, or give it to `createServer`. */
  readonly handler = (request: IncomingMessage, response: ServerResponse): void => {
    answerOverNode(request, response, this.fetch).catch(() => {
      response.destroy()
    })
  }

  /**
   * Starts a server of its own, as the options say. Resolves with its address, the token in it.
   *
   * @throws `refused` when it cannot listen there, or listens already, or is closed.
   */
  async listen(): Promise<string> {
    if (this.#server !== null || this.#isClosed)
      throw new RunwardenError('refused', 'listen: the inspector listens already, or is closed')
    const { port, host } = this.#options
    const server = createServer(this.handler)
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: Error) => {
        this.#server = null
        reject(new RunwardenError('refused', `listen: ${host}:${String(port)}: ${error.message}`))
      })
      server.listen(port, host, resolve)
    })
    const address = server.address()
    const bound = typeof address === 'object' && address !== null ? address.port : port
    const name = host.includes(':') ? `[${host}]` : host
    return `http://${name}:${String(bound)}${this.path}`
  }

  /** Ends every stream, and the server. The engine stays as it is. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const client of [...this.#clients]) client.close()
    const server = this.#server
    this.#server = null
    if (server === null) return
    const cut = setTimeout(() => {
      server.closeAllConnections()
    }, CLOSE_MS)
    server.closeIdleConnections()
    await new Promise<void>((resolve) => {
      server.close(() => {
        resolve()
      })
    })
    clearTimeout(cut)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #answer(request: Request, path: string): Promise<Response> {
    const { method } = request
    if (path === 'act') return method === 'POST' ? this.#act(request) : answerWith(405, null)
    if (method !== 'GET') return answerWith(405, null)
    const runId = new URL(request.url).searchParams.get('run') ?? ''
    if (path === 'fleet') return this.#stream((client) => this.#followFleet(client))
    if (path === 'run') return this.#stream((client) => this.#followRun(client, runId))
    if (path === 'log') return this.#stream((client) => this.#followLog(client, runId))
    const asset = assetFor(path)
    return asset === null ? answerWith(404, null) : answerWith(200, asset.body, asset.type)
  }

  async #act(request: Request): Promise<Response> {
    const { inspected } = this.#source
    // A form of a stranger's page could not send this type.
    if (request.headers.get('content-type') !== 'application/json') return answerWith(415, null)
    if (this.isReadOnly || !isEngine(inspected)) {
      const error = { code: 'refused', message: 'this inspector is read-only' }
      return json(403, this.#serialize({ error }))
    }
    const answer = await act(inspected, await request.text())
    return json('error' in answer ? 409 : 200, this.#serialize(answer))
  }

  #stream(follow: (client: EventClient) => () => void): Response {
    if (this.#isClosed || this.#clients.size >= CLIENTS_MAX) return answerWith(503, null)
    let stop = (): void => undefined
    const client = new EventClient(this.#serialize, () => {
      this.#clients.delete(client)
      stop()
    })
    this.#clients.add(client)
    stop = follow(client)
    // It was too slow for its first message.
    if (!client.isOpen) stop()
    return answerWith(200, client.body, 'text/event-stream')
  }

  #followFleet(client: EventClient): () => void {
    const hello: Hello = {
      version: VERSION,
      isReadOnly: this.isReadOnly,
      pulseMs: PULSE_MS,
      runsMax: RUNS_MAX,
    }
    client.send('hello', hello)
    return this.#fleet.follow((update) => {
      client.send('fleet', update)
    })
  }

  #followRun(client: EventClient, runId: string): () => void {
    // The fleet's looks tell when there is something new.
    const stopLooking = this.#fleet.follow(() => undefined)
    const feed = new RunFeed(runId, this.#source, {
      update: (update) => {
        client.send('run', update)
      },
      processes: (update) => {
        client.send('processes', update)
      },
      failed: (error) => {
        client.send('problem', problemOf(error, 'unexpected'))
      },
    })
    return () => {
      feed.end()
      stopLooking()
    }
  }

  #followLog(client: EventClient, runId: string): () => void {
    if (!this.#options.logs) {
      client.send('log', { kind: 'none', reason: 'this inspector shows no logs' })
      return () => undefined
    }
    const feed = new LogFeed(runId, this.#source, (update) => {
      client.send('log', update)
    })
    return () => {
      feed.end()
    }
  }

  readonly #serialize = (value: unknown): string => {
    const { redact } = this.#options
    if (redact === undefined) return JSON.stringify(value)
    return JSON.stringify(value, (_key, inner: unknown) =>
      typeof inner === 'string' ? redact(inner) : inner,
    )
  }
}
