/** How the tree of one execution is seen and signalled: through the process table alone, or through its cgroup too. */
import type {
  Containment,
  EvidenceKind,
  Execution,
  ExecutionMarks,
  ProcessIdentity,
} from '../../actors/ports.js'
import { CgroupTree } from './cgroup-tree.js'
import { Cgroup } from './cgroup.js'
import type { ProcTable } from './proc-table.js'
import { signalMembers } from './signal.js'
import type { Tree } from './tree.js'

export type Reach = Pick<Execution, 'scan' | 'signal' | 'discard'> & {
  /** What an empty look proves: asked when there was one. */
  readonly evidence: () => EvidenceKind
}

/** What a launch was to be held by; an execution on record as held by something else never was in it. */
export const cgroupOf = ({ cgroup }: ExecutionMarks, containment: Containment): Cgroup | null =>
  cgroup === undefined || containment !== 'cgroup' ? null : new Cgroup(cgroup)

export interface ReachOptions {
  readonly cgroup: Cgroup | null
  readonly leader: ProcessIdentity | null
  /** What an empty look proves without the kernel's word on a cgroup. */
  readonly otherwise: EvidenceKind
}

export const reachOf = (tree: Tree, table: ProcTable, { cgroup, leader, otherwise }: ReachOptions): Reach => {
  if (cgroup === null) {
    return {
      scan: async () => tree.membersIn(await table.look()),
      signal: signalMembers,
      evidence: () => otherwise,
    }
  }
  const held = new CgroupTree(cgroup, tree, table, leader?.startTicks ?? 0)
  return {
    scan: () => held.scan(),
    signal: (signal, members) => held.signal(signal, members),
    evidence: () => (held.isEmpty ? 'cgroup-empty' : otherwise),
    discard: () => cgroup.remove(),
  }
}
