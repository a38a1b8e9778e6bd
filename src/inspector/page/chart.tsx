/** The run chart as it is drawn, with the run's light in it. */
import { effect, signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ChartLight } from './chart-light.js'
import type { ShownTimer } from './chart-light.js'
import { Icon } from './icon.js'
import { serverNow } from './net.js'
import { isLive, run, shown } from './run-state.js'

const TIMER_STEP_MS = 100
const ZOOM_STEP = 1.25
/** Smaller than this nothing can be read: rather is it scrolled. */
const FIT_MIN = 0.55

const MARGIN = 40

type View = 'overview' | 'full'

const view = signal<View>('overview')
/** Null: as wide as there is room. */
const zoom = signal<number | null>(null)

const drawings = new Map<View, Promise<string>>()

const load = (which: View): Promise<string> => {
  const known = drawings.get(which)
  if (known !== undefined) return known
  const loading = fetch(`./chart/${which}.svg`).then((response) => response.text())
  drawings.set(which, loading)
  return loading
}

const parse = (text: string): SVGSVGElement =>
  document.importNode(
    new DOMParser().parseFromString(text, 'image/svg+xml').documentElement,
    true,
  ) as unknown as SVGSVGElement

export const timersNow = (): readonly (ShownTimer & { readonly id: string })[] => {
  const timers = isLive.peek() ? (run.peek()?.timers ?? []) : []
  const now = serverNow()
  return timers.map(({ id, event, dueAt, delayMs, standsStill }) => {
    const leftMs = standsStill ? delayMs : Math.max(0, dueAt - now)
    return { id, event, leftMs, share: delayMs === 0 ? 0 : leftMs / delayMs, standsStill }
  })
}

/** Brings what is lit into view, with as little movement as there can be. */
const follow = (frame: HTMLElement, light: ChartLight): void => {
  const places = light.places()
  if (places.length === 0) return
  const box = frame.getBoundingClientRect()
  const along = (from: number, to: number, room: number): number => {
    let by = 0
    if (to > room - MARGIN) by = to - room + MARGIN
    return from - by < MARGIN ? from - MARGIN : by
  }
  const top = along(
    Math.min(...places.map((place) => place.top)) - box.top,
    Math.max(...places.map((place) => place.bottom)) - box.top,
    box.height,
  )
  const left = along(
    Math.min(...places.map((place) => place.left)) - box.left,
    Math.max(...places.map((place) => place.right)) - box.left,
    box.width,
  )
  if (top !== 0 || left !== 0) frame.scrollBy({ top, left, behavior: 'smooth' })
}

const Tools = ({ fit }: { readonly fit: number }) => {
  const scale = zoom.value ?? fit
  return (
    <div class="chart-tools" role="group" aria-label="Drawing">
      {(['overview', 'full'] as const).map((each) => (
        <button
          key={each}
          type="button"
          class="chip"
          aria-pressed={view.value === each}
          title={each === 'full' ? 'with guards, actions and descriptions' : 'states and events'}
          onClick={() => {
            view.value = each
            zoom.value = each === 'full' ? 1 : null
          }}
        >
          {each === 'full' ? 'Every detail' : 'Overview'}
        </button>
      ))}
      <button
        type="button"
        class="icon"
        aria-label="Smaller"
        onClick={() => (zoom.value = scale / ZOOM_STEP)}
      >
        <Icon name="smaller" />
      </button>
      <button
        type="button"
        class="icon"
        aria-label="Fit the width"
        aria-pressed={zoom.value === null}
        onClick={() => (zoom.value = null)}
      >
        <Icon name="fit" />
      </button>
      <button type="button" class="icon" aria-label="Larger" onClick={() => (zoom.value = scale * ZOOM_STEP)}>
        <Icon name="larger" />
      </button>
    </div>
  )
}

export const Chart = () => {
  const frame = useRef<HTMLDivElement>(null)
  const sheet = useRef<HTMLDivElement>(null)
  const [natural, setNatural] = useState({ width: 1, height: 1 })
  const [room, setRoom] = useState(1)
  const [light, setLight] = useState<ChartLight | null>(null)
  const which = view.value

  useEffect(() => {
    let isWanted = true
    void load(which).then((text) => {
      if (!isWanted || sheet.current === null) return
      const svg = parse(text)
      const { width, height } = svg.viewBox.baseVal
      svg.removeAttribute('width')
      svg.removeAttribute('height')
      sheet.current.replaceChildren(svg)
      setNatural({ width, height })
      setLight(new ChartLight(svg))
    })
    return () => {
      isWanted = false
    }
  }, [which])

  useEffect(() => {
    if (frame.current === null) return undefined
    const element = frame.current
    const observer = new ResizeObserver(() => setRoom(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  useEffect(() => {
    if (light === null) return undefined
    let lastKey = ''
    const stopLight = effect(() => {
      const step = shown.value
      if (step === null) return
      // A row whose effects were done since has not moved.
      const key = `${String(step.rev)} ${String(isLive.value)}`
      if (key === lastKey) return
      const isFirst = lastKey === ''
      lastKey = key
      light.show(step, !isFirst)
      const element = frame.current
      if (element !== null) requestAnimationFrame(() => follow(element, light))
    })
    const tick = setInterval(() => light.setTimers(timersNow()), TIMER_STEP_MS)
    return () => {
      stopLight()
      clearInterval(tick)
    }
  }, [light])

  const fit = Math.max(FIT_MIN, room / natural.width)
  const scale = zoom.value ?? fit
  const width = `${String(Math.floor(natural.width * scale))}px`
  return (
    <section class="chart-panel" aria-label="Statechart">
      <Tools fit={fit} />
      <div
        class="chart-frame"
        ref={frame}
        tabIndex={0}
        role="region"
        aria-label="Drawing of the run chart; scrolls"
      >
        <div class="chart-sheet" ref={sheet} style={{ width }} />
      </div>
    </section>
  )
}
