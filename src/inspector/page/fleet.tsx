/** Every run, in rows: what it is, how it is, since when. */
import type { FleetRow } from '../wire.js'
import { seconds } from './clock.js'
import { FILTERS, counts, filter, hasFleet, search, shownRows, sorting } from './fleet-state.js'
import type { SortKey } from './fleet-state.js'
import { age } from './format.js'
import { addressOf, goTo, selectedRun } from './route.js'
import { Spark } from './spark.js'
import { toneOf } from './tones.js'
import { Virtual } from './virtual.js'

const ROW_HEIGHT = 40

const COLUMNS: readonly { readonly key: SortKey | null; readonly title: string; readonly class: string }[] = [
  { key: 'headline', title: 'State', class: 'c-state' },
  { key: 'runId', title: 'Run', class: 'c-run' },
  { key: 'createdAt', title: 'Age', class: 'c-age' },
  { key: 'lastProgressAt', title: 'Quiet', class: 'c-quiet' },
  { key: null, title: 'Progress', class: 'c-spark' },
  { key: 'attempt', title: 'Attempt', class: 'c-attempt' },
  { key: 'containment', title: 'Containment', class: 'c-containment' },
  { key: 'task', title: 'Task', class: 'c-task' },
]

const sortBy = (key: SortKey): void => {
  const { key: known, isDown } = sorting.peek()
  sorting.value = { key, isDown: known === key ? !isDown : key === 'createdAt' || key === 'lastProgressAt' }
}

const quiet = ({ settledAt, lastProgressAt, startedAt }: FleetRow, now: number): string => {
  const since = lastProgressAt ?? startedAt
  return settledAt !== null || since === null ? '' : age(now - since)
}

const Header = () => (
  <div class="fleet-row fleet-head" role="row" aria-rowindex={1}>
    {COLUMNS.map(({ key, title, class: name }) => {
      const isSorted = key !== null && sorting.value.key === key
      const order = sorting.value.isDown ? 'descending' : 'ascending'
      return (
        <div key={title} class={name} role="columnheader" aria-sort={isSorted ? order : 'none'}>
          {key === null ? (
            title
          ) : (
            <button type="button" class={isSorted ? 'sort on' : 'sort'} onClick={() => sortBy(key)}>
              {title}
              <span aria-hidden="true">{isSorted ? (sorting.value.isDown ? ' ↓' : ' ↑') : ''}</span>
            </button>
          )}
        </div>
      )
    })}
  </div>
)

const Row = ({ row, index }: { readonly row: FleetRow; readonly index: number }) => {
  const now = seconds.value
  const isSelected = selectedRun.value === row.runId
  const over = row.settledAt
  return (
    <div
      class={isSelected ? 'fleet-row on' : 'fleet-row'}
      role="row"
      aria-rowindex={index + 2}
      data-run={row.runId}
    >
      <div class="c-state" role="cell">
        <span class={`badge tone-${toneOf(row.headline)}`}>{row.headline}</span>
      </div>
      <div class="c-run" role="cell">
        <a href={addressOf(row.runId)} data-index={index} aria-current={isSelected ? 'true' : undefined}>
          {row.runId}
        </a>
        <span class="quiet">{row.program}</span>
      </div>
      <div
        class="c-age"
        role="cell"
        title={over === null ? undefined : `it took ${age(over - row.createdAt)}`}
      >
        {age(now - row.createdAt)}
      </div>
      <div class="c-quiet" role="cell">
        {quiet(row, now)}
      </div>
      <div class="c-spark" role="cell">
        <Spark pulse={row.pulse} />
      </div>
      <div class="c-attempt" role="cell">
        {row.attempt}
      </div>
      <div class="c-containment" role="cell">
        {row.containment ?? '–'}
      </div>
      <div class="c-task" role="cell">
        {row.task ?? '–'}
      </div>
    </div>
  )
}

/** Arrow keys walk the rows, whichever of them are in the document. */
const walk = (event: KeyboardEvent): void => {
  const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10 }[event.key]
  if (step === undefined || event.target instanceof HTMLInputElement) return
  const table = event.currentTarget as HTMLElement
  const focused = document.activeElement?.getAttribute('data-index') ?? null
  const count = shownRows.peek().length
  if (count === 0) return
  event.preventDefault()
  const next = focused === null ? 0 : Math.max(0, Math.min(count - 1, Number(focused) + step))
  const frame = table.querySelector('.virtual')
  const top = next * ROW_HEIGHT
  if (frame !== null && (top < frame.scrollTop || top + ROW_HEIGHT > frame.scrollTop + frame.clientHeight))
    frame.scrollTop = step > 0 ? top + ROW_HEIGHT - frame.clientHeight : top
  requestAnimationFrame(() => {
    table.querySelector<HTMLElement>(`[data-index="${String(next)}"]`)?.focus({ preventScroll: true })
  })
}

const Filters = () => (
  <div class="filters" role="group" aria-label="Which runs are shown">
    {FILTERS.map(({ id, title, says }) => (
      <button
        key={id}
        type="button"
        title={says}
        aria-pressed={filter.value === id}
        class={`chip ${id === 'look' && counts.value.look > 0 ? 'chip-look' : ''}`}
        onClick={() => {
          filter.value = id
        }}
      >
        {title} <b>{counts.value[id]}</b>
      </button>
    ))}
  </div>
)

const Empty = () => (
  <p class="empty">
    {!hasFleet.value
      ? 'Reading the store…'
      : counts.value.all === 0
        ? 'No runs yet. The first one appears here by itself.'
        : 'No run matches.'}
  </p>
)

export const Fleet = () => {
  const rows = shownRows.value
  const isNarrow = selectedRun.value !== null
  return (
    <section class={isNarrow ? 'fleet aside' : 'fleet'} aria-label="Fleet">
      <div class="fleet-tools">
        <input
          type="search"
          id="search"
          placeholder="Search runs…  ( / )"
          aria-label="Search runs by id, program, task, session, label or state"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value
          }}
          onKeyDown={(event) => {
            const [first] = shownRows.peek()
            if (event.key === 'Enter' && first !== undefined) goTo(first.runId)
          }}
        />
        <Filters />
      </div>
      <div
        class="fleet-table"
        role="table"
        aria-label="Runs"
        aria-rowcount={rows.length + 1}
        onKeyDown={walk}
      >
        <div role="rowgroup">
          <Header />
        </div>
        {rows.length === 0 ? <Empty /> : null}
        <Virtual
          items={rows}
          rowHeight={ROW_HEIGHT}
          keyOf={(row) => row.runId}
          class="fleet-rows"
          role="rowgroup"
          label="Rows"
        >
          {(row, index) => <Row row={row} index={index} />}
        </Virtual>
      </div>
    </section>
  )
}
