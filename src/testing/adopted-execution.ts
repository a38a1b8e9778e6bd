/** A simulated tree in the hands of an engine that did not launch it. */
import type {
  Execution,
  ExecutionRecord,
  ExitStatus,
  ProcessIdentity,
  SignalFailure,
  TreeMember,
} from '../actors/ports.js'
import type { SimulatedExecution, SimulatedSignal } from './simulated-execution.js'

/** What an engine that did not launch it has of an execution: it may look and signal, and is not the parent. */
export class AdoptedExecution implements Execution {
  readonly identity: ProcessIdentity | null
  readonly containment: Execution['containment']
  readonly isOwnChild = false
  readonly emptyEvidence = 'identity-gone'
  readonly exited = new Promise<ExitStatus>(() => undefined)
  readonly drained = Promise.resolve()
  readonly #found: SimulatedExecution | null

  /** `found`: what bears the marks of the record; null where nothing does. */
  constructor(record: ExecutionRecord, found: SimulatedExecution | null) {
    this.identity = record.identity ?? found?.identity ?? null
    this.containment = record.containment
    this.#found = found
  }

  // The pipes are the dead engine's.
  onOutput(): void {
    return undefined
  }

  cutOutput(): boolean {
    return false
  }

  letGo(): void {
    return undefined
  }

  writeInput(): boolean {
    return false
  }

  endInput(): void {
    return undefined
  }

  resize(): boolean {
    return false
  }

  scan(): Promise<readonly TreeMember[]> {
    return this.#found?.scan() ?? Promise.resolve([])
  }

  signal(signal: SimulatedSignal, members: readonly TreeMember[]): readonly SignalFailure[] {
    return this.#found?.signal(signal, members) ?? []
  }
}
