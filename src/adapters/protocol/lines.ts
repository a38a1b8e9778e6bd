/**
 * The protocols of a command that speaks none: output is progress, the exit is the end.
 *
 * Without a protocol silence says nothing (a compiler may be quiet for an hour), so no watchdog runs.
 */
import type { Protocol, ProtocolSession, ProtocolSink } from '../../actors/ports.js'
import { LineStreams } from './line-streams.js'

const NO_TOOLS: ProtocolSession['openTools'] = []
const NO_UNKNOWNS: ProtocolSession['unknownFrames'] = new Map()

/** Text lines on both streams; all output is progress. */
export const lines = (): Protocol => ({
  name: 'lines',
  hasWatchdog: false,
  isInteractive: false,
  open: (sink: ProtocolSink, limits): ProtocolSession => {
    const streams = new LineStreams(sink, limits, () => undefined)
    return {
      openTools: NO_TOOLS,
      unknownFrames: NO_UNKNOWNS,
      push: (stream, chunk) => {
        sink.progress()
        streams.push(stream, chunk)
      },
      end: () => {
        streams.end()
      },
    }
  },
})

/** Bytes on both streams; all output is progress, and nothing is cut into lines. */
export const bytes = (): Protocol => ({
  name: 'bytes',
  hasWatchdog: false,
  isInteractive: false,
  open: (sink: ProtocolSink): ProtocolSession => ({
    openTools: NO_TOOLS,
    unknownFrames: NO_UNKNOWNS,
    push: () => {
      sink.progress()
    },
    end: () => undefined,
  }),
})
