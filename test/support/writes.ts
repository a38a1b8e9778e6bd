/** Writes as actors would make them, small: for tests of a store without an engine. */
import type { ActorWrite, EngineRow, KindRows, RunHead, RunRow } from '../../src/actors/store.ports.js'
import type { StopLine, StopScope } from '../../src/machines/stop-order/stop-order.context.js'

type RunRows = Extract<KindRows, { kind: 'run' }>

const head: RunHead = {
  work: 'open.accepted',
  process: 'waiting',
  delivery: 'pending',
  headline: 'accepted',
  attempt: 1,
  generation: 1,
  outcome: null,
  lastProgressAt: null,
  settledAt: null,
  doneAt: null,
}

const base = {
  owner: 'e1',
  machineVersion: 1,
  snapshot: '{}',
  timersSet: [],
  timersCleared: [],
} as const

const journalOf = (rev: number): ActorWrite['journal'] => ({
  at: 1_700_000_000_000 + rev,
  event: `event-${rev}`,
  detail: '{}',
  from: rev === 0 ? '' : '{}',
  to: '{}',
  effects: [],
})

/** The write that brings a run to `rev`; `rev` 0 makes it. */
export const runWrite = (
  id: string,
  rev: number,
  changes: {
    readonly write?: Partial<ActorWrite>
    readonly row?: Partial<RunRow>
    readonly head?: Partial<RunHead>
    readonly rows?: Partial<RunRows>
  } = {},
): ActorWrite => ({
  ...base,
  kind: 'run',
  actor: id,
  expectedRev: rev === 0 ? null : rev - 1,
  rev,
  journal: journalOf(rev),
  rows: {
    kind: 'run',
    ...(rev === 0
      ? {
          created: {
            id,
            session: null,
            task: null,
            labels: {},
            program: 'true',
            protocol: 'lines',
            job: null,
            parent: null,
            onParentCancel: 'cancel',
            createdAt: 1_700_000_000_000,
            ...changes.row,
          },
        }
      : {}),
    head: { ...head, ...changes.head },
    executions: [],
    notices: [],
    ...changes.rows,
  },
  ...changes.write,
})

export const orderWrite = (
  id: string,
  rev: number,
  changes: {
    readonly scope?: StopScope
    readonly isFenced?: boolean
    readonly lines?: readonly (StopLine & { readonly owner: string | null })[]
    readonly settledAt?: number | null
    readonly owner?: string
  } = {},
): ActorWrite => ({
  ...base,
  owner: changes.owner ?? 'e1',
  kind: 'stop-order',
  actor: id,
  expectedRev: rev === 0 ? null : rev - 1,
  rev,
  journal: journalOf(rev),
  rows: {
    kind: 'stop-order',
    ...(rev === 0
      ? {
          created: {
            scope: changes.scope ?? { all: true },
            mode: 'cancel',
            isForced: false,
            isFenced: changes.isFenced ?? false,
            reason: 'because',
            by: 'test',
            requestedAt: 1_700_000_000_000,
          },
        }
      : {}),
    state: 'dispatched',
    lines: changes.lines ?? [],
    settledAt: changes.settledAt ?? null,
  },
})

export const engineRow = (id: string): EngineRow => ({
  id,
  identity: { pid: 2 ** 22, startTicks: 2 ** 51 + 1, bootId: 'boot', pidNamespace: 'pid:[1]' },
  hostId: 'host',
  version: '0',
  startedAt: 1,
  heartbeatAt: 1,
  closedAt: null,
})

export const engineWrite = (id: string, rev: number): ActorWrite => ({
  ...base,
  owner: id,
  kind: 'registry',
  actor: id,
  expectedRev: rev === 0 ? null : rev - 1,
  rev,
  journal: journalOf(rev),
  rows: { kind: 'registry', ...(rev === 0 ? { created: engineRow(id) } : {}), state: 'open', closedAt: null },
})

export const requestedLine = (
  runId: string,
  owner: string | null,
): StopLine & { readonly owner: string | null } => ({
  runId,
  status: 'requested',
  work: 'open',
  requestedAt: 1,
  repeated: false,
  isLive: true,
  owner,
})
