/** What is known of the fleet, and which of it is shown, in which order. */
import { computed, signal } from '@preact/signals'
import type { FleetRow, FleetUpdate, Hello } from '../wire.js'
import { learnTime, listenTo } from './net.js'
import { needsALook } from './tones.js'

export const hello = signal<Hello | null>(null)
export const search = signal('')
export const filter = signal<Filter>('all')
export const sorting = signal<{ readonly key: SortKey; readonly isDown: boolean }>({
  key: 'createdAt',
  isDown: true,
})

export type SortKey =
  'headline' | 'runId' | 'createdAt' | 'lastProgressAt' | 'attempt' | 'containment' | 'task'
export type Filter = 'all' | 'live' | 'look' | 'over'

export const FILTERS: readonly { readonly id: Filter; readonly title: string; readonly says: string }[] = [
  { id: 'all', title: 'All', says: 'every run in the store' },
  { id: 'live', title: 'Live', says: 'runs that are not over' },
  { id: 'look', title: 'Needs a look', says: 'stalled, or not proven gone' },
  { id: 'over', title: 'Over', says: 'settled, and nothing of them is left' },
]

/** The map is changed in place; a new holder tells that it was. */
const fleet = signal({ rows: new Map<string, FleetRow>() })
export const hasFleet = signal(false)

const isOver = ({ settledAt, process }: FleetRow): boolean => settledAt !== null && process === 'confirmed'

const isIn = (row: FleetRow, which: Filter): boolean => {
  switch (which) {
    case 'all':
      return true
    case 'live':
      return !isOver(row)
    case 'look':
      return needsALook(row.headline)
    case 'over':
      return isOver(row)
  }
}

const textOf = ({ runId, program, task, session, headline, labels }: FleetRow): string =>
  [runId, program, task ?? '', session ?? '', headline, ...Object.entries(labels).flat()]
    .join(' ')
    .toLowerCase()

const compare = (one: FleetRow, other: FleetRow, key: SortKey): number => {
  const [left, right] = [one[key], other[key]]
  if (left === right) return one.runId < other.runId ? -1 : 1
  // What is not known stands last, whichever way.
  if (left === null) return -1
  if (right === null) return 1
  return left < right ? -1 : 1
}

export const counts = computed((): Readonly<Record<Filter, number>> => {
  const count = { all: 0, live: 0, look: 0, over: 0 }
  for (const row of fleet.value.rows.values()) for (const { id } of FILTERS) if (isIn(row, id)) count[id] += 1
  return count
})

export const shownRows = computed((): readonly FleetRow[] => {
  const words = search.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const { key, isDown } = sorting.value
  const shown = [...fleet.value.rows.values()].filter((row) => {
    if (!isIn(row, filter.value)) return false
    if (words.length === 0) return true
    const text = textOf(row)
    return words.every((word) => text.includes(word))
  })
  const sign = isDown ? -1 : 1
  return shown.sort((one, other) => sign * compare(one, other, key))
})

const take = ({ now, isWhole, rows: changed, gone }: FleetUpdate): void => {
  learnTime(now)
  const { rows } = fleet.peek()
  if (isWhole) rows.clear()
  for (const row of changed) rows.set(row.runId, row)
  for (const runId of gone) rows.delete(runId)
  hasFleet.value = true
  fleet.value = { rows }
}

export const followFleet = (): (() => void) =>
  listenTo('./fleet', {
    hello: (said: Hello) => {
      hello.value = said
    },
    fleet: take,
  })
