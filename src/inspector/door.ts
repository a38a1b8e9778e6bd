/**
 * Who is let in: the token in the path, the Host, and the Origin.
 *
 * A page of a stranger can make the browser send requests to this machine, and can have its own name resolve to it: the first shows in
 * Origin and Sec-Fetch-Site, the second in Host. Neither knows the token.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const LOOPBACK_NAMES = ['127.0.0.1', 'localhost', '[::1]']

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const withoutPort = (host: string): string => host.replace(/:\d+$/, '')

export interface DoorOptions {
  readonly token?: string | undefined
  readonly basePath: string
  readonly allowedHosts: readonly string[]
}

/** `path`: what is asked for, below the token. */
export type Verdict =
  { readonly isAllowed: true; readonly path: string } | { readonly isAllowed: false; readonly status: number }

export class Door {
  readonly token: string
  readonly #prefix: string
  readonly #digest: Buffer
  readonly #hosts: ReadonlySet<string>

  constructor({ token, basePath, allowedHosts }: DoorOptions) {
    this.token = token ?? randomBytes(32).toString('base64url')
    this.#digest = digest(this.token)
    this.#prefix = basePath.replace(/\/$/, '')
    this.#hosts = new Set(allowedHosts.map((host) => host.toLowerCase()))
  }

  /** Below the server's own address, where the page is. */
  get path(): string {
    return `${this.#prefix}/${this.token}/`
  }

  judge({ url, headers }: Pick<Request, 'url' | 'headers'>): Verdict {
    const host = headers.get('host')?.toLowerCase() ?? ''
    if (!this.#isKnownHost(host) || !this.#isOwnPage(host, headers)) return { isAllowed: false, status: 403 }
    const { pathname } = new URL(url)
    if (!pathname.startsWith(`${this.#prefix}/`)) return { isAllowed: false, status: 404 }
    const [token = '', ...rest] = pathname.slice(this.#prefix.length + 1).split('/')
    // Nothing tells a wrong token from a path that is not there.
    if (rest.length === 0 || !timingSafeEqual(digest(token), this.#digest))
      return { isAllowed: false, status: 404 }
    return { isAllowed: true, path: rest.join('/') }
  }

  #isKnownHost(host: string): boolean {
    const name = withoutPort(host)
    return LOOPBACK_NAMES.includes(name) || this.#hosts.has(host) || this.#hosts.has(name)
  }

  #isOwnPage(host: string, headers: Headers): boolean {
    const origin = headers.get('origin')
    if (origin !== null && origin.toLowerCase().replace(/^https?:\/\//, '') !== host) return false
    const site = headers.get('sec-fetch-site')
    // A link may be followed from anywhere; nothing else may come from another page.
    if (headers.get('sec-fetch-mode') === 'navigate') return headers.get('sec-fetch-dest') === 'document'
    return site === null || site === 'same-origin' || site === 'none'
  }
}
