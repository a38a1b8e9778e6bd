/**
 * What a workload is: the same job done by several contenders, each in a process of its own.
 *
 * Owns: the shapes that the runner, the report and the workloads share.
 */

export type Params = Readonly<Record<string, number>>

export interface Sample {
  /** What is compared, in the workload's unit. */
  readonly value: number
  /** Further figures of this sample, by name; the name ends in the unit. */
  readonly more?: Readonly<Record<string, number>>
  /** What the contender did, free of times: every contender that does the job right has the same. */
  readonly result: unknown
}

export interface Contender {
  readonly name: string
  /** Why it cannot take part here, or null. */
  readonly why?: () => string | null
  readonly run: (params: Params) => Promise<Sample>
}

export interface Workload {
  readonly id: string
  readonly title: string
  readonly unit: string
  /** The contender that the others are compared with. */
  readonly floor: string
  /** What performance.md asks for, for people. */
  readonly reach: string
  /** Whether ours reaches it. `of` gives the medians of a contender's figures. */
  readonly isReached: (of: (contender: string) => Medians) => boolean
  /** Each is measured by itself. */
  readonly sizes: readonly Params[]
  /** So small that it runs among the tests. */
  readonly tiny: Params
  /** The floor first, and ours last. */
  readonly contenders: readonly Contender[]
}

export interface Medians {
  readonly value: number
  /** To the floor of the same round. */
  readonly ratio: number
  readonly more: Readonly<Record<string, number>>
}

export const OURS = 'runwarden'
