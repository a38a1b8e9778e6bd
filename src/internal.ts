/** The seam for tests and benches: what the public door does not show. Not exported from the package. */
export { openEngineOver, openStore } from './open-engine.js'
export { engineOptionsSchema, parseOptions } from './options.js'
export { DurableActor } from './actors/durable-actor.js'
export { GroupCommit } from './actors/group-commit.js'
export { ProgressClock } from './actors/progress-clock.js'
export { EventStream } from './actors/event-stream.js'
export { Mailbox } from './actors/mailbox.js'
export { systemClock } from './adapters/clock/system-clock.js'
