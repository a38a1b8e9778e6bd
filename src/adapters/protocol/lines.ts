/**
 * The protocols of a command that speaks none: output is progress, the exit is the end.
 *
 * Without a protocol silence says nothing (a compiler may be quiet for an hour), so no watchdog runs.
 */
import type { OutputStream, Protocol, ProtocolSession, ProtocolSink } from '../../actors/ports.js'
import { LineFramer } from './line-framer.js'

const NO_TOOLS: ProtocolSession['openTools'] = []
const NO_UNKNOWNS: ProtocolSession['unknownFrames'] = new Map()

/** Text lines on both streams; all output is progress. */
export const lines = (): Protocol => ({
  name: 'lines',
  hasWatchdog: false,
  isInteractive: false,
  open: (sink: ProtocolSink, { maxLineBytes }): ProtocolSession => {
    const framer = (stream: OutputStream): LineFramer =>
      new LineFramer(maxLineBytes, (bytes, start, end, isTruncated) => {
        sink.line(stream, bytes.toString('utf8', start, end), isTruncated)
      })
    const framers = { stdout: framer('stdout'), stderr: framer('stderr') }
    return {
      openTools: NO_TOOLS,
      unknownFrames: NO_UNKNOWNS,
      push: (stream, chunk) => {
        sink.progress()
        framers[stream].push(chunk)
      },
      end: () => {
        framers.stdout.end()
        framers.stderr.end()
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
