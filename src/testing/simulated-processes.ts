/**
 * The processes of a simulated machine, as an engine on it launches, finds and signals them.
 *
 * Owns: the machine (pids, trees, which engines live on it), and how the next launches of an engine go.
 * Does not own: what the processes of a tree do (simulated-execution.ts).
 */
import type { Execution, ExecutionRecord, LaunchSpec, ProcessIdentity, ProcessPort } from '../actors/ports.js'
import { RunwardenError } from '../errors.js'
import { AdoptedExecution } from './adopted-execution.js'
import { SimulatedExecution } from './simulated-execution.js'
import type { Behaviour, PidSource } from './simulated-execution.js'

const FIRST_PID = 1_000
const NEVER = new Promise<never>(() => undefined)

/** What engines on one machine share. */
export class SimulatedMachine implements PidSource {
  readonly place = { bootId: 'simulated', pidNamespace: 'pid:[0]' }
  /** In the order in which they were launched, whichever engine did. */
  readonly executions: SimulatedExecution[] = []
  /** Called with each tree as soon as it is there: where a test says what its agents do. */
  onLaunch: (execution: SimulatedExecution) => void = () => undefined
  /** How a launch goes, asked when it begins. Default: as `next` and `behaviour` of the engine's processes say. */
  behaviourOf: (spec: LaunchSpec) => Behaviour | undefined = () => undefined
  /** A pid is given again as soon as its process is gone, as on a machine that has used up its numbers. */
  reusesPids = false
  readonly #freed: number[] = []
  readonly #engines = new Map<number, number>()
  #pid = FIRST_PID
  #ticks = 0

  take(): Pick<ProcessIdentity, 'pid' | 'startTicks'> {
    this.#ticks += 1
    const freed = this.reusesPids ? this.#freed.shift() : undefined
    this.#pid += freed === undefined ? 1 : 0
    return { pid: freed ?? this.#pid, startTicks: this.#ticks }
  }

  giveBack(pid: number): void {
    this.#freed.push(pid)
  }

  /** The process of an engine begins. */
  bear(): ProcessIdentity {
    const { pid, startTicks } = this.take()
    this.#engines.set(pid, startTicks)
    return { pid, startTicks, ...this.place }
  }

  /** The process of an engine ends. */
  bury({ pid }: ProcessIdentity): void {
    if (this.#engines.delete(pid)) this.giveBack(pid)
  }

  livesEngine({ pid, startTicks }: ProcessIdentity): boolean {
    return this.#engines.get(pid) === startTicks
  }
}

export class SimulatedProcesses implements ProcessPort {
  readonly self: ProcessIdentity
  readonly containment = 'group+marks'
  readonly terminalProblem = null
  readonly machine: SimulatedMachine
  /** How what is launched from now on behaves. */
  behaviour: Behaviour = {}
  /** How the next launches behave, before that counts. */
  readonly next: Behaviour[] = []
  readonly #launched: SimulatedExecution[] = []
  #cookies = 0
  #isDead = false
  #letGoOn: () => void = () => undefined

  /** Default: a machine of its own. */
  constructor(machine = new SimulatedMachine()) {
    this.machine = machine
    this.self = machine.bear()
  }

  /** Those of the whole machine, in the order in which they were launched. */
  get executions(): readonly SimulatedExecution[] {
    return this.machine.executions
  }

  /** The execution that was launched last. */
  get last(): SimulatedExecution {
    const execution = this.executions.at(-1)
    if (execution === undefined) throw new RunwardenError('refused', 'nothing has been launched')
    return execution
  }

  /** The engine's own process is gone: nothing is launched any more, and nobody reads what its agents write. */
  die(): void {
    this.#isDead = true
    this.machine.bury(this.self)
    for (const execution of this.#launched) execution.letGo()
  }

  /** A launch that hangs goes on. */
  goOn(): void {
    this.#letGoOn()
  }

  mintMarks(): { cookie: string; limit: null } {
    this.#cookies += 1
    const { pid, startTicks } = this.self
    return { cookie: ['simulated', pid, startTicks, this.#cookies].join('-'), limit: null }
  }

  async launch(spec: LaunchSpec): Promise<SimulatedExecution> {
    const behaviour = this.machine.behaviourOf(spec) ?? this.next.shift() ?? this.behaviour
    if (behaviour.launch === 'hangs') {
      await new Promise<void>((resolve) => {
        this.#letGoOn = resolve
      })
    }
    if (behaviour.after !== undefined) await behaviour.after
    // What an engine had only begun, nobody does.
    if (this.#isDead) await NEVER
    if (behaviour.launch instanceof Error) throw behaviour.launch
    if (behaviour.thenFails !== undefined) throw behaviour.thenFails
    const execution = new SimulatedExecution(spec, this.machine, behaviour)
    this.machine.executions.push(execution)
    this.#launched.push(execution)
    this.machine.onLaunch(execution)
    return execution
  }

  /** INV-5: where nothing bears the marks, the tree is empty. */
  adopt(record: ExecutionRecord): Promise<Execution> {
    const { cookie } = record.marks
    const found = this.executions.find(({ spec }) => spec.marks.cookie === cookie) ?? null
    return Promise.resolve(new AdoptedExecution(record, found))
  }

  lookUp(identity: ProcessIdentity): Promise<'alive' | 'gone'> {
    return Promise.resolve(this.machine.livesEngine(identity) ? 'alive' : 'gone')
  }

  usage(process: Pick<ProcessIdentity, 'pid' | 'startTicks'>): { cpuMs: number; rssBytes: number } | null {
    const cpuMs = this.executions.map((execution) => execution.cpuMsOf(process)).find((ms) => ms !== null)
    return cpuMs == null ? null : { cpuMs, rssBytes: 1_024 }
  }
}
