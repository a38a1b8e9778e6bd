/**
 * Which processes belong to one execution.
 *
 * Owns: the rule of membership. A process is ours when it was found ours before, bears the execution's marks, is in the leader's group
 *   or session, or descends from one of these.
 * Invariants: INV-14 (what cannot be proven ours is not a member: a group or session counts only while its number cannot have been
 *   given to someone else), C5, R6.
 */
import type { ExecutionMarks, ProcessIdentity, TreeMember } from '../../actors/ports.js'
import type { ProcSnapshot } from './proc-table.js'
import { keyOf } from './proc-table.js'
import { stateOfThreads, vforkChildOf } from './proc-fs.js'
import type { ProcStat } from './proc-fs.js'

export interface TreeOptions {
  /** Null when only the marks are known: an engine died between the spawn and the identity's commit. */
  readonly leader: ProcessIdentity | null
  readonly marks: ExecutionMarks
  /** False in the `group` tier: the marks are not looked for. */
  readonly usesMarks: boolean
  /** Whether this process launched the leader, so that its group was its own when the tree began. */
  readonly isOwnChild: boolean
  /** Who leads a session that was made for the execution, without being of it: a pane's shell. */
  readonly host?: ProcessIdentity | undefined
}

/** Oldest first: a child is never older than its parent. Within one tick the ids go up, but where they begin anew. */
const byAge = (one: ProcStat, other: ProcStat): number =>
  one.startTicks - other.startTicks || one.pid - other.pid

export class Tree {
  readonly #options: TreeOptions
  #known = new Set<string>()
  #isGroupOccupied: boolean

  constructor(options: TreeOptions) {
    this.#options = options
    this.#isGroupOccupied = options.isOwnChild
  }

  membersIn(table: ProcSnapshot): readonly TreeMember[] {
    const oldest = this.#options.leader?.startTicks ?? 0
    const candidates = table.alive.filter(({ startTicks }) => startTicks >= oldest)
    const isGroupOurs = this.#isGroupOurs(table)
    const { host } = this.#options
    // INV-14: a session's number is its leader's; it proves something while that one is there.
    const isHosted = host !== undefined && table.find(host.pid)?.startTicks === host.startTicks
    const members = new Map<number, ProcStat>()
    for (const stat of candidates) {
      if (this.#isMember(stat, isGroupOurs, isHosted, table)) members.set(stat.pid, stat)
    }
    this.#addDescendants(members, candidates)
    const found = [...members.values()].sort(byAge)
    this.#known = new Set(found.map(keyOf))
    const leaderPid = this.#options.leader?.pid
    this.#isGroupOccupied =
      isGroupOurs &&
      (table.find(leaderPid ?? -1) !== undefined || found.some(({ group }) => group === leaderPid))
    const states = new Map(found.map((stat) => [stat, stateOfThreads(stat)]))
    const inVfork = new Set(
      found
        .filter((stat) => states.get(stat) === 'D')
        .map((stat) =>
          vforkChildOf(
            stat,
            found.filter(({ parent }) => parent === stat.pid),
          ),
        ),
    )
    const runs = new Set(
      found.filter((stat) => !['T', 't'].includes(states.get(stat) ?? '?')).map(({ pid }) => pid),
    )
    return found.map((stat) => {
      const { pid, startTicks, name } = stat
      return {
        pid,
        startTicks,
        state: states.get(stat) ?? '?',
        name,
        parent: stat.parent,
        ...(inVfork.has(stat) ? { holdsUpParent: true } : {}),
        ...(runs.has(stat.parent) ? { hasRunningParent: true } : {}),
      }
    })
  }

  #isMember(stat: ProcStat, isGroupOurs: boolean, isHosted: boolean, table: ProcSnapshot): boolean {
    const { leader, marks, usesMarks, host } = this.#options
    if (this.#known.has(keyOf(stat))) return true
    if (leader !== null && keyOf(stat) === keyOf(leader)) return true
    if (isHosted && stat.pid !== host?.pid && stat.session === host?.pid) return true
    if (isGroupOurs && (stat.group === leader?.pid || stat.session === leader?.pid)) return true
    return usesMarks && table.bearsMark(stat, marks)
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

  #addDescendants(members: Map<number, ProcStat>, candidates: readonly ProcStat[]): void {
    if (members.size === 0) return
    for (let hasGrown = true; hasGrown;) {
      hasGrown = false
      for (const stat of candidates) {
        if (members.has(stat.pid) || !members.has(stat.parent)) continue
        members.set(stat.pid, stat)
        hasGrown = true
      }
    }
  }
}
