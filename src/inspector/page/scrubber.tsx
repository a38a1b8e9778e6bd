/** Goes through the journal: back to `accepted`, forth to now, by hand or as it happened. */
import { useEffect } from 'preact/hooks'
import { duration, eventName } from './format.js'
import { Icon } from './icon.js'
import { isLive, isPlaying, journal, show, shown, shownIndex } from './run-state.js'

/** A replay keeps the pace of what happened, but waits for nobody. */
const STEP_MIN_MS = 350
const STEP_MAX_MS = 1_500

const pauseBefore = (index: number): number => {
  const rows = journal.peek()
  const [one, other] = [rows[index - 1], rows[index]]
  const gap = one === undefined || other === undefined ? 0 : other.at - one.at
  return Math.max(STEP_MIN_MS, Math.min(STEP_MAX_MS, gap))
}

const play = (): void => {
  if (isPlaying.peek()) {
    isPlaying.value = false
    return
  }
  if (shownIndex.peek() >= journal.peek().length - 1) show(0)
  isPlaying.value = true
}

const step = (by: number): void => {
  isPlaying.value = false
  show(shownIndex.peek() + by)
}

export const goLive = (): void => {
  isPlaying.value = false
  show(null)
}

const useReplay = (): void => {
  const index = shownIndex.value
  const isOn = isPlaying.value
  const count = journal.value.length
  useEffect(() => {
    if (!isOn) return undefined
    if (index >= count - 1) {
      isPlaying.value = false
      return undefined
    }
    const timer = setTimeout(() => show(index + 1), pauseBefore(index + 1))
    return () => clearTimeout(timer)
  }, [isOn, index, count])
}

export const Scrubber = () => {
  useReplay()
  const rows = journal.value
  const index = shownIndex.value
  const row = shown.value
  const first = rows[0]
  const last = Math.max(0, rows.length - 1)
  const words = row === null ? '' : `revision ${String(row.rev)}, ${eventName(row.event)}`
  return (
    <div class="scrubber" role="group" aria-label="Replay">
      <button
        type="button"
        class="icon"
        aria-label="To the beginning"
        title="Home"
        onClick={() => step(-rows.length)}
      >
        <Icon name="first" />
      </button>
      <button type="button" class="icon" aria-label="One back" title="←" onClick={() => step(-1)}>
        <Icon name="back" />
      </button>
      <button type="button" class="play" title="Space" onClick={play}>
        <Icon name={isPlaying.value ? 'stop' : 'play'} />
        {isPlaying.value ? 'Stop' : 'Replay'}
      </button>
      <button type="button" class="icon" aria-label="One forth" title="→" onClick={() => step(1)}>
        <Icon name="forth" />
      </button>
      <input
        type="range"
        aria-label="Place in the journal"
        aria-valuetext={words}
        min={0}
        max={last}
        value={index}
        onInput={(event) => {
          isPlaying.value = false
          show(Number(event.currentTarget.value))
        }}
      />
      <span class="scrub-at">
        {row === null || first === undefined ? '' : `+${duration(row.at - first.at)}`}
        <i>
          {index + 1}/{rows.length}
        </i>
      </span>
      <button type="button" class="live" aria-pressed={isLive.value} title="End" onClick={goLive}>
        live
      </button>
    </div>
  )
}

/** Of the run view, wherever the focus is. */
export const scrubByKey = (event: KeyboardEvent): boolean => {
  switch (event.key) {
    case 'ArrowLeft':
      step(-1)
      return true
    case 'ArrowRight':
      step(1)
      return true
    case 'Home':
      step(-journal.peek().length)
      return true
    case 'End':
      goLive()
      return true
    case ' ':
      play()
      return true
    default:
      return false
  }
}
