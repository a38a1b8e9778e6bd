/** Between `node:http` and the Fetch types in which the inspector answers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** No request of the page is larger. */
const BODY_MAX_BYTES = 16 * 1024

const readBody = async (request: IncomingMessage): Promise<string | null> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > BODY_MAX_BYTES) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const toRequest = (incoming: IncomingMessage, body: string | null): Request => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  const { method = 'GET', url = '/' } = incoming
  // The name in the address is of no interest: the Host header is judged.
  return new Request(new URL(url, 'http://inspector'), {
    method,
    headers,
    ...(body === null ? {} : { body }),
  })
}

export const answerOverNode = async (
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: (request: Request) => Promise<Response>,
): Promise<void> => {
  const isBodied = incoming.method === 'POST'
  const body = isBodied ? await readBody(incoming) : null
  if (isBodied && body === null) {
    outgoing.writeHead(413).end()
    return
  }
  const response = await answer(toRequest(incoming, body))
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null) {
    outgoing.end()
    return
  }
  outgoing.flushHeaders()
  // Reads as fast as the client does: what it does not take stays in the stream, which has a maximum.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => undefined)
}
