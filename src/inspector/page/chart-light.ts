/** Puts light into the drawing: active states, the states before, the arrows between, and timers on theirs. */
import type { RegionStates } from '../../index.js'
import { countdown } from './format.js'
import { parseEdge, wayOf } from './edges.js'
import type { Edge } from './edges.js'

const REGIONS = ['work', 'process', 'delivery'] as const
const SVG = 'http://www.w3.org/2000/svg'
const TRACE_MS = 900

export interface ShownTimer {
  readonly event: string
  readonly leftMs: number
  readonly share: number
  readonly standsStill: boolean
}

export interface Step {
  readonly from: RegionStates | null
  readonly to: RegionStates
  readonly event: string
}

/** Outer states first. */
const pathsTo = (region: string, state: string): string[] => {
  const parts = ['run', region, ...state.split('.')]
  return parts.slice(2).map((_, index) => parts.slice(0, index + 3).join('.'))
}

export class ChartLight {
  readonly #svg: SVGSVGElement
  readonly #edges: readonly Edge[]
  readonly #elements = new Map<string, Element[]>()
  #lit: Element[] = []
  readonly #entered = new Set<Element>()
  #timers = new Map<string, SVGGElement>()

  constructor(svg: SVGSVGElement) {
    this.#svg = svg
    for (const element of svg.querySelectorAll('[data-edge]')) {
      for (const id of (element.getAttribute('data-edge') ?? '').split(' ')) {
        const known = this.#elements.get(id) ?? []
        known.push(element)
        this.#elements.set(id, known)
      }
    }
    this.#edges = [...this.#elements.keys()].map(parseEdge)
  }

  show({ from, to, event }: Step, isAnimated: boolean): void {
    for (const element of this.#lit) element.classList.remove('lit', 'was')
    for (const trace of this.#svg.querySelectorAll('.trace')) trace.remove()
    this.#lit = []
    this.#entered.clear()
    for (const region of REGIONS) {
      const before = from?.[region] ?? null
      for (const id of pathsTo(region, to[region])) this.#light(this.#state(id), 'lit')
      if (before === null || before === to[region]) continue
      const entered = this.#state(`run.${region}.${to[region]}`)
      if (entered !== null) this.#entered.add(entered)
      this.#light(this.#state(`run.${region}.${before}`), 'was')
      const way = wayOf(this.#edgesOf(region), {
        from: `run.${region}.${before}`,
        to: `run.${region}.${to[region]}`,
        event,
      })
      for (const edge of way) this.#lightEdge(edge, isAnimated)
    }
  }

  /** Where on the page something is to be looked at: the states that were just entered, or all that are active. */
  places(): DOMRect[] {
    const leaves = this.#lit.filter(
      (element) => element.matches('.state.lit') && element.querySelector('.bar') === null,
    )
    const entered = leaves.filter((element) => this.#entered.has(element))
    return (entered.length === 0 ? leaves : entered).map((element) => element.getBoundingClientRect())
  }

  setTimers(timers: readonly ShownTimer[]): void {
    const shown = new Set<string>()
    for (const timer of timers) {
      const place = this.#labelOf(timer.event)
      if (place === null) continue
      shown.add(timer.event)
      const badge = this.#timers.get(timer.event) ?? this.#addTimer(timer.event, place)
      const text = badge.querySelector('text')
      if (text !== null)
        text.textContent = timer.standsStill ? `${countdown(timer.leftMs)} held` : countdown(timer.leftMs)
      const bar = badge.querySelector('.timer-left')
      const width = Number(badge.getAttribute('data-width'))
      bar?.setAttribute('width', String(Math.max(0, Math.min(1, timer.share)) * width))
      badge.classList.toggle('held', timer.standsStill)
    }
    for (const [event, badge] of this.#timers) {
      if (shown.has(event)) continue
      badge.remove()
      this.#timers.delete(event)
    }
  }

  #state(id: string): Element | null {
    return this.#svg.querySelector(`[data-state="${CSS.escape(id)}"]`)
  }

  #edgesOf(region: string): readonly Edge[] {
    return this.#edges.filter(({ source }) => source.startsWith(`run.${region}.`))
  }

  #light(element: Element | null, name: 'lit' | 'was'): void {
    if (element === null) return
    element.classList.add(name)
    this.#lit.push(element)
  }

  #lightEdge({ id }: Edge, isAnimated: boolean): void {
    for (const element of this.#elements.get(id) ?? []) {
      this.#light(element, 'lit')
      const line = element.querySelector<SVGPathElement>(':scope > .line')
      if (isAnimated && line !== null) trace(line)
    }
  }

  /** The line of text that names the timer; its own, before the label that holds it. */
  #labelOf(event: string): SVGGraphicsElement | null {
    const ids = this.#edges.filter((edge) => edge.event === event).map(({ id }) => id)
    const elements = ids.flatMap((id) => this.#elements.get(id) ?? [])
    const words = elements.find((element) => element.matches('.label .words'))
    return (words ??
      elements.find((element) => element.matches('.words')) ??
      null) as SVGGraphicsElement | null
  }

  #addTimer(event: string, place: SVGGraphicsElement): SVGGElement {
    const label = place.closest<SVGGraphicsElement>('.label') ?? place
    const outer = label.getBBox()
    const inner = place.getBBox()
    const width = 64
    const badge = document.createElementNS(SVG, 'g')
    badge.setAttribute('class', 'timer')
    badge.setAttribute('data-width', String(width))
    badge.setAttribute('transform', `translate(${String(outer.x + outer.width + 3)} ${String(inner.y - 3)})`)
    const part = (name: string, attributes: Readonly<Record<string, number | string>>): Element => {
      const element = document.createElementNS(SVG, name)
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value))
      badge.append(element)
      return element
    }
    part('rect', { class: 'timer-box', width, height: 18, rx: 4 })
    part('rect', { class: 'timer-left', width, height: 18, rx: 4 })
    part('text', { x: width / 2, y: 13, 'text-anchor': 'middle' })
    this.#svg.append(badge)
    this.#timers.set(event, badge)
    return badge
  }
}

/** A light runs along the arrow once. */
const trace = (line: SVGPathElement): void => {
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return
  const copy = line.cloneNode() as SVGPathElement
  copy.setAttribute('class', 'trace')
  line.after(copy)
  const length = line.getTotalLength()
  copy.setAttribute('stroke-dasharray', `${String(Math.min(60, length))} ${String(length + 60)}`)
  const animation = copy.animate([{ strokeDashoffset: 60 }, { strokeDashoffset: -length }], {
    duration: TRACE_MS,
    easing: 'ease-in-out',
  })
  animation.onfinish = () => {
    copy.remove()
  }
}
