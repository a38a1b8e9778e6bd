/** How the tree of one execution is seen and signalled: through the process table alone, or through its cgroup too. */
import { existsSync } from 'node:fs'
import type {
  Containment,
  EvidenceKind,
  Execution,
  ExecutionMarks,
  ProcessIdentity,
  SignalFailure,
  TreeMember,
} from '../../actors/ports.js'
import { CgroupTree } from './cgroup-tree.js'
import { Cgroup } from './cgroup.js'
import type { ProcTable } from './proc-table.js'
import { signalMembers } from './signal.js'
import type { StopSignal } from './signal.js'
import type { Tree } from './tree.js'

export type Reach = Pick<Execution, 'scan' | 'signal' | 'unfreeze' | 'discard'> & {
  /** What an empty look proves: asked when there was one. */
  readonly evidence: () => EvidenceKind
}

/** What a launch was to be held by; an execution on record as held by something else never was in it. */
export const cgroupOf = ({ cgroup }: ExecutionMarks, containment: Containment): Cgroup | null => {
  if (cgroup === undefined) return null
  if (containment === 'cgroup') return new Cgroup(cgroup)
  // An engine may have died after it brought the command of a pane into its cgroup, and before it could record that.
  return containment === 'pane' && existsSync(cgroup) ? new Cgroup(cgroup) : null
}

/** C2: the tier `group` does not reach beyond group, session and lineage. Whom it does not reach, it names. */
const signalTree = (
  tree: Tree,
  signal: StopSignal,
  members: readonly TreeMember[],
): readonly SignalFailure[] => {
  const escaped = new Set(tree.escaped.map(({ pid }) => pid))
  const reached = members.filter(({ pid }) => !escaped.has(pid))
  const unreached = members.filter(({ pid }) => escaped.has(pid))
  return [...signalMembers(signal, reached), ...unreached.map(({ pid }) => ({ pid, error: 'escaped' }))]
}

export interface ReachOptions {
  readonly cgroup: Cgroup | null
  readonly leader: ProcessIdentity | null
  /** What an empty look proves without the kernel's word on a cgroup. */
  readonly otherwise: EvidenceKind
}

export const reachOf = (tree: Tree, table: ProcTable, { cgroup, leader, otherwise }: ReachOptions): Reach => {
  if (cgroup === null) {
    return {
      scan: async () => {
        const members = tree.membersIn(await table.look())
        return [...members, ...tree.escaped]
      },
      signal: (signal, members) => signalTree(tree, signal, members),
      evidence: () => otherwise,
    }
  }
  const held = new CgroupTree(cgroup, tree, table, leader?.startTicks ?? 0)
  return {
    scan: () => held.scan(),
    signal: (signal, members) => held.signal(signal, members),
    evidence: () => (held.isEmpty ? 'cgroup-empty' : otherwise),
    unfreeze: () => cgroup.unfreeze(),
    // INV-14: who was put into it by somebody else is left there, and not left frozen.
    discard: () => cgroup.remove() || (cgroup.unfreeze(), false),
  }
}
