/**
 * An execution that lives in a pane: the tree of the process port, and the pane around it.
 *
 * Owns: what the pane adds. Its tree is found and signalled as any other (identity, marks, session, descendants); a pane that is not
 *   retained is closed when the tree is gone, and is part of what must be gone.
 * Invariants: P12, P13 (a tree that cannot be seen from here is gone only with its pane), P14, INV-5.
 */
import type { PaneProcessPort } from '../../actors/pane.ports.js'
import type {
  EvidenceKind,
  Execution,
  ExecutionRecord,
  ExitStatus,
  PaneRecord,
  TreeMember,
} from '../../actors/ports.js'
import { codeOf, messageOf } from '../../errors.js'
import { PaneInput } from './pane-input.js'
import { PANE_TAG } from './pane-launch.js'
import type { PaneLaunch } from './pane-launch.js'
import { Pane, wait } from './pane.js'
import { ask } from './tmux.js'

const FATE_DEADLINE_MS = 1_000
const LOOK_WAIT_MS = 100
/** As typed by a person: control-D. */
const END_OF_FILE = '\x04'

/** The pane of a record, found by its tag where the engine died before it could record which one it was. Null: there is none. */
const findPane = async (
  record: PaneRecord,
  cookie: string,
  processes: PaneProcessPort,
  withinMs: number,
): Promise<Pane | null> => {
  if (record.place !== null) return new Pane(record.socket, record.place, processes)
  const format = `#{pid} #{pane_id} #{pane_pid} #{${PANE_TAG}}`
  let listed: string
  try {
    listed = await ask(record.socket, ['list-panes', '-a', '-F', format], { withinMs })
  } catch (error) {
    if (/no server running|No such file|Connection refused/.test(messageOf(error))) return null
    throw error
  }
  const found = listed
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, , , tag]) => tag === cookie)
  const [serverPid, paneId, shellPid] = found ?? []
  if (paneId === undefined) return null
  const server = processes.identify(Number(serverPid))
  const shell = processes.identify(Number(shellPid))
  return server === null || shell === null
    ? null
    : new Pane(record.socket, { server, paneId, shell }, processes)
}

/** A tree in a pane, for any engine: the one that launched it, or another that found it on record. */
class PaneExecution implements Execution {
  readonly containment: Execution['containment']
  readonly isOwnChild = false
  readonly identity: Execution['identity']
  readonly pane: PaneRecord
  readonly exited: Execution['exited']
  readonly drained: Promise<void>
  readonly #inner: Execution
  readonly #find: (withinMs: number) => Promise<Pane | null>
  #isGoneByPane = false

  constructor(
    inner: Execution,
    pane: PaneRecord,
    find: (withinMs: number) => Promise<Pane | null>,
    ends: Pick<Execution, 'exited' | 'drained'> = inner,
  ) {
    this.#inner = inner
    this.#find = find
    this.identity = inner.identity
    this.containment = inner.containment
    this.pane = pane
    this.exited = ends.exited
    this.drained = ends.drained
  }

  get emptyEvidence(): EvidenceKind {
    return this.#isGoneByPane ? 'pane-absent' : this.#inner.emptyEvidence
  }

  async scan(): Promise<readonly TreeMember[]> {
    try {
      return await this.#inner.scan()
    } catch (error) {
      // P13: an identity that cannot be judged from here is not signalled; only the pane's absence confirms.
      if (codeOf(error) !== 'refused' || !(await this.#isPaneAbsent())) throw error
      this.#isGoneByPane = true
      return []
    }
  }

  signal(...args: Parameters<Execution['signal']>): ReturnType<Execution['signal']> {
    return this.#inner.signal(...args)
  }

  unfreeze(): string | null {
    return this.#inner.unfreeze?.() ?? null
  }

  discard(): boolean {
    return this.#inner.discard?.() ?? true
  }

  async closeSurface(withinMs: number): Promise<string | null> {
    if (this.pane.isRetained) return null
    const endsAt = performance.now() + withinMs
    try {
      // P15: where the last look for it has failed, this is a fresh one.
      const pane = await this.#find(withinMs)
      return pane === null ? null : await pane.close(Math.max(1, endsAt - performance.now()))
    } catch (error) {
      return `the run's pane at ${this.pane.socket} cannot be looked for: ${messageOf(error)}`
    }
  }

  onOutput(_receive: Parameters<Execution['onOutput']>[0]): void {
    // The output of another engine's launch went to that engine.
  }

  cutOutput(): boolean {
    return false
  }

  letGo(): void {
    // Nothing is held.
  }

  writeInput(_chunk: string | Uint8Array): boolean {
    return false
  }

  endInput(): void {
    // A pane that is typed into by another engine's run has an engine of its own.
  }

  /** The size is the pane's, and tmux's to give. */
  resize(): boolean {
    return false
  }

  async #isPaneAbsent(): Promise<boolean> {
    const pane = await this.#find(FATE_DEADLINE_MS)
    return pane === null || (await pane.presence(FATE_DEADLINE_MS)) !== 'present'
  }
}

export const adoptedInPane = (
  inner: Execution,
  pane: PaneRecord,
  { marks }: ExecutionRecord,
  processes: PaneProcessPort,
): Execution =>
  new PaneExecution(inner, pane, (withinMs) => findPane(pane, marks.cookie, processes, withinMs))

/** Whether anyone still wants to know how the command ends. */
interface Watch {
  isOn: boolean
}

/** How the command ended: by the launcher's word, or, when that has none, by what became of the pane. */
const exitOf = async (
  { reports, pane, leader }: PaneLaunch,
  processes: PaneProcessPort,
  watch: Watch,
): Promise<ExitStatus> => {
  const told = await reports.exit
  if (told !== null) return told
  while ((await processes.lookUp(leader)) !== 'gone') {
    if (!watch.isOn) return new Promise<never>(() => undefined)
    await wait(LOOK_WAIT_MS)
  }
  const detail = await pane.fate(FATE_DEADLINE_MS).catch((error: unknown) => messageOf(error))
  return { exitCode: null, signal: null, ...(detail === null ? {} : { detail }) }
}

/** The execution that this engine launched: its output comes here, it can be typed to, and its launcher waits for us. */
export class LaunchedInPane extends PaneExecution {
  readonly #launch: PaneLaunch
  readonly #input: PaneInput
  readonly #watch: Watch

  constructor(inner: Execution, pane: PaneRecord, launch: PaneLaunch, processes: PaneProcessPort) {
    const watch = { isOn: true }
    super(inner, pane, () => Promise.resolve(launch.pane), {
      exited: exitOf(launch, processes, watch),
      drained: launch.output.drained,
    })
    this.#launch = launch
    this.#watch = watch
    this.#input = new PaneInput(launch.pane)
  }

  override onOutput(receive: Parameters<Execution['onOutput']>[0]): void {
    this.#launch.output.onOutput(receive)
  }

  override cutOutput(): boolean {
    return this.#launch.output.cut()
  }

  override letGo(): void {
    this.#watch.isOn = false
    this.#launch.output.letGo()
    this.#launch.rendezvous.report.unref()
  }

  override writeInput(chunk: string | Uint8Array): boolean {
    return this.#input.type(chunk)
  }

  override endInput(): void {
    this.#input.type(END_OF_FILE)
  }

  override async closeSurface(withinMs: number): Promise<string | null> {
    const { pane, output, rendezvous } = this.#launch
    const endsAt = performance.now() + withinMs
    this.#input.end()
    // The end of the output first: a pane that is closed takes it along.
    await Promise.race([output.drained, wait(withinMs / 2)])
    // What comes after the command in a pane that stays is not the run's.
    if (this.pane.isRetained) await pane.act(endPipe(pane), withinMs / 2).catch(() => undefined)
    rendezvous.openGate()
    return super.closeSurface(Math.max(1, endsAt - performance.now()))
  }
}

const endPipe = ({ place }: Pane): string => `pipe-pane -t ${place.paneId}`
