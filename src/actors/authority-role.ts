/**
 * What the registry and its stop orders have in common as actors: all they do is ending things, so every event of theirs is an intent,
 * none is the engine's own guess, and none waits for a store that does not answer. Nothing of theirs is secret.
 */
import type { AnyEventObject } from 'xstate'

export abstract class AuthorityRole {
  isIntent(): boolean {
    return true
  }

  isAutomatic(): boolean {
    return false
  }

  isDeclinable(): boolean {
    return false
  }

  mayRunAhead(): boolean {
    return true
  }

  stamp(event: AnyEventObject): AnyEventObject {
    return event
  }

  redact(event: AnyEventObject): unknown {
    return event
  }
}
