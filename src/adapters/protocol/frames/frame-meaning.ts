/**
 * What a frame can mean: the words in which every protocol's table is written.
 *
 * Most meanings need nothing but the frame's type. The others carry a `read`, which is given the parsed frame: an empty object when the
 * line was cut or is no JSON, so that the type alone still counts.
 */
import type { RetryNotice } from '../../../actors/ports.js'

export interface Completion {
  /** Absent: as the last standing said, or well. */
  readonly isOk?: boolean | undefined
  readonly text?: string | undefined
  /** The frame itself says that the turn was ended on request. */
  readonly wasCancelled?: boolean
  /** Which prompt is complete, where the protocol says. */
  readonly prompt?: string | number | undefined
}

/** How the turn stands, for a completion that does not say it by itself. */
export interface Standing {
  readonly isOk: boolean
  readonly text: string | undefined
}

export interface ToolName {
  readonly id: string
  /** A name or a kind; never arguments (K8). */
  readonly title: string
}

/** One look at a tool call (K3). */
export interface ToolLook {
  readonly id: string
  readonly title?: string | undefined
  /** Absent: as before. */
  readonly isClosed?: boolean | undefined
  /** What moves when the tool works, by name. A part that is undefined was not shown. */
  readonly parts: Readonly<Record<string, unknown>>
  /** The frame holds output that no frame before it held. */
  readonly isDelta?: boolean
}

/** A question to a person. */
export interface Asking {
  readonly id: string
  /** The tool call that it is about. */
  readonly tool?: ToolLook | null
}

interface Reading<Is extends string, T> {
  readonly is: Is
  readonly read: (frame: unknown) => T
}

export type Meaning = (
  | {
      readonly is:
        | 'progress'
        | 'traffic'
        | 'user-echo'
        | 'unknown'
        | 'turn-began'
        | 'completion-signal'
        | 'cancel-acknowledged'
    }
  | Reading<'completion', Completion | null>
  | Reading<'standing', Standing | null>
  | Reading<'retry-notice', RetryNotice | null>
  | Reading<'tool-opened', readonly ToolName[]>
  | Reading<'tool-updated', ToolLook | null>
  | Reading<'tool-closed', readonly string[]>
  | Reading<'person-asked', Asking | null>
  | Reading<'person-answered', string | null>
) & {
  /** The frame is for the library that speaks the protocol, too. */
  readonly isAddressed?: true
}

/** Evidence of work (K1, K2). */
export const PROGRESS: Meaning = { is: 'progress' }
/** A sign of life, and no more. */
export const TRAFFIC: Meaning = { is: 'traffic' }
/** What the user said, said back: traffic. */
export const USER_ECHO: Meaning = { is: 'user-echo' }
/** Traffic of a type that the table does not know: counted, and reported once. */
export const UNKNOWN: Meaning = { is: 'unknown' }
/** The agent has taken up a prompt: traffic, and from here on a completion that names no prompt is of this turn (K11). */
export const TURN_BEGAN: Meaning = { is: 'turn-began' }
/** The agent says that it is done, and the turn stays open (K10). */
export const COMPLETION_SIGNAL: Meaning = { is: 'completion-signal' }
/** The agent has heard that the turn is to end (K13). */
export const CANCEL_ACKNOWLEDGED: Meaning = { is: 'cancel-acknowledged' }

/** The turn is over. Null: it is not, and the frame is traffic. */
export const completion = (read: (frame: unknown) => Completion | null): Meaning => ({
  is: 'completion',
  read,
})
/** Says how the turn stands: progress when well, traffic when not. Null: traffic. */
export const standing = (read: (frame: unknown) => Standing | null): Meaning => ({ is: 'standing', read })
/** The agent waits for its model: traffic, for people. Null: plain traffic. */
export const retryNotice = (read: (frame: unknown) => RetryNotice | null): Meaning => ({
  is: 'retry-notice',
  read,
})
/** Tool calls begin: progress, once. None at the top level: progress all the same. */
export const toolOpened = (read: (frame: unknown) => readonly ToolName[]): Meaning => ({
  is: 'tool-opened',
  read,
})
/** A tool call is shown again: progress only when something moved (K3). */
export const toolUpdated = (read: (frame: unknown) => ToolLook | null): Meaning => ({
  is: 'tool-updated',
  read,
})
/** Tool calls end: likewise. */
export const toolClosed = (read: (frame: unknown) => readonly string[]): Meaning => ({
  is: 'tool-closed',
  read,
})
/** A person is asked: progress, and from here on silence is theirs. */
export const personAsked = (read: (frame: unknown) => Asking | null): Meaning => ({
  is: 'person-asked',
  read,
})
/** The question of that id is answered, or taken back. */
export const personAnswered = (read: (frame: unknown) => string | null): Meaning => ({
  is: 'person-answered',
  read,
})

export const addressed = (meaning: Meaning): Meaning => ({ ...meaning, isAddressed: true })
