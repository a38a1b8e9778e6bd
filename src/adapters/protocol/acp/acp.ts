/** The Agent Client Protocol, version 1: JSON-RPC, one message a line. */
import type { Protocol } from '../../../actors/ports.js'
import { FrameSession } from '../frames/frame-session.js'
import { ACP_FRAMES } from './acp-frames.js'
import type { AcpOptions } from './acp-options.js'
import { AcpSession } from './acp-session.js'

/** An agent that speaks the Agent Client Protocol. Prompts are given one by one. */
export const acp = (options: AcpOptions = {}): Protocol => ({
  name: 'acp',
  hasWatchdog: true,
  isInteractive: true,
  open: (sink, limits) => new AcpSession(new FrameSession(ACP_FRAMES, sink, limits), options),
})
