/**
 * The tree of an execution that is held by a cgroup: everything in the cgroup, and everything that is proven ours outside of it.
 *
 * Owns: the union of both looks, and which signal becomes a word to the cgroup.
 * Invariants: INV-5 (empty is said only when the kernel says `populated 0` and no mark is found), INV-14 (a process older than the leader
 *   was put there by somebody else: it is no member), INV-6 and C8 (a cgroup that holds such a one, or this process, or one of its group,
 *   is never frozen or killed as a whole), C3, C4, O1.
 */
import type { SignalFailure, TreeMember } from '../../actors/ports.js'
import { RunwardenError } from '../../errors.js'
import type { Cgroup, CgroupLook } from './cgroup.js'
import { isAlive, readStat } from './proc-fs.js'
import type { ProcSnapshot, ProcTable } from './proc-table.js'
import { isForbidden, signalMembers } from './signal.js'
import type { StopSignal } from './signal.js'
import type { Tree } from './tree.js'

/** A process can move between two cgroups of the tree while they are listed. */
const LISTINGS_MAX = 8

/**
 * O1: all of it stands still by the kernel's word, also who is between its `vfork` and its `exec`, and who waits for that: nobody holds up
 * anyone, and none need go on for another to stop.
 */
const asFrozen = ({ pid, startTicks, name }: TreeMember): TreeMember => ({
  pid,
  startTicks,
  state: 'T',
  name,
})

export class CgroupTree {
  readonly #cgroup: Cgroup
  readonly #tree: Tree
  readonly #table: ProcTable
  readonly #oldestTicks: number
  /** As of the last look. */
  #inside: CgroupLook['groupOf'] = new Map()
  #hasStrangers = false
  #isEmpty = false

  /** `oldestTicks`: when the leader was started; 0 where that is not known. */
  constructor(cgroup: Cgroup, tree: Tree, table: ProcTable, oldestTicks: number) {
    this.#cgroup = cgroup
    this.#tree = tree
    this.#table = table
    this.#oldestTicks = oldestTicks
  }

  /** The kernel said so at the last look. */
  get isEmpty(): boolean {
    return this.#isEmpty
  }

  async scan(): Promise<readonly TreeMember[]> {
    const table = await this.#table.look()
    let members: readonly TreeMember[] = []
    for (let listing = 0; listing < LISTINGS_MAX; listing += 1) {
      // R6: after the table. A number that was given away in between has the start time of its last owner, and is not signalled.
      const { isPopulated, hasHidden, groupOf } = this.#cgroup.look()
      this.#inside = groupOf
      this.#isEmpty = !isPopulated
      this.#hasStrangers = [...groupOf.keys()].some((pid) => this.#isStranger(pid))
      members = this.#membersIn(table, groupOf)
      const isWhole = !isPopulated || (this.#hasStrangers && !hasHidden)
      if (isWhole || members.some(({ pid }) => groupOf.has(pid))) return members
    }
    // Those of it that are seen, only outside, can be ended all the same; it is not empty before the others are.
    if (members.length > 0) return members
    throw new RunwardenError(
      'unreadable',
      `the cgroup ${this.#cgroup.folder} is populated by processes that cannot be seen from here`,
    )
  }

  signal(signal: StopSignal, members: readonly TreeMember[]): readonly SignalFailure[] {
    if (signal === 'SIGCONT') return this.#continue(members)
    if (signal === 'SIGTERM' || !this.#isWhollyOurs(members)) return signalMembers(signal, members)
    const inside = members.filter(({ pid }) => this.#inside.has(pid))
    const outside = members.filter(({ pid }) => !this.#inside.has(pid))
    const problem = inside.length === 0 ? null : this.#tell(signal)
    return signalMembers(signal, problem === null ? outside : members)
  }

  #tell(signal: 'SIGKILL' | 'SIGSTOP'): string | null {
    if (signal === 'SIGSTOP') return this.#cgroup.freeze()
    const problem = this.#cgroup.kill()
    // C3: where the kernel cannot kill a cgroup, what is listed is killed while nothing in it can fork.
    if (problem !== null) this.#cgroup.freeze()
    return problem
  }

  /** C4: neither a stopped process nor one in a frozen cgroup can die of TERM. */
  #continue(members: readonly TreeMember[]): readonly SignalFailure[] {
    const problems = new Map([[this.#cgroup.folder, this.#cgroup.unfreeze()]])
    const failures = members.flatMap(({ pid }): SignalFailure[] => {
      const folder = this.#inside.get(pid)?.folder
      if (folder === undefined) return []
      const nested = problems.get(folder) ?? this.#cgroup.unfreeze(folder)
      problems.set(folder, nested)
      const error = nested ?? problems.get(this.#cgroup.folder) ?? null
      return error === null ? [] : [{ pid, error }]
    })
    // Whom a signal does not reach may still have been frozen with the others, and goes on with them.
    const unreached = signalMembers('SIGCONT', members).filter(({ pid }) => !this.#runsInside(pid))
    return [...unreached, ...failures]
  }

  #runsInside(pid: number): boolean {
    const stat = this.#inside.has(pid) ? readStat(pid) : null
    return stat !== null && stat.state !== 'T' && stat.state !== 't'
  }

  /** C8: somebody may have moved this process into the cgroup. */
  #isWhollyOurs(members: readonly TreeMember[]): boolean {
    if (this.#hasStrangers || this.#cgroup.contains('self')) return false
    return members.every(({ pid }) => {
      const stat = this.#inside.has(pid) ? readStat(pid) : null
      return stat === null || !isForbidden(pid, stat.group)
    })
  }

  #isStranger(pid: number): boolean {
    const stat = readStat(pid)
    return stat !== null && isAlive(stat) && stat.startTicks < this.#oldestTicks
  }

  #membersIn(table: ProcSnapshot, groupOf: CgroupLook['groupOf']): readonly TreeMember[] {
    const known = this.#tree.membersIn(table, groupOf)
    const newborn = [...groupOf.keys()].filter((pid) => table.find(pid) === undefined)
    const born = newborn.flatMap((pid) => this.#proven(pid))
    return [...known, ...born].map((member) =>
      groupOf.get(member.pid)?.isFrozen === true ? asFrozen(member) : member,
    )
  }

  /** A process that the table does not know yet: in the cgroup, and the same before and after that was read. */
  #proven(pid: number): TreeMember[] {
    const before = readStat(pid)
    if (before === null || !isAlive(before) || before.startTicks < this.#oldestTicks) return []
    if (!this.#cgroup.contains(pid)) return []
    if (readStat(pid)?.startTicks !== before.startTicks) return []
    const { startTicks, state, name } = before
    return [{ pid, startTicks, state, name }]
  }
}
