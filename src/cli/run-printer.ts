/**
 * Prints the events of one run as they come: the command's own bytes for people, one JSON object a line for programs.
 *
 * Does not own: the end. `settled` and `confirmed` are printed by the verb, last, when no output can follow them.
 */
import type { Run, RunEventOut } from '../index.js'
import { clean, printJson } from './output.js'
import { unconfirmedNote } from './run-messages.js'
import type { StatusLine } from './status-line.js'
import { stderr, stdout } from './streams.js'

const ENDS = new Set<RunEventOut['type']>(['settled', 'confirmed'])

export const printEventsAsJson = async (events: AsyncIterable<RunEventOut>): Promise<void> => {
  for await (const event of events) if (!ENDS.has(event.type)) await printJson(event)
}

export interface Notes {
  /** One line for people, on stderr. */
  say(text: string): Promise<void>
}

export const notesOn = (status: StatusLine, isQuiet: boolean): Notes => ({
  say: async (text) => {
    if (isQuiet) return
    await status.hide()
    await stderr.write(`runwarden: ${clean(text)}\n`)
  },
})

const retryNote = ({ attempt, attemptsMax, reason }: Extract<RunEventOut, { type: 'retrying' }>): string => {
  const count = attempt === null ? '' : ` (${[attempt, attemptsMax ?? []].flat().map(String).join(' of ')})`
  return `The agent tries again${count}: ${reason}`
}

const noteOf = (run: Run, event: RunEventOut): string | null => {
  switch (event.type) {
    case 'notice':
      return event.text
    case 'notice-withdrawn':
      return run.activity.isTurnOpen ? 'The agent is at work again' : null
    case 'retrying':
      return retryNote(event)
    case 'unconfirmed':
      return unconfirmedNote(run.id, event.survivors)
    case 'dropped':
      return `${String(event.count)} pieces of output are missing here, because they were not read in time; \`runwarden logs ${run.id}\` has them`
    case 'output-ended':
      return event.isCut ? 'a process outside the tree held the output open; it was cut' : null
    case 'launched': {
      const { pane } = event
      return pane === undefined
        ? null
        : `${run.id} runs in pane ${pane.paneId}; see it with \`tmux -S ${pane.socket} attach -t ${pane.paneId}\``
    }
    case 'accepted':
    case 'transition':
    case 'output':
    case 'frame':
    case 'bytes':
    case 'turn-ended':
    case 'unknown-frame':
    case 'settled':
    case 'confirmed':
      return null
  }
}

/** Byte for byte, each stream to its own; one piece at a time, so that both keep their order. */
export const printOutput = async (
  run: Run,
  events: AsyncIterable<RunEventOut>,
  status: StatusLine,
  notes: Notes,
): Promise<void> => {
  for await (const event of events) {
    if (event.type === 'bytes') {
      const sink = event.stream === 'stdout' ? stdout : stderr
      await status.makeWayFor(sink, event.chunk)
      await sink.write(event.chunk)
    }
    const note = noteOf(run, event)
    if (note !== null) await notes.say(note)
  }
}
