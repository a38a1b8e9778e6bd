/** A sink that writes down what it hears. */
import type { ProtocolSink, RetryNotice, TurnResult } from '../../../src/protocols.js'

export interface Line {
  readonly stream: 'stdout' | 'stderr'
  readonly text: string
  readonly isTruncated: boolean
}

export class Recorder implements ProtocolSink {
  /** Everything but lines, in order, by the name of the call. */
  readonly heard: string[] = []
  readonly results: TurnResult[] = []
  readonly notices: RetryNotice[] = []
  readonly unknown: string[] = []
  readonly lines: Line[] = []
  isListening = true

  /** How often a call came. */
  count(call: keyof ProtocolSink): number {
    return this.heard.filter((heard) => heard === call).length
  }

  get hasSeenProgress(): boolean {
    return this.heard.includes('progress')
  }

  progress(): void {
    this.heard.push('progress')
  }
  completed(result: TurnResult): void {
    this.heard.push('completed')
    this.results.push(result)
  }
  cancelled(): void {
    this.heard.push('cancelled')
  }
  cancelAcknowledged(): void {
    this.heard.push('cancelAcknowledged')
  }
  completionSignalled(): void {
    this.heard.push('completionSignalled')
  }
  retrying(notice: RetryNotice): void {
    this.heard.push('retrying')
    this.notices.push(notice)
  }
  personAsked(): void {
    this.heard.push('personAsked')
  }
  personAnswered(): void {
    this.heard.push('personAnswered')
  }
  unknownFrame(type: string): void {
    this.heard.push('unknownFrame')
    this.unknown.push(type)
  }
  wantsLines(): boolean {
    return this.isListening
  }
  line(stream: 'stdout' | 'stderr', text: string, isTruncated: boolean): void {
    this.lines.push({ stream, text, isTruncated })
  }
}

export const LIMITS = { maxLineBytes: 8 * 1024 * 1024 }
