/** One run: its chart, its journal, and what is known besides. */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Outcome } from '../../index.js'
import { Acts } from './acts.js'
import { Chart } from './chart.js'
import { seconds } from './clock.js'
import { age, duration } from './format.js'
import { Icon } from './icon.js'
import { Journal } from './journal.js'
import { Log } from './log.js'
import { Attempts, Notices, Orders, Processes } from './panels.js'
import { Regions } from './regions.js'
import { followRun, isLive, processes, run } from './run-state.js'
import { Scrubber, scrubByKey } from './scrubber.js'
import { toneOf } from './tones.js'

type Tab = 'processes' | 'attempts' | 'orders' | 'notices' | 'log'

const TABS: readonly { readonly id: Tab; readonly title: string; readonly count: () => number | null }[] = [
  { id: 'processes', title: 'Processes', count: () => processes.value?.processes.length ?? null },
  { id: 'orders', title: 'Orders', count: () => run.value?.orders.length ?? null },
  { id: 'notices', title: 'Notices', count: () => run.value?.notices.length ?? null },
  { id: 'attempts', title: 'Attempts', count: () => run.value?.executions.length ?? null },
  { id: 'log', title: 'Log', count: () => null },
]

const tab = signal<Tab>('processes')

/** Arrow keys walk the tabs, as in any list of tabs. */
const walkTabs = (event: KeyboardEvent): void => {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
  if (by === undefined) return
  event.preventDefault()
  event.stopPropagation()
  const index = TABS.findIndex(({ id }) => id === tab.peek())
  const next = TABS[(index + by + TABS.length) % TABS.length]
  if (next === undefined) return
  tab.value = next.id
  document.getElementById(`tab-${next.id}`)?.focus()
}

const Tabs = ({ runId }: { readonly runId: string }) => (
  <section class="panel tabs" aria-label="Details">
    <div role="tablist" aria-label="Details" onKeyDown={walkTabs}>
      {TABS.map(({ id, title, count }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-selected={tab.value === id}
          aria-controls="tab-panel"
          tabIndex={tab.value === id ? 0 : -1}
          onClick={() => {
            tab.value = id
          }}
        >
          {title}
          {count() === null || count() === 0 ? null : <b> {count()}</b>}
        </button>
      ))}
    </div>
    <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} tabIndex={0}>
      {tab.value === 'processes' ? <Processes /> : null}
      {tab.value === 'attempts' ? <Attempts /> : null}
      {tab.value === 'orders' ? <Orders /> : null}
      {tab.value === 'notices' ? <Notices /> : null}
      {tab.value === 'log' ? <Log runId={runId} /> : null}
    </div>
  </section>
)

const Facts = () => {
  const update = run.value
  if (update === null) return null
  const { run: known } = update
  const outcome = known.outcome as Outcome | null
  const facts: readonly (readonly [string, string | null])[] = [
    ['program', known.program],
    ['task', known.task],
    ['session', known.session],
    ['age', age(seconds.value - known.createdAt)],
    ['took', known.settledAt === null ? null : duration(known.settledAt - known.createdAt)],
    ['attempt', String(known.attempt)],
    ['pid', known.pid === null ? null : String(known.pid)],
    ['containment', known.containment],
    ['outcome', outcome === null ? null : outcome.message],
  ]
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === null ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={value}>{value}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

const TEXT_FIELDS = 'input, textarea, select, [role=tablist], button'

export const RunView = ({ runId }: { readonly runId: string }) => {
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    // The keys of the replay are heard from here on.
    section.current?.focus({ preventScroll: true })
    return followRun(runId)
  }, [runId])
  const headline = run.value?.run.headline ?? null
  return (
    <section
      class="run"
      ref={section}
      tabIndex={-1}
      aria-label={`Run ${runId}`}
      onKeyDown={(event) => {
        const isTyping = event.target instanceof Element && event.target.matches(TEXT_FIELDS)
        const isForList = event.key === 'Home' || event.key === 'End' || event.key.startsWith('Arrow')
        const isButton = event.target instanceof HTMLButtonElement
        if (isTyping && !(isButton && isForList)) return
        if (scrubByKey(event)) event.preventDefault()
      }}
    >
      <header class="run-head">
        <a class="back" href="#/" aria-label="Back to the fleet" title="Esc">
          <Icon name="left" />
        </a>
        <h1>{runId}</h1>
        {headline === null ? null : (
          <span class={`badge big tone-${toneOf(headline)}`} role="status">
            {headline}
          </span>
        )}
        {isLive.value ? null : <span class="badge big tone-paused">replay</span>}
        <Acts runId={runId} />
        <Facts />
      </header>
      <div class="run-body">
        <div class="run-chart">
          <Regions />
          <Chart />
          <Scrubber />
        </div>
        <div class="run-side">
          <Journal />
          <Tabs runId={runId} />
        </div>
      </div>
    </section>
  )
}
