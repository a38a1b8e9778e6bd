/**
 * Where an agent's questions to a person wait for their answer.
 *
 * Owns: that every question is answered, once, by a deadline: by the host, or with a refusal. A host that fails refuses.
 * Does not own: how an answer is written (the protocol), and what an open question means for the watchdogs (the run).
 */
import type { Cancel, Clock } from '../../../actors/ports.js'

const OPEN_MAX = 64
const DEFAULT_TIMEOUT_MS = 600_000

export interface PermissionOption {
  readonly id: string
  readonly name: string
  /** The protocol's own word where it has one: `allow_once`, `reject_always`. */
  readonly kind: string
}

/** What the agent wants to do. It may hold commands and paths: it is for the person who answers, not for logs. */
export interface PermissionRequest {
  readonly id: string
  readonly title: string
  readonly options: readonly PermissionOption[]
  /** The request as the agent sent it. */
  readonly raw: unknown
}

/** The id of the option that was chosen, or null: refused. */
export type PermissionAnswer = string | null

export interface PermissionOptions {
  /**
   * Asked for each permission; `signal` aborts when the answer is not awaited any more (deadline, turn cancelled, agent gone).
   * Without it, every request is refused at once. A throw, a rejection or an unknown option refuses.
   */
  readonly onPermission?: (
    request: PermissionRequest,
    context: { readonly signal: AbortSignal },
  ) => PermissionAnswer | Promise<PermissionAnswer>
  /** How long an answer is awaited before the request is refused. Default 600 000 ms. */
  readonly permissionTimeoutMs?: number
}

/** `cancelled`: nobody refused, but the answer has no use any more. */
export type Verdict =
  { readonly is: 'chosen'; readonly option: PermissionOption } | { readonly is: 'refused' | 'cancelled' }

const REFUSED: Verdict = { is: 'refused' }
const CANCELLED: Verdict = { is: 'cancelled' }

export class PermissionDesk {
  readonly #options: PermissionOptions
  readonly #clock: Clock
  readonly #open = new Map<string, (verdict: Verdict) => void>()

  constructor(options: PermissionOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  /** Calls `reply` exactly once, with an option of the request or a refusal. */
  ask(request: PermissionRequest, reply: (verdict: Verdict) => void): void {
    const { onPermission, permissionTimeoutMs = DEFAULT_TIMEOUT_MS } = this.#options
    if (onPermission === undefined || this.#open.size >= OPEN_MAX || this.#open.has(request.id)) {
      reply(REFUSED)
      return
    }
    const patience = new AbortController()
    let stopWaiting: Cancel = () => undefined
    const settle = (verdict: Verdict): void => {
      if (!this.#open.delete(request.id)) return
      stopWaiting()
      patience.abort()
      reply(verdict)
    }
    this.#open.set(request.id, settle)
    stopWaiting = this.#clock.after(permissionTimeoutMs, () => {
      settle(REFUSED)
    })
    // F: whatever the host's callback does, it answers, and it reaches nothing else.
    void Promise.resolve()
      .then(() => onPermission(request, { signal: patience.signal }))
      .then(
        (answer) => {
          const option = request.options.find(({ id }) => id === answer)
          settle(option === undefined ? REFUSED : { is: 'chosen', option })
        },
        () => {
          settle(REFUSED)
        },
      )
  }

  /** The agent asks no longer. */
  withdraw(id: string): void {
    this.#open.get(id)?.(CANCELLED)
  }

  /** Nobody waits for answers any more: the turn is cancelled, or the agent gone. */
  withdrawAll(): void {
    for (const settle of [...this.#open.values()]) settle(CANCELLED)
  }
}
