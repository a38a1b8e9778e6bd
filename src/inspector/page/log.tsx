/** The end of what the run wrote. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { LogUpdate } from '../wire.js'
import { listenTo } from './net.js'

/** So much of it is kept on the page. */
const CHARS_MAX = 200_000
const NEAR_END_PX = 40

/** Colours and movements of a terminal mean nothing here. */
const CONTROL =
  // eslint-disable-next-line no-control-regex -- the control characters are what this looks for
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])|[\u0000-\u0008\u000b-\u001f\u007f]/g

const append = (frame: HTMLElement, kind: string, text: string): void => {
  const last = frame.lastElementChild
  const clean = text.replace(CONTROL, '')
  if (last?.className === kind && last.textContent.length < 8_000) last.append(clean)
  else {
    const span = document.createElement('span')
    span.className = kind
    span.textContent = clean
    frame.append(span)
  }
}

const trim = (frame: HTMLElement): void => {
  let chars = frame.textContent.length
  while (chars > CHARS_MAX && frame.firstElementChild !== null && frame.childElementCount > 1) {
    chars -= frame.firstElementChild.textContent.length
    frame.firstElementChild.remove()
  }
}

/** What is said of the log, instead of its text or behind it. */
const noteOf = (update: LogUpdate): string => {
  switch (update.kind) {
    case 'text':
      return ''
    case 'gap':
      return ''
    case 'end':
      return 'The run is over.'
    case 'none':
      return update.reason
  }
}

export const Log = ({ runId }: { readonly runId: string }) => {
  const frame = useRef<HTMLPreElement>(null)
  const [note, setNote] = useState('Reading…')
  useEffect(() => {
    const take = (update: LogUpdate): void => {
      const element = frame.current
      if (element === null) return
      const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_END_PX
      if (update.kind === 'text') for (const { stream, text } of update.pieces) append(element, stream, text)
      if (update.kind === 'gap') append(element, 'gap', '\n— earlier output is missing here —\n')
      trim(element)
      if (isAtEnd) element.scrollTop = element.scrollHeight
      setNote(noteOf(update))
      // The browser would come again, and be told everything again.
      if (update.kind === 'end' || update.kind === 'none') close()
    }
    const forget = (): void => frame.current?.replaceChildren()
    forget()
    const close = listenTo(`./log?run=${encodeURIComponent(runId)}`, { log: take }, forget)
    return close
  }, [runId])
  return (
    <div class="log">
      <pre ref={frame} tabIndex={0} aria-label="Output" />
      {note === '' ? null : <p class="quiet">{note}</p>}
    </div>
  )
}
