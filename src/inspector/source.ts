/**
 * What the inspector looks at: an engine of this process, or the records of a store alone.
 *
 * Owns: the question whether anything may have changed since the last look. It costs a number when nothing has, and nothing while nobody
 * looks.
 */
import type { Engine, Records } from '../index.js'

export type Inspected = Engine | Records

/** Where a store cannot tell that it changed it is looked at so often, and no more. */
const BLIND_LOOK_MS = 1_000

export const isEngine = (inspected: Inspected): inspected is Engine => 'subscribe' in inspected

export class Source {
  readonly inspected: Inspected
  #token: number | null = null
  #lookedAt = 0
  #hasNews = true
  #unsubscribe: (() => void) | null = null
  /** Counts the looks that found a change: who has seen this number has seen everything. */
  #generation = 0

  constructor(inspected: Inspected) {
    this.inspected = inspected
  }

  get generation(): number {
    return this.#generation
  }

  begin(): void {
    this.#hasNews = true
    if (this.#unsubscribe !== null || !isEngine(this.inspected)) return
    this.#unsubscribe = this.inspected.subscribe(() => {
      this.#hasNews = true
    })
  }

  end(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = null
  }

  /** Whether there may be something new since this was asked last. */
  async hasChanged(): Promise<boolean> {
    const token = await this.inspected.changeToken()
    const isBlind = token === null && Date.now() - this.#lookedAt >= BLIND_LOOK_MS
    const hasChanged = this.#hasNews || isBlind || (token !== null && token !== this.#token)
    if (!hasChanged) return false
    this.#token = token
    this.#lookedAt = Date.now()
    this.#hasNews = false
    this.#generation += 1
    return true
  }
}
