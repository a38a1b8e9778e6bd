/** A protocol of the host's own: it says of each line what it is. */
import type { OutputStream, Protocol, ProtocolSession, ProtocolSink } from '../../actors/ports.js'
import { LineStreams } from './line-streams.js'
import { TurnFacts } from './frames/turn-facts.js'

/** What a line is. `null` is traffic. */
export type LineFact =
  | 'progress'
  | 'traffic'
  | 'completion-signal'
  | { readonly is: 'completed'; readonly isOk: boolean; readonly text?: string }
  | { readonly is: 'retry-notice'; readonly reason: string }
  /** A title is shown to people: a name or a kind, no arguments. */
  | { readonly is: 'tool-opened'; readonly id: string; readonly title: string }
  /** Progress only when `seen` differs from the last time: the status and the output, or what stands for them. */
  | { readonly is: 'tool-updated'; readonly id: string; readonly seen: unknown }
  | { readonly is: 'tool-closed' | 'person-asked' | 'person-answered'; readonly id: string }
  | { readonly is: 'unknown'; readonly type: string }

export interface CustomOptions {
  /** Default `custom`. */
  readonly name?: string
  /** Whether silence means anything. Default true. */
  readonly hasWatchdog?: boolean
  /** Called for each line. A throw makes the line traffic, of the unknown type `(classify failed)`. */
  readonly classify: (
    line: string,
    context: { readonly stream: OutputStream; readonly isTruncated: boolean },
  ) => LineFact | readonly LineFact[] | null
}

const applyFact = (facts: TurnFacts, fact: LineFact): void => {
  if (fact === 'traffic') return
  if (fact === 'progress') facts.progress()
  else if (fact === 'completion-signal') facts.signalled()
  else applyRich(facts, fact)
}

const applyRich = (facts: TurnFacts, fact: Exclude<LineFact, string>): void => {
  switch (fact.is) {
    case 'completed':
      facts.completed({ isOk: fact.isOk, text: fact.text })
      return
    case 'retry-notice':
      facts.retrying({ attempt: null, attemptsMax: null, delayMs: null, reason: fact.reason })
      return
    case 'tool-opened':
      facts.tools([{ id: fact.id, title: fact.title, isClosed: false, parts: {} }])
      return
    case 'tool-updated':
      facts.tools([{ id: fact.id, parts: { seen: fact.seen } }])
      return
    case 'tool-closed':
      facts.tools([{ id: fact.id, isClosed: true, parts: {} }])
      return
    case 'person-asked':
      facts.asked(fact.id)
      return
    case 'person-answered':
      facts.answered(fact.id)
      return
    case 'unknown':
      facts.unknown(fact.type)
  }
}

const asList = (said: ReturnType<CustomOptions['classify']>): readonly LineFact[] => {
  if (said === null) return []
  return typeof said === 'string' || 'is' in said ? [said] : said
}

/** Lines on both streams, classified by the host. */
export const custom = ({ name = 'custom', hasWatchdog = true, classify }: CustomOptions): Protocol => ({
  name,
  hasWatchdog,
  isInteractive: false,
  open: (sink: ProtocolSink, limits): ProtocolSession => {
    const facts = new TurnFacts(sink)
    const streams = new LineStreams(sink, limits, (stream, bytes, start, end, isTruncated) => {
      try {
        const said = classify(bytes.toString('utf8', start, end), { stream, isTruncated })
        for (const fact of asList(said)) applyFact(facts, fact)
      } catch {
        // F: the host's own code; the line is what it would be without it.
        facts.unknown('(classify failed)')
      }
    })
    return {
      get openTools() {
        return facts.openTools
      },
      unknownFrames: facts.unknownFrames,
      push: (stream, chunk) => {
        streams.push(stream, chunk)
        facts.flush()
      },
      end: () => {
        streams.end()
        facts.flush()
      },
    }
  },
})
