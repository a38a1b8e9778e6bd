/** The policy of a run without any wishes. */
import type { RunPolicy } from '../../src/machines/run/run.context.js'

export const plainPolicy: RunPolicy = {
  isInteractive: false,
  isDriven: false,
  hasPrompt: false,
  candidates: 1,
  canAsk: false,
  isPersistent: false,
  hasFinalize: false,
  hasDeliver: false,
  askGraceMs: 0,
  termGraceMs: 5_000,
  termGraceReason: null,
  killGraceMs: 2_000,
  pauseGraceMs: 900_000,
  exitGraceMs: 10_000,
  turnCancelMs: 10_000,
  finalizeDeadlineMs: 30_000,
  isForeground: false,
  timeoutMs: null,
  maxOutputBytes: null,
}
