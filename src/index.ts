/** The public door. Everything a host app may use is named here or in the other entry files beside it. */
export { createEngine, openRecords } from './open-engine.js'
export type { EngineOptions } from './open-engine.js'
export type { Engine, LiveExecution } from './engine.js'
export type { EndOptions, EventOptions, Run } from './run.js'
export type { Delivery, DeliveryHooks, HookContext, SettledRun } from './actors/deliveries.js'
export type { FailedAttempt } from './actors/fallback.js'
export { acknowledgeDelivery } from './adapters/store/acknowledge.js'
export type {
  CloseOptions,
  FreezeOrderOptions,
  PauseOptions,
  PresenceSourceOptions,
  Scope,
  StopOptions,
} from './options.js'
export type { RunSpec } from './run-spec.js'
export type { Presence, PresenceReceipt, PresenceSource } from './presence.js'
export type { PauseAnswer } from './actors/freezing.js'
export { RunwardenError } from './errors.js'
export type { RunwardenErrorCode } from './errors.js'
export type {
  HistoryQuery,
  LogOptions,
  Records,
  RegionStates,
  RunHistory,
  RunProcess,
  RunQuery,
  RunSummary,
  RunTimer,
  TransitionRecord,
} from './records.js'
export type { StopReceipt } from './actors/stop-call.js'
export type { StopLine } from './machines/stop-order/stop-order.context.js'
export type { Gone, RunEventOut, RunEvents } from './actors/run-events.js'
export type { RunActivity } from './actors/run-turns.js'
export type { FreezeState, RunState } from './actors/run-state.js'
export type { TurnEnd } from './actors/turn-end.js'
export type {
  Cancellation,
  Evidence,
  EvidenceKind,
  FreezeOwner,
  Intent,
  OnRecover,
  Outcome,
  OutcomeStatus,
  RunPolicy,
  Survivor,
} from './machines/run/run.context.js'
export type { InspectionObserver } from './actors/inspection.js'
export type { Logger } from './actors/ports.js'
export type { LogPiece } from './adapters/process/log-reader.js'
export { VERSION } from './version.js'
