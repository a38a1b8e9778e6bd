/**
 * Which processes belong to one execution.
 *
 * Owns: the rule of membership. A process is ours when it was found ours before, bears the execution's marks, is in the leader's group
 *   or session, is in its cgroup, or descends from one of these.
 * Invariants: INV-14 (what cannot be proven ours is not a member: a group or session counts only while its number cannot have been
 *   given to someone else), C5, R6.
 */
import type { ExecutionMarks, ProcessIdentity, TreeMember } from '../../actors/ports.js'
import type { ProcSnapshot } from './proc-table.js'
import { isAlive, stateOfThreads, vforkChildOf } from './proc-fs.js'
import type { ProcStat } from './proc-fs.js'

export interface TreeOptions {
  /** Null when only the marks are known: an engine died between the spawn and the identity's commit. */
  readonly leader: ProcessIdentity | null
  readonly marks: ExecutionMarks
  /** False in the `group` tier: a mark alone makes no member. */
  readonly usesMarks: boolean
  /** Whether this process launched the leader, so that its group was its own when the tree began. */
  readonly isOwnChild: boolean
  /** Who leads a session that was made for the execution, without being of it: a pane's shell. */
  readonly host?: ProcessIdentity | undefined
}

type HeldPids = Pick<ReadonlySet<number>, 'keys'>
const NOBODY: HeldPids = new Set()

/** Oldest first: a child is never older than its parent. Within one tick the ids go up, but where they begin anew. */
const byAge = (one: ProcStat, other: ProcStat): number =>
  one.startTicks - other.startTicks || one.pid - other.pid

const isStopped = (state: string | undefined): boolean => state === 'T' || state === 't'

/** With what a freeze must know of each: whom it holds up, and who would see it stop. */
const toMembers = (found: readonly ProcStat[]): readonly TreeMember[] => {
  const states = new Map(found.map((stat) => [stat, stateOfThreads(stat)]))
  const childrenOf = (stat: ProcStat): ProcStat[] => found.filter(({ parent }) => parent === stat.pid)
  const inVfork = new Set(
    found.filter((stat) => states.get(stat) === 'D').map((stat) => vforkChildOf(stat, childrenOf(stat))),
  )
  const runs = new Set(found.filter((stat) => !isStopped(states.get(stat))).map(({ pid }) => pid))
  return found.map((stat) => {
    const { pid, startTicks, name, parent } = stat
    return {
      pid,
      startTicks,
      state: states.get(stat) ?? '?',
      name,
      parent,
      ...(inVfork.has(stat) ? { holdsUpParent: true } : {}),
      ...(runs.has(stat.parent) ? { hasRunningParent: true } : {}),
    }
  })
}

export class Tree {
  readonly #options: TreeOptions
  #known: readonly Pick<ProcStat, 'pid' | 'startTicks'>[] = []
  #escaped: readonly TreeMember[] = []
  #isGroupOccupied: boolean

  constructor(options: TreeOptions) {
    this.#options = options
    this.#isGroupOccupied = options.isOwnChild
  }

  /** `held`: the pids that the execution's cgroup names, where it has one. */
  membersIn(table: ProcSnapshot, held: HeldPids = NOBODY): readonly TreeMember[] {
    const isGroupOurs = this.#isGroupOurs(table)
    const members = new Map<number, ProcStat>()
    const add = (stat: ProcStat | undefined): void => {
      if (stat !== undefined && this.#isCandidate(stat)) members.set(stat.pid, stat)
    }
    for (const pid of held.keys()) add(table.find(pid))
    for (const stat of this.#provenIn(table, isGroupOurs)) add(stat)
    if (this.#options.usesMarks) for (const stat of this.#bearersIn(table, members)) add(stat)
    this.#addDescendants(members, table)
    const found = [...members.values()].sort(byAge)
    this.#known = found.map(({ pid, startTicks }) => ({ pid, startTicks }))
    this.#escaped = this.#options.usesMarks ? [] : toMembers(this.#bearersIn(table, members).sort(byAge))
    const leaderPid = this.#options.leader?.pid
    this.#isGroupOccupied =
      isGroupOurs &&
      (table.find(leaderPid ?? -1) !== undefined || found.some(({ group }) => group === leaderPid))
    return toMembers(found)
  }

  /**
   * As of the last look: who bears a mark of an execution that is not held by marks (tier `group`), and is no member otherwise. They are
   * not signalled in that tier, and nothing is proven gone while they live (INV-5).
   */
  get escaped(): readonly TreeMember[] {
    return this.#escaped
  }

  /** A child is never older than its parent, nor a member older than the leader. */
  #isCandidate(stat: ProcStat): boolean {
    return isAlive(stat) && stat.startTicks >= (this.#options.leader?.startTicks ?? 0)
  }

  /** Who is ours without a look at marks. */
  #provenIn(table: ProcSnapshot, isGroupOurs: boolean): readonly ProcStat[] {
    const { leader, host } = this.#options
    const known = [...this.#known, ...(leader === null ? [] : [leader])].flatMap(({ pid, startTicks }) => {
      const stat = table.find(pid)
      return stat?.startTicks === startTicks ? [stat] : []
    })
    // INV-14: a session's number is its leader's; it proves something while that one is there.
    const isHosted = host !== undefined && table.find(host.pid)?.startTicks === host.startTicks
    const hosted = isHosted ? table.bySession.get(host.pid).filter(({ pid }) => pid !== host.pid) : []
    const ours =
      isGroupOurs && leader !== null
        ? [...table.byGroup.get(leader.pid), ...table.bySession.get(leader.pid)]
        : []
    return [...known, ...hosted, ...ours]
  }

  /** Who bears a mark, and is no member otherwise. */
  #bearersIn(table: ProcSnapshot, members: ReadonlyMap<number, ProcStat>): ProcStat[] {
    const { marks } = this.#options
    const bearers = table
      .mayBear(marks)
      .filter((stat) => !members.has(stat.pid) && this.#isCandidate(stat) && table.bearsMark(stat, marks))
    return [...new Set(bearers)]
  }

  /**
   * A group number stays reserved while a member lives, and can be given away once the group is empty. It is ours while the leader is
   * there, or while the last look found someone in it; never when its number now names another process.
   */
  #isGroupOurs(table: ProcSnapshot): boolean {
    const { leader } = this.#options
    if (leader === null) return false
    const holder = table.find(leader.pid)
    return holder === undefined ? this.#isGroupOccupied : holder.startTicks === leader.startTicks
  }

  #addDescendants(members: Map<number, ProcStat>, table: ProcSnapshot): void {
    const parents = [...members.keys()]
    for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
      for (const stat of table.byParent.get(parent)) {
        if (members.has(stat.pid) || !this.#isCandidate(stat)) continue
        members.set(stat.pid, stat)
        parents.push(stat.pid)
      }
    }
  }
}
