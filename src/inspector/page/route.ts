/** Which run is looked at: in the address, so that back and forward work. */
import { signal } from '@preact/signals'

const read = (): string | null => {
  const [, runId] = /^#\/run\/(.+)$/.exec(location.hash) ?? []
  return runId === undefined ? null : decodeURIComponent(runId)
}

export const selectedRun = signal(read())

window.addEventListener('hashchange', () => {
  selectedRun.value = read()
})

export const addressOf = (runId: string): string => `#/run/${encodeURIComponent(runId)}`

export const goTo = (runId: string | null): void => {
  location.hash = runId === null ? '#/' : addressOf(runId)
}
