/**
 * What changes in the queue, whichever process changes it.
 *
 * Looks at the revisions of all jobs that are not over, when the store has changed and somebody listens; a look is some 10 ms for 10 000
 * jobs. Several changes of one job between two looks are one.
 * Invariants: F (a listener that throws hurts nobody), INV-11.
 */
import { messageOf } from '../errors.js'
import type { JobChange, JobRevision, JobStorePort } from './job.ports.js'
import type { Cancel, Clock, Logger } from './ports.js'

const LOOK_EVERY_MS = 200
/** What changes in quick succession is looked at once. */
const NUDGED_LOOK_MS = 20

export type ChangeListener = (jobId: string, change: JobChange) => Promise<void>

export interface FollowerParts {
  readonly store: FollowedStore
  readonly clock: Clock
  readonly logger: Logger
  /** The store is closing, or closed. */
  readonly isClosed: () => boolean
}

export interface FollowedStore {
  readonly jobs: JobStorePort
  changeToken(): Promise<number | null>
}

const isSame = (one: JobRevision, other: JobRevision): boolean =>
  one.rev === other.rev && one.headline === other.headline

export class JobFollower {
  readonly #parts: FollowerParts
  readonly #tell: ChangeListener
  #known: Map<string, JobRevision> | null = null
  #token: number | null = null
  #isFollowing = false
  #isNudged = false
  #looking: Promise<void> | null = null
  #cancel: Cancel = () => undefined
  #isReady: () => void = () => undefined
  /** Settles when what is there is known: a change made after it is told. */
  ready: Promise<void> = Promise.resolve()

  constructor(parts: FollowerParts, tell: ChangeListener) {
    this.#parts = parts
    this.#tell = tell
  }

  /** From now on; what was before is not told. */
  start(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    this.#known = null
    this.ready = new Promise((resolve) => {
      this.#isReady = resolve
    })
    this.#look()
  }

  stop(): void {
    this.#isFollowing = false
    this.#cancel()
  }

  /** This process changed something: the store tells only of others. */
  nudge(): void {
    if (!this.#isFollowing || this.#isNudged) return
    this.#isNudged = true
    if (this.#looking === null) this.#lookIn(NUDGED_LOOK_MS)
  }

  /** Resolves when every change that was made before this call was told. */
  async catchUp(): Promise<void> {
    if (!this.#isFollowing) return
    await this.#looking
    this.#isNudged = true
    this.#look()
    while (this.#looking !== null) await this.#looking
  }

  #look(): void {
    if (this.#looking !== null) return
    this.#cancel()
    this.#looking = this.#compare()
      .catch((error: unknown) => {
        this.#token = null
        // Nothing will be heard from it any more.
        if (this.#parts.isClosed()) this.#isFollowing = false
        else this.#parts.logger.warn({ error: messageOf(error) }, 'the queue could not be looked at')
      })
      .finally(() => {
        this.#looking = null
        this.#isReady()
        if (!this.#isFollowing) return
        this.#lookIn(this.#isNudged ? NUDGED_LOOK_MS : LOOK_EVERY_MS)
      })
  }

  #lookIn(delayMs: number): void {
    this.#cancel()
    this.#cancel = this.#parts.clock.after(
      delayMs,
      () => {
        this.#look()
      },
      { isBackground: true },
    )
  }

  async #compare(): Promise<void> {
    const isNudged = this.#isNudged
    this.#isNudged = false
    const token = await this.#parts.store.changeToken()
    if (this.#known !== null && !isNudged && token !== null && token === this.#token) return
    const now = new Map((await this.#parts.store.jobs.revisions()).map((revision) => [revision.id, revision]))
    this.#token = token
    const before = this.#known
    this.#known = now
    if (before === null) return
    for (const [id, revision] of now) {
      const known = before.get(id)
      if (known === undefined) await this.#tell(id, 'added')
      else if (!isSame(known, revision)) await this.#tell(id, 'changed')
    }
    // What is over, or was removed.
    for (const id of before.keys()) if (!now.has(id)) await this.#tell(id, 'ended')
  }
}
