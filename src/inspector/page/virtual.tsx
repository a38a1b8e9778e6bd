/** A long list of which only what can be seen is in the document. Rows have one height. */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

const OVERSCAN = 6

interface VirtualProps<T> {
  readonly items: readonly T[]
  readonly rowHeight: number
  readonly keyOf: (item: T) => string | number
  readonly children: (item: T, index: number) => ComponentChildren
  /** Is brought into view whenever it changes. */
  readonly current?: number
  readonly class: string
  readonly role: 'rowgroup' | 'group'
  readonly label: string
}

export const Virtual = <T,>(props: VirtualProps<T>) => {
  const { items, rowHeight, keyOf, children, current, role, label } = props
  const frame = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 800 })
  useEffect(() => {
    const element = frame.current
    if (element === null) return undefined
    const look = (): void => {
      setView((was) =>
        was.top === element.scrollTop && was.height === element.clientHeight
          ? was
          : { top: element.scrollTop, height: element.clientHeight },
      )
    }
    const observer = new ResizeObserver(look)
    observer.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    look()
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [])
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null || current === undefined || current < 0) return
    const top = current * rowHeight
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight
  }, [current, items.length])
  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN)
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN)
  return (
    <div ref={frame} class={`virtual ${props.class}`} role={role} aria-label={label} tabIndex={-1}>
      <div
        class="virtual-all"
        role="presentation"
        style={{ height: `${String(items.length * rowHeight)}px` }}
      >
        {items.slice(first, last).map((item, offset) => (
          <div
            key={keyOf(item)}
            class="virtual-row"
            role="presentation"
            style={{ transform: `translateY(${String((first + offset) * rowHeight)}px)` }}
          >
            {children(item, first + offset)}
          </div>
        ))}
      </div>
    </div>
  )
}
