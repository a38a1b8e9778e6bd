/** The journal: each row selects the state that it led to. */
import type { RegionStates, TransitionRecord } from '../../index.js'
import { duration, eventName } from './format.js'
import { isPlaying, journal, show, shownIndex } from './run-state.js'
import { toneOf } from './tones.js'
import { Virtual } from './virtual.js'

const ROW_HEIGHT = 52
const REGIONS = ['work', 'process', 'delivery'] as const

const last = (path: string): string => path.split('.').at(-1) ?? path

const movesOf = ({
  from,
  to,
}: TransitionRecord): readonly { region: keyof RegionStates; from: string; to: string }[] =>
  REGIONS.filter((region) => from?.[region] !== to[region]).map((region) => ({
    region,
    from: last(from?.[region] ?? ''),
    to: last(to[region]),
  }))

/** What the event brought along, where a reader would ask. */
const detailOf = ({ detail }: TransitionRecord): string => {
  if (typeof detail !== 'object' || detail === null) return ''
  const { exitCode, signal, error, message, by, reason } = detail as Readonly<Record<string, unknown>>
  return [
    ...(typeof exitCode === 'number' ? [`code ${String(exitCode)}`] : []),
    ...[signal, error, message, reason].filter(
      (text): text is string => typeof text === 'string' && text !== '',
    ),
    ...(typeof by === 'string' ? [`by ${by}`] : []),
  ].join(' · ')
}

const Effects = ({ effects }: Pick<TransitionRecord, 'effects'>) => (
  <span class="effects">
    {effects.map(({ kind, doneAt }, index) => (
      <span
        key={index}
        class={doneAt === null ? 'effect open' : 'effect'}
        title={doneAt === null ? 'called for, not done yet' : 'done'}
      >
        {kind}
      </span>
    ))}
  </span>
)

const Row = ({
  row,
  index,
  begunAt,
}: {
  readonly row: TransitionRecord
  readonly index: number
  readonly begunAt: number
}) => {
  const isShown = shownIndex.value === index
  const moves = movesOf(row)
  const detail = detailOf(row)
  return (
    <button
      type="button"
      class={isShown ? 'journal-row on' : 'journal-row'}
      aria-current={isShown ? 'step' : undefined}
      data-rev={row.rev}
      onClick={() => {
        isPlaying.value = false
        show(index)
      }}
    >
      <span class="journal-line">
        <i class="rev">{row.rev}</i>
        <b class="event-name">{eventName(row.event)}</b>
        <span class="journal-detail" title={detail}>
          {detail}
        </span>
        <time class="at">+{duration(row.at - begunAt)}</time>
      </span>
      <span class="journal-line">
        {moves.map(({ region, from, to }) => (
          <span key={region} class="move">
            <i>{region}</i> {from === '' ? null : moves.length > 1 ? '→ ' : `${from} → `}
            <b class={`ink-${toneOf(to)}`}>{to}</b>
          </span>
        ))}
        <Effects effects={row.effects} />
      </span>
    </button>
  )
}

export const Journal = () => {
  const rows = journal.value
  const begunAt = rows[0]?.at ?? 0
  const isCut = (rows[0]?.rev ?? 0) > 0
  return (
    <section class="panel journal" aria-label="Journal">
      <h2>
        Journal{' '}
        <small>
          {isCut ? `the last ${String(rows.length)} of` : ''}{' '}
          {rows.length === 0 ? '' : `${String((rows.at(-1)?.rev ?? 0) + 1)} transitions`}
        </small>
      </h2>
      <Virtual
        items={rows}
        rowHeight={ROW_HEIGHT}
        keyOf={(row) => row.rev}
        current={shownIndex.value}
        class="journal-rows"
        role="group"
        label="Transitions"
      >
        {(row, index) => <Row row={row} index={index} begunAt={begunAt} />}
      </Virtual>
    </section>
  )
}
