/**
 * The process port on this machine: launches, adopts and looks up executions.
 *
 * Owns: the marks of each execution, and how the tree of each is reached. Panes are brought in by the surface adapter.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { PaneProcessPort } from '../../actors/pane.ports.js'
import type {
  Containment,
  Execution,
  ExecutionMarks,
  ExecutionRecord,
  ExitStatus,
  LaunchSpec,
  ProcessIdentity,
} from '../../actors/ports.js'
import { EMPTY_LOOKS_NEEDED } from '../../actors/ports.js'
import { RunwardenError } from '../../errors.js'
import { NoCgroup, bringInto, launchInto } from './cgroup-launch.js'
import { mintFolder } from './cgroup-place.js'
import { claim, isForeground } from './claim.js'
import { ExitWatch } from './exit-watch.js'
import { assertLaunchable, launch } from './launch.js'
import type { LaunchedProcess } from './launch.js'
import { libc } from './libc.js'
import { joinOutputFiles } from './output-files.js'
import { bootId, identify, lookUpIdentity, readStat } from './proc-fs.js'
import { ProcTable } from './proc-table.js'
import { cgroupOf, reachOf } from './reach.js'
import { noStdio } from './stdio.js'
import type { ChildStdio } from './stdio.js'
import { terminalProblem } from './terminal.js'
import { Tree } from './tree.js'

const MS_PER_TICK = 10
const PAGE_BYTES = 4096

/** 2⁵² keeps the mark far from any limit a person would set, and below 2⁵³ it is exact. */
const LIMIT_MARK_BASE = 2 ** 52

/** A process in the middle of its exec shows no environment; one that is older than a second is past that. */
const UNKNOWN_MAX_MS = 5_000
const UNKNOWN_LOOK_MS = 5

const never = new Promise<never>(() => undefined)

interface Tier {
  readonly containment: Containment
  /** Whether a command that cannot be put into a cgroup is not to be run. */
  readonly mustBeHeld: boolean
  readonly table: ProcTable
  readonly exits: ExitWatch
}

const usesMarks = ({ containment }: Tier): boolean => containment !== 'group'

/** R10: a file has no end that would be told; when nobody is there who could write, there is no more. */
const scanToTheEnd = (scan: Execution['scan'], { finishOutput }: ChildStdio): Execution['scan'] => {
  if (finishOutput === undefined) return scan
  let emptyLooks = 0
  return async () => {
    const members = await scan()
    emptyLooks = members.length === 0 ? emptyLooks + 1 : 0
    if (emptyLooks >= EMPTY_LOOKS_NEEDED) await finishOutput()
    return members
  }
}

const ownExecution = (tier: Tier, spec: LaunchSpec, launched: LaunchedProcess): Execution => {
  const tree = new Tree({
    leader: launched.identity,
    marks: spec.marks,
    usesMarks: usesMarks(tier),
    isOwnChild: true,
  })
  const { evidence, ...reach } = reachOf(tree, tier.table, {
    cgroup: cgroupOf(spec.marks, tier.containment),
    leader: launched.identity,
    otherwise: 'tree-reaped',
  })
  return {
    ...launched,
    ...reach,
    containment: tier.containment,
    isOwnChild: true,
    isExitTold: true,
    scan: scanToTheEnd(reach.scan, launched),
    get emptyEvidence() {
      return evidence()
    },
  }
}

const launchIn = async (tier: Tier, spec: LaunchSpec): Promise<Execution> => {
  const cgroup = cgroupOf(spec.marks, tier.containment)
  if (cgroup === null) return ownExecution(tier, spec, await launch(spec))
  try {
    return ownExecution(tier, spec, await launchInto(cgroup, spec))
  } catch (error) {
    if (tier.mustBeHeld || !(error instanceof NoCgroup)) throw error
    return ownExecution({ ...tier, containment: 'group+marks' }, spec, await launch(spec))
  }
}

/** The oldest process that bears the marks: the leader, when an engine died before it could record who that is (R2). */
const findLeader = async (tier: Tier, marks: ExecutionMarks): Promise<ProcessIdentity | null> => {
  const endsAt = performance.now() + UNKNOWN_MAX_MS
  for (;;) {
    const table = await tier.table.look()
    try {
      const marked = table.mayBear(marks).filter((stat) => table.bearsMark(stat, marks))
      const [oldest] = marked.sort((one, other) => one.startTicks - other.startTicks)
      return oldest === undefined ? null : identify(oldest.pid)
    } catch (error) {
      // Somebody is in the middle of an exec, a stranger most likely: it can be judged a moment later.
      if (performance.now() >= endsAt) throw error
      await delay(UNKNOWN_LOOK_MS)
    }
  }
}

/** What an identity of another life of this machine, or of another namespace, allows to be said. */
const judge = (identity: ProcessIdentity | null): 'here' | 'elsewhere' | 'gone' => {
  const found = identity === null ? 'alive' : lookUpIdentity(identity)
  if (identity === null || found === 'alive') return 'here'
  if (found === 'unknown') return 'elsewhere'
  // R6: another boot's numbers name nothing here; in this boot the leader may be gone and its children not.
  return identity.bootId === bootId() ? 'here' : 'gone'
}

/** A pane that was made for the run and goes with it: whatever is in its session is the run's. */
const hostOf = ({ pane }: ExecutionRecord): ProcessIdentity | undefined =>
  pane?.isRetained === false ? pane.place?.shell : undefined

const UNSEEN: ExitStatus = { exitCode: null, signal: null, isUnseen: true }

/** R3: of an execution that is to go on, its leader's end is told. */
const followLeader = (
  exits: ExitWatch,
  leader: ProcessIdentity,
  stdio: ChildStdio,
): Pick<Execution, 'exited' | 'letGo'> => {
  let stop = (): void => undefined
  const exited = new Promise<void>((resolve) => {
    stop = exits.watch(leader, resolve)
  })
  return {
    exited: exited.then(() => UNSEEN),
    letGo: () => {
      stop()
      stdio.letGo()
    },
  }
}

const adoptedExecution = (
  tier: Tier,
  record: ExecutionRecord,
  identity: ProcessIdentity | null,
): Execution => {
  const tree = new Tree({
    leader: identity,
    marks: record.marks,
    usesMarks: true,
    isOwnChild: false,
    host: hostOf(record),
  })
  const place = judge(identity)
  const stdio = record.outputFolder == null ? noStdio : joinOutputFiles(record.outputFolder)
  const isFollowed = record.outputFolder != null && identity !== null && place === 'here'
  const { evidence, ...reach } = reachOf(tree, tier.table, {
    cgroup: cgroupOf(record.marks, record.containment),
    leader: identity,
    otherwise: 'identity-gone',
  })
  return {
    ...stdio,
    ...reach,
    identity,
    containment: record.containment,
    isOwnChild: false,
    isExitTold: isFollowed,
    exited: never,
    ...(isFollowed ? followLeader(tier.exits, identity, stdio) : {}),
    scan: scanToTheEnd(async () => {
      if (place === 'gone') return []
      if (place === 'here') return reach.scan()
      throw new RunwardenError(
        'refused',
        'the execution is in a process namespace that cannot be seen from here',
      )
    }, stdio),
    get emptyEvidence() {
      return place === 'gone' ? 'identity-gone' : evidence()
    },
  }
}

export interface CgroupOptions {
  /** The folder that findPlace has tried, for the tier `cgroup`. */
  readonly parent: string | null
  /** Whether a launch that gets no cgroup is refused; else it gets the next tier, and the record says so. */
  readonly mustBeHeld: boolean
}

export const createProcessPort = (
  containment: 'cgroup' | 'group+marks' | 'group',
  { parent, mustBeHeld }: CgroupOptions = { parent: null, mustBeHeld: false },
): PaneProcessPort => {
  if (!existsSync('/proc/self/stat')) {
    throw new RunwardenError('refused', `platform ${process.platform} is not supported: there is no /proc`)
  }
  const self = identify(process.pid)
  if (self === null) throw new RunwardenError('invariant-broken', 'this process has no identity')
  const tier: Tier = { containment, mustBeHeld, table: new ProcTable(), exits: new ExitWatch() }
  return {
    self,
    containment,
    terminalProblem: terminalProblem(),
    mintMarks: (): ExecutionMarks => ({
      cookie: randomBytes(16).toString('hex'),
      limit: libc()?.canMark === true ? LIMIT_MARK_BASE + randomBytes(6).readUIntBE(0, 6) : null,
      ...(parent === null ? {} : { cgroup: mintFolder(parent) }),
    }),
    launch: (spec) => launchIn(tier, spec),
    adopt: async (record) =>
      adoptedExecution(tier, record, record.identity ?? (await findLeader(tier, record.marks))),
    assertLaunchable: (spec) => {
      assertLaunchable(spec)
    },
    claim,
    hold: (leader, marks) => {
      const cgroup = cgroupOf(marks, tier.containment)
      const problem = cgroup === null ? 'this engine makes no cgroups' : bringInto(cgroup, leader)
      if (problem === null || !mustBeHeld) return problem
      throw new RunwardenError('refused', `option containment.atLeast "cgroup" cannot be had: ${problem}`)
    },
    identify,
    isForeground,
    lookUp: (identity) => Promise.resolve(lookUpIdentity(identity)),
    usage: (identity) => {
      const stat = readStat(identity.pid)
      if (stat === null || stat.startTicks !== identity.startTicks) return null
      return { cpuMs: stat.cpuTicks * MS_PER_TICK, rssBytes: stat.rssPages * PAGE_BYTES }
    },
  }
}
