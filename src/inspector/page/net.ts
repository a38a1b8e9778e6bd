/** The streams from the server, and the one request to it. Every address is below the page's own, which holds the token. */
import { signal } from '@preact/signals'
import type { ActAnswer, ActRequest } from '../wire.js'

/** Null while all is well. */
export const trouble = signal<string | null>(null)

/** The server's clock less ours, in ms. */
const clockSkewMs = signal(0)

export const serverNow = (): number => Date.now() + clockSkewMs.peek()

export const learnTime = (now: number): void => {
  const skew = now - Date.now()
  // A message takes its time; a clock that is off is off by more.
  if (Math.abs(skew - clockSkewMs.peek()) > 500) clockSkewMs.value = skew
}

type Handlers = Readonly<Record<string, (data: never) => void>>

/** Opens a stream; the browser comes again by itself when it breaks. Returns the way to close it. */
export const listenTo = (path: string, handlers: Handlers, onBroken?: () => void): (() => void) => {
  const source = new EventSource(path)
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event: MessageEvent<string>) => {
      trouble.value = null
      handle(JSON.parse(event.data) as never)
    })
  }
  source.addEventListener('problem', (event: MessageEvent<string>) => {
    trouble.value = (JSON.parse(event.data) as { message: string }).message
  })
  source.addEventListener('error', () => {
    trouble.value =
      source.readyState === EventSource.CLOSED
        ? 'The server refuses this page: start it again and open its new address.'
        : 'The server does not answer. Trying again…'
    onBroken?.()
  })
  return () => {
    source.close()
  }
}

export const sendAct = async (request: ActRequest): Promise<ActAnswer> => {
  try {
    const response = await fetch('./act', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
    if (response.headers.get('content-type') !== 'application/json')
      return { error: { code: 'not-answered', message: `the server answered ${String(response.status)}` } }
    return (await response.json()) as ActAnswer
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { error: { code: 'not-sent', message } }
  }
}
