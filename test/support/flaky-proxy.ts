/** A way to a PostgreSQL server that can lose what the server says, and cut every connection. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** As `pg` sends it: a simple query. */
const COMMIT = Buffer.from('commit\0')

export class FlakyProxy {
  /** Of so many commits from now on the server hears, and its answer is lost with the connection. */
  answersToLose = 0
  /** How many were lost. */
  lost = 0
  /** New connections are refused, and those that are there are cut. */
  #isAway = false
  readonly #server: Server
  readonly #target: URL
  readonly #sockets = new Set<Socket>()

  private constructor(target: URL, server: Server) {
    this.#target = target
    this.#server = server
    server.on('connection', (socket) => {
      this.#serve(socket)
    })
  }

  static async before(url: string): Promise<FlakyProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new FlakyProxy(new URL(url), server)
    onTestFinished(() => {
      proxy.cut()
      server.close()
    })
    return proxy
  }

  get url(): string {
    const url = new URL(this.#target)
    url.host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return url.href
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** The server cannot be reached until `isAway` is false again. */
  set isAway(isAway: boolean) {
    this.#isAway = isAway
    if (isAway) this.cut()
  }

  #serve(client: Socket): void {
    if (this.#isAway) {
      client.destroy()
      return
    }
    const server = connect(Number(this.#target.port), this.#target.hostname)
    const both = [client, server]
    const end = (): void => {
      for (const socket of both) socket.destroy()
    }
    for (const socket of both) {
      this.#sockets.add(socket)
      socket.on('error', end)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        end()
      })
    }
    let isLosing = false
    client.on('data', (chunk) => {
      if (this.answersToLose > 0 && chunk.includes(COMMIT)) {
        this.answersToLose -= 1
        isLosing = true
      }
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (!isLosing) {
        client.write(chunk)
        return
      }
      // The answer is here: the server has committed. Nobody hears of it.
      this.lost += 1
      end()
    })
  }
}
