/** The page: the fleet, and beside it the run that is looked at. */
import { useEffect } from 'preact/hooks'
import { ActDialog } from './acts.js'
import { Fleet } from './fleet.js'
import { counts, followFleet, hello } from './fleet-state.js'
import { trouble } from './net.js'
import { goTo, selectedRun } from './route.js'
import { RunView } from './run-view.js'

const onKey = (event: KeyboardEvent): void => {
  const isTyping = event.target instanceof HTMLInputElement
  if (event.key === '/' && !isTyping) {
    event.preventDefault()
    document.getElementById('search')?.focus()
  }
  if (event.key !== 'Escape' || document.querySelector('dialog[open]') !== null) return
  if (isTyping) event.target.blur()
  else goTo(null)
}

const Bar = () => (
  <header class="bar">
    <a class="brand" href="#/">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect class="brand-ground" width="32" height="32" rx="8" />
        <rect class="brand-ink" x="6" y="8" width="9" height="6" rx="2" />
        <rect class="brand-line" x="17" y="18" width="9" height="6" rx="2" />
        <path class="brand-line" d="M15 11h6.5v7" />
      </svg>
      runwarden
    </a>
    <span class="quiet">
      {counts.value.live} live · {counts.value.all} runs
    </span>
    <span class="bar-end">
      {hello.value?.isReadOnly === true ? <span class="badge tone-idle">read-only</span> : null}
      <span class="quiet">{hello.value === null ? '' : `v${hello.value.version}`}</span>
      <span class={trouble.value === null ? 'link-state on' : 'link-state'} role="status">
        {trouble.value === null ? 'live' : 'not connected'}
      </span>
    </span>
  </header>
)

export const App = () => {
  const runId = selectedRun.value
  useEffect(() => {
    const stop = followFleet()
    window.addEventListener('keydown', onKey)
    return () => {
      stop()
      window.removeEventListener('keydown', onKey)
    }
  }, [])
  useEffect(() => {
    document.title = runId === null ? 'runwarden' : `${runId} · runwarden`
  }, [runId])
  return (
    <>
      <Bar />
      {trouble.value === null ? null : (
        <p class="trouble" role="alert">
          {trouble.value}
        </p>
      )}
      <main class={runId === null ? 'page' : 'page with-run'}>
        <Fleet />
        {runId === null ? null : <RunView key={runId} runId={runId} />}
      </main>
      <ActDialog />
    </>
  )
}
