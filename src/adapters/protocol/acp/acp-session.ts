/**
 * A conversation with an ACP agent over its stdin and stdout.
 *
 * Owns: the handshake, the prompts and their ends, and the answers to what the agent asks of its client.
 * Does not own: what counts as progress. That is read from the bytes by the table (K2), without the library and before it.
 * Invariants: K11 (a prompt is known by the id of its request), INV-11 (the handshake and every permission have a deadline).
 */
import type * as AcpSdk from '@agentclientprotocol/sdk'
import type {
  ClientApp,
  ClientConnection,
  ClientContext,
  ClientRequestContext,
} from '@agentclientprotocol/sdk'
import type {
  OpenTool,
  OutputStream,
  ProtocolIo,
  ProtocolReply,
  ProtocolSession,
} from '../../../actors/ports.js'
import { messageOf } from '../../../errors.js'
import type { FrameSession } from '../frames/frame-session.js'
import { listAt, textAt } from '../frames/json-value.js'
import { PermissionDesk } from '../frames/permission-desk.js'
import type { PermissionOption, Verdict } from '../frames/permission-desk.js'
import { AcpGate } from './acp-gate.js'
import { TERMINAL_METHODS } from './acp-options.js'
import type { AcpMethod, AcpOffers, AcpOptions } from './acp-options.js'

const START_TIMEOUT_MS = 300_000
const SETTLE_MS = 100
const ENDED_EARLY = 'the agent ended before it was ready'
const PERMISSION = 'session/request_permission'

const READY: ProtocolReply = { isOk: true }
const failed = (message: string): ProtocolReply => ({ isOk: false, message })

type Sdk = typeof AcpSdk

/** An open conversation: what there is once the handshake is done. */
interface Conversation {
  readonly agent: ClientContext
  readonly sessionId: string
}

const offer = <M extends AcpMethod>(app: ClientApp, method: M, handler: AcpOffers[M]): void => {
  if (handler !== undefined) app.onRequest(method, handler)
}

const optionsOf = (params: unknown): readonly PermissionOption[] =>
  listAt(params, 'options').flatMap((option) => {
    const id = textAt(option, 'optionId')
    if (id === undefined) return []
    return [{ id, name: textAt(option, 'name') ?? id, kind: textAt(option, 'kind') ?? '' }]
  })

/** A refusal is one of the agent's own options, where it gave one; "cancelled" means that the turn is. */
const outcomeOf = (verdict: Verdict, options: readonly PermissionOption[]): unknown => {
  const refusal =
    options.find(({ kind }) => kind === 'reject_once') ??
    options.find(({ kind }) => kind.startsWith('reject'))
  const option = verdict.is === 'chosen' ? verdict.option : verdict.is === 'refused' ? refusal : undefined
  return option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option.id }
}

export class AcpSession implements ProtocolSession {
  readonly #frames: FrameSession
  readonly #options: AcpOptions
  #desk: PermissionDesk | null = null
  #gate: AcpGate | null = null
  #connection: ClientConnection | null = null
  #conversation: Conversation | null = null
  #hasEnded = false
  #onPromptSent: () => void = () => undefined

  constructor(frames: FrameSession, options: AcpOptions) {
    this.#frames = frames
    this.#options = options
  }

  get openTools(): readonly OpenTool[] {
    return this.#frames.openTools
  }

  get unknownFrames(): ReadonlyMap<string, number> {
    return this.#frames.unknownFrames
  }

  push(stream: OutputStream, chunk: Buffer): void {
    this.#frames.push(stream, chunk)
  }

  end(): void {
    this.#hasEnded = true
    this.#frames.end()
    this.#desk?.withdrawAll()
    this.#gate?.close()
    this.#connection?.close()
    this.#conversation = null
  }

  async start(io: ProtocolIo): Promise<ProtocolReply> {
    this.#frames.facts.drive({ hasPerson: this.#options.onPermission !== undefined })
    const desk = new PermissionDesk(this.#options, io.clock)
    this.#desk = desk
    const gate = new AcpGate({
      write: (line) => io.write(line),
      onSend: (method, id) => {
        if (method !== 'session/prompt') return
        this.#frames.facts.dispatched(id)
        this.#onPromptSent()
      },
      onAnswer: (id) => {
        this.#frames.facts.answered(String(id))
      },
    })
    this.#gate = gate
    this.#frames.onAddressed = (frame) => {
      gate.receive(frame)
    }
    const timeoutMs = this.#options.startTimeoutMs ?? START_TIMEOUT_MS
    let stopWaiting = (): void => undefined
    const late = new Promise<ProtocolReply>((resolve) => {
      stopWaiting = io.clock.after(timeoutMs, () => {
        resolve(failed(`the agent was not ready within ${String(timeoutMs)} ms`))
      })
    })
    const reply = await Promise.race([this.#shakeHands(io, desk, gate), late])
    stopWaiting()
    return reply
  }

  async prompt(text: string): Promise<ProtocolReply> {
    if (this.#conversation === null) return failed('the agent is not ready for a prompt')
    const { agent, sessionId } = this.#conversation
    const sent = new Promise<ProtocolReply>((resolve) => {
      this.#onPromptSent = () => {
        resolve(READY)
      }
    })
    // The end of the turn is read from the frame itself; here only a prompt that never went out is of interest.
    const answered = agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }).then(
      () => READY,
      (error: unknown) => failed(messageOf(error)),
    )
    return Promise.race([sent, answered])
  }

  cancelTurn(): boolean {
    if (this.#conversation === null || !this.#frames.facts.isTurnOpen) return false
    const { agent, sessionId } = this.#conversation
    this.#frames.facts.cancelAsked()
    // A failed write closes the connection: whoever waits for it hears of it there.
    void agent.notify('session/cancel', { sessionId }).catch(() => undefined)
    this.#desk?.withdrawAll()
    return true
  }

  async #shakeHands(io: ProtocolIo, desk: PermissionDesk, gate: AcpGate): Promise<ProtocolReply> {
    try {
      // Only a run that speaks ACP pays for the library, and for the schemas it brings.
      const sdk = await import('@agentclientprotocol/sdk')
      if (this.#hasEnded) return failed(ENDED_EARLY)
      this.#connection = this.#connect(sdk, desk, gate)
      const { agent } = this.#connection
      const ours: AcpSdk.InitializeRequest = {
        protocolVersion: sdk.PROTOCOL_VERSION,
        clientInfo: this.#options.client ?? { name: 'runwarden', version: 'unknown' },
        clientCapabilities: this.#capabilities(),
      }
      const theirs = await agent.request('initialize', ours)
      if (theirs.protocolVersion !== sdk.PROTOCOL_VERSION) {
        return failed(`the agent speaks version ${String(theirs.protocolVersion)} of ACP`)
      }
      const { authMethod, mcpServers = [], modeId } = this.#options
      if (authMethod !== undefined) await agent.request('authenticate', { methodId: authMethod })
      const { sessionId } = await agent.request('session/new', { cwd: io.cwd, mcpServers: [...mcpServers] })
      if (modeId !== undefined) await agent.request('session/set_mode', { sessionId, modeId })
      await new Promise<void>((resolve) => io.clock.after(this.#options.settleMs ?? SETTLE_MS, resolve))
      return this.#begin({ agent, sessionId })
    } catch (error) {
      return failed(this.#hasEnded ? ENDED_EARLY : messageOf(error))
    }
  }

  #begin(conversation: Conversation): ProtocolReply {
    if (this.#hasEnded) return failed(ENDED_EARLY)
    this.#conversation = conversation
    return READY
  }

  #connect(sdk: Sdk, desk: PermissionDesk, gate: AcpGate): ClientConnection {
    const app = sdk.client({ name: 'runwarden' })
    const { offers = {} } = this.#options
    for (const method of Object.keys(offers) as AcpMethod[]) offer(app, method, offers[method])
    app.onRequest('*', (context) => {
      if (context.method === PERMISSION) return this.#askPermission(desk, context)
      throw new sdk.RequestError(-32_601, `${context.method} is not offered by this client`)
    })
    return app.connect(gate.stream)
  }

  /** A terminal is offered whole or not at all. */
  #capabilities(): AcpSdk.ClientCapabilities {
    const { offers = {} } = this.#options
    return {
      fs: { readTextFile: 'fs/read_text_file' in offers, writeTextFile: 'fs/write_text_file' in offers },
      terminal: TERMINAL_METHODS.every((method) => method in offers),
    }
  }

  #askPermission(desk: PermissionDesk, context: ClientRequestContext<unknown>): Promise<unknown> {
    const { params, requestId, signal } = context
    const id = String(requestId)
    const options = optionsOf(params)
    const title = textAt(params, 'toolCall.title') ?? textAt(params, 'toolCall.kind') ?? 'Use a tool'
    signal.addEventListener('abort', () => {
      desk.withdraw(id)
    })
    return new Promise((resolve) => {
      desk.ask({ id, title, options, raw: params }, (verdict) => {
        resolve({ outcome: outcomeOf(verdict, options) })
      })
    })
  }
}
