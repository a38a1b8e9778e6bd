/** A protocol made of a table of frames, and, where it takes prompts, of the commands of its dialect. */
import type { Protocol } from '../../../actors/ports.js'
import { DrivenSession } from './driven-session.js'
import type { Dialect } from './driven-session.js'
import { FrameSession } from './frame-session.js'
import type { FrameTable } from './frame-table.js'
import type { PermissionOptions } from './permission-desk.js'

/** The agent is given its prompt with its command, or on stdin as text. */
export const frameProtocol = (name: string, table: FrameTable): Protocol => ({
  name,
  hasWatchdog: true,
  isInteractive: false,
  open: (sink, limits) => new FrameSession(table, sink, limits),
})

/** The agent takes prompts one after the other. */
export const drivenProtocol = (
  name: string,
  table: FrameTable,
  dialect: Dialect,
  options: PermissionOptions,
): Protocol => ({
  name,
  hasWatchdog: true,
  isInteractive: true,
  open: (sink, limits) => new DrivenSession(new FrameSession(table, sink, limits), dialect, options),
})
