/**
 * A process tree that exists nowhere: it does what a test says, and what it is signalled.
 *
 * Owns: the members of the tree, their states, and what every signal did. Nothing happens by itself and nothing takes time.
 * Does not own: their pids (the machine gives them).
 */
import { RunwardenError } from '../errors.js'
import type {
  Execution,
  ExitStatus,
  LaunchSpec,
  OutputStream,
  ProcessIdentity,
  SignalFailure,
  TreeMember,
} from '../actors/ports.js'

export type SimulatedSignal = 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'

/** How the processes of one execution behave. */
export interface Behaviour {
  /** An error: there is no process. `hangs`: there is none until the test lets it go on. Default: it is there at once. */
  readonly launch?: 'hangs' | Error
  /** The launch is answered when this has resolved. */
  readonly after?: Promise<unknown>
  /** What a launch that hung comes to: this error. Default: a process. */
  readonly thenFails?: Error
  /** Which signals end a process. Default TERM and KILL; what ignores KILL waits for a disk that never answers. */
  readonly diesOf?: readonly SimulatedSignal[]
}

/** Gives pids, and takes them back. */
export interface PidSource {
  take(): Pick<ProcessIdentity, 'pid' | 'startTicks'>
  giveBack(pid: number): void
  /** What all identities of the machine share. */
  readonly place: Pick<ProcessIdentity, 'bootId' | 'pidNamespace'>
}

interface Member extends Pick<ProcessIdentity, 'pid' | 'startTicks'> {
  readonly name: string
  state: 'S' | 'T' | 'D'
  isStopPending: boolean
  isTermPending: boolean
  isKillPending: boolean
  cpuMs: number
}

export class SimulatedExecution implements Execution {
  readonly identity: ProcessIdentity
  readonly containment = 'group+marks'
  readonly isOwnChild = true
  readonly emptyEvidence = 'tree-reaped'
  readonly spec: LaunchSpec
  readonly exited: Promise<ExitStatus>
  readonly drained: Promise<void>
  /** Every signal that reached a member, in order. */
  readonly signals: { readonly signal: SimulatedSignal; readonly pid: number }[] = []
  /** Whole lines that came on stdin. */
  readonly input: string[] = []
  /** Called with each of these lines: where a test answers for its agent. */
  onInput: (line: string) => void = () => undefined
  /** Called before each look at the tree. */
  onLook: () => void = () => undefined
  /** Called when signals are sent, before any of them arrives. */
  onSignalSent: (signal: SimulatedSignal, members: readonly TreeMember[]) => void = () => undefined
  /** Called after each signal that arrived. */
  onSignal: (signal: SimulatedSignal, pid: number) => void = () => undefined
  isInputEnded = false
  isReadable = true
  /** The error with which every signal fails, like `EPERM`; null: they reach their process. */
  signalError: string | null = null
  diesOf: readonly SimulatedSignal[]
  readonly #members = new Map<number, Member>()
  readonly #pids: PidSource
  #areSignalsHeld = false
  readonly #heldSignals: (() => void)[] = []
  #isExitHeld = false
  #heldExit: ExitStatus | null = null
  #receive: (stream: OutputStream, chunk: Buffer) => void = () => undefined
  #exit: (status: ExitStatus) => void = () => undefined
  #drain: () => void = () => undefined

  constructor(spec: LaunchSpec, pids: PidSource, { diesOf = ['SIGTERM', 'SIGKILL'] }: Behaviour) {
    this.spec = spec
    this.#pids = pids
    this.diesOf = diesOf
    this.exited = new Promise((resolve) => {
      this.#exit = resolve
    })
    this.drained = new Promise((resolve) => {
      this.#drain = resolve
    })
    const pid = this.spawn('agent')
    this.identity = { pid, startTicks: this.#members.get(pid)?.startTicks ?? 0, ...pids.place }
  }

  // ── what a test says ─────────────────────────────────────────────────────────────────────────

  get isAlive(): boolean {
    return this.#members.has(this.identity.pid)
  }

  /** How many processes are left. */
  get size(): number {
    return this.#members.size
  }

  /** Their pids, the leader's first. */
  get pids(): readonly number[] {
    return [...this.#members.keys()]
  }

  get isFrozen(): boolean {
    return [...this.#members.values()].every(({ state }) => state === 'T')
  }

  /** Another process in the tree; returns its pid. */
  spawn(name: string): number {
    const { pid, startTicks } = this.#pids.take()
    const pending = { isStopPending: false, isTermPending: false, isKillPending: false }
    this.#members.set(pid, { pid, startTicks, name, state: 'S', ...pending, cpuMs: 0 })
    return pid
  }

  /** A process waits in the kernel, where no signal reaches it, until it is woken. */
  waitInKernel(pid: number): void {
    const member = this.#members.get(pid)
    if (member !== undefined) member.state = 'D'
  }

  wake(pid: number): void {
    const member = this.#members.get(pid)
    if (member?.state !== 'D') return
    member.state = member.isStopPending ? 'T' : 'S'
    this.#settle(member)
  }

  /** What a process writes. A frozen or dead one writes nothing; what it had written before is still in the pipe. */
  say(chunk: string | Buffer, stream: OutputStream = 'stdout'): void {
    this.#receive(stream, Buffer.from(chunk))
  }

  /** A process uses the CPU. */
  burn(pid: number, ms: number): void {
    const member = this.#members.get(pid)
    if (member !== undefined) member.cpuMs += ms
  }

  /** The leader ends by itself. What else is in the tree stays. */
  exit(exitCode: number | null = 0, signal: string | null = null): void {
    this.#end(this.identity.pid, { exitCode, signal })
  }

  /** Whatever else is in the tree ends by itself. */
  endOther(): void {
    for (const pid of this.pids) if (pid !== this.identity.pid) this.#end(pid, { exitCode: 0, signal: null })
  }

  /** The parent hears of the leader's exit only when it is told. */
  holdExit(): void {
    this.#isExitHeld = true
  }

  tellExit(): void {
    this.#isExitHeld = false
    if (this.#heldExit !== null) this.#exit(this.#heldExit)
  }

  /** Signals are taken and reach nobody until they are delivered. */
  holdSignals(): void {
    this.#areSignalsHeld = true
  }

  deliverSignals(): void {
    this.#areSignalsHeld = false
    for (const deliver of this.#heldSignals.splice(0)) deliver()
  }

  cpuMsOf({ pid, startTicks }: Pick<ProcessIdentity, 'pid' | 'startTicks'>): number | null {
    const member = this.#members.get(pid)
    return member?.startTicks === startTicks ? member.cpuMs : null
  }

  // ── what the engine does ─────────────────────────────────────────────────────────────────────

  onOutput(receive: (stream: OutputStream, chunk: Buffer) => void): void {
    this.#receive = receive
  }

  cutOutput(): boolean {
    const wasOpen = this.#members.size > 0
    this.#drain()
    return wasOpen
  }

  letGo(): void {
    this.#receive = () => undefined
  }

  writeInput(chunk: string | Uint8Array): boolean {
    if (!this.isAlive || this.isInputEnded) return false
    const written = Buffer.from(chunk).toString().split('\n').filter(Boolean)
    this.input.push(...written)
    for (const text of written) this.onInput(text)
    return true
  }

  endInput(): void {
    this.isInputEnded = true
  }

  resize(): boolean {
    return false
  }

  scan(): Promise<readonly TreeMember[]> {
    if (!this.isReadable) return Promise.reject(new RunwardenError('unreadable', 'the table cannot be read'))
    this.onLook()
    return Promise.resolve(
      [...this.#members.values()].map(({ pid, startTicks, state, name }) => ({
        pid,
        startTicks,
        state,
        name,
      })),
    )
  }

  /** INV-6: a process that has another start time than the look saw is another process. */
  signal(signal: SimulatedSignal, members: readonly TreeMember[]): readonly SignalFailure[] {
    const { signalError } = this
    this.onSignalSent(signal, members)
    if (signalError !== null) return members.map(({ pid }) => ({ pid, error: signalError }))
    for (const { pid, startTicks } of members) {
      const deliver = (): void => {
        const member = this.#members.get(pid)
        if (member?.startTicks !== startTicks) return
        this.signals.push({ signal, pid })
        this.#take(member, signal)
        this.onSignal(signal, pid)
      }
      if (this.#areSignalsHeld) this.#heldSignals.push(deliver)
      else deliver()
    }
    return []
  }

  #take(member: Member, signal: SimulatedSignal): void {
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') {
      member.isStopPending = signal === 'SIGSTOP'
      if (member.state !== 'D') member.state = member.isStopPending ? 'T' : 'S'
    }
    if (signal === 'SIGTERM') member.isTermPending = true
    if (signal === 'SIGKILL') member.isKillPending = true
    this.#settle(member)
  }

  #settle(member: Member): void {
    if (member.state === 'D') return
    const isKilled = member.isKillPending && this.diesOf.includes('SIGKILL')
    // A stopped process does not die of TERM before it is continued.
    const isTermed = member.isTermPending && member.state !== 'T' && this.diesOf.includes('SIGTERM')
    if (isKilled || isTermed)
      this.#end(member.pid, { exitCode: null, signal: isKilled ? 'SIGKILL' : 'SIGTERM' })
  }

  #end(pid: number, status: ExitStatus): void {
    if (!this.#members.delete(pid)) return
    this.#pids.giveBack(pid)
    if (pid === this.identity.pid) {
      if (this.#isExitHeld) this.#heldExit = status
      else this.#exit(status)
    }
    if (this.#members.size === 0) this.#drain()
  }
}
