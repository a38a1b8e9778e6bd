/** The run that is looked at: its journal, and the row of it that is shown. */
import { batch, computed, signal } from '@preact/signals'
import type { ProcessesUpdate, RunUpdate } from '../wire.js'
import type { TransitionRecord } from '../../index.js'
import { learnTime, listenTo } from './net.js'

/** Of a run that never ends no more is kept. */
const JOURNAL_MAX = 4_000

export const run = signal<RunUpdate | null>(null)
export const journal = signal<readonly TransitionRecord[]>([])
/** The revision that is shown; null: whatever is the last. */
const shownRev = signal<number | null>(null)
export const isPlaying = signal(false)
export const processes = signal<(ProcessesUpdate & { readonly cpu: ReadonlyMap<number, number> }) | null>(
  null,
)

export const isLive = computed(() => shownRev.value === null)

export const shownIndex = computed(() => {
  const { value: rev } = shownRev
  const { value: rows } = journal
  if (rev === null) return rows.length - 1
  const index = rows.findIndex((row) => row.rev >= rev)
  return index === -1 ? rows.length - 1 : index
})

export const shown = computed((): TransitionRecord | null => journal.value[shownIndex.value] ?? null)

/** Shows a row of the journal; beyond the last one, or null, goes on live. */
export const show = (index: number | null): void => {
  const rows = journal.value
  shownRev.value = index === null ? null : (rows[Math.max(0, Math.min(index, rows.length - 1))]?.rev ?? null)
}

const merge = (
  known: readonly TransitionRecord[],
  fresh: readonly TransitionRecord[],
): TransitionRecord[] => {
  const first = fresh[0]?.rev
  if (first === undefined) return [...known]
  return [...known.filter(({ rev }) => rev < first), ...fresh].slice(-JOURNAL_MAX)
}

const take = (update: RunUpdate): void => {
  learnTime(update.now)
  batch(() => {
    run.value = update
    if (update.transitions.length > 0) journal.value = merge(journal.peek(), update.transitions)
  })
}

const takeProcesses = (update: ProcessesUpdate): void => {
  const before = processes.peek()
  const cpu = new Map<number, number>()
  for (const { pid, cpuMs } of update.processes) {
    const was = before?.processes.find((one) => one.pid === pid)?.cpuMs ?? null
    const elapsedMs = update.now - (before?.now ?? update.now)
    if (was !== null && cpuMs !== null && elapsedMs > 0)
      cpu.set(pid, Math.max(0, (100 * (cpuMs - was)) / elapsedMs))
  }
  processes.value = { ...update, cpu }
}

export const followRun = (runId: string): (() => void) => {
  batch(() => {
    run.value = null
    journal.value = []
    shownRev.value = null
    isPlaying.value = false
    processes.value = null
  })
  return listenTo(`./run?run=${encodeURIComponent(runId)}`, { run: take, processes: takeProcesses })
}
