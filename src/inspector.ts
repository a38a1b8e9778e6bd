/** `runwarden/inspector`: the local page on which runs are seen to move, and its server. */
import type { Engine, Records } from './index.js'
import { Inspector } from './inspector/inspector.js'
import { parseInspectorOptions } from './inspector/options.js'
import type { InspectorOptions } from './inspector/options.js'

/**
 * A page over an engine, and over every run in its store, or over the records of a store alone, which it can only look at.
 * Nothing is read while nobody looks. `listen()` starts a server; `handler` and `fetch` mount it in one of the host's.
 *
 * @throws `invalid-option`, naming the option and the value.
 */
export const createInspector = (inspected: Engine | Records, options: InspectorOptions = {}): Inspector =>
  new Inspector(inspected, parseInspectorOptions(options))

export type { Inspector }
export type { InspectorOptions }
