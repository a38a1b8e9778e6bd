/**
 * What dead engines hold of the queue is given back.
 *
 * A claim without a run goes back to its place. A run is taken up like any other of a dead engine, and ended or gone on with as it has
 * chosen (R3); its own transitions then move the job (O13).
 * Invariants: INV-13, R5 (only what a provably dead engine holds).
 */
import type { JobContext } from '../machines/job/job.context.js'
import { ACTIVE_PHASES } from './job.ports.js'
import type { JobStorePort, StoredJob } from './job.ports.js'
import type { Clock } from './ports.js'

/** Jobs looked at in one recovery; what is beyond has its turn with the next. */
const ACTIVE_MAX = 1_000

export interface RecoveryPorts {
  readonly engineId: string
  readonly jobs: JobStorePort
  readonly clock: Clock
  readonly claims: ReadonlySet<string>
  /** The engine that holds a run that is not over, or null. */
  readonly ownerOf: (runId: string) => Promise<string | null>
  readonly isGone: (engineId: string) => Promise<boolean>
  /** Takes a dead engine's run up, as it has chosen. */
  readonly recoverRun: (runId: string) => void
}

const recoverClaim = async (
  ports: RecoveryPorts,
  job: StoredJob,
  claim: JobContext['claim'],
): Promise<void> => {
  if (claim === null) return
  const { runId, engineId } = claim
  const isOurs = engineId === ports.engineId
  const isLost = isOurs ? !ports.claims.has(runId) : await ports.isGone(engineId)
  if (!isLost) return
  const reason = isOurs ? 'it was claimed, and nothing came of it' : 'the engine that claimed it died'
  // If the run is recorded in this moment after all, the job is not claimed any more, and this means nothing.
  await ports.jobs.tell(job.row.id, { type: 'job.unclaim', at: ports.clock.wallMs(), runId, reason })
}

const recoverRun = async (ports: RecoveryPorts, claim: JobContext['claim']): Promise<void> => {
  const owner = claim === null ? null : await ports.ownerOf(claim.runId)
  if (claim === null || owner === null || owner === ports.engineId) return
  if (await ports.isGone(owner)) ports.recoverRun(claim.runId)
}

export const recoverJobs = async (ports: RecoveryPorts): Promise<void> => {
  for (const job of await ports.jobs.list({ states: ACTIVE_PHASES, limit: ACTIVE_MAX })) {
    const { claim } = (JSON.parse(job.snapshot) as { readonly context: JobContext }).context
    if (job.state === 'active.claimed') await recoverClaim(ports, job, claim)
    else await recoverRun(ports, claim)
  }
}
