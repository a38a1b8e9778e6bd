/** Where the three regions stand, in words, and which timers run. */
import { useEffect, useState } from 'preact/hooks'
import { timersNow } from './chart.js'
import { countdown, eventName, statePath } from './format.js'
import { isLive, run, shown } from './run-state.js'
import { toneOf } from './tones.js'

const QUESTIONS = {
  work: 'What became of the work?',
  process: 'What is left of it on the machine?',
  delivery: 'Has the host been told?',
} as const

const REGIONS = ['work', 'process', 'delivery'] as const
const TIMER_STEP_MS = 100

/** A name that people can read: of a timer of the chart its delay, of another its own. */
const nameOf = (id: string): string => eventName(id).replace(/^after /, '')

const Timers = () => {
  const [, redraw] = useState(0)
  const hasTimers = isLive.value && (run.value?.timers.length ?? 0) > 0
  useEffect(() => {
    if (!hasTimers) return undefined
    const tick = setInterval(() => redraw((count) => count + 1), TIMER_STEP_MS)
    return () => clearInterval(tick)
  }, [hasTimers])
  if (!hasTimers) return null
  return (
    <ul class="timers" aria-label="Timers that run">
      {timersNow().map(({ id, leftMs, share, standsStill }) => (
        <li key={id} class={standsStill ? 'timer-chip held' : 'timer-chip'}>
          <span class="timer-fill" style={{ width: `${String(Math.round(share * 100))}%` }} />
          <span>{nameOf(id)}</span>
          <b>{countdown(leftMs)}</b>
          {standsStill ? <i>held</i> : null}
        </li>
      ))}
    </ul>
  )
}

export const Regions = () => {
  const row = shown.value
  if (row === null) return null
  return (
    <div class="regions">
      {REGIONS.map((region) => {
        const hasMoved = row.from !== null && row.from[region] !== row.to[region]
        return (
          <div
            key={region}
            class={`region tone-${toneOf(row.to[region])} ${hasMoved ? 'moved' : ''}`}
            title={QUESTIONS[region]}
          >
            <span class="region-name">{region}</span>
            <span class="region-state">{statePath(row.to[region])}</span>
          </div>
        )
      })}
      <Timers />
    </div>
  )
}
