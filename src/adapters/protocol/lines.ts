/**
 * The protocol of a command that speaks none: output is progress, the exit is the end.
 *
 * Without a protocol silence says nothing (a compiler may be quiet for an hour), so no watchdog runs.
 */
import type { OutputStream, Protocol, ProtocolSession, ProtocolSink } from '../../actors/ports.js'
import { LineFramer } from './line-framer.js'

/** Text lines on both streams; every line is progress. */
export const lines = (): Protocol => ({
  name: 'lines',
  hasWatchdog: false,
  open: (sink: ProtocolSink, { maxLineBytes }): ProtocolSession => {
    const framer = (stream: OutputStream): LineFramer =>
      new LineFramer(maxLineBytes, (line, isTruncated) => {
        sink.line(stream, line.toString('utf8'), isTruncated)
      })
    const framers = { stdout: framer('stdout'), stderr: framer('stderr') }
    return {
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
