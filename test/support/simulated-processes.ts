/**
 * Processes that exist nowhere: each execution is a tree that does what a test says, and what it is signalled.
 *
 * Owns: the members of each tree, their states, and what every signal did. Nothing happens by itself and nothing takes time.
 */
import { RunwardenError } from '../../src/errors.js'
import type {
  Execution,
  ExecutionRecord,
  ExitStatus,
  LaunchSpec,
  OutputStream,
  ProcessIdentity,
  ProcessPort,
  SignalFailure,
  TreeMember,
} from '../../src/actors/ports.js'

export type SimulatedSignal = 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'

/** How the processes of one execution behave. */
export interface Behaviour {
  /** An error: there is no process. `hangs`: there is none until the test lets it go on. Default: it is there at once. */
  readonly launch?: 'hangs' | Error
  /** What a launch that hung comes to: this error. Default: a process. */
  readonly thenFails?: Error
  /** Which signals end a process. Default TERM and KILL; what ignores KILL waits for a disk that never answers. */
  readonly diesOf?: readonly SimulatedSignal[]
}

const BOOT = { bootId: 'simulated', pidNamespace: 'pid:[0]' }

interface Member {
  readonly pid: number
  readonly name: string
  state: 'S' | 'T' | 'D'
  isStopPending: boolean
  isTermPending: boolean
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
  isInputEnded = false
  isReadable = true
  diesOf: readonly SimulatedSignal[]
  readonly #members = new Map<number, Member>()
  readonly #nextPid: () => number
  #receive: (stream: OutputStream, chunk: Buffer) => void = () => undefined
  #exit: (status: ExitStatus) => void = () => undefined
  #drain: () => void = () => undefined

  constructor(spec: LaunchSpec, nextPid: () => number, { diesOf = ['SIGTERM', 'SIGKILL'] }: Behaviour) {
    this.spec = spec
    this.#nextPid = nextPid
    this.diesOf = diesOf
    this.exited = new Promise((resolve) => {
      this.#exit = resolve
    })
    this.drained = new Promise((resolve) => {
      this.#drain = resolve
    })
    this.identity = { pid: this.spawn('agent'), startTicks: 1, ...BOOT }
  }

  // ── what a test says ─────────────────────────────────────────────────────────────────────────

  get isAlive(): boolean {
    return this.#members.has(this.identity.pid)
  }

  /** How many processes are left. */
  get size(): number {
    return this.#members.size
  }

  get isFrozen(): boolean {
    return [...this.#members.values()].every(({ state }) => state === 'T')
  }

  /** Another process in the tree; returns its pid. */
  spawn(name: string): number {
    const pid = this.#nextPid()
    this.#members.set(pid, { pid, name, state: 'S', isStopPending: false, isTermPending: false, cpuMs: 0 })
    return pid
  }

  /** A process waits in the kernel, where no stop reaches it, until it is woken. */
  waitInKernel(pid: number): void {
    const member = this.#members.get(pid)
    if (member !== undefined) member.state = 'D'
  }

  wake(pid: number): void {
    const member = this.#members.get(pid)
    if (member?.state === 'D') member.state = member.isStopPending ? 'T' : 'S'
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
    for (const pid of [...this.#members.keys()])
      if (pid !== this.identity.pid) this.#end(pid, { exitCode: 0, signal: null })
  }

  cpuMsOf(pid: number): number | null {
    return this.#members.get(pid)?.cpuMs ?? null
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
    this.input.push(...Buffer.from(chunk).toString().split('\n').filter(Boolean))
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
    return Promise.resolve(
      [...this.#members.values()].map(({ pid, state, name }) => ({ pid, startTicks: 1, state, name })),
    )
  }

  signal(signal: SimulatedSignal, members: readonly TreeMember[]): readonly SignalFailure[] {
    for (const { pid } of members) {
      const member = this.#members.get(pid)
      if (member === undefined) continue
      this.signals.push({ signal, pid })
      this.#take(member, signal)
    }
    return []
  }

  #take(member: Member, signal: SimulatedSignal): void {
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') {
      member.isStopPending = signal === 'SIGSTOP'
      if (member.state !== 'D') member.state = member.isStopPending ? 'T' : 'S'
    }
    if (signal === 'SIGTERM') member.isTermPending = true
    const isKilled = signal === 'SIGKILL' && this.diesOf.includes('SIGKILL')
    // A stopped process does not die of TERM before it is continued.
    const isTermed = member.isTermPending && member.state !== 'T' && this.diesOf.includes('SIGTERM')
    if (isKilled || isTermed)
      this.#end(member.pid, { exitCode: null, signal: isKilled ? 'SIGKILL' : 'SIGTERM' })
  }

  #end(pid: number, status: ExitStatus): void {
    if (!this.#members.delete(pid)) return
    if (pid === this.identity.pid) this.#exit(status)
    if (this.#members.size === 0) this.#drain()
  }
}

export class SimulatedProcesses implements ProcessPort {
  readonly self: ProcessIdentity
  readonly containment = 'group+marks'
  readonly terminalProblem = null
  /** In the order in which they were launched. */
  readonly executions: SimulatedExecution[]
  /** How what is launched from now on behaves. */
  behaviour: Behaviour = {}
  /** How the next launches behave, before that counts. */
  readonly next: Behaviour[] = []
  #pid: number
  #cookies = 0
  #letGoOn: () => void = () => undefined

  /** `machine`: those of another engine on it, which is dead by now. */
  constructor(machine?: SimulatedProcesses) {
    this.executions = machine?.executions ?? []
    this.#pid = (machine?.self.pid ?? 0) + 1_000
    this.self = { pid: this.#pid, startTicks: 1, ...BOOT }
  }

  /** The execution that was launched last. */
  get last(): SimulatedExecution {
    const execution = this.executions.at(-1)
    if (execution === undefined) throw new RunwardenError('refused', 'nothing has been launched')
    return execution
  }

  /** A launch that hangs goes on. */
  goOn(): void {
    this.#letGoOn()
  }

  mintMarks(): { cookie: string; limit: null } {
    this.#cookies += 1
    return { cookie: `simulated-${String(this.self.pid)}-${String(this.#cookies)}`, limit: null }
  }

  async launch(spec: LaunchSpec): Promise<SimulatedExecution> {
    const behaviour = this.next.shift() ?? this.behaviour
    if (behaviour.launch === 'hangs') {
      await new Promise<void>((resolve) => {
        this.#letGoOn = resolve
      })
    }
    if (behaviour.launch instanceof Error) throw behaviour.launch
    if (behaviour.thenFails !== undefined) throw behaviour.thenFails
    const nextPid = (): number => (this.#pid += 1)
    const execution = new SimulatedExecution(spec, nextPid, behaviour)
    this.executions.push(execution)
    return execution
  }

  adopt({ marks }: ExecutionRecord): Promise<Execution> {
    const execution = this.executions.find(({ spec }) => spec.marks.cookie === marks.cookie)
    if (execution === undefined)
      return Promise.reject(new RunwardenError('refused', 'nothing bears these marks'))
    return Promise.resolve(execution)
  }

  lookUp({ pid }: ProcessIdentity): Promise<'alive' | 'gone'> {
    return Promise.resolve(pid === this.self.pid ? 'alive' : 'gone')
  }

  usage({ pid }: Pick<ProcessIdentity, 'pid'>): { cpuMs: number; rssBytes: number } | null {
    const cpuMs = this.executions.map((execution) => execution.cpuMsOf(pid)).find((ms) => ms !== null)
    return cpuMs == null ? null : { cpuMs, rssBytes: 1_024 }
  }
}
