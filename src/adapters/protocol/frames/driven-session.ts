/**
 * A session in which prompts are given line by line on the agent's stdin.
 *
 * Owns: the numbering of commands, and the order: a prompt is on its way before anything the agent says counts for its turn (K1, K11).
 * Does not own: what the commands look like (the dialect), and what comes back (the frames).
 */
import type {
  OpenTool,
  OutputStream,
  ProtocolIo,
  ProtocolReply,
  ProtocolSession,
} from '../../../actors/ports.js'
import type { FrameSession } from './frame-session.js'
import { PermissionDesk } from './permission-desk.js'
import type { PermissionOptions, PermissionRequest, Verdict } from './permission-desk.js'

/** A question that came in a frame, and the command that answers it. */
export interface Question {
  readonly request: PermissionRequest
  readonly answer: (verdict: Verdict) => unknown
}

/** The commands of a protocol: each becomes one line of JSON. */
export interface Dialect {
  readonly prompt: (text: string, id: string) => unknown
  readonly steer: (text: string, id: string) => unknown
  readonly cancelTurn: (id: string) => unknown
  readonly questionOf: (frame: unknown) => Question | null
  /** The question that a frame takes back. */
  readonly withdrawnBy: (frame: unknown) => string | null
}

const READY: ProtocolReply = { isOk: true }
const GONE: ProtocolReply = { isOk: false, message: 'the agent does not read its input any more' }
const NOT_STARTED: ProtocolReply = { isOk: false, message: 'the session has not been started' }

export class DrivenSession implements ProtocolSession {
  readonly #frames: FrameSession
  readonly #dialect: Dialect
  readonly #options: PermissionOptions
  #io: ProtocolIo | null = null
  #desk: PermissionDesk | null = null
  #commands = 0

  constructor(frames: FrameSession, dialect: Dialect, options: PermissionOptions) {
    this.#frames = frames
    this.#dialect = dialect
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
    this.#frames.end()
    this.#io = null
    this.#desk?.withdrawAll()
  }

  async start(io: ProtocolIo): Promise<ProtocolReply> {
    const desk = new PermissionDesk(this.#options, io.clock)
    this.#io = io
    this.#desk = desk
    this.#frames.facts.drive({ hasPerson: this.#options.onPermission !== undefined })
    this.#frames.onAddressed = (frame) => {
      this.#hear(desk, frame)
    }
    return READY
  }

  async prompt(text: string): Promise<ProtocolReply> {
    if (this.#io === null) return NOT_STARTED
    const id = this.#nextId()
    this.#frames.facts.dispatched(id)
    return this.#write(this.#dialect.prompt(text, id)) ? READY : GONE
  }

  steer(text: string): boolean {
    return this.#frames.facts.isTurnOpen && this.#write(this.#dialect.steer(text, this.#nextId()))
  }

  cancelTurn(): boolean {
    if (!this.#frames.facts.isTurnOpen) return false
    this.#frames.facts.cancelAsked()
    this.#desk?.withdrawAll()
    return this.#write(this.#dialect.cancelTurn(this.#nextId()))
  }

  #hear(desk: PermissionDesk, frame: unknown): void {
    const withdrawn = this.#dialect.withdrawnBy(frame)
    if (withdrawn !== null) desk.withdraw(withdrawn)
    const question = this.#dialect.questionOf(frame)
    if (question === null) return
    desk.ask(question.request, (verdict) => {
      this.#frames.facts.answered(question.request.id)
      this.#write(question.answer(verdict))
    })
  }

  #nextId(): string {
    this.#commands += 1
    return `runwarden-${String(this.#commands)}`
  }

  #write(command: unknown): boolean {
    return this.#io?.write(`${JSON.stringify(command)}\n`) ?? false
  }
}
