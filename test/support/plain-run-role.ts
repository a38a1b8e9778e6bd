/** The role of a run that does nothing but remember: for tests of the host that plays it. */
import type { ActorRole, Transition } from '../../src/actors/actor-role.js'
import { headOf } from '../../src/actors/run-state.js'
import type { KindRows } from '../../src/actors/store.ports.js'
import type { RunContext } from '../../src/machines/run/run.context.js'
import { isAutomaticEvent, isDeclinableEvent, isIntentEvent } from '../../src/machines/run/run.events.js'
import { runMachine } from '../../src/machines/run/run.machine.js'

export abstract class PlainRunRole implements ActorRole {
  readonly kind = 'run'
  readonly machine = runMachine
  readonly machineVersion = 1
  readonly seen: Transition[] = []
  isIntent = (event: { type: string }): boolean => isIntentEvent(event.type)
  isAutomatic = (event: { type: string }): boolean => isAutomaticEvent(event.type)
  isDeclinable = (event: { type: string }): boolean => isDeclinableEvent(event.type)
  mayRunAhead = (snapshot: { context: unknown }): boolean => (snapshot.context as RunContext).intent !== null
  stamp = <T>(event: T): T => event
  describe = (): string => '{}'
  redact = (event: unknown): unknown => event
  rows = ({ before, after, at, actor }: Transition): KindRows => ({
    kind: 'run',
    ...(before === null
      ? {
          created: {
            id: actor,
            session: null,
            task: null,
            labels: {},
            program: 'x',
            protocol: 'lines',
            job: null,
            parent: null,
            onParentCancel: 'cancel',
            createdAt: at,
          },
        }
      : {}),
    head: headOf(after, at, null, null),
    executions: [],
    notices: [],
  })
  committed = (transition: Transition): void => void this.seen.push(transition)
  abstract readonly faulted: (error: unknown) => void
  abstract readonly disowned: () => void
}
