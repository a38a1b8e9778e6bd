/** Waits for a store that does not answer: to look something up and to begin an actor, which have deadlines, and to take up what is there, which cannot be left. */
import { RunwardenError } from '../errors.js'
import type { HostServices } from './actor-role.js'
import type { Clock } from './ports.js'
import type { ActorKind, ActorWrite, CommitVerdict, StoredActor } from './store.ports.js'

/** How much longer than `commitDeadlineMs` a beginning waits: the store's own failure, where one comes, says more. */
const ANSWER_SLACK_MS = 1_000
const LOAD_AGAIN_MS = 200

/** What cannot be recorded does not begin. `recordedLate`: it was given up, and then the store had taken it all the same. */
export const commitFirst = (
  { clock, commits, commitDeadlineMs }: HostServices,
  write: ActorWrite,
  recordedLate: () => void,
): Promise<CommitVerdict> =>
  new Promise((resolve, reject) => {
    let isGivenUp = false
    const cancel = clock.after(commitDeadlineMs + ANSWER_SLACK_MS, () => {
      isGivenUp = true
      reject(new RunwardenError('store-unavailable', 'the store did not answer in time'))
      commits.withdraw(write)
    })
    commits
      .submit(write, commitDeadlineMs)
      .then((verdict) => {
        if (!isGivenUp) resolve(verdict)
        else if (verdict === 'committed') recordedLate()
      }, reject)
      .finally(cancel)
  })

/** F: a store that is away for a moment is no fault of the chart. */
export const loadActor = async (
  { store, clock }: HostServices,
  kind: ActorKind,
  id: string,
): Promise<StoredActor | null> => {
  for (;;) {
    try {
      return await store.loadActor(kind, id)
    } catch {
      await new Promise<void>((resolve) => clock.after(LOAD_AGAIN_MS, resolve, { isBackground: true }))
    }
  }
}

/** INV-11: a store that does not answer a lookup is one that failed it. */
export const inTime = <T>(clock: Clock, answer: Promise<T>, timeoutMs: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const cancel = clock.after(timeoutMs, () => {
      reject(new RunwardenError('store-unavailable', 'the store did not answer in time'))
    })
    answer.then(resolve, reject).finally(cancel)
  })
