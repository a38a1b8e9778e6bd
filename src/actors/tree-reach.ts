/**
 * What can be seen and signalled of one execution's tree.
 *
 * Owns: looks that fail without a throw, why the last signal to a member failed, and why its pane is not closed.
 * Does not own: when and how often (tree-pursuit.ts, tree-freeze.ts).
 */
import { messageOf } from '../errors.js'
import type { Survivor } from '../machines/run/run.context.js'
import { EMPTY_LOOKS_NEEDED } from './ports.js'
import type { Cancel, Clock, Execution, Logger, TreeMember } from './ports.js'

export type TreeSignal = Parameters<Execution['signal']>[0]

export const keyOf = ({ pid, startTicks }: TreeMember): string => `${String(pid)}:${String(startTicks)}`

/** INV-5: looks in a row that find nothing. Null is a look that failed, which is no look. */
export const isSeenEmpty = async (look: () => Promise<readonly TreeMember[] | null>): Promise<boolean> => {
  for (let looks = 0; looks < EMPTY_LOOKS_NEEDED; looks += 1) if ((await look())?.length !== 0) return false
  return true
}

export class TreeReach {
  readonly clock: Clock
  readonly #execution: Execution
  readonly #logger: Logger
  readonly #signalFailed: (error: string) => void
  readonly #errors = new Map<number, string>()
  #surfaceError: string | null = null
  #freezeError: string | null = null

  constructor(execution: Execution, clock: Clock, logger: Logger, signalFailed: (error: string) => void) {
    this.#execution = execution
    this.clock = clock
    this.#logger = logger
    this.#signalFailed = signalFailed
  }

  /** Null: the tree could not be read (INV-5). Parents come before their children. */
  async look(): Promise<readonly TreeMember[] | null> {
    try {
      return await this.#execution.scan()
    } catch (error) {
      this.#logger.warn({ error: messageOf(error) }, 'a process tree could not be read')
      return null
    }
  }

  /** Returns the pids that the signal did not reach. The first failure of each kind is told. */
  signal(signal: TreeSignal, members: readonly TreeMember[]): ReadonlySet<number> {
    const failures = members.length === 0 ? [] : this.#execution.signal(signal, members)
    for (const { pid, error } of failures) {
      if (this.#errors.get(pid) === error) continue
      this.#errors.set(pid, error)
      this.#signalFailed(`${error} for pid ${String(pid)}`)
    }
    return new Set(failures.map(({ pid }) => pid))
  }

  /** True when nothing of it is frozen as a whole any more. The first failure of each kind is told. */
  unfreeze(): boolean {
    const error = this.#execution.unfreeze?.() ?? null
    if (error !== null && error !== this.#freezeError) this.#signalFailed(`${error} for its frozen cgroup`)
    this.#freezeError = error
    return error === null
  }

  /** Whether a pane goes with the tree, and must be gone before the tree is (P12). */
  get hasSurface(): boolean {
    return this.#execution.closeSurface !== undefined
  }

  /** Why the pane is not proven closed, where it was tried. */
  get surfaceError(): string | null {
    return this.#surfaceError
  }

  /** True when there is no pane to close, or it is proven closed within `withinMs`. The first failure of each kind is told. */
  async closeSurface(withinMs: number): Promise<boolean> {
    const error = (await this.#execution.closeSurface?.(withinMs)) ?? null
    if (error !== null && error !== this.#surfaceError) this.#signalFailed(error)
    this.#surfaceError = error
    return error === null
  }

  /** With the reason why the last signal to it failed, where it did. */
  named(member: TreeMember): Survivor {
    const error = this.#errors.get(member.pid)
    return error === undefined ? member : { ...member, error }
  }
}

/** A wait between two looks that can be cut short. */
export class LookPause {
  #wake: () => void = () => undefined

  wake(): void {
    this.#wake()
  }

  async wait(clock: Clock, delayMs: number): Promise<void> {
    let cancel: Cancel = () => undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      cancel = clock.after(delayMs, resolve)
    })
    cancel()
  }
}
